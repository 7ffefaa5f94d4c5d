package codegen

import (
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	kernelsite "github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// TestEvictsFirst holds which kernels load weights as read once.
func TestEvictsFirst(t *testing.T) {
	for _, c := range []struct {
		family string
		rows   int
		types  []ir.DType
		want   bool
	}{
		{"gemv", 1, []ir.DType{ir.Q8_0, ir.Q6_K}, true},
		{"gemv", 4, []ir.DType{ir.Q6_K, ir.F32}, true},
		{"gemv", 4, []ir.DType{ir.Q8_0}, false},
		{"gemm_fixed", 8, []ir.DType{ir.Q8_0}, false},
		{"gemm_wide", 32, []ir.DType{ir.Q8_0, ir.Q4_K}, true},
		{"gemm_wide", 32, []ir.DType{ir.Q8_0, ir.Q4_0}, false},
		{"expert_wide", 32, []ir.DType{ir.Q4_K}, false},
	} {
		k := &kernels.Candidate{Family: c.family, Rows: c.rows}
		for _, d := range c.types {
			k.Operands = append(k.Operands, kernels.Operand{Value: &ir.Value{Class: ir.Weight, Type: ir.Type{DType: d}}})
		}
		if got := evictsFirst(made{k, &ir.Call{}}); got != c.want {
			t.Errorf("%s of %d rows, %v: %v", c.family, c.rows, c.types, got)
		}
	}
}

// TestCallsShareModules holds that calls of one kernel share no module where its code depends on more than
// the name.
func TestCallsShareModules(t *testing.T) {
	b, err := backendOf(plans.CUDA)
	if err != nil {
		t.Fatal(err)
	}
	ahead := func(d ir.DType, p kernelsite.Prefetch) *kernels.Candidate {
		p.Value = &ir.Value{Class: ir.Weight, Type: ir.Type{DType: d}}
		return &kernels.Candidate{Family: "gemv", Prefetches: []kernelsite.Prefetch{p}}
	}
	seen := map[string]int{}
	for i, c := range []*kernels.Candidate{
		{Family: "gemv"},
		{Family: "rownorm"},
		{Family: "gemv", Room: 512},
		{Family: "gemv", Form: ir.Form{Room: 768}},
		ahead(ir.Q4_K, kernelsite.Prefetch{Lines: 8}),
		ahead(ir.Q4_0, kernelsite.Prefetch{Lines: 8}),
		ahead(ir.Q4_K, kernelsite.Prefetch{Lines: 8, After: true}),
		ahead(ir.Q4_K, kernelsite.Prefetch{Lines: 16}),
	} {
		c.Kernel = "k"
		key := b.moduleKey(made{c, &ir.Call{}})
		if other, ok := seen[key]; ok {
			t.Errorf("candidates %d and %d have the key %q", other, i, key)
		}
		seen[key] = i
	}
}

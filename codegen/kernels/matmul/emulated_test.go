package matmul_test

import (
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// TestManyRowsEmulated runs families for many rows on the emulated GPUs, at rows, outputs and experts that fill no
// tile, also those for which a GPU has better ones. Tests of single dispatches run the other families there.
func TestManyRowsEmulated(t *testing.T) {
	m := moes[4]
	m.all, m.none, m.shared = 3, 5, 0
	down := func(w *work, x *ir.Value) []*ir.Value {
		weights := w.stack(m.dtype, m.experts, m.embd, m.ff)
		chosen := w.chosen(w.scores(&m), m.slots)
		return []*ir.Value{w.experts(x, weights, chosen, 0, m.embd, w.sorted(&m, chosen)...)}
	}
	for _, c := range []struct {
		family string
		rows   int
		group  func(w *work) []*ir.Value
	}{
		{"gemm", 38, func(w *work) []*ir.Value { return []*ir.Value{w.linear(w.rows(ir.T, 256), ir.Q4_K, 70)} }},
		{"gemm_coop", 20, func(w *work) []*ir.Value { return []*ir.Value{w.linear(w.rounded(w.rows(ir.T, 256)), ir.Q4_K, 72)} }},
		{"gemm_dot", 38, func(w *work) []*ir.Value { return []*ir.Value{w.linear(w.fixed8(w.dotInput(320)), ir.Q8_0, 70)} }},
		{"gemm_float", 130, func(w *work) []*ir.Value { return []*ir.Value{w.linear(w.rows(ir.T, 256), ir.F32, 70)} }},
		{"gemm_lanes", 38, func(w *work) []*ir.Value { return []*ir.Value{w.linear(w.rows(ir.T, 256), ir.F32, 35)} }},
		{"expert_gemm", 38, func(w *work) []*ir.Value { return down(w, w.input(ir.Dim(m.slots*m.ff))) }},
		{"expert_dot", 38, func(w *work) []*ir.Value { return down(w, w.fixed8(w.input(ir.Dim(m.slots*m.ff)))) }},
		{"expert_coop", 20, func(w *work) []*ir.Value {
			return []*ir.Value{w.fragmentExperts(&moe{dtype: ir.Q4_K, experts: 8, slots: 2, all: 3, none: 5}, 256, 72, false)}
		}},
		{"expert_sum", 20, func(w *work) []*ir.Value {
			y := w.op("expert_sum", nil, w.input(3*33), w.input(3))
			y = w.op("add", nil, y, w.op("gate_rows", nil, w.input(33), w.input(1)))
			return []*ir.Value{w.op("add", nil, w.input(33), y)}
		}},
		{"expert_sort", 30, func(w *work) []*ir.Value {
			ids := w.chosen(w.scores(&m), m.slots)
			return []*ir.Value{w.op("expert_order", nil, ids), w.op("expert_offsets", ir.Attrs{{Name: "experts", Value: int64(m.experts)}}, ids)}
		}},
	} {
		t.Run(c.family, func(t *testing.T) {
			for _, on := range target.All() {
				launch, ok := kerneltest.Emulated(on)
				if !ok {
					continue
				}
				w := newWork(t, c.rows, c.rows-1)
				out := c.group(w)
				list := kernels.Candidates(w.site(on, out...), c.family)
				if len(list) == 0 {
					t.Fatalf("%s: no candidate", on.Name)
				}
				for _, k := range list[:1] {
					got := launch(t, k, w.sizes, w.data)
					if got == nil {
						continue // it need not show it
					}
					for i, v := range out {
						rows := c.rows - 1
						if c.family == "expert_sort" && i == 1 {
							rows = 1
						}
						w.compare(k, got[v], rows, v)
					}
				}
			}
		})
	}
}

package matmul_test

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/ir"
)

// TestExpertCoop builds what targets with cooperative matrices get for experts over
// sorted slots whose x is f16.
func TestExpertCoop(t *testing.T) {
	for _, m := range kerneltest.Some([]moe{
		{dtype: ir.Q4_K, embd: 512, ff: 256, experts: 12, slots: 8, gating: "softmax"},
		{dtype: ir.Q8_0, embd: 192, ff: 64, experts: 100, slots: 8, merged: true, gating: "softmax"},
		{dtype: ir.Q6_K, embd: 256, ff: 256, experts: 3, slots: 2, gating: "sigmoid"},
		{dtype: ir.MXFP4, embd: 256, ff: 192, experts: 32, slots: 4, merged: true, gating: "softmax"},
	}) {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			ids := func(w *work) *ir.Value {
				return w.chosen(w.scores(&m), m.slots)
			}
			for _, rows := range []int{20, 150} {
				w := newWork(t, rows, rows)
				up := m.upGroup(w, true, func(*ir.Value) *ir.Value { return ids(w) })[1]
				w.checkCoop(w.op("half", nil, up))

				w = newWork(t, rows, rows)
				down, chosen := w.stack(m.dtype, m.experts, m.embd, m.ff), ids(w)
				w.checkCoop(w.experts(w.input(ir.Dim(m.slots*m.ff)), down, chosen, 0, m.embd, w.sorted(&m, chosen)...))
			}
		})
	}
}

// TestExpertCoopNumbers computes experts' projections with the cooperative matrices of an interpreter: of an expert
// that all rows choose, one that none does, of rows and of slots.
func TestExpertCoopNumbers(t *testing.T) {
	for _, d := range kerneltest.Some([]ir.DType{ir.Q4_K, ir.Q6_K, ir.Q8_0, ir.MXFP4}) {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			const rows, n, k, width = 40, 37, 256, 72
			m := &moe{dtype: d, experts: 8, slots: 2, all: 3, none: 5}
			for _, perSlot := range []bool{false, true} {
				w := newWork(t, rows, n)
				y := w.fragmentExperts(m, k, width, perSlot)
				w.checkAll(kerneltest.Launch, first(t, w.candidates(kerneltest.Lookup(t, "gfx1100"), y), "expert_coop"), n, []*ir.Value{y})
			}
		})
	}
}

// checkCoop rounds what the group's experts read and builds the group for targets
// with cooperative matrices.
func (w *work) checkCoop(output *ir.Value) {
	w.t.Helper()
	var half *ir.Op
	for _, op := range w.ops {
		if op.Kind.Name != "expert_linear" {
			continue
		}
		if half == nil {
			var err error
			if half, err = w.make.Make("half", nil, op.Args[0]); err != nil {
				w.t.Fatal(err)
			}
		}
		op.Args[0] = half.Result
	}
	for _, name := range []string{"sm_90", "gfx1100"} {
		on := kerneltest.Lookup(w.t, name)
		for _, c := range w.candidates(on, output) {
			if !strings.HasPrefix(c.Kernel, "expert_coop ") && !(on.Fragments && strings.HasPrefix(c.Kernel, "expert_fragment ")) {
				w.t.Errorf("%s: %s", name, c.Kernel)
			}
		}
		w.buildFor(on, []*ir.Value{output})
	}
}

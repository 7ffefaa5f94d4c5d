package matmul_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// TestExpertFragment computes experts' projections of few rows: of an expert that all rows
// choose, one that none does, of rows and of slots, in one tile of outputs a workgroup and in
// several.
func TestExpertFragment(t *testing.T) {
	for _, d := range kerneltest.Some([]ir.DType{ir.Q4_K, ir.Q5_K, ir.Q6_K, ir.Q8_0, ir.F16}) {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			const rows, n, k, width = 14, 12, 256, 40
			m := &moe{dtype: d, experts: 8, slots: 2, all: 3, none: 5}
			one := *kerneltest.Lookup(t, "sm_90")
			one.Units = 1
			for _, perSlot := range []bool{false, true} {
				w := newWork(t, rows, n)
				y := w.fragmentExperts(m, k, width, perSlot)
				for _, on := range []*target.Target{kerneltest.Lookup(t, "sm_90"), &one} {
					c := w.candidates(on, y)[0]
					if !strings.HasPrefix(c.Kernel, "expert_fragment ") {
						t.Fatal(c.Kernel)
					}
					w.checkAll(kerneltest.Launch, c, n, []*ir.Value{y})
				}
			}
		})
	}
}

// TestExpertFragmentMany computes experts' projections of more rows, which subgroups share: of an expert that all
// rows choose, in several tiles, and one that none does.
func TestExpertFragmentMany(t *testing.T) {
	for i, d := range []ir.DType{ir.Q4_K, ir.Q5_K, ir.Q6_K, ir.Q8_0, ir.MXFP4} {
		for j, size := range []struct{ experts, rows, n int }{{16, 60, 55}, {8, 100, 98}} {
			if !kerneltest.Takes(i+3*j, 5) {
				continue
			}
			t.Run(fmt.Sprintf("%s of %d rows", d, size.rows), func(t *testing.T) {
				t.Parallel()
				const k = 512
				n := size.n
				width := 40
				if d == ir.Q4_K {
					width = 136 // several tiles
				}
				m := &moe{dtype: d, experts: size.experts, slots: 2, all: 3, none: 5}
				for _, perSlot := range []bool{false, true} {
					w := newWork(t, size.rows, n)
					y := w.fragmentExperts(m, k, width, perSlot)
					tried := 0
					for _, c := range w.candidates(kerneltest.Lookup(t, "sm_90"), y) {
						if strings.HasPrefix(c.Kernel, "expert_fragment ") && (tried == 0 || d == ir.Q4_K) {
							w.checkAll(kerneltest.Launch, c, n, []*ir.Value{y})
							tried++
						}
					}
					if tried == 0 {
						t.Error("expert_fragment offers nothing")
					}
				}
			})
		}
	}
}

// fragmentExperts are projections of sorted rows: down, if each slot has an input of its own, else gate and up.
func (w *work) fragmentExperts(m *moe, k, width int, perSlot bool) *ir.Value {
	ids := w.chosen(w.scores(m), m.slots)
	order := w.sorted(m, ids)
	gate := w.stack(m.dtype, m.experts, width, k)
	in := ir.Dim(k)
	if perSlot {
		in *= ir.Dim(m.slots)
	}
	x := w.rounded(w.input(in))
	y := w.experts(x, gate, ids, 0, width, order...)
	if perSlot {
		return y
	}
	up := w.stack(m.dtype, m.experts, 2*width, k)
	return w.glu("silu", y, w.experts(x, up, ids, width, width, order...))
}

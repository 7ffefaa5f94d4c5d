package kernels_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// TestExpertFragment computes experts' projections of few rows: of an expert that all rows
// choose, one that none does, of rows and of slots, in one tile of outputs a workgroup and in
// several.
func TestExpertFragment(t *testing.T) {
	for _, d := range some([]ir.DType{ir.Q4_K, ir.Q5_K, ir.Q6_K, ir.Q8_0, ir.F16}) {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			const rows, n, k, width = 14, 12, 256, 40
			m := &moe{dtype: d, experts: 8, slots: 2, all: 3, none: 5}
			one := *lookup(t, "sm_90")
			one.Units = 1
			for _, perSlot := range []bool{false, true} {
				w := newWorld(t, rows, n)
				y := w.fragmentExperts(m, k, width, perSlot)
				for _, on := range []*target.Target{lookup(t, "sm_90"), &one} {
					c := w.candidates(on, y)[0]
					if !strings.HasPrefix(c.Kernel, "expert_fragment ") {
						t.Fatal(c.Kernel)
					}
					w.closeTo(c, n, y)
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
			if !takes(i+3*j, 5) {
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
					w := newWorld(t, size.rows, n)
					y := w.fragmentExperts(m, k, width, perSlot)
					tried := 0
					for _, c := range w.candidates(lookup(t, "sm_90"), y) {
						if strings.HasPrefix(c.Kernel, "expert_fragment ") && (tried == 0 || d == ir.Q4_K) {
							w.closeTo(c, n, y)
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
func (w *world) fragmentExperts(m *moe, k, width int, perSlot bool) *ir.Value {
	ids := w.given("topk", ir.Attrs{{Name: "k", Value: int64(m.slots)}}, w.scores(m))
	order := w.sorted(m, ids)
	gate := w.stack(m.dtype, m.experts, width, k)
	x := w.inHalf(k, m.slots, perSlot)
	y := w.experts(x, gate, ids, 0, width, order...)
	if perSlot {
		return y
	}
	up := w.stack(m.dtype, m.experts, 2*width, k)
	return w.glu("silu", y, w.experts(x, up, ids, width, width, order...))
}

// inHalf is an input of rows of k f16, or of as many for each slot.
func (w *world) inHalf(k, slots int, perSlot bool) *ir.Value {
	if perSlot {
		k *= slots
	}
	x := w.input(ir.Dim(k))
	h := w.half(x)
	var data []byte
	vals := make([]float64, len(w.vals[x]))
	for i, v := range w.vals[x] {
		bits := gguf.F32ToF16(float32(v))
		vals[i] = float64(gguf.F16ToF32(bits))
		data = binary.LittleEndian.AppendUint16(data, bits)
	}
	w.vals[h], w.data[h] = vals, data
	return h
}

// closeTo runs a candidate that rounds weights to f16 and compares the first rows of the
// result.
func (w *world) closeTo(c kernels.Candidate, rows int, v *ir.Value) {
	w.t.Helper()
	y, width := toF32(launch(w.t, c, w.sizes, w.data)[v]), int(v.Type.Last())
	for i, want := range w.vals[v][:rows*width] {
		if off := math.Abs(float64(y[i]) - want); !(off <= w.mags[v][i]/1000+1e-6) {
			w.t.Fatalf("%s: row %d element %d is %g, want %g", c.Kernel, i/width, i%width, y[i], want)
		}
	}
	for i, b := range y[rows*width:] {
		if !math.IsNaN(float64(b)) {
			w.t.Fatalf("%s: element %d behind the step is written", c.Kernel, i)
		}
	}
	w.covered(c, v)
}

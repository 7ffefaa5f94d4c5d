package matmul_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/ir"
)

// coopGroups are dispatch groups over rows of k elements.
var coopGroups = []struct {
	name      string
	k         ir.Dim
	coop      bool // gemm_coop computes it
	fragments bool // gemm_fragment computes it for 9 to 16 rows
	build     func(w *work, x *ir.Value) []*ir.Value
}{
	{"qkv", 512, true, true, func(w *work, x *ir.Value) []*ir.Value {
		q := w.op("linear", nil, x, w.matrix(ir.Q4_K, 36, 512), w.vector("bias", 36))
		return []*ir.Value{q, w.linear(x, ir.Q8_0, 200), w.linear(x, ir.Q6_K, 64)}
	}},
	{"silu", 192, true, false, func(w *work, x *ir.Value) []*ir.Value {
		return []*ir.Value{w.glu("silu", w.linear(x, ir.Q4_0, 72), w.linear(x, ir.Q4_0, 72))}
	}},
	{"gelu of two formats", 512, true, false, func(w *work, x *ir.Value) []*ir.Value {
		up := w.linear(x, ir.Q4_K, 72)
		return []*ir.Value{w.glu("gelu", w.linear(x, ir.Q6_K, 72), up)}
	}},
	{"residuals", 512, true, true, func(w *work, x *ir.Value) []*ir.Value {
		y := w.op("add", nil, w.rows(ir.T, 512), w.linear(x, ir.Q5_K, 512))
		return []*ir.Value{w.op("add", nil, y, w.rows(ir.T, 512))}
	}},
	{"a rounded result", 512, true, true, func(w *work, x *ir.Value) []*ir.Value {
		y := w.glu("silu", w.linear(x, ir.F16, 72), w.linear(x, ir.F16, 72))
		return []*ir.Value{w.op("half", nil, y)}
	}},
	{"a router", 512, false, false, func(w *work, x *ir.Value) []*ir.Value {
		return []*ir.Value{w.linear(x, ir.F32, 64)}
	}},
	{"half a step", 96, false, false, func(w *work, x *ir.Value) []*ir.Value {
		return []*ir.Value{w.linear(x, ir.F16, 64)}
	}},
	{"long rows", 5120, true, true, func(w *work, x *ir.Value) []*ir.Value {
		return []*ir.Value{w.op("add", nil, w.linear(x, ir.Q6_K, 20), w.rows(ir.T, 20))}
	}},
	{"rows of the result that are no vec4", 512, false, false, func(w *work, x *ir.Value) []*ir.Value {
		return []*ir.Value{w.linear(x, ir.F16, 33)}
	}},
}

// TestCoopGroups builds what a target with cooperative matrices gets.
func TestCoopGroups(t *testing.T) {
	for _, g := range coopGroups {
		for _, rows := range []int{8, 9, 16, 20, 70, 512} {
			low := rows <= 48 // more rows have candidates of either, or of both
			family, is := "gemm_coop", g.coop
			if low {
				family, is = "gemm_fragment", g.fragments && rows > 8
			}
			w := newWork(t, rows, rows)
			out := g.build(w, w.rounded(w.rows(ir.T, g.k)))
			small := *kerneltest.Lookup(t, "sm_90")
			small.Units = 1 // so that workgroups take several tiles
			list := w.candidates(kerneltest.Lookup(t, "sm_90"), out...)
			if low {
				list = append(list, w.candidates(&small, out...)...)
			}
			if len(list) == 0 {
				if is {
					t.Errorf("%s, %d rows: no candidate", g.name, rows)
				}
				continue
			}
			of := func(c kernels.Candidate) bool {
				return strings.HasPrefix(c.Kernel, family+" ") || !low && strings.HasPrefix(c.Kernel, "gemm_fragment ")
			}
			if low && of(list[0]) != is || slices.ContainsFunc(list, of) != is {
				t.Errorf("%s, %d rows: %s", g.name, rows, list[0].Kernel)
			}
			for _, c := range list {
				f, _, _ := kerneltest.Lowered(t, c)
				if f.Fragments != strings.HasPrefix(c.Kernel, "gemm_fragment ") {
					t.Errorf("%s: relies on which elements lanes hold: %t", c.Kernel, f.Fragments)
				}
				for _, v := range out {
					kerneltest.Covered(w.t, c, v, w.count(v))
				}
			}
		}
	}
}

// TestGemmCoop computes projections with the cooperative matrices of an interpreter, on a target of which nobody
// knows what lanes hold. The last tile of rows is not full.
func TestGemmCoop(t *testing.T) {
	for i, g := range coopGroups {
		for j, rows := range []int{20, 150} {
			if !g.coop || rows > 20 && g.k > 512 || !kerneltest.Takes(i+j, 2) {
				continue
			}
			t.Run(fmt.Sprint(g.name, " ", rows), func(t *testing.T) {
				t.Parallel()
				n := rows - 3
				w := newWork(t, rows, n)
				out := g.build(w, w.rounded(w.rows(ir.T, g.k)))
				for _, c := range w.candidates(kerneltest.Lookup(t, "gfx1100"), out...) {
					if strings.HasPrefix(c.Kernel, "gemm_coop ") {
						w.checkAll(kerneltest.Launch, c, n, out)
						return
					}
				}
				t.Error("gemm_coop offers nothing")
			})
		}
	}
}

// TestCoopKeys holds that rows of a length that is no multiple of 256, whose code is
// another, have kernels of other names.
func TestCoopKeys(t *testing.T) {
	names := map[string]bool{}
	for _, k := range []ir.Dim{192, 256} {
		w := newWork(t, 20, 20)
		names[w.candidates(kerneltest.Lookup(t, "sm_90"), w.linear(w.rounded(w.rows(ir.T, k)), ir.F16, 64))[0].Kernel] = true
	}
	if len(names) != 2 {
		t.Errorf("%d names: %v", len(names), names)
	}
}

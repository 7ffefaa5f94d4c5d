package matmul_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

func TestGemmFormats(t *testing.T) {
	for d, k := range kerneltest.AllFormats() {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			w := newWork(t, 16, 13)
			y := w.linear(w.rows(ir.T, ir.Dim(k)), d, 70)
			w.check(first(t, w.candidates(kerneltest.Llvmpipe(t), y), "gemm"), 13, y)
		})
	}
}

// groups are dispatch groups of every form.
var groups = []struct {
	name  string
	last  bool
	build func(w *work, x *ir.Value) []*ir.Value
}{
	{"qkv", false, func(w *work, x *ir.Value) []*ir.Value {
		x = w.norm(x)
		m := w.matrix(ir.Q4_K, 33, 512)
		q := w.op("linear", nil, x, m, w.vector("bias", 33))
		return []*ir.Value{q, w.linear(x, ir.Q8_0, 200), w.linear(x, ir.Q6_K, 65)}
	}},
	{"plain qkv", false, func(w *work, x *ir.Value) []*ir.Value {
		return []*ir.Value{w.linear(x, ir.F16, 8), w.linear(x, ir.F16, 8)}
	}},
	{"silu", false, func(w *work, x *ir.Value) []*ir.Value {
		x = w.norm(x)
		return []*ir.Value{w.glu("silu", w.linear(x, ir.Q4_0, 70), w.linear(x, ir.Q4_0, 70))}
	}},
	{"gelu of two formats", false, func(w *work, x *ir.Value) []*ir.Value {
		x = w.norm(x)
		up := w.linear(x, ir.Q5_0, 70)
		return []*ir.Value{w.glu("gelu", w.linear(x, ir.Q6_K, 70), up)}
	}},
	{"residuals", false, func(w *work, x *ir.Value) []*ir.Value {
		y := w.op("add", nil, w.rows(ir.T, 512), w.linear(x, ir.Q5_K, 512))
		return []*ir.Value{w.op("add", nil, y, x)}
	}},
	{"last row", true, func(w *work, x *ir.Value) []*ir.Value {
		x = w.norm(w.op("last_row", nil, x, w.n))
		return []*ir.Value{w.linear(x, ir.BF16, 300)}
	}},
}

func TestGroups(t *testing.T) {
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for _, rows := range []int{1, 3, 70} {
				n := rows - rows/4
				w := newWork(t, rows, n)
				out := g.build(w, w.rows(ir.T, 512))
				family := "gemv"
				if rows > 8 && !g.last {
					family = "gemm"
				}
				list := w.candidates(kerneltest.Llvmpipe(t), out...)
				first(t, list, family)
				for _, c := range list {
					if g.last {
						w.check(c, 1, out...)
					} else {
						w.check(c, n, out...)
					}
				}
			}
		})
	}
}

// TestGemmTiles runs the tiles that other targets get.
func TestGemmTiles(t *testing.T) {
	gpu := target.Target{Wave: 32, Workgroup: 1024, Shared: 32 << 10, Units: 1}
	tiles := ""
	for _, rows := range []int{16, 70} {
		w := newWork(t, rows, rows)
		y := w.linear(w.norm(w.rows(ir.T, 256)), ir.F16, 70)
		for _, c := range w.candidates(&gpu, y) {
			tiles += c.Kernel[strings.LastIndex(c.Kernel, "=")+1:] + " "
			w.check(c, rows, y)
		}
	}
	if tiles != "16x64 64x64 32x64 " {
		t.Errorf("tiles %s", tiles)
	}
}

// TestRefuses holds that families leave groups alone that their kernels cannot do.
func TestRefuses(t *testing.T) {
	for name, build := range map[string]func(w *work) []*ir.Value{
		"rows that are no vec4": func(w *work) []*ir.Value {
			return []*ir.Value{w.linear(w.rows(ir.T, 6), ir.F32, 8)}
		},
		"an intermediate result that others read": func(w *work) []*ir.Value {
			x := w.rows(ir.T, 64)
			y := w.linear(x, ir.F32, 64)
			return []*ir.Value{y, w.op("add", nil, y, x)}
		},
		"projections of different inputs": func(w *work) []*ir.Value {
			return []*ir.Value{w.linear(w.rows(ir.T, 64), ir.F32, 64), w.linear(w.rows(ir.T, 64), ir.F32, 64)}
		},
		"a sum of projections": func(w *work) []*ir.Value {
			x := w.rows(ir.T, 64)
			return []*ir.Value{w.op("add", nil, w.linear(x, ir.F32, 8), w.linear(x, ir.F32, 8))}
		},
	} {
		for _, rows := range []int{1, 20} {
			w := newWork(t, rows, rows)
			out := build(w)
			if list := w.candidates(kerneltest.Llvmpipe(t), out...); len(list) > 0 {
				t.Errorf("%s: %s", name, list[0].Kernel)
			}
		}
	}
}

// TestShapesOfTargets holds the grids of a large matrix against the limits of the
// targets, and how many candidates there are.
func TestShapesOfTargets(t *testing.T) {
	seen := map[string]bool{}
	for _, dev := range target.All() {
		if dev.IsHost() || dev.Backend == plans.CPU { // where rows of weights lie interleaved
			continue
		}
		for d := range kerneltest.AllFormats() {
			for _, rows := range []int{1, 8, 256} {
				w := newWork(t, rows, rows)
				k, n := 4096, 151936
				m := w.p.AddGlobal("w", ir.Weight, ir.MakeType(d, ir.Dim(n), ir.Dim(k)))
				x := &ir.Value{ID: 1, Type: ir.MakeType(ir.F32, ir.T, ir.Dim(k))}
				op, err := w.make.Make("linear", nil, x, m)
				if err != nil {
					t.Fatal(err)
				}
				w.ops = []*ir.Op{op}
				list := w.candidates(dev, op.Result)
				timed := 0
				for _, c := range list {
					if c.Timed {
						timed++
					}
				}
				if list := len(list) - timed; list == 0 || list > 40 || timed > 16 {
					t.Fatalf("%s: %s: %d candidates, and %d to be timed", dev.Name, d, list, timed)
				}
				for _, c := range list {
					if c.Grid[0] > 65535 || c.Grid[1] > 65535 {
						t.Errorf("%s: grid %d", c.Kernel, c.Grid)
					}
					if !seen[c.Kernel] {
						seen[c.Kernel] = true
						if _, err := c.Build(); err != nil {
							t.Error(err)
						}
					}
					kerneltest.Covered(w.t, c, op.Result, w.count(op.Result))
				}
			}
		}
	}
}

// TestRooms: no form of a projection bounds registers as another one does, or as none.
func TestRooms(t *testing.T) {
	on, err := target.Lookup("sm_90-cuda")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []int{2048, 5120, 17408} {
		w := newWork(t, 1, 1)
		m := w.p.AddGlobal("w", ir.Weight, ir.MakeType(ir.Q8_0, ir.Dim(4096), ir.Dim(k)))
		x := &ir.Value{ID: 1, Type: ir.MakeType(ir.F32, ir.T, ir.Dim(k))}
		rounded, err := w.make.Make("fixed12", nil, x)
		if err != nil {
			t.Fatal(err)
		}
		op, err := w.make.Make("linear", nil, rounded.Result, m)
		if err != nil {
			t.Fatal(err)
		}
		w.ops = []*ir.Op{rounded, op}
		bounds, rooms := map[string]string{}, 0
		for _, c := range w.candidates(on, op.Result) {
			if c.Form.Room > 0 {
				rooms++
			}
			form := c.Form
			form.Room = max(1, c.RoomFor()/c.Lanes) // workgroups of a unit
			key := fmt.Sprint(c.Base(), form)
			if other := bounds[key]; other != "" {
				t.Errorf("%d: %q is %q", k, c.Name(), other)
			}
			bounds[key] = c.Name()
		}
		if rooms == 0 {
			t.Errorf("%d: no form bounds registers", k)
		}
	}
}

// TestLinearTwice: a result added to itself is no residual.
func TestLinearTwice(t *testing.T) {
	for _, rows := range []int{1, 20} {
		w := newWork(t, rows, rows)
		y := w.linear(w.rows(ir.T, 256), ir.F16, 64)
		twice := w.op("add", nil, y, y)
		if list := w.candidates(kerneltest.Llvmpipe(t), twice); len(list) > 0 {
			t.Errorf("%d rows: %s", rows, list[0].Kernel)
		}
	}
}

// TestOwnResults refuses a residual that is a result of the group itself, before a factor, a residual or an activation:
// no kernel writes it.
func TestOwnResults(t *testing.T) {
	for _, op := range []string{"scale %0 {factor=0.375}", "add %0, @b", "relu2 %0"} {
		c := kerneltest.Case{Rows: 3, Terms: 96, Ctx: 64, Slots: 1, Globals: "step @a : f32[T, 96]\nstep @b : f32[T, 24]\nweight @w : f16[24, 96]\n",
			Group: "%0 = linear @a, @w : f32[T, 24]\n%1 = " + op + " : f32[T, 24]\n%2 = add %1, %0 : io f32[T, 24]"}
		if found := kernels.Candidates(c.Site(t, kerneltest.Lookup(t, "sm_90-cuda"))); len(found) > 0 {
			t.Errorf("%s: %s reads what it does not write", op, found[0].Name())
		}
	}
}

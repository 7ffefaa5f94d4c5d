package kernels_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// TestGemmFragment computes projections of rows in f16 with the matrices of an interpreter. Of the
// last row of a step nothing is there.
func TestGemmFragment(t *testing.T) {
	small := *lookup(t, "sm_90")
	small.Units = 1 // so that workgroups take several tiles
	for i, g := range coopGroups {
		for j, rows := range []int{9, 12, 20, 48} {
			if !g.fragments || !takes(i+j, 4) {
				continue
			}
			t.Run(fmt.Sprint(g.name, " ", rows), func(t *testing.T) {
				t.Parallel()
				for _, on := range []*target.Target{lookup(t, "sm_90"), &small} {
					w := newWorld(t, rows, rows-1)
					out := g.build(w, w.rounded(w.rows(ir.T, g.k)))
					c := first(t, w.candidates(on, out...), "gemm_fragment")
					w.near(c, launch(t, c, w.sizes, w.data), rows-1, int(g.k), out)
				}
			})
		}
	}
}

// TestGemmFragmentRows computes steps of all numbers of rows that have code of their own.
func TestGemmFragmentRows(t *testing.T) {
	for _, n := range some([]int{1, 24, 25, 40, 41, 48}) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 48, n)
			y := w.linear(w.rounded(w.rows(ir.T, 1024)), ir.Q4_K, 40)
			c := first(t, w.candidates(lookup(t, "sm_90"), y), "gemm_fragment")
			w.near(c, launch(t, c, w.sizes, w.data), n, 1024, []*ir.Value{y})
		})
	}
}

// TestGemmFragmentTall computes steps of so many rows that there are several tiles of them, of which the
// last is not full or has none, and of one tile of as many rows as lanes can keep sums of.
func TestGemmFragmentTall(t *testing.T) {
	for i, c := range []struct{ rows, n int }{{128, 64}, {128, 65}, {128, 128}, {300, 290}, {300, 100}} {
		for j, d := range []ir.DType{ir.Q4_K, ir.Q5_K, ir.Q6_K, ir.Q8_0, ir.Q4_0} {
			if !takes(i+j, 5) {
				continue
			}
			t.Run(fmt.Sprint(c.rows, " ", c.n, " ", d), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, c.rows, c.n)
				y := w.linear(w.rounded(w.rows(ir.T, 512)), d, 40)
				k := first(t, w.candidates(fragmentsOnly(t), y), "gemm_fragment")
				w.near(k, launch(t, k, w.sizes, w.data), c.n, 512, []*ir.Value{y})
			})
		}
	}
}

// TestGemmFragmentSplits computes projections whose workgroups share the elements of a row: the last
// of them adds, and leaves the counters as they were.
func TestGemmFragmentSplits(t *testing.T) {
	for _, c := range some([][2]int{{48, 37}, {128, 100}, {300, 290}}) {
		t.Run(fmt.Sprint(c[1]), func(t *testing.T) { t.Parallel(); testGemmFragmentSplits(t, c[0], c[1]) })
	}
}

func testGemmFragmentSplits(t *testing.T, rows, n int) {
	w := newWorld(t, rows, n)
	x := w.rounded(w.rows(ir.T, 2048))
	q := w.linear(x, ir.Q4_K, 200)
	out := []*ir.Value{q, w.op("add", nil, w.linear(x, ir.Q6_K, 36), w.rows(ir.T, 36))}
	w.checkSplits(fragmentsOnly(t), "gemm_fragment", n, 2048, out)
}

// checkSplits computes a group with workgroups that share the elements of a row of k.
func (w *world) checkSplits(on *target.Target, family string, n, k int, out []*ir.Value) {
	t := w.t
	t.Helper()
	counts := w.makeWorkspace(on, out...)
	c := first(t, w.candidates(on, out...), family)
	if c.Grid[2] < 2 {
		t.Fatalf("%s: %d workgroups share a row", c.Kernel, c.Grid[2])
	}
	got := launch(t, c, w.sizes, w.data)
	w.near(c, got, n, k, out)
	if !bytes.Equal(got[counts], w.data[counts]) {
		t.Errorf("the counters are %v at the end", got[counts])
	}
}

// fragmentsOnly is sm_90 without gemm_coop.
func fragmentsOnly(t *testing.T) *target.Target {
	on := *lookup(t, "sm_90")
	on.Matrix = target.MatrixShape{}
	return &on
}

// makeWorkspace gives the group of the outputs a workspace for sums of workgroups that end in a last-block reduction, if it wants any. It returns
// their counters.
func (w *world) makeWorkspace(on *target.Target, out ...*ir.Value) *ir.Value {
	w.t.Helper()
	counts := w.p.AddGlobal("arrivals", ir.Step, ir.MakeType(ir.I32, 64))
	w.data[counts] = make([]byte, 4*64)
	for _, want := range strategy.Wants(w.site(on, out...)) {
		if want.Workspace == 0 {
			continue
		}
		x := w.ops[0].Args[0]
		if w.ops[0].Kind.Name == "untile" {
			x = w.ops[0].Result
		}
		workspace, err := w.make.Make("workspace", ir.Attrs{{Name: "width", Value: int64(want.Workspace)}}, x)
		if err != nil {
			w.t.Fatal(err)
		}
		w.ops = append(w.ops, workspace)
	}
	return counts
}

// rounded returns x in f16, which is x from here on.
func (w *world) rounded(x *ir.Value) *ir.Value {
	bytes := make([]byte, 2*len(w.vals[x]))
	for i, v := range w.vals[x] {
		h := gguf.F32ToF16(float32(v))
		binary.LittleEndian.PutUint16(bytes[2*i:], h)
		w.vals[x][i] = float64(gguf.F16ToF32(h))
	}
	half := w.half(x)
	w.data[half] = bytes
	return half
}

// near compares rows of outputs, whose weights were rounded to f16: closer than where two elements
// of a row of k of them had changed places.
func (w *world) near(c kernels.Candidate, got map[*ir.Value][]byte, rows, k int, out []*ir.Value) {
	w.t.Helper()
	for _, v := range out {
		w.nearValue(c, got, rows, k, v)
	}
}

func (w *world) nearValue(c kernels.Candidate, got map[*ir.Value][]byte, rows, k int, v *ir.Value) {
	w.t.Helper()
	y, want, mag := toF32(got[v]), w.vals[v], w.mags[v]
	if v.Type.DType == ir.F16 {
		y = halves(got[v])
	}
	width := int(v.Type.Last())
	for i := range rows * width {
		if bound := mag[i]/float64(4*k) + math.Abs(want[i])/1024; !(math.Abs(float64(y[i])-want[i]) <= bound) {
			w.t.Fatalf("%s: %s row %d element %d is %g, want %g within %g", c.Kernel, v, i/width, i%width, y[i], want[i], bound)
		}
	}
	for i := rows * width; i < len(want); i++ {
		if !math.IsNaN(float64(y[i])) {
			w.t.Fatalf("%s: %s row %d element %d was written", c.Kernel, v, i/width, i%width)
		}
	}
	w.covered(c, v)
}

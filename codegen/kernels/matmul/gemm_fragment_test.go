package matmul_test

import (
	"fmt"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// TestGemmFragment computes projections of rows in f16 with the matrices of an interpreter. Of the
// last row of a step nothing is there.
func TestGemmFragment(t *testing.T) {
	small := *kerneltest.Lookup(t, "sm_90")
	small.Units = 1 // so that workgroups take several tiles
	for i, g := range coopGroups {
		for j, rows := range []int{9, 12, 20, 48} {
			if !g.fragments || !kerneltest.Takes(i+j, 4) {
				continue
			}
			t.Run(fmt.Sprint(g.name, " ", rows), func(t *testing.T) {
				t.Parallel()
				for _, on := range []*target.Target{kerneltest.Lookup(t, "sm_90"), &small} {
					w := newWork(t, rows, rows-1)
					out := g.build(w, w.rounded(w.rows(ir.T, g.k)))
					c := first(t, w.candidates(on, out...), "gemm_fragment")
					w.checkAll(kerneltest.Launch, c, rows-1, out)
				}
			})
		}
	}
}

// TestGemmFragmentRows computes steps of all numbers of rows that have code of their own.
func TestGemmFragmentRows(t *testing.T) {
	for _, n := range kerneltest.Some([]int{1, 24, 25, 40, 41, 48}) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := newWork(t, 48, n)
			y := w.linear(w.rounded(w.rows(ir.T, 1024)), ir.Q4_K, 40)
			c := first(t, w.candidates(kerneltest.Lookup(t, "sm_90"), y), "gemm_fragment")
			w.checkAll(kerneltest.Launch, c, n, []*ir.Value{y})
		})
	}
}

// TestGemmFragmentTall computes steps of so many rows that there are several tiles of them, of which the
// last is not full or has none, and of one tile of as many rows as lanes can keep sums of.
func TestGemmFragmentTall(t *testing.T) {
	for i, c := range []struct{ rows, n int }{{128, 64}, {128, 65}, {128, 128}, {300, 290}, {300, 100}} {
		for j, d := range []ir.DType{ir.Q4_K, ir.Q5_K, ir.Q6_K, ir.Q8_0, ir.Q4_0} {
			if !kerneltest.Takes(i+j, 5) {
				continue
			}
			t.Run(fmt.Sprint(c.rows, " ", c.n, " ", d), func(t *testing.T) {
				t.Parallel()
				w := newWork(t, c.rows, c.n)
				y := w.linear(w.rounded(w.rows(ir.T, 512)), d, 40)
				k := first(t, w.candidates(fragmentsOnly(t), y), "gemm_fragment")
				w.checkAll(kerneltest.Launch, k, c.n, []*ir.Value{y})
			})
		}
	}
}

// TestGemmFragmentSplits computes projections whose workgroups share the elements of a row: the last
// of them adds, and leaves the counters as they were.
func TestGemmFragmentSplits(t *testing.T) {
	for _, c := range kerneltest.Some([][2]int{{48, 37}, {128, 100}, {300, 290}}) {
		t.Run(fmt.Sprint(c[1]), func(t *testing.T) { t.Parallel(); testGemmFragmentSplits(t, c[0], c[1]) })
	}
}

func testGemmFragmentSplits(t *testing.T, rows, n int) {
	w := newWork(t, rows, n)
	x := w.rounded(w.rows(ir.T, 2048))
	q := w.linear(x, ir.Q4_K, 200)
	out := []*ir.Value{q, w.op("add", nil, w.linear(x, ir.Q6_K, 36), w.rows(ir.T, 36))}
	w.checkSplits(fragmentsOnly(t), "gemm_fragment", n, out)
}

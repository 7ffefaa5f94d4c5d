package matmul_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/ir"
)

// TestTile puts rows into tiles of two orders with the interpreter.
func TestTile(t *testing.T) {
	w := newWork(t, 256, 131)
	x := w.rounded(w.rows(ir.T, 512))
	tile := w.op("tile", ir.Attrs{{Name: "rows", Value: int64(256)}, {Name: "lanes", Value: "13 12"}}, x)
	list := kernels.Candidates(w.site(kerneltest.Lookup(t, "sm_90-cuda"), tile))
	if len(list) != 1 {
		t.Fatalf("%d candidates", len(list))
	}
	got := kerneltest.Launch(t, list[0], w.sizes, w.data)[tile]
	if !bytes.Equal(got, w.want[tile]) {
		t.Error("not what the op says")
	}
	kerneltest.Covered(w.t, list[0], tile, w.count(tile))
	kerneltest.Assembled(t, list[0])
}

// TestGemmWgmma computes projections with the interpreter, in all tiles. Of the last tile of rows few are there. Of
// K-quants words are copied ahead, of q6_k by 8 subgroups alone. Only where they are, are there tiles of 256 rows.
func TestGemmWgmma(t *testing.T) {
	ahead := map[ir.DType]int{ir.Q4_K: 3, ir.Q5_K: 3, ir.Q6_K: 2}
	tiles := map[ir.DType]int{ir.Q4_K: 3, ir.Q5_K: 3, ir.Q6_K: 3, ir.Q8_0: 2}
	for _, d := range kerneltest.Some([]ir.DType{ir.Q4_K, ir.Q5_K, ir.Q6_K, ir.Q8_0}) {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			t.Parallel()
			w := newWork(t, 256, 230)
			out := []*ir.Value{w.op("add", nil, w.linear(w.tiled(w.rounded(w.rows(ir.T, 512)), "23 12 13"), d, 132), w.rows(ir.T, 132))}
			n := 0
			for _, c := range w.wgmma(tiles[d], out...) {
				w.checkAll(kerneltest.Launch, c, 230, out)
				if strings.Contains(c.Kernel, " ahead") {
					n++
				}
			}
			if n != ahead[d] {
				t.Errorf("%d candidates copy ahead", n)
			}
		})
	}
}

// TestGemmWgmmaSplits computes projections whose workgroups share the elements of a row, of one tile of rows and of
// two: the last of them adds, and leaves the counters as they were.
func TestGemmWgmmaSplits(t *testing.T) {
	for most, rows := range map[int]int{128: 101, 256: 230} {
		w := newWork(t, most, rows)
		x := w.tiled(w.rounded(w.rows(ir.T, 2048)), "23 13")
		out := []*ir.Value{w.linear(x, ir.Q8_0, 40), w.op("add", nil, w.linear(x, ir.Q4_K, 36), w.rows(ir.T, 36))}
		w.checkSplits(kerneltest.Lookup(t, "sm_90-cuda"), "gemm_wgmma", rows, out)
	}
}

// TestGemmWgmmaGroups computes groups of several projections, biases and activations, and has their modules assembled.
func TestGemmWgmmaGroups(t *testing.T) {
	tiles := map[string]int{"qkv": 2, "residuals": 3} // q8_0 has none of 256 rows
	for i, g := range coopGroups {
		if tiles[g.name] == 0 || !kerneltest.Takes(i, 2) {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			w := newWork(t, 256, 131) // of the second tile three rows are there
			out := g.build(w, w.tiled(w.rounded(w.rows(ir.T, g.k)), "12 23 13"))
			list := w.wgmma(tiles[g.name], out...)
			w.checkAll(kerneltest.Launch, list[1], 131, out)
			for _, c := range list {
				kerneltest.Assembled(t, c)
			}
		})
	}
}

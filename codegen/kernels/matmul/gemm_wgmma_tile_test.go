package matmul_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/ir"
)

// TestGemmWgmmaTile has products of gate and up written in tiles, of the second of which three rows or none are there:
// the same bits that op tile puts there.
func TestGemmWgmmaTile(t *testing.T) {
	for _, c := range []struct {
		lanes string
		n     int
		count int // candidates: with two orders small workgroups have no whole pieces
	}{{"12", 131, 3}, {"13", 131, 3}, {"23", 100, 3}, {"13 12", 131, 1}} {
		t.Run(fmt.Sprint(c.lanes, " ", c.n), func(t *testing.T) {
			t.Parallel()
			w := newWork(t, 256, c.n)
			x := w.tiled(w.rounded(w.rows(ir.T, 256)), "13")
			gate := w.op("linear", nil, x, w.matrix(ir.Q4_K, 512, 256), w.vector("bias", 512))
			half := w.op("half", nil, w.glu("silu", gate, w.linear(x, ir.Q4_K, 512)))
			w.want[half] = kerneltest.Launch(t, w.wgmma(3, half)[0], w.sizes, w.data)[half]
			tile := w.op("tile", ir.Attrs{{Name: "rows", Value: int64(256)}, {Name: "lanes", Value: c.lanes}}, half)
			for _, k := range w.wgmma(c.count, tile) {
				if got := kerneltest.Launch(t, k, w.sizes, w.data)[tile]; !bytes.Equal(got, w.want[tile]) {
					t.Errorf("%s: not what op tile gives", k.Kernel)
				}
				kerneltest.Covered(w.t, k, tile, w.count(tile))
				kerneltest.Assembled(t, k)
			}
		})
	}
}

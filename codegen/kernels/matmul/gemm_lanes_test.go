package matmul_test

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/ir"
)

// TestGemmLanes runs all tiles, over steps that fill them and that do not.
func TestGemmLanes(t *testing.T) {
	for _, rows := range []int{13, 300} {
		w := newWork(t, rows, rows-2)
		x := w.rows(ir.T, 256)
		wide := w.op("linear", nil, x, w.matrix(ir.F32, 70, 256), w.vector("bias", 70))
		y := []*ir.Value{wide, w.op("add", nil, w.linear(x, ir.F32, 1), w.rows(ir.T, 1))}
		tiles := 0
		for _, c := range w.candidates(kerneltest.Llvmpipe(t), y...) {
			if strings.HasPrefix(c.Kernel, "gemm_lanes ") {
				w.check(c, rows-2, y...)
				tiles++
			}
		}
		if tiles != 2 {
			t.Errorf("%d rows: %d tiles", rows, tiles)
		}
	}
}

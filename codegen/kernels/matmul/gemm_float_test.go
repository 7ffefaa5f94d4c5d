package matmul_test

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/ir"
)

// TestGemmFloat runs all tiles, over steps that fill them and that do not, with results that
// are wide and narrow.
func TestGemmFloat(t *testing.T) {
	on := *kerneltest.Lookup(t, "sm_90")
	on.Vendor = 0 // all tiles, whatever is expected of them
	for rows, n := range map[int]int{130: 129, 192: 192} {
		w := newWork(t, rows, n)
		x := w.rows(ir.T, 256)
		y := []*ir.Value{
			w.op("linear", nil, x, w.matrix(ir.F32, 70, 256), w.vector("bias", 70)),
			w.op("add", nil, w.linear(x, ir.F32, 3), w.rows(ir.T, 3)),
			w.linear(x, ir.F32, 64),
		}
		tiles := 0
		for _, c := range w.candidates(&on, y...) {
			if strings.HasPrefix(c.Kernel, "gemm_float ") {
				w.check(c, n, y...)
				tiles++
			}
		}
		if tiles != 2 {
			t.Errorf("%d rows: %d tiles", rows, tiles)
		}
	}
}

// TestGemmFloatChoice holds what was fastest on an H200.
func TestGemmFloatChoice(t *testing.T) {
	for _, c := range []struct {
		on            string
		rows, outputs int
		want          string
	}{
		{"sm_90", 48, 256, "gemm_lanes f32 n tile=4x4"},
		{"sm_90", 512, 256, "gemm_float f32 n tile=32x32"},
		{"sm_90", 2048, 256, "gemm_float f32 n tile=32x64"},
		{"sm_90", 512, 64, "gemm_lanes f32 n tile=8x4"},
		{"sm_90", 2048, 64, "gemm_float f32 n tile=32x32"},
		{"sm_90-cuda", 512, 256, "gemm_float f32 n tile=32x32 of 8x4 subgroups=16 tf32"},
		{"sm_90-cuda", 2048, 256, "gemm_float f32 n tile=64x32 of 16x4 subgroups=8 tf32"},
		{"sm_90-cuda", 512, 64, "gemm_float f32 n tile=32x32 of 8x4 subgroups=16 tf32"},
		{"sm_75-cuda", 2048, 256, "gemm_float f32 n tile=32x64 of 8x8 subgroups=4 w"},
	} {
		w := newWork(t, c.rows, 1)
		x := &ir.Value{ID: 1, Type: ir.MakeType(ir.F32, ir.T, 2048)}
		op, err := w.make.Make("linear", nil, x, w.p.AddGlobal("w", ir.Weight, ir.MakeType(ir.F32, ir.Dim(c.outputs), 2048)))
		if err != nil {
			t.Fatal(err)
		}
		w.ops = []*ir.Op{op}
		if list := w.candidates(kerneltest.Lookup(t, c.on), op.Result); !strings.HasPrefix(list[0].Kernel, c.want) {
			t.Errorf("%s, %d rows, %d outputs: %s, want %s", c.on, c.rows, c.outputs, list[0].Kernel, c.want)
		}
	}
}

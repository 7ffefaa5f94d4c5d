package matmul_test

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// TestGemmFloatTF32x3 computes projections of f32 with matrices of TF32 in the interpreter, and has the modules
// assembled: results that fill tiles and that do not, one row, a narrow one, a bias and a residual.
func TestGemmFloatTF32x3(t *testing.T) {
	on := *kerneltest.Lookup(t, "sm_90-cuda")
	on.Vendor = 0 // all tiles, whatever is expected of them
	for rows, n := range map[int]int{130: 129, 192: 67, 144: 1} {
		c := kerneltest.Case{Family: "gemm_float", Alone: true, Terms: 256, Ctx: 64, Slots: 1, Rows: rows, N: n, Pos: []int{0},
			Globals: "step @x : f32[T, 256]\nstep @r : f32[T, 3]\nweight @a : f32[70, 256]\nweight @b : f32[70]\nweight @c : f32[3, 256]\n",
			Group:   "%0 = linear @x, @a, @b : io f32[T, 70]\n%1 = linear @x, @c : f32[T, 3]\n%2 = add %1, @r : io f32[T, 3]"}
		c.RunOn(t, &on)
		matrices := 0
		for _, k := range c.Candidates(t, c.Site(t, &on)) {
			kerneltest.Assembled(t, k)
			if strings.Contains(k.Shape, " tf32") {
				matrices++
			}
		}
		if matrices < 2 {
			t.Errorf("%d rows: %d tiles of matrices of TF32", rows, matrices)
		}
	}
}

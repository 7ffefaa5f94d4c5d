package matmul_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// TestHeadsOfMatrices has a matrix for each head of x, which are parts of wider heads.
func TestHeadsOfMatrices(t *testing.T) {
	for _, c := range []kerneltest.Case{{Rows: 1}, {Rows: 8, N: 5}} {
		for _, w := range []struct {
			dtype             string
			stride, first, in int
		}{{"f16", 256, 0, 192}, {"f32", 576, 64, 512}, {"f32", 24, 4, 20}} {
			c.Family, c.Ctx, c.Slots, c.Terms = "expert_gemv", 64, 1, w.in
			c.Globals = fmt.Sprintf("step @x : f32[T, %d]\nstep @ids : i32[T, 6]\nweight @w : %s[12, 48, %d]\n", 6*w.stride, w.dtype, w.in)
			c.Group = fmt.Sprintf("%%0 = head_cut @x {stride=%d, first=%d, width=%d} : f32[T, %d]\n%%1 = expert_linear %%0, @w, @ids {first=0, rows=48} : io f32[T, 288]", w.stride, w.first, w.in, 6*w.in)
			if list := c.Candidates(t, c.Site(t, kerneltest.Llvmpipe(t))); !strings.HasSuffix(list[0].Kernel, " slotwise cut") && c.N == 0 {
				t.Errorf("%s: %s", c.Group, list[0].Kernel)
			}
			c.Run(t)
			c.RunOn(t, kerneltest.Lookup(t, "sm_90-cuda"))
			c.CheckBuild(t)
		}
	}
}

// TestOtherCutsAreNoHeads has a cut whose runs are those of two matrices.
func TestOtherCutsAreNoHeads(t *testing.T) {
	c := kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1}
	c.Globals = "step @x : f32[T, 144]\nstep @ids : i32[T, 6]\nweight @w : f32[12, 48, 20]\n"
	c.Group = "%0 = head_cut @x {stride=48, first=4, width=40} : f32[T, 120]\n%1 = expert_linear %0, @w, @ids {first=0, rows=48} : io f32[T, 288]"
	for _, on := range []string{"llvmpipe", "sm_90-cuda"} {
		for _, k := range kernels.Candidates(c.Site(t, kerneltest.Lookup(t, on))) {
			t.Errorf("%s: %s", c.Group, k.Kernel)
		}
	}
}

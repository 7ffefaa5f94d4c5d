package rowwise_test

import (
	"fmt"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// TestCut: rows of prompts have the same bits wherever their step begins.
func TestCut(t *testing.T) {
	for i, c := range []kerneltest.Case{
		{Family: "rownorm", Globals: "step @a : f32[T, 1032]\nweight @w : f32[1032]\n",
			Group: "%0 = rmsnorm @a, @w {eps=1e-05, group=1032} : io f32[T, 1032]\n%1 = half %0 : io f16[T, 1032]"},
		{Family: "rownorm", Globals: "step @a : f32[T, 384]\nstep @z : f32[T, 384]\nweight @w : f32[96]\n",
			Group: "%0 = gated_rmsnorm @a, @w, @z {eps=1e-06, group=96} : io f32[T, 384]"},
		{Family: "rownorm", Globals: "step @a : f32[T, 90]\n", Group: "%0 = l2norm @a {eps=1e-06, group=30} : io f32[T, 90]"},
		{Family: "rownorm", Globals: "step @a : f32[T, 100]\nstep @b : f32[T, 100]\nweight @w : f32[100]\n",
			Group: "%0 = rmsnorm @a, @w {eps=1e-05, group=100} : f32[T, 100]\n%1 = add @b, %0 : io f32[T, 100]"},
		{Family: "elementwise", Globals: "step @a : f32[T, 98]\nstep @b : f32[T, 98]\n", Group: "%0 = glu @a, @b {act=\"silu\"} : io f32[T, 98]"},
	} {
		t.Run(fmt.Sprint(i, " ", c.Family), func(t *testing.T) {
			t.Parallel()
			c.Ctx, c.Slots, c.Rows, c.N = 64, 1, 40, 37
			c.CheckCut(t, kerneltest.Llvmpipe(t))
			c.CheckCut(t, kerneltest.Processor(t))
		})
	}
}

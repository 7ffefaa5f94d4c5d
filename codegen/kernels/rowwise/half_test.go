package rowwise_test

import (
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// TestHalf runs what rounds to f16, alone and behind a norm.
func TestHalf(t *testing.T) {
	for _, c := range []kerneltest.Case{
		{Family: "elementwise", Group: "    %0 = half @x : io f16[T, 72]"},
		{Family: "rownorm", Group: "    %0 = rmsnorm @x, @gain {eps=1e-05, group=72} : f32[T, 72]\n    %1 = half %0 : io f16[T, 72]"},
		{Family: "rownorm", Group: "    %0 = gated_rmsnorm @x, @gated, @x {eps=1e-05, group=24} : f32[T, 72]\n    %1 = half %0 : io f16[T, 72]"},
	} {
		c.Ctx, c.Slots, c.Rows, c.N = 16, 1, 20, 13
		c.Globals = "step @x : f32[T, 72]\nweight @gain : f32[72]\nweight @gated : f32[24]"
		c.Run(t)
		c.CheckBuild(t)
	}
}

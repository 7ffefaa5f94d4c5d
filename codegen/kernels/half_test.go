package kernels_test

import "testing"

// TestHalf runs what rounds to f16, alone and behind a norm.
func TestHalf(t *testing.T) {
	for _, c := range []siteTest{
		{family: "elementwise", group: "    %0 = half @x : io f16[T, 72]"},
		{family: "rownorm", group: "    %0 = rmsnorm @x, @gain {eps=1e-05, group=72} : f32[T, 72]\n    %1 = half %0 : io f16[T, 72]"},
		{family: "rownorm", group: "    %0 = gated_rmsnorm @x, @gated, @x {eps=1e-05, group=24} : f32[T, 72]\n    %1 = half %0 : io f16[T, 72]"},
	} {
		c.ctx, c.slots, c.rows, c.n = 16, 1, 20, 13
		c.globals = "step @x : f32[T, 72]\nweight @gain : f32[72]\nweight @gated : f32[24]"
		c.run(t)
		c.checkBuild(t)
	}
}

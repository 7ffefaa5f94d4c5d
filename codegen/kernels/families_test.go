package kernels_test

import (
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// linearGroups are groups of projections, and the families of GPUs whose rows take them.
var linearGroups = []struct {
	rows  int
	group string
	by    []string
}{
	{1, "%0 = linear @a, @w : io f32[T, 64]", []string{"gemv"}},
	{8, "%0 = fixed12 @a : f32[T, 512]\n%1 = linear %0, @w : io f32[T, 64]", []string{"gemm_wide", "gemm_fixed", "gemv"}},
	{1, "%0 = linear @a, @w : f32[T, 64]\n%1 = half %0 : io f16[T, 64]", nil},
	{64, "%0 = linear @a, @w : io f32[T, 64]", []string{"gemm_float", "gemm_lanes", "gemm"}},
	{64, "%0 = rmsnorm @a, @g {eps=1e-06, group=512} : f32[T, 512]\n%1 = linear %0, @w : f32[T, 64]\n%2 = add %1, @b : io f32[T, 64]", []string{"gemm"}},
	{64, "%0 = fixed8 @a : f32[T, 512]\n%1 = linear %0, @w : io f32[T, 64]", []string{"gemm_dot"}},
	{64, "%0 = linear @x, @w : f32[T, 64]\n%1 = linear @x, @w : f32[T, 64]\n%2 = glu %0, %1 {act=\"silu\"} : f32[T, 64]\n%3 = half %2 : io f16[T, 64]",
		[]string{"gemm_fragment", "gemm_coop"}},
	{64, "%0 = linear @x, @w : io f32[T, 64]\n%1 = workspace @x {width=256} : f32[T, 256]", []string{"gemm_fragment"}},
	{1, "%0 = expert_linear @a, @ws, @ids {first=0, rows=64} : io f32[T, 128]", []string{"expert_gemv"}},
	{1, "%0 = fixed12 @a : f32[T, 512]\n%1 = expert_linear %0, @ws, @ids {first=0, rows=64} : io f32[T, 128]", []string{"expert_wide", "expert_gemv"}},
}

// TestLinearGroups holds which families are offered a group by what it has, and that none of them changes it.
func TestLinearGroups(t *testing.T) {
	on := kerneltest.Lookup(t, "sm_90-cuda")
	for _, c := range linearGroups {
		site := kerneltest.Case{Rows: c.rows, Terms: 512, Ctx: 64, Slots: 1, Group: c.group, Globals: "step @a : f32[T, 512]\nstep @x : f16[T, 512]\n" +
			"step @b : f32[T, 64]\nstep @ids : i32[T, 2]\nweight @g : f32[512]\nweight @w : q4_k[64, 512]\nweight @ws : q4_k[4, 64, 512]\n"}.Site(t, on)
		if got := kernels.Takers(site); !slices.Equal(got, c.by) {
			t.Errorf("%d rows of\n%s\nare for %q, want %q", c.rows, c.group, got, c.by)
		}
		if !kernels.LeaveGroups(site) {
			t.Errorf("a family changes\n%s", c.group)
		}
	}
}

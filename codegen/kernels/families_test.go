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
	{8, "%0 = unpack12 @p {rows=16, columns=16, lanes=\"now\"} : f32[T, 512]\n%1 = linear_parts %0, @w {each=1024} : io f32[T, 64]", []string{"gemm_wide"}},
	{8, "%0 = add_parts @x2 {count=2} : io f32[T, 256]", []string{"add_parts"}},
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
			"step @b : f32[T, 64]\nstep @p : i32[2, 2368]\nstep @x2 : f32[T, 512]\nstep @ids : i32[T, 2]\nweight @g : f32[512]\nweight @w : q4_k[64, 512]\nweight @ws : q4_k[4, 64, 512]\n"}.Site(t, on)
		if got := kernels.Takers(site); !slices.Equal(got, c.by) {
			t.Errorf("%d rows of\n%s\nare for %q, want %q", c.rows, c.group, got, c.by)
		}
		if !kernels.LeaveGroups(site) {
			t.Errorf("a family changes\n%s", c.group)
		}
	}
}

// otherGroups are groups without products, and the families of GPUs whose rows take them.
var otherGroups = []struct {
	rows  int
	group string
	by    []string
}{
	{8, "%0 = mul @a, @a : io f32[T, 512]", []string{"elementwise"}},
	{8, "%0 = slice @a {first=0, width=64} : f32[T, 64]\n%1 = mul %0, @b : io f32[T, 64]", []string{"elementwise"}},
	{8, "%0 = mul @a, @a : f32[T, 512]\n%1 = mul %0, @a : io f32[T, 512]", []string{"elementwise"}},
	{8, "%0 = rmsnorm @a, @g {eps=1e-06, group=512} : f32[T, 512]\n%1 = add %0, @a : io f32[T, 512]", []string{"rownorm"}},
	{8, "%0 = rmsnorm @a, @g {eps=1e-06, group=512} : f32[T, 512]\n%1 = half %0 : io f16[T, 512]", []string{"heads", "rownorm"}},
	{8, "%0 = rmsnorm @a, @g {eps=1e-06, group=512} : f32[T, 512]\n%1 = mul %0, @a : io f32[T, 512]", nil}, // no family takes both
	{8, "%0 = topk @e {k=2} : io i32[T, 2]", []string{"router"}},
	{8, "%0 = topk @e {k=2} : i32[T, 2]\n%1 = route @e, %0 {gating=\"softmax\", norm=1, scale=2.5} : io f32[T, 2]", nil}, // each stands alone
	{8, "%0 = attention @a, @k, @k, @pos, @slot {head_dim=64, heads=8, kv_heads=8, scale=0.125} : io f32[T, 512]", []string{"attention_split"}},
	{64, "%0 = attention @a, @k, @k, @pos, @slot {head_dim=64, heads=8, kv_heads=8, scale=0.125} : io f32[T, 512]",
		[]string{"attention_wgmma", "attention_coop", "attention_tiled"}},
}

// TestOtherGroups holds which families are offered a group without products.
func TestOtherGroups(t *testing.T) {
	on := kerneltest.Lookup(t, "sm_90-cuda")
	for _, c := range otherGroups {
		site := kerneltest.Case{Rows: c.rows, Terms: 512, Ctx: 64, Slots: 1, Group: c.group, Globals: "step @a : f32[T, 512]\nstep @b : f32[T, 64]\n" +
			"step @e : f32[T, 8]\nweight @g : f32[512]\nkv @k : f16[1, L, 512]\n"}.Site(t, on)
		if got := kernels.Takers(site); !slices.Equal(got, c.by) {
			t.Errorf("%d rows of\n%s\nare for %q, want %q", c.rows, c.group, got, c.by)
		}
	}
}

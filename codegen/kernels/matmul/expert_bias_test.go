package matmul_test

import (
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// TestExpertsBiased runs what a router and experts may add: a bias for the choice alone, biases of
// the experts' projections, scales of their results, a shared expert without a gate.
func TestExpertsBiased(t *testing.T) {
	const weights = `weight @choice : f32[12]
weight @scales : f32[12]
weight @gate : f16[12, 32, 64]
weight @up : f16[12, 32, 64]
weight @gatebias : f32[12, 32]
weight @upbias : f32[12, 32]
weight @down : f16[12, 64, 32]
weight @downbias : f32[12, 64]
weight @shared : f16[64, 96]
step @scores : f32[T, 12]
step @x : f32[T, 64]
step @act : f32[T, 96]
step @r : f32[T, 64]
step @ids : i32[T, 3]
`
	for _, c := range []kerneltest.Case{
		{Family: "router", Group: `%0 = topk @scores, @choice {k=3, gating="sigmoid"} : io i32[T, 3]`},
		{Family: "router", Group: `%0 = topk @scores, @choice {k=3, gating="softmax"} : io i32[T, 3]`},
		{Family: "expert_gemv", Group: `%0 = topk @scores {k=3, gating="softmax", groups=3, used_groups=2} : io i32[T, 3]
%1 = expert_linear @x, @gate, %0 {first=0, rows=32} : f32[T, 96]
%3 = expert_linear @x, @up, %0 {first=0, rows=32} : f32[T, 96]
%5 = glu %1, %3 {act="silu"} : io f32[T, 96]`},
		{Family: "expert_gemv", Group: `%0 = topk @scores, @choice {k=3, gating="sigmoid"} : io i32[T, 3]
%1 = expert_linear @x, @gate, %0 {first=0, rows=32} : f32[T, 96]
%2 = expert_bias %1, @gatebias, %0 : f32[T, 96]
%3 = expert_linear @x, @up, %0 {first=0, rows=32} : f32[T, 96]
%4 = expert_bias %3, @upbias, %0 : f32[T, 96]
%5 = glu %2, %4 {act="swiglu_oai"} : io f32[T, 96]`},
		{Family: "expert_down", Group: `%1 = route @scores, @ids, @scales {gating="softmax", norm=1, scale=1.5} : f32[T, 3]
%2 = expert_linear @act, @down, @ids {first=0, rows=64} : f32[T, 192]
%3 = expert_bias %2, @downbias, @ids : f32[T, 192]
%4 = expert_sum %3, %1 : f32[T, 64]
%5 = linear @act, @shared : f32[T, 64]
%6 = add %4, %5 : f32[T, 64]
%7 = add %6, @r : io f32[T, 64]`},
	} {
		c.Ctx, c.Slots, c.Rows, c.N, c.Globals = 64, 1, 4, 3, weights
		c.Run(t)
		c.CheckBuild(t)
	}
}

// TestGroupsOfExperts chooses among the experts of the best groups, on subgroups that hold several groups and on
// subgroups that share one.
func TestGroupsOfExperts(t *testing.T) {
	for _, c := range []kerneltest.Case{
		{Globals: "weight @choice : f32[256]\nstep @scores : f32[T, 256]\n", Group: `%0 = topk @scores, @choice {k=8, gating="sigmoid", groups=8, used_groups=4} : io i32[T, 8]`},
		{Globals: "weight @choice : f32[24]\nstep @scores : f32[T, 24]\n", Group: `%0 = topk @scores, @choice {k=5, gating="softmax", groups=8, used_groups=2} : io i32[T, 5]`},
		{Globals: "step @scores : f32[T, 160]\n", Group: `%0 = topk @scores {k=6, gating="softmax", groups=8, used_groups=3} : io i32[T, 6]`},
		{Globals: "step @scores : f32[T, 32]\n", Group: `%0 = topk @scores {k=4, gating="sigmoid", groups=4, used_groups=2} : io i32[T, 4]`},
		{Globals: "weight @choice : f32[14]\nstep @scores : f32[T, 14]\n", Group: `%0 = topk @scores, @choice {k=7, gating="sigmoid", groups=2, used_groups=1} : io i32[T, 7]`},
	} {
		c.Family, c.Ctx, c.Slots, c.Rows, c.N = "router", 64, 1, 6, 5
		c.Run(t)
		c.RunOn(t, kerneltest.Lookup(t, "sm_90"))
		c.RunOn(t, kerneltest.Processor(t))
		c.CheckBuild(t)
	}
}

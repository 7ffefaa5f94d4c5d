package attention_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// headsTest is the work on the heads of a layer: 4 heads over kvHeads.
func headsTest(kv, kind string, headDim, nRot, kvHeads int, norm bool, c kerneltest.Case) kerneltest.Case {
	c.Family = "heads"
	q, row := 4*headDim, kvHeads*headDim
	freqs := "1.0"
	for i := 1; i < nRot/2; i++ {
		freqs += fmt.Sprintf(", %g", 1/float64(1+i))
	}
	c.Globals = fmt.Sprintf(`weight @qn : f32[%d]
weight @kn : f32[%d]
table @rope {kind="rope", freqs=[%s], mscale=1.0} : f32[L, %d]
step @q : f32[T, %d]
step @kx : f32[T, %d]
step @vx : f32[T, %d]
kv @k : %s[%d, L, %d]
kv @v : %s[%d, L, %d]
`, headDim, headDim, freqs, nRot, q, row, row, kv, c.Slots, row, kv, c.Slots, row)
	from := [2]string{"@q", "@kx"}
	if norm {
		c.Group = fmt.Sprintf("%%0 = rmsnorm @q, @qn {eps=0.125, group=%d} : f32[T, %d]\n", headDim, q) +
			fmt.Sprintf("%%1 = rmsnorm @kx, @kn {eps=0.125, group=%d} : f32[T, %d]\n", headDim, row)
		from = [2]string{"%0", "%1"}
	}
	attrs := fmt.Sprintf("kind=%q, head_dim=%d, n_rot=%d", kind, headDim, nRot)
	c.Group += fmt.Sprintf("%%2 = rope %s, @pos, @rope {%s} : io f32[T, %d]\n", from[0], attrs, q) +
		fmt.Sprintf("%%3 = rope %s, @pos, @rope {%s} : f32[T, %d]\n", from[1], attrs, row) +
		"kvwrite %3, @pos, @slot, @k\nkvwrite @vx, @pos, @slot, @v"
	if kv == "q4_0" {
		c.Group = strings.NewReplacer("%2 = rope", "%20 = rope", " : io ", " : ", "%3 = rope", "%21 = rope",
			"kvwrite %3", fmt.Sprintf("%%2 = hadamard %%20 {group=32} : io f32[T, %d]\n%%3 = hadamard %%21 {group=32} : f32[T, %d]\nkvwrite %%3", q, row)).Replace(c.Group)
	}
	return c
}

func TestHeads(t *testing.T) {
	for _, c := range []kerneltest.Case{
		headsTest("f16", "neox", 128, 128, 2, true, kerneltest.Case{Ctx: 40, Slots: 1, Rows: 1, Pos: []int{39}}),
		headsTest("f16", "norm", 64, 64, 1, false, kerneltest.Case{Ctx: 40, Slots: 2, Rows: 4, N: 3, Pos: []int{7, 7}, Slot: []int{1, 0, 1}}),
		headsTest("f32", "neox", 96, 32, 4, false, kerneltest.Case{Ctx: 16, Slots: 1, Rows: 16, N: 9}),
		headsTest("f32", "norm", 80, 20, 2, true, kerneltest.Case{Ctx: 16, Slots: 1, Rows: 2, Pos: []int{3}}),
		headsTest("f16", "neox", 80, 20, 2, true, kerneltest.Case{Ctx: 16, Slots: 1, Rows: 2, Pos: []int{3}}),
		headsTest("f16", "norm", 256, 64, 1, true, kerneltest.Case{Ctx: 16, Slots: 1, Rows: 1, Pos: []int{3}}),
		headsTest("q8_0", "neox", 128, 128, 2, true, kerneltest.Case{Ctx: 40, Slots: 1, Rows: 1, Pos: []int{39}}),
		headsTest("q8_0", "norm", 64, 64, 1, false, kerneltest.Case{Ctx: 40, Slots: 2, Rows: 4, N: 3, Pos: []int{7, 7}, Slot: []int{1, 0, 1}}),
		headsTest("q8_0", "neox", 96, 32, 4, true, kerneltest.Case{Ctx: 16, Slots: 1, Rows: 16, N: 9}),
		headsTest("q4_0", "neox", 96, 32, 4, true, kerneltest.Case{Ctx: 16, Slots: 1, Rows: 16, N: 9}),
		headsTest("q4_0", "norm", 64, 64, 1, false, kerneltest.Case{Ctx: 40, Slots: 2, Rows: 4, N: 3, Pos: []int{7, 7}, Slot: []int{1, 0, 1}}),
		headsTest("f16", "neox", 256, 64, 1, false, kerneltest.Case{Ctx: 16, Slots: 1, Rows: 1, Pos: []int{3}}),
		headsTest("f16", "neox", 80, 18, 2, true, kerneltest.Case{Ctx: 16, Slots: 1, Rows: 2, Pos: []int{3}}), // halves of no whole accesses
		headsTest("f32", "neox", 64, 62, 2, false, kerneltest.Case{Ctx: 16, Slots: 2, Rows: 4, N: 3, Pos: []int{7, 7}, Slot: []int{1, 0, 1}}),
		headsTest("q8_0", "neox", 64, 20, 2, true, kerneltest.Case{Ctx: 16, Slots: 1, Rows: 2, Pos: []int{3}}),
		headsTest("q4_0", "neox", 96, 34, 2, false, kerneltest.Case{Ctx: 16, Slots: 1, Rows: 3, N: 2, Pos: []int{3}}),
	} {
		c.Run(t)
		c.CheckBuild(t)
	}
}

func TestHeadsApart(t *testing.T) {
	whole := headsTest("f16", "neox", 64, 64, 2, false, kerneltest.Case{Ctx: 8, Slots: 1, Rows: 2, N: 1})
	for _, group := range []string{
		"kvwrite @kx, @pos, @slot, @k",
		"kvwrite @kx, @pos, @slot, @k\nkvwrite @vx, @pos, @slot, @v",
		`%0 = rope @q, @pos, @rope {kind="neox", head_dim=64, n_rot=64} : io f32[T, 256]`,
	} {
		whole.Group = group
		whole.Run(t)
		whole.CheckBuild(t)
	}
}

// slicedHeads is headsTest with q in a projection that has gates as well.
func slicedHeads(kind string, headDim, nRot int, norm bool, c kerneltest.Case) kerneltest.Case {
	c = headsTest("f16", kind, headDim, nRot, 2, norm, c)
	q := 4 * headDim
	c.Globals += fmt.Sprintf("step @qg : f32[T, %d]\n", 2*q)
	c.Group = fmt.Sprintf("%%9 = head_slice @qg {head_dim=%d, parts=2, part=0} : f32[T, %d]\n", headDim, q) + strings.Replace(c.Group, "@q,", "%9,", 1)
	return c
}

func TestHeadsSliced(t *testing.T) {
	for _, c := range []kerneltest.Case{
		slicedHeads("neox", 256, 64, true, kerneltest.Case{Ctx: 16, Slots: 1, Rows: 2, Pos: []int{3}}),
		slicedHeads("norm", 64, 64, false, kerneltest.Case{Ctx: 40, Slots: 2, Rows: 4, N: 3, Pos: []int{7, 7}, Slot: []int{1, 0, 1}}),
		slicedHeads("neox", 128, 32, true, kerneltest.Case{Ctx: 40, Slots: 1, Rows: 20, N: 19}),
	} {
		c.Run(t)
		c.CheckBuild(t)
	}
}

func TestHeadsOfAnyWidth(t *testing.T) {
	headsTest("f16", "neox", 64, 64, 2, true, kerneltest.Case{Ctx: 8, Slots: 8, Pos: []int{0, 3, 5, 7, 1, 1, 1, 2}, Slot: []int{3, 1, 0, 2, 7, 6, 5, 4}}).CheckWidths(t, "%2")
}

// TestHeadsNormed has a norm without weight on v, and norms behind the rotation.
func TestHeadsNormed(t *testing.T) {
	unit := headsTest("f16", "neox", 128, 128, 2, true, kerneltest.Case{Ctx: 40, Slots: 1, Rows: 2, Pos: []int{37}})
	unit.Group = strings.Replace(unit.Group, "kvwrite @vx", "%9 = rmsnorm @vx {eps=0.125, group=128} : f32[T, 256]\nkvwrite %9", 1)
	behind := headsTest("f16", "neox", 96, 32, 2, false, kerneltest.Case{Ctx: 40, Slots: 1, Rows: 3, N: 2, Pos: []int{7}})
	behind.Group = strings.Replace(strings.Replace(behind.Group, " : io ", " : ", 1), "kvwrite %3",
		"%5 = rmsnorm %2, @qn {eps=0.125, group=96} : io f32[T, 384]\n%6 = rmsnorm %3, @kn {eps=0.125, group=96} : f32[T, 192]\nkvwrite %6", 1)
	for _, c := range []kerneltest.Case{unit, behind} {
		c.Run(t)
		c.CheckBuild(t)
	}
}

// TestHeadsRounded rounds q to f16 behind its rotation, as attention with matrices reads it.
func TestHeadsRounded(t *testing.T) {
	for _, c := range []kerneltest.Case{
		headsTest("f16", "neox", 128, 128, 2, true, kerneltest.Case{Ctx: 40, Slots: 1, Rows: 20, N: 19}),
		headsTest("f16", "norm", 80, 20, 1, false, kerneltest.Case{Ctx: 40, Slots: 2, Rows: 4, N: 3, Pos: []int{7, 7}, Slot: []int{1, 0, 1}}),
		headsTest("q4_0", "neox", 128, 128, 2, true, kerneltest.Case{Ctx: 40, Slots: 1, Rows: 20, N: 19}),
		slicedHeads("neox", 256, 64, true, kerneltest.Case{Ctx: 16, Slots: 1, Rows: 2, Pos: []int{3}}),
	} {
		c.Group = strings.Replace(c.Group, " : io ", " : ", 1)
		width := c.Parse(t).Funcs[0].Groups[0].Ops[0].Result.Type.Last()
		c.Group += fmt.Sprintf("\n%%10 = half %%2 : io f16[T, %d]", width)
		c.Run(t)
		c.CheckBuild(t)
	}
}

// TestCacheRounding writes rows as they are to caches that have scales, which must hold the
// oracle's bytes: rows of normal numbers, very large and small ones, and halves of codes.
func TestCacheRounding(t *testing.T) {
	for _, kv := range []string{"q8_0", "q4_0"} {
		c := headsTest(kv, "neox", 64, 64, 2, false, kerneltest.Case{Ctx: 9, Slots: 2, Rows: 8, N: 7, Pos: []int{1}, Slot: []int{1}})
		c.Globals = strings.ReplaceAll(c.Globals, "step @kx", "step @edges")
		c.Group = "kvwrite @edges, @pos, @slot, @k\nkvwrite @vx, @pos, @slot, @v"
		c.Exact = true
		c.Run(t)
	}
}

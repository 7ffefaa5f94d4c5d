package attention_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// attentionTest is an attention of heads over kvHeads, split if splits is not 0.
func attentionTest(family, kv string, headDim, heads, kvHeads, splits int, c kerneltest.Case) kerneltest.Case {
	c.Family = family
	q, row := heads*headDim, kvHeads*headDim
	c.Globals = fmt.Sprintf("step @q : f32[T, %d]\nkv @k : %s[%d, L, %d]\nkv @v : %s[%d, L, %d]\n", q, kv, c.Slots, row, kv, c.Slots, row)
	attrs := fmt.Sprintf("head_dim=%d, heads=%d, kv_heads=%d, scale=0.125", headDim, heads, kvHeads)
	if splits == 0 {
		c.Group = fmt.Sprintf("%%0 = attention @q, @k, @v, @pos, @slot {%s} : io f32[T, %d]", attrs, q)
	} else {
		c.Group = fmt.Sprintf("%%0 = attention_split @q, @k, @v, @pos, @slot {%s, splits=%d, block=8, rows=1} : io f32[T, %d]",
			attrs, splits, heads*splits*(headDim+2))
	}
	return c
}

// merged puts the merge behind the attention_split that the test's group ends in; the
// workgroups that compute both meet.
func merged(headDim, heads, splits int, c kerneltest.Case) kerneltest.Case {
	at := strings.LastIndex(c.Group, "%")
	if i := strings.LastIndex(c.Group, "%0 = attention_split"); i >= 0 {
		at = i
	}
	c.Group = c.Group[:at] + strings.Replace(strings.Replace(c.Group[at:], "%0 =", "%10 =", 1), " : io ", " : ", 1)
	c.Globals += "step @arrivals : i32[64]\n"
	c.Group += fmt.Sprintf("\n%%0 = attention_merge %%10 {head_dim=%d, heads=%d, splits=%d} : io f32[T, %d]", headDim, heads, splits, heads*headDim)
	return c
}

func TestAttentionSplit(t *testing.T) {
	split := func(kv string, headDim, heads, kvHeads, splits int, c kerneltest.Case) kerneltest.Case {
		return merged(headDim, heads, splits, attentionTest("attention_split", kv, headDim, heads, kvHeads, splits, c))
	}
	for _, c := range kerneltest.Some([]kerneltest.Case{
		split("f16", 128, 4, 1, 3, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{40}}),
		split("f16", 64, 4, 4, 8, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 2, Pos: []int{5, 63}, Slot: []int{1, 0}}), // empty splits
		split("f16", 16, 2, 2, 20, kerneltest.Case{Ctx: 160, Slots: 1, Rows: 1, Pos: []int{150}}),
		split("f32", 96, 8, 1, 1, kerneltest.Case{Ctx: 32, Slots: 1, Rows: 1, Pos: []int{31}}),
		split("f16", 80, 4, 2, 3, kerneltest.Case{Ctx: 32, Slots: 3, Rows: 4, N: 3, Pos: []int{0, 8, 20}, Slot: []int{2, 0, 1}}),
		split("f16", 256, 8, 2, 2, kerneltest.Case{Ctx: 48, Slots: 1, Rows: 1, Pos: []int{46}}),
		split("f32", 8, 3, 1, 2, kerneltest.Case{Ctx: 48, Slots: 1, Rows: 1, Pos: []int{33}}),
		split("f16", 64, 6, 2, 4, kerneltest.Case{Ctx: 48, Slots: 1, Rows: 1, Pos: []int{33}}),
		split("q8_0", 128, 4, 1, 3, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{40}}),
		split("q4_0", 128, 4, 1, 3, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{40}}),
		split("q4_0", 96, 8, 1, 1, kerneltest.Case{Ctx: 33, Slots: 3, Rows: 4, N: 3, Pos: []int{0, 31, 8}, Slot: []int{2, 0, 1}}),
		split("q8_0", 64, 6, 2, 4, kerneltest.Case{Ctx: 48, Slots: 2, Rows: 2, Pos: []int{33, 5}, Slot: []int{1, 0}}),
		split("q8_0", 256, 8, 2, 2, kerneltest.Case{Ctx: 48, Slots: 3, Rows: 4, N: 3, Pos: []int{0, 46, 8}, Slot: []int{2, 0, 1}}),
		split("q8_0", 96, 8, 1, 1, kerneltest.Case{Ctx: 33, Slots: 1, Rows: 1, Pos: []int{31}}),
		attentionTest("attention_split", "q8_0", 32, 4, 2, 0, kerneltest.Case{Ctx: 101, Slots: 2, Rows: 8, N: 5, Pos: []int{17}, Slot: []int{0, 1, 0}}),
		attentionTest("attention_split", "f16", 128, 4, 1, 0, kerneltest.Case{Ctx: 100, Slots: 1, Rows: 1, Pos: []int{99}}),
		attentionTest("attention_split", "f32", 64, 8, 2, 0, kerneltest.Case{Ctx: 100, Slots: 2, Rows: 8, N: 5, Pos: []int{17}, Slot: []int{0, 1, 0}}),
	}) {
		c.Run(t)
		c.CheckBuild(t)
	}
}

// fresh puts attention of 4 heads, split if splits is not 0, behind what makes q and
// writes k and v of the step's rows.
func fresh(headDim, kvHeads, splits int, c kerneltest.Case) kerneltest.Case {
	attention := attentionTest("attention_split", "f16", headDim, 4, kvHeads, splits, c).Group
	c.Family, c.Fresh = "attention_split", true
	c.Group = strings.ReplaceAll(strings.Replace(c.Group, " : io ", " : ", 1), "%0", "%8") + "\n" + strings.Replace(attention, "@q,", "%2,", 1)
	if splits > 0 {
		c = merged(headDim, 4, splits, c)
	}
	return c
}

func TestAttentionOfFreshRows(t *testing.T) {
	for i, splits := range []int{0, 3} {
		for j, c := range []kerneltest.Case{
			fresh(128, 2, splits, headsTest("f16", "neox", 128, 128, 2, true, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{40}})),
			fresh(16, 1, splits, headsTest("f16", "neox", 16, 16, 1, true, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{0}})),
			fresh(64, 1, splits, headsTest("f16", "norm", 64, 64, 1, false, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 4, N: 3, Pos: []int{6, 7, 31}, Slot: []int{1, 1, 0}})),
			fresh(80, 2, splits, headsTest("f32", "norm", 80, 20, 2, true, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 8, Pos: []int{13}})),
			fresh(256, 2, splits, slicedHeads("neox", 256, 64, true, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 8, N: 7, Pos: []int{0}})),
			fresh(80, 2, splits, headsTest("f16", "neox", 80, 20, 2, true, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 2, Pos: []int{23, 62}})),
			fresh(128, 2, splits, headsTest("q8_0", "neox", 128, 128, 2, true, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{40}})),
			fresh(64, 1, splits, headsTest("q4_0", "norm", 64, 64, 1, false, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 4, N: 3, Pos: []int{6, 7, 31}, Slot: []int{1, 1, 0}})),
			fresh(64, 1, splits, headsTest("q8_0", "norm", 64, 64, 1, false, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 4, N: 3, Pos: []int{6, 7, 31}, Slot: []int{1, 1, 0}})),
			fresh(96, 2, splits, headsTest("q8_0", "neox", 96, 96, 2, true, kerneltest.Case{Ctx: 65, Slots: 1, Rows: 8, Pos: []int{13}})),
		} {
			if !kerneltest.Takes(i+j, 3) {
				continue
			}
			c.Run(t)
			c.CheckBuild(t)
		}
	}
}

func TestAttentionTiled(t *testing.T) {
	for _, c := range kerneltest.Some([]kerneltest.Case{
		attentionTest("attention_tiled", "f16", 128, 4, 1, 0, kerneltest.Case{Ctx: 96, Slots: 1, Rows: 64}),
		attentionTest("attention_tiled", "f16", 64, 2, 2, 0, kerneltest.Case{Ctx: 96, Slots: 2, Rows: 48, N: 35, Pos: []int{30}, Slot: []int{1}}),
		attentionTest("attention_tiled", "f32", 96, 2, 1, 0, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 33, Pos: []int{31}}),
		attentionTest("attention_tiled", "f32", 80, 2, 1, 0, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 40, N: 1, Pos: []int{0}}),
		attentionTest("attention_tiled", "f16", 256, 8, 2, 0, kerneltest.Case{Ctx: 48, Slots: 1, Rows: 32, N: 20, Pos: []int{9}}),
		attentionTest("attention_tiled", "q8_0", 128, 4, 1, 0, kerneltest.Case{Ctx: 96, Slots: 1, Rows: 64}),
		attentionTest("attention_tiled", "q4_0", 96, 2, 2, 0, kerneltest.Case{Ctx: 97, Slots: 2, Rows: 48, N: 35, Pos: []int{30}, Slot: []int{1}}),
		attentionTest("attention_tiled", "q8_0", 96, 2, 2, 0, kerneltest.Case{Ctx: 97, Slots: 2, Rows: 48, N: 35, Pos: []int{30}, Slot: []int{1}}),
		attentionTest("attention_tiled", "f32", 512, 1, 1, 0, kerneltest.Case{Ctx: 48, Slots: 1, Rows: 16, Pos: []int{3}}),
	}) {
		c.Run(t)
		c.CheckBuild(t)
	}
}

// TestRowsOfManySequences has attention that takes the rows of a step as one sequence.
func TestRowsOfManySequences(t *testing.T) {
	attentionTest("attention_tiled", "f16", 64, 2, 2, 0, kerneltest.Case{Ctx: 96, Slots: 2, Rows: 16}).CheckSequences(t)
}

func TestAttentionMerge(t *testing.T) {
	for _, splits := range []int{1, 3, 20} {
		c := kerneltest.Case{Family: "attention_merge", Ctx: 8, Slots: 1, Rows: 3, N: 2}
		c.Globals = fmt.Sprintf("step @p : f32[T, %d]\n", 2*splits*82)
		c.Group = fmt.Sprintf("%%0 = attention_merge @p {head_dim=80, heads=2, splits=%d} : io f32[T, 160]", splits)
		c.Run(t)
		c.CheckBuild(t)
		c = rounded(160, c)
		c.Run(t)
		c.CheckBuild(t)
	}
}

// gated puts a gate behind the op that the test's group consists of: a value of
// its own, or the second of two parts of one.
func gated(headDim, heads int, sliced bool, c kerneltest.Case) kerneltest.Case {
	width := headDim * heads
	c.Group = strings.Replace(c.Group, " : io ", " : ", 1)
	gate := "@g"
	if sliced {
		c.Globals += fmt.Sprintf("step @gates : f32[T, %d]\n", 2*width)
		c.Group += fmt.Sprintf("\n%%11 = head_slice @gates {head_dim=%d, parts=2, part=1} : f32[T, %d]", headDim, width)
		gate = "%11"
	} else {
		c.Globals += fmt.Sprintf("step @g : f32[T, %d]\n", width)
	}
	c.Group += fmt.Sprintf("\n%%12 = gate %%0, %s : io f32[T, %d]", gate, width)
	return c
}

func TestGatedAttention(t *testing.T) {
	merge := kerneltest.Case{Family: "attention_merge", Ctx: 8, Slots: 1, Rows: 3, N: 2, Globals: fmt.Sprintf("step @p : f32[T, %d]\n", 2*3*82),
		Group: "%0 = attention_merge @p {head_dim=80, heads=2, splits=3} : io f32[T, 160]"}
	few, many := kerneltest.Case{Ctx: 64, Slots: 2, Rows: 4, N: 3, Pos: []int{5, 63, 40}, Slot: []int{1, 0, 1}}, kerneltest.Case{Ctx: 96, Slots: 1, Rows: 40, N: 37}
	for i, sliced := range []bool{false, true} {
		for j, c := range []kerneltest.Case{
			gated(80, 2, sliced, merge),
			gated(256, 8, sliced, attentionTest("attention_split", "f16", 256, 8, 2, 0, few)),
			gated(64, 4, sliced, fresh(64, 2, 4, slicedHeads("neox", 64, 32, true, few))),
			gated(96, 2, sliced, attentionTest("attention_tiled", "f32", 96, 2, 1, 0, many)),
		} {
			if !kerneltest.Takes(i+j, 2) {
				continue
			}
			c.Run(t)
			c.CheckBuild(t)
		}
	}
}

func TestDecodeAttentionOfAnyWidth(t *testing.T) {
	at := kerneltest.Case{Ctx: 64, Slots: 8, Pos: []int{40, 3, 63, 0, 17, 16, 15, 41}, Slot: []int{3, 1, 0, 2, 7, 6, 5, 4}}
	attentionTest("attention_split", "f16", 64, 4, 1, 0, at).CheckWidths(t, "%0")
	merged(64, 4, 3, attentionTest("attention_split", "f16", 64, 4, 1, 3, at)).CheckWidths(t, "%0")
	fresh(64, 1, 3, headsTest("f16", "neox", 64, 64, 1, true, at)).CheckWidths(t, "%0")
	fresh(64, 1, 3, headsTest("q8_0", "neox", 64, 64, 1, true, at)).CheckWidths(t, "%0")
	// Rows of one sequence attend to each other.
	at.Pos, at.Slot = []int{20, 4, 5, 6, 7, 8, 9, 10}, []int{3, 1}
	fresh(64, 1, 3, headsTest("f16", "neox", 64, 64, 1, true, at)).CheckWidths(t, "%0")
}

// windowed gives the attention of the test's group a window and sinks.
func windowed(window, heads int, c kerneltest.Case) kerneltest.Case {
	c.Globals += fmt.Sprintf("weight @sinks : f32[%d]\n", heads)
	c.Group = strings.ReplaceAll(c.Group, "scale=0.125", fmt.Sprintf("scale=0.125, window=%d", window))
	if strings.Contains(c.Group, "attention_merge") {
		c.Group = strings.Replace(c.Group, "attention_merge %10", "attention_merge %10, @sinks", 1)
	} else if !strings.Contains(c.Group, "attention_split") {
		c.Group = strings.Replace(c.Group, "@v, @pos, @slot {head_dim", "@v, @pos, @slot, @sinks {head_dim", 1)
	}
	return c
}

// ringed makes the caches of the test's group rings of so many positions.
func ringed(positions int, c kerneltest.Case) kerneltest.Case {
	c.Ring, c.Globals = positions, strings.ReplaceAll(c.Globals, ", L, ", fmt.Sprintf(", %d, ", positions))
	return c
}

func TestAttentionInWindows(t *testing.T) {
	at := kerneltest.Case{Ctx: 128, Slots: 2, Rows: 4, N: 3, Pos: []int{70, 71, 100}, Slot: []int{1, 1, 0}}
	for _, c := range kerneltest.Some([]kerneltest.Case{
		windowed(40, 4, merged(128, 4, 3, attentionTest("attention_split", "f16", 128, 4, 1, 3, at))),
		windowed(40, 4, merged(64, 4, 3, attentionTest("attention_split", "q8_0", 64, 4, 2, 3, at))),
		windowed(1, 4, merged(64, 4, 2, attentionTest("attention_split", "f32", 64, 4, 2, 2, at))),
		windowed(128, 4, attentionTest("attention_split", "f16", 64, 4, 2, 0, at)),
		windowed(33, 4, fresh(64, 1, 3, headsTest("f16", "neox", 64, 64, 1, true, at))),
		windowed(33, 4, fresh(64, 1, 0, headsTest("q8_0", "neox", 64, 64, 1, true, at))),
		ringed(64, windowed(40, 4, merged(128, 4, 3, attentionTest("attention_split", "f16", 128, 4, 1, 3, at)))),
		ringed(96, windowed(33, 4, fresh(64, 1, 3, headsTest("f16", "neox", 64, 64, 1, true, at)))),
		ringed(64, windowed(20, 4, fresh(64, 1, 0, headsTest("q8_0", "neox", 64, 64, 1, true, at)))),
		ringed(64, windowed(20, 2, attentionTest("attention_tiled", "f32", 96, 2, 1, 0, kerneltest.Case{Ctx: 128, Slots: 2, Rows: 40, N: 35, Pos: []int{80}, Slot: []int{1}}))),
		ringed(96, windowed(32, 2, attentionTest("attention_tiled", "q8_0", 64, 2, 2, 0, kerneltest.Case{Ctx: 128, Slots: 1, Rows: 40, Pos: []int{80}}))),
		windowed(8, 4, attentionTest("attention_tiled", "f16", 128, 4, 1, 0, kerneltest.Case{Ctx: 96, Slots: 1, Rows: 64})),
		windowed(20, 2, attentionTest("attention_tiled", "f32", 96, 2, 1, 0, kerneltest.Case{Ctx: 128, Slots: 2, Rows: 48, N: 35, Pos: []int{80}, Slot: []int{1}})),
		windowed(32, 2, attentionTest("attention_tiled", "q8_0", 64, 2, 2, 0, kerneltest.Case{Ctx: 128, Slots: 1, Rows: 40, Pos: []int{63}})),
	}) {
		c.Run(t)
		c.CheckBuild(t)
	}
	merge := kerneltest.Case{Family: "attention_merge", Ctx: 8, Slots: 1, Rows: 3, N: 2, Globals: fmt.Sprintf("step @p : f32[T, %d]\n", 2*3*82),
		Group: "%10 = attention_merge %10 {head_dim=80, heads=2, splits=3} : io f32[T, 160]"}
	merge.Group = strings.Replace(merge.Group, "%10 {", "@p, @sinks {", 1)
	merge.Globals += "weight @sinks : f32[2]\n"
	merge.Run(t)
	merge.CheckBuild(t)
}

package kernels_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/ir"
)

// attentionTest is an attention of heads over kvHeads, split if splits is not 0.
func attentionTest(family, kv string, headDim, heads, kvHeads, splits int, c siteTest) siteTest {
	c.family = family
	q, row := heads*headDim, kvHeads*headDim
	c.globals = fmt.Sprintf("step @q : f32[T, %d]\nkv @k : %s[%d, L, %d]\nkv @v : %s[%d, L, %d]\n", q, kv, c.slots, row, kv, c.slots, row)
	attrs := fmt.Sprintf("head_dim=%d, heads=%d, kv_heads=%d, scale=0.125", headDim, heads, kvHeads)
	if splits == 0 {
		c.group = fmt.Sprintf("%%0 = attention @q, @k, @v, @pos, @slot {%s} : io f32[T, %d]", attrs, q)
	} else {
		c.group = fmt.Sprintf("%%0 = attention_split @q, @k, @v, @pos, @slot {%s, splits=%d, block=8, rows=1} : io f32[T, %d]",
			attrs, splits, heads*splits*(headDim+2))
	}
	return c
}

// merged puts the merge behind the attention_split that the test's group ends in; the
// workgroups that compute both meet.
func merged(headDim, heads, splits int, c siteTest) siteTest {
	at := strings.LastIndex(c.group, "%")
	if i := strings.LastIndex(c.group, "%0 = attention_split"); i >= 0 {
		at = i
	}
	c.group = c.group[:at] + strings.Replace(strings.Replace(c.group[at:], "%0 =", "%10 =", 1), " : io ", " : ", 1)
	c.globals += "step @arrivals : i32[64]\n"
	c.group += fmt.Sprintf("\n%%0 = attention_merge %%10 {head_dim=%d, heads=%d, splits=%d} : io f32[T, %d]", headDim, heads, splits, heads*headDim)
	return c
}

func TestAttentionSplit(t *testing.T) {
	split := func(kv string, headDim, heads, kvHeads, splits int, c siteTest) siteTest {
		return merged(headDim, heads, splits, attentionTest("attention_split", kv, headDim, heads, kvHeads, splits, c))
	}
	for _, c := range some([]siteTest{
		split("f16", 128, 4, 1, 3, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{40}}),
		split("f16", 64, 4, 4, 8, siteTest{ctx: 64, slots: 2, rows: 2, pos: []int{5, 63}, slot: []int{1, 0}}), // empty splits
		split("f16", 16, 2, 2, 20, siteTest{ctx: 160, slots: 1, rows: 1, pos: []int{150}}),
		split("f32", 96, 8, 1, 1, siteTest{ctx: 32, slots: 1, rows: 1, pos: []int{31}}),
		split("f16", 80, 4, 2, 3, siteTest{ctx: 32, slots: 3, rows: 4, n: 3, pos: []int{0, 8, 20}, slot: []int{2, 0, 1}}),
		split("f16", 256, 8, 2, 2, siteTest{ctx: 48, slots: 1, rows: 1, pos: []int{46}}),
		split("f32", 8, 3, 1, 2, siteTest{ctx: 48, slots: 1, rows: 1, pos: []int{33}}),
		split("f16", 64, 6, 2, 4, siteTest{ctx: 48, slots: 1, rows: 1, pos: []int{33}}),
		split("q8_0", 128, 4, 1, 3, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{40}}),
		split("q4_0", 128, 4, 1, 3, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{40}}),
		split("q4_0", 96, 8, 1, 1, siteTest{ctx: 33, slots: 3, rows: 4, n: 3, pos: []int{0, 31, 8}, slot: []int{2, 0, 1}}),
		split("q8_0", 64, 6, 2, 4, siteTest{ctx: 48, slots: 2, rows: 2, pos: []int{33, 5}, slot: []int{1, 0}}),
		split("q8_0", 256, 8, 2, 2, siteTest{ctx: 48, slots: 3, rows: 4, n: 3, pos: []int{0, 46, 8}, slot: []int{2, 0, 1}}),
		split("q8_0", 96, 8, 1, 1, siteTest{ctx: 33, slots: 1, rows: 1, pos: []int{31}}),
		attentionTest("attention_split", "q8_0", 32, 4, 2, 0, siteTest{ctx: 101, slots: 2, rows: 8, n: 5, pos: []int{17}, slot: []int{0, 1, 0}}),
		attentionTest("attention_split", "f16", 128, 4, 1, 0, siteTest{ctx: 100, slots: 1, rows: 1, pos: []int{99}}),
		attentionTest("attention_split", "f32", 64, 8, 2, 0, siteTest{ctx: 100, slots: 2, rows: 8, n: 5, pos: []int{17}, slot: []int{0, 1, 0}}),
	}) {
		c.run(t)
		c.checkBuild(t)
	}
}

// fresh puts attention of 4 heads, split if splits is not 0, behind what makes q and
// writes k and v of the step's rows.
func fresh(headDim, kvHeads, splits int, c siteTest) siteTest {
	attention := attentionTest("attention_split", "f16", headDim, 4, kvHeads, splits, c).group
	c.family, c.fresh = "attention_split", true
	c.group = strings.ReplaceAll(strings.Replace(c.group, " : io ", " : ", 1), "%0", "%8") + "\n" + strings.Replace(attention, "@q,", "%2,", 1)
	if splits > 0 {
		c = merged(headDim, 4, splits, c)
	}
	return c
}

func TestAttentionOfFreshRows(t *testing.T) {
	for i, splits := range []int{0, 3} {
		for j, c := range []siteTest{
			fresh(128, 2, splits, headsTest("f16", "neox", 128, 128, 2, true, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{40}})),
			fresh(16, 1, splits, headsTest("f16", "neox", 16, 16, 1, true, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{0}})),
			fresh(64, 1, splits, headsTest("f16", "norm", 64, 64, 1, false, siteTest{ctx: 64, slots: 2, rows: 4, n: 3, pos: []int{6, 7, 31}, slot: []int{1, 1, 0}})),
			fresh(80, 2, splits, headsTest("f32", "norm", 80, 20, 2, true, siteTest{ctx: 64, slots: 1, rows: 8, pos: []int{13}})),
			fresh(256, 2, splits, slicedHeads("neox", 256, 64, true, siteTest{ctx: 64, slots: 1, rows: 8, n: 7, pos: []int{0}})),
			fresh(80, 2, splits, headsTest("f16", "neox", 80, 20, 2, true, siteTest{ctx: 64, slots: 1, rows: 2, pos: []int{23, 62}})),
			fresh(128, 2, splits, headsTest("q8_0", "neox", 128, 128, 2, true, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{40}})),
			fresh(64, 1, splits, headsTest("q4_0", "norm", 64, 64, 1, false, siteTest{ctx: 64, slots: 2, rows: 4, n: 3, pos: []int{6, 7, 31}, slot: []int{1, 1, 0}})),
			fresh(64, 1, splits, headsTest("q8_0", "norm", 64, 64, 1, false, siteTest{ctx: 64, slots: 2, rows: 4, n: 3, pos: []int{6, 7, 31}, slot: []int{1, 1, 0}})),
			fresh(96, 2, splits, headsTest("q8_0", "neox", 96, 96, 2, true, siteTest{ctx: 65, slots: 1, rows: 8, pos: []int{13}})),
		} {
			if !takes(i+j, 3) {
				continue
			}
			c.run(t)
			c.checkBuild(t)
		}
	}
}

func TestAttentionTiled(t *testing.T) {
	for _, c := range some([]siteTest{
		attentionTest("attention_tiled", "f16", 128, 4, 1, 0, siteTest{ctx: 96, slots: 1, rows: 64}),
		attentionTest("attention_tiled", "f16", 64, 2, 2, 0, siteTest{ctx: 96, slots: 2, rows: 48, n: 35, pos: []int{30}, slot: []int{1}}),
		attentionTest("attention_tiled", "f32", 96, 2, 1, 0, siteTest{ctx: 64, slots: 1, rows: 33, pos: []int{31}}),
		attentionTest("attention_tiled", "f32", 80, 2, 1, 0, siteTest{ctx: 64, slots: 1, rows: 40, n: 1, pos: []int{0}}),
		attentionTest("attention_tiled", "f16", 256, 8, 2, 0, siteTest{ctx: 48, slots: 1, rows: 32, n: 20, pos: []int{9}}),
		attentionTest("attention_tiled", "q8_0", 128, 4, 1, 0, siteTest{ctx: 96, slots: 1, rows: 64}),
		attentionTest("attention_tiled", "q4_0", 96, 2, 2, 0, siteTest{ctx: 97, slots: 2, rows: 48, n: 35, pos: []int{30}, slot: []int{1}}),
		attentionTest("attention_tiled", "q8_0", 96, 2, 2, 0, siteTest{ctx: 97, slots: 2, rows: 48, n: 35, pos: []int{30}, slot: []int{1}}),
		attentionTest("attention_tiled", "f32", 512, 1, 1, 0, siteTest{ctx: 48, slots: 1, rows: 16, pos: []int{3}}),
	}) {
		c.run(t)
		c.checkBuild(t)
	}
}

// TestRowsOfManySequences holds that what takes the rows of a step as one sequence is not
// offered where they may be of several.
func TestRowsOfManySequences(t *testing.T) {
	for family, c := range map[string]siteTest{
		"attention_tiled": attentionTest("attention_tiled", "f16", 64, 2, 2, 0, siteTest{ctx: 96, slots: 2, rows: 16}),
		"delta":           deltaTest("", "mod", 128, 2, 4, siteTest{ctx: 96, slots: 2, rows: 16}),
	} {
		s := c.site(t, lookup(t, "llvmpipe"))
		if len(kernels.Candidates(s)) == 0 {
			t.Errorf("%s: no candidate for a step of one sequence", family)
		}
		s.Func.Sequences = ir.ManySequences
		for _, k := range kernels.Candidates(s) {
			t.Errorf("%s for rows of many sequences", k.Kernel)
		}
		s.Program.Slots = 1
		if len(kernels.Candidates(s)) == 0 {
			t.Errorf("%s: no candidate where there is one slot", family)
		}
	}
}

func TestAttentionMerge(t *testing.T) {
	for _, splits := range []int{1, 3, 20} {
		c := siteTest{family: "attention_merge", ctx: 8, slots: 1, rows: 3, n: 2}
		c.globals = fmt.Sprintf("step @p : f32[T, %d]\n", 2*splits*82)
		c.group = fmt.Sprintf("%%0 = attention_merge @p {head_dim=80, heads=2, splits=%d} : io f32[T, 160]", splits)
		c.run(t)
		c.checkBuild(t)
		c = rounded(160, c)
		c.run(t)
		c.checkBuild(t)
	}
}

// gated puts a gate behind the op that the test's group consists of: a value of
// its own, or the second of two parts of one.
func gated(headDim, heads int, sliced bool, c siteTest) siteTest {
	width := headDim * heads
	c.group = strings.Replace(c.group, " : io ", " : ", 1)
	gate := "@g"
	if sliced {
		c.globals += fmt.Sprintf("step @gates : f32[T, %d]\n", 2*width)
		c.group += fmt.Sprintf("\n%%11 = head_slice @gates {head_dim=%d, parts=2, part=1} : f32[T, %d]", headDim, width)
		gate = "%11"
	} else {
		c.globals += fmt.Sprintf("step @g : f32[T, %d]\n", width)
	}
	c.group += fmt.Sprintf("\n%%12 = gate %%0, %s : io f32[T, %d]", gate, width)
	return c
}

func TestGatedAttention(t *testing.T) {
	merge := siteTest{family: "attention_merge", ctx: 8, slots: 1, rows: 3, n: 2, globals: fmt.Sprintf("step @p : f32[T, %d]\n", 2*3*82),
		group: "%0 = attention_merge @p {head_dim=80, heads=2, splits=3} : io f32[T, 160]"}
	few, many := siteTest{ctx: 64, slots: 2, rows: 4, n: 3, pos: []int{5, 63, 40}, slot: []int{1, 0, 1}}, siteTest{ctx: 96, slots: 1, rows: 40, n: 37}
	for i, sliced := range []bool{false, true} {
		for j, c := range []siteTest{
			gated(80, 2, sliced, merge),
			gated(256, 8, sliced, attentionTest("attention_split", "f16", 256, 8, 2, 0, few)),
			gated(64, 4, sliced, fresh(64, 2, 4, slicedHeads("neox", 64, 32, true, few))),
			gated(96, 2, sliced, attentionTest("attention_tiled", "f32", 96, 2, 1, 0, many)),
		} {
			if !takes(i+j, 2) {
				continue
			}
			c.run(t)
			c.checkBuild(t)
		}
	}
}

func TestDecodeAttentionOfAnyWidth(t *testing.T) {
	at := siteTest{ctx: 64, slots: 8, pos: []int{40, 3, 63, 0, 17, 16, 15, 41}, slot: []int{3, 1, 0, 2, 7, 6, 5, 4}}
	attentionTest("attention_split", "f16", 64, 4, 1, 0, at).checkWidths(t, "%0")
	merged(64, 4, 3, attentionTest("attention_split", "f16", 64, 4, 1, 3, at)).checkWidths(t, "%0")
	fresh(64, 1, 3, headsTest("f16", "neox", 64, 64, 1, true, at)).checkWidths(t, "%0")
	fresh(64, 1, 3, headsTest("q8_0", "neox", 64, 64, 1, true, at)).checkWidths(t, "%0")
	// Rows of one sequence attend to each other.
	at.pos, at.slot = []int{20, 4, 5, 6, 7, 8, 9, 10}, []int{3, 1}
	fresh(64, 1, 3, headsTest("f16", "neox", 64, 64, 1, true, at)).checkWidths(t, "%0")
}

// windowed gives the attention of the test's group a window and sinks.
func windowed(window, heads int, c siteTest) siteTest {
	c.globals += fmt.Sprintf("weight @sinks : f32[%d]\n", heads)
	c.group = strings.ReplaceAll(c.group, "scale=0.125", fmt.Sprintf("scale=0.125, window=%d", window))
	if strings.Contains(c.group, "attention_merge") {
		c.group = strings.Replace(c.group, "attention_merge %10", "attention_merge %10, @sinks", 1)
	} else if !strings.Contains(c.group, "attention_split") {
		c.group = strings.Replace(c.group, "@v, @pos, @slot {head_dim", "@v, @pos, @slot, @sinks {head_dim", 1)
	}
	return c
}

// ringed makes the caches of the test's group rings of so many positions.
func ringed(positions int, c siteTest) siteTest {
	c.ring, c.globals = positions, strings.ReplaceAll(c.globals, ", L, ", fmt.Sprintf(", %d, ", positions))
	return c
}

func TestAttentionInWindows(t *testing.T) {
	at := siteTest{ctx: 128, slots: 2, rows: 4, n: 3, pos: []int{70, 71, 100}, slot: []int{1, 1, 0}}
	for _, c := range some([]siteTest{
		windowed(40, 4, merged(128, 4, 3, attentionTest("attention_split", "f16", 128, 4, 1, 3, at))),
		windowed(40, 4, merged(64, 4, 3, attentionTest("attention_split", "q8_0", 64, 4, 2, 3, at))),
		windowed(1, 4, merged(64, 4, 2, attentionTest("attention_split", "f32", 64, 4, 2, 2, at))),
		windowed(128, 4, attentionTest("attention_split", "f16", 64, 4, 2, 0, at)),
		windowed(33, 4, fresh(64, 1, 3, headsTest("f16", "neox", 64, 64, 1, true, at))),
		windowed(33, 4, fresh(64, 1, 0, headsTest("q8_0", "neox", 64, 64, 1, true, at))),
		ringed(64, windowed(40, 4, merged(128, 4, 3, attentionTest("attention_split", "f16", 128, 4, 1, 3, at)))),
		ringed(96, windowed(33, 4, fresh(64, 1, 3, headsTest("f16", "neox", 64, 64, 1, true, at)))),
		ringed(64, windowed(20, 4, fresh(64, 1, 0, headsTest("q8_0", "neox", 64, 64, 1, true, at)))),
		ringed(64, windowed(20, 2, attentionTest("attention_tiled", "f32", 96, 2, 1, 0, siteTest{ctx: 128, slots: 2, rows: 40, n: 35, pos: []int{80}, slot: []int{1}}))),
		ringed(96, windowed(32, 2, attentionTest("attention_tiled", "q8_0", 64, 2, 2, 0, siteTest{ctx: 128, slots: 1, rows: 40, pos: []int{80}}))),
		windowed(8, 4, attentionTest("attention_tiled", "f16", 128, 4, 1, 0, siteTest{ctx: 96, slots: 1, rows: 64})),
		windowed(20, 2, attentionTest("attention_tiled", "f32", 96, 2, 1, 0, siteTest{ctx: 128, slots: 2, rows: 48, n: 35, pos: []int{80}, slot: []int{1}})),
		windowed(32, 2, attentionTest("attention_tiled", "q8_0", 64, 2, 2, 0, siteTest{ctx: 128, slots: 1, rows: 40, pos: []int{63}})),
	}) {
		c.run(t)
		c.checkBuild(t)
	}
	merge := siteTest{family: "attention_merge", ctx: 8, slots: 1, rows: 3, n: 2, globals: fmt.Sprintf("step @p : f32[T, %d]\n", 2*3*82),
		group: "%10 = attention_merge %10 {head_dim=80, heads=2, splits=3} : io f32[T, 160]"}
	merge.group = strings.Replace(merge.group, "%10 {", "@p, @sinks {", 1)
	merge.globals += "weight @sinks : f32[2]\n"
	merge.run(t)
	merge.checkBuild(t)
}

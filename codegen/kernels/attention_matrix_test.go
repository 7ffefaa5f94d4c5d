package kernels_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestAttentionMatrices runs attention of few rows on matrices, in the interpreter.
func TestAttentionMatrices(t *testing.T) {
	on := lookup(t, "sm_90")
	split := func(kv string, headDim, heads, kvHeads, splits int, c siteTest) siteTest {
		return merged(headDim, heads, splits, attentionTest("attention_split", kv, headDim, heads, kvHeads, splits, c))
	}
	for i, kv := range []string{"f16", "q8_0", "q4_0"} {
		for j, c := range []siteTest{
			split(kv, 128, 4, 1, 3, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{40}}),
			split(kv, 64, 4, 4, 8, siteTest{ctx: 64, slots: 2, rows: 2, pos: []int{5, 63}, slot: []int{1, 0}}), // empty splits
			split(kv, 256, 8, 2, 2, siteTest{ctx: 48, slots: 3, rows: 4, n: 3, pos: []int{0, 46, 8}, slot: []int{2, 0, 1}}),
			split(kv, 64, 6, 2, 4, siteTest{ctx: 300, slots: 1, rows: 1, pos: []int{299}}),
			split(kv, 64, 5, 1, 1, siteTest{ctx: 48, slots: 1, rows: 1, pos: []int{33}}),
			attentionTest("attention_split", kv, 128, 4, 1, 0, siteTest{ctx: 300, slots: 1, rows: 1, pos: []int{299}}),
			fresh(128, 2, 3, headsTest(kv, "neox", 128, 128, 2, true, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{40}})),
			fresh(64, 2, 0, headsTest(kv, "neox", 64, 64, 2, true, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{0}})),
			fresh(64, 1, 0, headsTest(kv, "norm", 64, 64, 1, false, siteTest{ctx: 64, slots: 2, rows: 4, n: 3, pos: []int{6, 7, 31}, slot: []int{1, 1, 0}})),
			fresh(64, 1, 3, headsTest(kv, "norm", 64, 64, 1, false, siteTest{ctx: 300, slots: 1, rows: 8, pos: []int{203}})),
			moreHeads(64, 3, fresh(64, 1, 3, headsTest(kv, "neox", 64, 64, 1, true, siteTest{ctx: 300, slots: 1, rows: 2, pos: []int{140, 141}}))), // two workgroups of a KV head
			fresh(256, 1, 2, headsTest(kv, "neox", 256, 64, 1, true, siteTest{ctx: 300, slots: 1, rows: 4, pos: []int{203}})),
			fresh(128, 1, 3, headsTest(kv, "neox", 128, 128, 1, true, siteTest{ctx: 300, slots: 1, rows: 8, pos: []int{140}})),
			gated(64, 4, true, fresh(64, 2, 4, slicedHeads("neox", 64, 32, true, siteTest{ctx: 64, slots: 2, rows: 4, n: 3, pos: []int{5, 63, 40}, slot: []int{1, 0, 1}}))),
		} {
			if !takes(i+j, 3) {
				continue
			}
			if list := c.candidates(t, c.site(t, on)); !strings.Contains(list[0].Kernel, " matrices") {
				t.Errorf("%s: %s", c.group, list[0].Kernel)
			}
			c.runOn(t, on)
			c.checkOn(t, on)
		}
	}
}

// TestAttentionAhead runs attention of one row through CUDA, where keys and values are loaded a turn ahead and parts of a workgroup
// merge the splits, in the interpreter.
func TestAttentionAhead(t *testing.T) {
	on := lookup(t, "sm_90-cuda")
	for i, kv := range []string{"f16", "q8_0", "q4_0"} {
		for j, c := range []siteTest{
			merged(128, 4, 3, attentionTest("attention_split", kv, 128, 4, 1, 3, siteTest{ctx: 600, slots: 1, rows: 1, pos: []int{580}})), // the last turn is shorter
			fresh(128, 2, 3, headsTest(kv, "neox", 128, 128, 2, true, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{40}})),
			fresh(64, 2, 0, headsTest(kv, "neox", 64, 64, 2, true, siteTest{ctx: 300, slots: 1, rows: 1, pos: []int{290}})), // nothing to merge
			fresh(64, 1, 3, headsTest(kv, "norm", 64, 64, 1, false, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{0}})),   // and no position but its own
		} {
			if !takes(i+j, 3) {
				continue
			}
			if list := c.candidates(t, c.site(t, on)); !strings.Contains(list[0].Kernel, " ahead") {
				t.Errorf("%s: %s", c.group, list[0].Kernel)
			}
			c.runOn(t, on)
		}
		few := siteTest{ctx: 600, slots: 1, rows: 1, pos: []int{580}}
		rows := siteTest{ctx: 600, slots: 1, rows: 8, pos: []int{580}}
		for j, c := range []siteTest{ // parts as wide as a workgroup's heads are more than subgroups
			merged(64, 4, 3, attentionTest("attention_split", kv, 64, 4, 4, 3, few)),
			merged(64, 4, 3, attentionTest("attention_split", kv, 64, 4, 4, 3, rows)),
			merged(32, 4, 3, attentionTest("attention_split", kv, 32, 4, 2, 3, few)),
		} {
			if !takes(i+j, 3) {
				continue
			}
			c.runOn(t, on)
		}
		if !takes(i+2, 3) {
			continue
		}
		widths := siteTest{ctx: 300, slots: 8, pos: []int{140, 3, 263, 0, 17, 16, 15, 41}, slot: []int{3, 1, 0, 2, 7, 6, 5, 4}}
		fresh(64, 1, 3, headsTest(kv, "neox", 64, 64, 1, true, widths)).checkWidthsOn(t, on, "%0")
	}
}

// moreHeads doubles the heads of q of a test of four in so many splits.
func moreHeads(headDim, splits int, c siteTest) siteTest {
	width, partial := 4*headDim, 4*splits*(headDim+2)
	more := strings.NewReplacer(fmt.Sprintf("f32[T, %d]", width), fmt.Sprintf("f32[T, %d]", 2*width),
		fmt.Sprintf("f32[T, %d]", partial), fmt.Sprintf("f32[T, %d]", 2*partial), "heads=4,", "heads=8,")
	c.globals, c.group = more.Replace(c.globals), more.Replace(c.group)
	return c
}

// atLeast gives the splits of a test at least so many positions.
func atLeast(n int, c siteTest) siteTest {
	c.group = strings.Replace(c.group, "rows=1}", fmt.Sprintf("rows=1, least=%d}", n), 1)
	return c
}

// TestAttentionEven runs attention of four heads of 256 through CUDA whose splits are any multiple of 16 positions, in the interpreter.
func TestAttentionEven(t *testing.T) {
	on := lookup(t, "sm_90-cuda")
	for i, kv := range []string{"f16", "q8_0", "q4_0"} {
		four := func(splits int, c siteTest) siteTest {
			s := atLeast(128, moreHeads(256, splits, fresh(256, 1, splits, headsTest(kv, "neox", 256, 64, 1, true, c))))
			s.group = strings.Replace(s.group, "block=8", "block=16", 1)
			return s
		}
		for j, c := range []siteTest{
			four(3, siteTest{ctx: 300, slots: 1, rows: 1, pos: []int{128}}),
			four(4, siteTest{ctx: 600, slots: 1, rows: 1, pos: []int{590}}),
			four(4, siteTest{ctx: 600, slots: 2, rows: 4, n: 3, pos: []int{5, 583, 127}, slot: []int{1, 0, 1}}),
		} {
			if !takes(i+j, 3) {
				continue
			}
			if list := c.candidates(t, c.site(t, on)); !strings.Contains(list[0].Kernel, " g=4 ") || !strings.Contains(list[0].Kernel, " least") {
				t.Errorf("%s", list[0].Kernel)
			}
			c.runOn(t, on)
		}
		if takes(i, 3) {
			four(2, siteTest{ctx: 300, slots: 8, pos: []int{140, 3, 263, 0, 127, 128, 129, 41}, slot: []int{3, 1, 0, 2, 7, 6, 5, 4}}).checkWidthsOn(t, on, "%0")
		}
	}
}

// TestAttentionWide runs attention of eight heads of 256 through CUDA, which a workgroup has together, in the interpreter: splits that
// are alone, that are merged at once and by twos, with no positions, and all widths of a step.
func TestAttentionWide(t *testing.T) {
	cuda := *lookup(t, "sm_90-cuda")
	cuda.EightHeadsFrom = 1
	on := &cuda
	for i, kv := range []string{"f16", "q8_0", "q4_0"} {
		wide := func(splits int, c siteTest) siteTest {
			return moreHeads(256, splits, fresh(256, 1, splits, headsTest(kv, "neox", 256, 64, 1, true, c)))
		}
		few := siteTest{ctx: 600, slots: 1, rows: 1, pos: []int{580}}
		for j, c := range []siteTest{
			wide(3, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{0}}),
			atLeast(128, wide(3, siteTest{ctx: 300, slots: 1, rows: 1, pos: []int{40}})),  // one split
			atLeast(128, wide(3, siteTest{ctx: 300, slots: 1, rows: 1, pos: []int{203}})), // two of three
			wide(20, few), // in three turns
			atLeast(16, wide(66, few)),
			wide(0, few),
			atLeast(24, wide(9, siteTest{ctx: 300, slots: 2, rows: 4, n: 3, pos: []int{5, 263, 140}, slot: []int{1, 0, 1}})),
			merged(256, 8, 3, attentionTest("attention_split", kv, 256, 8, 1, 3, few)),
			atLeast(16, windowed(100, 8, merged(256, 8, 9, attentionTest("attention_split", kv, 256, 8, 1, 9, few)))),
		} {
			if !takes(i+j, 3) {
				continue
			}
			if list := c.candidates(t, c.site(t, on)); !strings.Contains(list[0].Kernel, " g=8 ") {
				t.Errorf("%s: %s", c.group, list[0].Kernel)
			}
			c.runOn(t, on)
		}
		if !takes(i+1, 3) {
			continue
		}
		widths := siteTest{ctx: 300, slots: 8, pos: []int{140, 3, 263, 0, 17, 16, 15, 41}, slot: []int{3, 1, 0, 2, 7, 6, 5, 4}}
		atLeast(16, wide(9, widths)).checkWidthsOn(t, on, "%0")
	}
	c := siteTest{ctx: 300, slots: 2, rows: 4, n: 3, pos: []int{5, 63, 240}, slot: []int{1, 0, 1}}
	gated(256, 8, true, moreHeads(256, 9, fresh(256, 1, 9, headsTest("f16", "neox", 256, 64, 1, true, c)))).runOn(t, on)
}

// TestSplitWithoutMatrices holds what teams of lanes compute.
func TestSplitWithoutMatrices(t *testing.T) {
	at := siteTest{ctx: 99, slots: 1, rows: 1, pos: []int{40}}
	for _, c := range []siteTest{
		merged(128, 4, 3, attentionTest("attention_split", "f32", 128, 4, 1, 3, at)),
		merged(80, 4, 3, attentionTest("attention_split", "f16", 80, 4, 1, 3, at)),
		merged(128, 4, 3, attentionTest("attention_split", "q8_0", 128, 4, 1, 3, at)), // four scales are not aligned
	} {
		for _, k := range c.candidates(t, c.site(t, lookup(t, "sm_90"))) {
			if strings.Contains(k.Kernel, " matrices") {
				t.Errorf("%s: %s", c.group, k.Kernel)
			}
		}
	}
}

// TestMatricesOfAnyWidth: rows of other sequences, and of one, which attend to each other.
func TestMatricesOfAnyWidth(t *testing.T) {
	on := lookup(t, "sm_90")
	for i, at := range []siteTest{
		{ctx: 64, slots: 8, pos: []int{40, 3, 63, 0, 17, 16, 15, 41}, slot: []int{3, 1, 0, 2, 7, 6, 5, 4}},
		{ctx: 64, slots: 8, pos: []int{20, 4, 5, 6, 7, 8, 9, 10}, slot: []int{3, 1}},
		{ctx: 64, slots: 2, pos: []int{13, 14, 15, 16, 17, 24, 40, 41}, slot: []int{1}}, // in both halves of 16 positions and beyond
	} {
		for j, kv := range []string{"f16", "q8_0", "q4_0"} {
			if !takes(i+j, 3) {
				continue
			}
			fresh(64, 1, 3, headsTest(kv, "neox", 64, 64, 1, true, at)).checkWidthsOn(t, on, "%0")
		}
	}
}

// TestMatricesInWindows runs attention with a window and sinks on matrices, of few rows and of
// many, in the interpreter.
func TestMatricesInWindows(t *testing.T) {
	on := lookup(t, "sm_90")
	few := siteTest{ctx: 300, slots: 1, rows: 2, pos: []int{140, 141}}
	for _, c := range some([]siteTest{
		windowed(70, 4, merged(128, 4, 3, attentionTest("attention_split", "f16", 128, 4, 1, 3, few))),
		windowed(21, 4, fresh(64, 1, 3, headsTest("q8_0", "neox", 64, 64, 1, true, few))),
		windowed(21, 4, attentionTest("attention_split", "q8_0", 64, 4, 1, 0, few)),
		windowed(21, 4, attentionTest("attention_split", "q4_0", 64, 4, 1, 0, few)),
		ringed(128, windowed(70, 4, merged(128, 4, 3, attentionTest("attention_split", "f16", 128, 4, 1, 3, few)))),
		ringed(64, windowed(21, 4, fresh(64, 1, 3, headsTest("q8_0", "neox", 64, 64, 1, true, few)))),
	}) {
		if list := c.candidates(t, c.site(t, on)); !strings.Contains(list[0].Kernel, " matrices") {
			t.Errorf("%s: %s", c.group, list[0].Kernel)
		}
		c.runOn(t, on)
	}
	many := siteTest{ctx: 128, slots: 2, rows: 20, n: 19, pos: []int{100}, rounds: true}
	for _, c := range some([]siteTest{
		windowed(16, 8, attentionTest("attention_coop", "f16", 128, 8, 2, 0, many)),
		ringed(64, windowed(16, 8, attentionTest("attention_coop", "f16", 128, 8, 2, 0, many))),
		ringed(96, windowed(70, 16, splitTiles(8, attentionTest("attention_coop", "q8_0", 256, 16, 2, 3, many)))),
		windowed(70, 16, splitTiles(8, attentionTest("attention_coop", "q8_0", 256, 16, 2, 3, many))),
		windowed(70, 16, splitTiles(8, attentionTest("attention_coop", "q4_0", 256, 16, 2, 3, many))),
	}) {
		c = halfQuery(c)
		c.runOn(t, on)
	}
}

package kernels_test

import "testing"

// TestAttentionLanes runs attention of many rows as on a processor, in the interpreter.
func TestAttentionLanes(t *testing.T) {
	for _, c := range []siteTest{
		attentionTest("attention_lanes", "f16", 64, 4, 2, 0, siteTest{ctx: 96, slots: 2, rows: 48, n: 35, pos: []int{30}, slot: []int{1}}),
		attentionTest("attention_lanes", "f16", 128, 2, 1, 0, siteTest{ctx: 96, slots: 1, rows: 64}),
		attentionTest("attention_lanes", "f32", 96, 2, 1, 0, siteTest{ctx: 80, slots: 1, rows: 33, pos: []int{31}}),
		attentionTest("attention_lanes", "f32", 80, 2, 1, 0, siteTest{ctx: 64, slots: 1, rows: 40, n: 1, pos: []int{0}}),
		attentionTest("attention_lanes", "q8_0", 96, 2, 2, 0, siteTest{ctx: 97, slots: 2, rows: 48, n: 35, pos: []int{30}, slot: []int{1}}),
		attentionTest("attention_lanes", "q4_0", 96, 2, 2, 0, siteTest{ctx: 97, slots: 2, rows: 48, n: 35, pos: []int{30}, slot: []int{1}}),
	} {
		c.runOn(t, processor(t))
	}
}

// TestDecodeAttentionLanes runs attention of few rows as on a processor, where it stands alone, in the interpreter.
func TestDecodeAttentionLanes(t *testing.T) {
	split := func(kv string, headDim, heads, kvHeads, splits int, c siteTest) siteTest {
		return merged(headDim, heads, splits, attentionTest("attention_split", kv, headDim, heads, kvHeads, splits, c))
	}
	few := siteTest{ctx: 128, slots: 2, rows: 4, n: 3, pos: []int{70, 71, 100}, slot: []int{1, 1, 0}}
	for _, c := range []siteTest{
		split("f16", 128, 4, 1, 3, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{40}}),
		split("f16", 64, 4, 4, 8, siteTest{ctx: 64, slots: 2, rows: 2, pos: []int{5, 63}, slot: []int{1, 0}}), // empty splits
		split("f32", 96, 8, 1, 1, siteTest{ctx: 32, slots: 1, rows: 1, pos: []int{31}}),
		split("f16", 80, 4, 2, 3, siteTest{ctx: 32, slots: 3, rows: 4, n: 3, pos: []int{0, 8, 20}, slot: []int{2, 0, 1}}),
		split("q8_0", 256, 8, 2, 2, siteTest{ctx: 48, slots: 3, rows: 4, n: 3, pos: []int{0, 46, 8}, slot: []int{2, 0, 1}}),
		split("q4_0", 256, 8, 2, 2, siteTest{ctx: 48, slots: 3, rows: 4, n: 3, pos: []int{0, 46, 8}, slot: []int{2, 0, 1}}),
		split("f32", 8, 3, 1, 2, siteTest{ctx: 48, slots: 1, rows: 1, pos: []int{33}}), // no lane for every dim
		attentionTest("attention_split", "q8_0", 32, 4, 2, 0, siteTest{ctx: 101, slots: 2, rows: 8, n: 5, pos: []int{17}, slot: []int{0, 1, 0}}),
		attentionTest("attention_split", "f16", 128, 4, 1, 0, siteTest{ctx: 100, slots: 1, rows: 1, pos: []int{99}}),
		windowed(40, 4, merged(128, 4, 3, attentionTest("attention_split", "f16", 128, 4, 1, 3, few))),
		ringed(64, windowed(40, 4, merged(128, 4, 3, attentionTest("attention_split", "f16", 128, 4, 1, 3, few)))),
		windowed(1, 4, merged(64, 4, 2, attentionTest("attention_split", "f32", 64, 4, 2, 2, few))),
		windowed(128, 4, attentionTest("attention_split", "f16", 64, 4, 2, 0, few)),
	} {
		c.runOn(t, processor(t))
	}
	at := siteTest{ctx: 64, slots: 8, pos: []int{40, 3, 63, 0, 17, 16, 15, 41}, slot: []int{3, 1, 0, 2, 7, 6, 5, 4}}
	attentionTest("attention_split", "f16", 64, 4, 1, 0, at).checkWidthsOn(t, processor(t), "%0")
	merged(64, 4, 3, attentionTest("attention_split", "q8_0", 64, 4, 1, 3, at)).checkWidthsOn(t, processor(t), "%0")
}

// TestHeadsOnProcessors: heads of which lanes have partners as far apart, and others.
func TestHeadsOnProcessors(t *testing.T) {
	for _, c := range []siteTest{
		headsTest("f16", "neox", 128, 128, 2, true, siteTest{ctx: 40, slots: 1, rows: 1, pos: []int{39}}),
		headsTest("f32", "neox", 64, 64, 1, false, siteTest{ctx: 40, slots: 2, rows: 4, n: 3, pos: []int{7, 7}, slot: []int{1, 0, 1}}),
		headsTest("f16", "neox", 256, 64, 1, true, siteTest{ctx: 16, slots: 1, rows: 2, pos: []int{3}}),
		headsTest("f16", "neox", 96, 32, 4, false, siteTest{ctx: 16, slots: 1, rows: 16, n: 9}),
		ringed(32, headsTest("q8_0", "neox", 128, 128, 2, true, siteTest{ctx: 80, slots: 1, rows: 1, pos: []int{39}})),
		ringed(32, headsTest("f16", "neox", 64, 64, 1, false, siteTest{ctx: 80, slots: 2, rows: 4, n: 3, pos: []int{70, 7}, slot: []int{1, 0, 1}})),
		headsTest("q8_0", "neox", 128, 128, 2, true, siteTest{ctx: 40, slots: 1, rows: 1, pos: []int{39}}),
		headsTest("f16", "norm", 64, 64, 1, false, siteTest{ctx: 40, slots: 2, rows: 4, n: 3, pos: []int{7, 7}, slot: []int{1, 0, 1}}),
	} {
		c.runOn(t, processor(t))
	}
}

package kernels_test

import (
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
)

// TestAttentionLanes runs attention of many rows as on a processor, in the interpreter.
func TestAttentionLanes(t *testing.T) {
	for _, c := range some([]siteTest{
		attentionTest("attention_lanes", "f16", 64, 4, 2, 0, siteTest{ctx: 96, slots: 2, rows: 48, n: 35, pos: []int{30}, slot: []int{1}}),
		attentionTest("attention_lanes", "f16", 128, 2, 1, 0, siteTest{ctx: 96, slots: 1, rows: 64}),
		attentionTest("attention_lanes", "f32", 96, 2, 1, 0, siteTest{ctx: 80, slots: 1, rows: 33, pos: []int{31}}),
		attentionTest("attention_lanes", "f32", 80, 2, 1, 0, siteTest{ctx: 64, slots: 1, rows: 40, n: 1, pos: []int{0}}),
		attentionTest("attention_lanes", "q8_0", 96, 2, 2, 0, siteTest{ctx: 97, slots: 2, rows: 48, n: 35, pos: []int{30}, slot: []int{1}}),
		attentionTest("attention_lanes", "q4_0", 96, 2, 2, 0, siteTest{ctx: 97, slots: 2, rows: 48, n: 35, pos: []int{30}, slot: []int{1}}),
	}) {
		c.runOn(t, processor(t))
	}
}

// TestDecodeAttentionLanes runs attention of few rows as on a processor, where it stands alone, in the interpreter.
func TestDecodeAttentionLanes(t *testing.T) {
	split := func(kv string, headDim, heads, kvHeads, splits int, c siteTest) siteTest {
		return merged(headDim, heads, splits, attentionTest("attention_split", kv, headDim, heads, kvHeads, splits, c))
	}
	few := siteTest{ctx: 128, slots: 2, rows: 4, n: 3, pos: []int{70, 71, 100}, slot: []int{1, 1, 0}}
	for _, c := range some([]siteTest{
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
	}) {
		c.runOn(t, processor(t))
	}
	at := siteTest{ctx: 64, slots: 8, pos: []int{40, 3, 63, 0, 17, 16, 15, 41}, slot: []int{3, 1, 0, 2, 7, 6, 5, 4}}
	attentionTest("attention_split", "f16", 64, 4, 1, 0, at).checkWidthsOn(t, processor(t), "%0")
	merged(64, 4, 3, attentionTest("attention_split", "q8_0", 64, 4, 1, 3, at)).checkWidthsOn(t, processor(t), "%0")
}

// TestFreshAttentionLanes: the row of a step, whose only workgroup of a KV head writes the caches and reads what it wrote.
func TestFreshAttentionLanes(t *testing.T) {
	one := siteTest{ctx: 64, slots: 2, rows: 1, pos: []int{40}, slot: []int{1}}
	for _, splits := range []int{0, 3} {
		for _, c := range []siteTest{
			fresh(64, 1, splits, headsTest("f16", "neox", 64, 64, 1, true, one)),
			fresh(64, 2, splits, headsTest("f16", "neox", 64, 64, 2, false, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{0}})),
			fresh(128, 2, splits, headsTest("f16", "neox", 128, 64, 2, true, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{63}})),
			fresh(256, 4, splits, headsTest("f16", "neox", 256, 64, 4, true, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{24}})),
			ringed(32, windowed(20, 4, fresh(64, 2, splits, headsTest("f16", "neox", 64, 64, 2, true, siteTest{ctx: 80, slots: 1, rows: 1, pos: []int{70}})))),
		} {
			c.runOn(t, processor(t))
			for _, cover := range kernels.Candidates(c.site(t, processor(t)))[0].Cover {
				if splits == 0 && len(cover.Joined) > 0 {
					t.Errorf("the cover of %s joins workgroups, where no positions are split", cover.Arg)
				}
			}
		}
	}
	// What several rows, one head to two workgroups, and a cache of codes would want is not there.
	for _, c := range []siteTest{
		fresh(64, 1, 3, headsTest("f16", "neox", 64, 64, 1, true, siteTest{ctx: 64, slots: 1, rows: 2, pos: []int{4}})),
		fresh(128, 1, 3, headsTest("f16", "neox", 128, 128, 1, true, one)),
		fresh(64, 1, 3, headsTest("q8_0", "neox", 64, 64, 1, true, one)),
	} {
		if list := kernels.Candidates(c.site(t, processor(t))); len(list) > 0 {
			t.Errorf("%s is offered", list[0].Kernel)
		}
	}
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

package attention_test

import (
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// TestAttentionLanes runs attention of many rows as on a processor, in the interpreter.
func TestAttentionLanes(t *testing.T) {
	for _, c := range kerneltest.Some([]kerneltest.Case{
		attentionTest("attention_lanes", "f16", 64, 4, 2, 0, kerneltest.Case{Ctx: 96, Slots: 2, Rows: 48, N: 35, Pos: []int{30}, Slot: []int{1}}),
		attentionTest("attention_lanes", "f16", 128, 2, 1, 0, kerneltest.Case{Ctx: 96, Slots: 1, Rows: 64}),
		attentionTest("attention_lanes", "f32", 96, 2, 1, 0, kerneltest.Case{Ctx: 80, Slots: 1, Rows: 33, Pos: []int{31}}),
		attentionTest("attention_lanes", "f32", 80, 2, 1, 0, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 40, N: 1, Pos: []int{0}}),
		attentionTest("attention_lanes", "q8_0", 96, 2, 2, 0, kerneltest.Case{Ctx: 97, Slots: 2, Rows: 48, N: 35, Pos: []int{30}, Slot: []int{1}}),
		attentionTest("attention_lanes", "q4_0", 96, 2, 2, 0, kerneltest.Case{Ctx: 97, Slots: 2, Rows: 48, N: 35, Pos: []int{30}, Slot: []int{1}}),
	}) {
		c.RunOn(t, kerneltest.Processor(t))
	}
}

// TestDecodeAttentionLanes runs attention of few rows as on a processor, where it stands alone, in the interpreter.
func TestDecodeAttentionLanes(t *testing.T) {
	split := func(kv string, headDim, heads, kvHeads, splits int, c kerneltest.Case) kerneltest.Case {
		return merged(headDim, heads, splits, attentionTest("attention_split", kv, headDim, heads, kvHeads, splits, c))
	}
	few := kerneltest.Case{Ctx: 128, Slots: 2, Rows: 4, N: 3, Pos: []int{70, 71, 100}, Slot: []int{1, 1, 0}}
	for _, c := range kerneltest.Some([]kerneltest.Case{
		split("f16", 128, 4, 1, 3, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{40}}),
		split("f16", 64, 4, 4, 8, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 2, Pos: []int{5, 63}, Slot: []int{1, 0}}), // empty splits
		split("f32", 96, 8, 1, 1, kerneltest.Case{Ctx: 32, Slots: 1, Rows: 1, Pos: []int{31}}),
		split("f16", 80, 4, 2, 3, kerneltest.Case{Ctx: 32, Slots: 3, Rows: 4, N: 3, Pos: []int{0, 8, 20}, Slot: []int{2, 0, 1}}),
		split("q8_0", 256, 8, 2, 2, kerneltest.Case{Ctx: 48, Slots: 3, Rows: 4, N: 3, Pos: []int{0, 46, 8}, Slot: []int{2, 0, 1}}),
		split("q4_0", 256, 8, 2, 2, kerneltest.Case{Ctx: 48, Slots: 3, Rows: 4, N: 3, Pos: []int{0, 46, 8}, Slot: []int{2, 0, 1}}),
		split("f32", 8, 3, 1, 2, kerneltest.Case{Ctx: 48, Slots: 1, Rows: 1, Pos: []int{33}}), // no lane for every dim
		attentionTest("attention_split", "q8_0", 32, 4, 2, 0, kerneltest.Case{Ctx: 101, Slots: 2, Rows: 8, N: 5, Pos: []int{17}, Slot: []int{0, 1, 0}}),
		attentionTest("attention_split", "f16", 128, 4, 1, 0, kerneltest.Case{Ctx: 100, Slots: 1, Rows: 1, Pos: []int{99}}),
		windowed(40, 4, merged(128, 4, 3, attentionTest("attention_split", "f16", 128, 4, 1, 3, few))),
		ringed(64, windowed(40, 4, merged(128, 4, 3, attentionTest("attention_split", "f16", 128, 4, 1, 3, few)))),
		windowed(1, 4, merged(64, 4, 2, attentionTest("attention_split", "f32", 64, 4, 2, 2, few))),
		windowed(128, 4, attentionTest("attention_split", "f16", 64, 4, 2, 0, few)),
	}) {
		c.RunOn(t, kerneltest.Processor(t))
	}
	at := kerneltest.Case{Ctx: 64, Slots: 8, Pos: []int{40, 3, 63, 0, 17, 16, 15, 41}, Slot: []int{3, 1, 0, 2, 7, 6, 5, 4}}
	attentionTest("attention_split", "f16", 64, 4, 1, 0, at).CheckWidthsOn(t, kerneltest.Processor(t), "%0")
	merged(64, 4, 3, attentionTest("attention_split", "q8_0", 64, 4, 1, 3, at)).CheckWidthsOn(t, kerneltest.Processor(t), "%0")
}

// TestFreshAttentionLanes: the row of a step, whose only workgroup of a KV head writes the caches and reads what it
// wrote.
func TestFreshAttentionLanes(t *testing.T) {
	one := kerneltest.Case{Ctx: 64, Slots: 2, Rows: 1, Pos: []int{40}, Slot: []int{1}}
	for _, splits := range []int{0, 3} {
		for _, c := range []kerneltest.Case{
			fresh(64, 1, splits, headsTest("f16", "neox", 64, 64, 1, true, one)),
			fresh(64, 2, splits, headsTest("f16", "neox", 64, 64, 2, false, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{0}})),
			fresh(128, 2, splits, headsTest("f16", "neox", 128, 64, 2, true, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{63}})),
			fresh(256, 4, splits, headsTest("f16", "neox", 256, 64, 4, true, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{24}})),
			ringed(32, windowed(20, 4, fresh(64, 2, splits, headsTest("f16", "neox", 64, 64, 2, true, kerneltest.Case{Ctx: 80, Slots: 1, Rows: 1, Pos: []int{70}})))),
		} {
			c.RunOn(t, kerneltest.Processor(t))
			for _, cover := range kernels.Candidates(c.Site(t, kerneltest.Processor(t)))[0].Cover {
				if splits == 0 && len(cover.Joined) > 0 {
					t.Errorf("the cover of %s joins workgroups, where no positions are split", cover.Arg)
				}
			}
		}
	}
	// What several rows, one head to two workgroups, and a cache of codes would want is not there.
	for _, c := range []kerneltest.Case{
		fresh(64, 1, 3, headsTest("f16", "neox", 64, 64, 1, true, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 2, Pos: []int{4}})),
		fresh(128, 1, 3, headsTest("f16", "neox", 128, 128, 1, true, one)),
		fresh(64, 1, 3, headsTest("q8_0", "neox", 64, 64, 1, true, one)),
	} {
		if list := kernels.Candidates(c.Site(t, kerneltest.Processor(t))); len(list) > 0 {
			t.Errorf("%s is offered", list[0].Kernel)
		}
	}
}

// TestHeadsOnProcessors: heads of which lanes have partners as far apart, and others.
func TestHeadsOnProcessors(t *testing.T) {
	for _, c := range []kerneltest.Case{
		headsTest("f16", "neox", 128, 128, 2, true, kerneltest.Case{Ctx: 40, Slots: 1, Rows: 1, Pos: []int{39}}),
		headsTest("f32", "neox", 64, 64, 1, false, kerneltest.Case{Ctx: 40, Slots: 2, Rows: 4, N: 3, Pos: []int{7, 7}, Slot: []int{1, 0, 1}}),
		headsTest("f16", "neox", 256, 64, 1, true, kerneltest.Case{Ctx: 16, Slots: 1, Rows: 2, Pos: []int{3}}),
		headsTest("f16", "neox", 96, 32, 4, false, kerneltest.Case{Ctx: 16, Slots: 1, Rows: 16, N: 9}),
		ringed(32, headsTest("q8_0", "neox", 128, 128, 2, true, kerneltest.Case{Ctx: 80, Slots: 1, Rows: 1, Pos: []int{39}})),
		ringed(32, headsTest("f16", "neox", 64, 64, 1, false, kerneltest.Case{Ctx: 80, Slots: 2, Rows: 4, N: 3, Pos: []int{70, 7}, Slot: []int{1, 0, 1}})),
		headsTest("q8_0", "neox", 128, 128, 2, true, kerneltest.Case{Ctx: 40, Slots: 1, Rows: 1, Pos: []int{39}}),
		headsTest("f16", "norm", 64, 64, 1, false, kerneltest.Case{Ctx: 40, Slots: 2, Rows: 4, N: 3, Pos: []int{7, 7}, Slot: []int{1, 0, 1}}),
	} {
		c.RunOn(t, kerneltest.Processor(t))
	}
}

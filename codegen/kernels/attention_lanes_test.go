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
	} {
		c.runOn(t, processor(t))
	}
}

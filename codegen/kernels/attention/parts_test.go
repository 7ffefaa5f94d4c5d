package attention_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/target"
)

// TestParts: a step of several runs gives each the bits of a step of its own. Tiles are of live rows, of dead ones, of
// both, and behind the step.
func TestParts(t *testing.T) {
	cuda, vulkan, mesa := kerneltest.Lookup(t, "sm_90-cuda"), kerneltest.Lookup(t, "sm_90"), kerneltest.Llvmpipe(t)
	runs := kerneltest.Case{Ctx: 448, Slots: 4, Rows: 256}.InParts(64, kerneltest.Run{Slot: 3, From: 256, Rows: 75}, kerneltest.Run{Slot: 0, From: 0, Rows: 7},
		kerneltest.Run{Slot: 2, From: 64, Rows: 33})
	short := kerneltest.Case{Ctx: 128, Slots: 3, Rows: 128}.InParts(32, kerneltest.Run{Slot: 2, From: 32, Rows: 35}, kerneltest.Run{Slot: 1, From: 0, Rows: 9})
	tiles := kerneltest.Case{Ctx: 256, Slots: 2, Rows: 256}.InParts(128, kerneltest.Run{Slot: 1, From: 128, Rows: 40}, kerneltest.Run{Slot: 0, From: 0, Rows: 33})
	deep := kerneltest.Case{Ctx: 640, Slots: 2, Rows: 256}.InParts(128, kerneltest.Run{Slot: 1, From: 512, Rows: 40}, kerneltest.Run{Slot: 0, From: 224, Rows: 70})
	for i, test := range []struct {
		on *target.Target
		c  kerneltest.Case
	}{
		{cuda, halfQuery(attentionTest("attention_wgmma", "f16", 64, 4, 1, 0, runs))},
		{cuda, halfQuery(windowed(70, 8, attentionTest("attention_wgmma", "f16", 64, 8, 1, 0, runs)))},
		{cuda, halfQuery(blocksOf128(splitTiles(32, attentionTest("attention_wgmma", "q8_0", 64, 4, 1, 3, runs))))},
		{cuda, halfQuery(inTiles("13", 256, attentionTest("attention_wgmma", "f16", 64, 4, 1, 0, tiles)))},
		{cuda, halfQuery(attentionTest("attention_wgmma", "f16", 64, 4, 1, 0, runs)).Paged()},
		{cuda, sharedTest("f16", 64, 4, deep)},
		{fewUnits(t), inTiles("13", 256, sharedTest("f16", 64, 4, deep))},
		{vulkan, halfQuery(attentionTest("attention_coop", "f16", 64, 4, 1, 0, runs))},
		{vulkan, halfQuery(splitTiles(32, attentionTest("attention_coop", "f16", 64, 4, 1, 3, short)))},
		{mesa, attentionTest("attention_tiled", "f16", 64, 2, 2, 0, short)},
		{mesa, windowed(40, 2, attentionTest("attention_tiled", "q8_0", 64, 2, 1, 0, short))},
		{mesa, headsTest("q8_0", "neox", 64, 64, 1, true, short)},
		{mesa, headsTest("f16", "norm", 64, 32, 2, false, short)},
		{cuda, headsTest("f16", "neox", 64, 64, 1, true, short).Paged()},
	} {
		t.Run(fmt.Sprint(i, " ", test.c.Family), func(t *testing.T) {
			t.Parallel()
			c := test.c
			if strings.Contains(c.Group, "head_dim=64") {
				c = steep(c)
			}
			c.Alone, c.Rounds = true, true
			c.CheckParts(t, test.on)
		})
	}
}

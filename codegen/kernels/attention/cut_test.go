package attention_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/target"
)

// TestCut: steps of prompts cut at multiples of the kernels' grain leave the bits of whole steps. Scores are so large
// that what they are relative to changes on the way.
func TestCut(t *testing.T) {
	cuda, vulkan, mesa, processor := kerneltest.Lookup(t, "sm_90-cuda"), kerneltest.Lookup(t, "sm_90"), kerneltest.Llvmpipe(t), kerneltest.Processor(t)
	begin := kerneltest.Case{Ctx: 448, Slots: 2, Rows: 512, N: 75, Pos: []int{0}, Slot: []int{1}}
	behind, few := begin, begin
	behind.Pos = []int{269}
	few.Ctx, few.Rows, few.N = 128, 96, 71
	deep := begin
	deep.Ctx, deep.Rows, deep.Pos = 640, 128, []int{512}
	for i, test := range []struct {
		on *target.Target
		c  kerneltest.Case
	}{
		{cuda, halfQuery(attentionTest("attention_wgmma", "f16", 64, 4, 1, 0, behind))},
		{cuda, halfQuery(windowed(70, 8, attentionTest("attention_wgmma", "f16", 64, 8, 1, 0, begin)))},
		{cuda, halfQuery(blocksOf128(splitTiles(32, attentionTest("attention_wgmma", "f16", 64, 4, 1, 3, behind))))},
		{cuda, sharedTest("f16", 64, 4, deep)},
		{fewUnits(t), sharedTest("f16", 64, 4, deep)},
		{cuda, halfQuery(attentionTest("attention_wgmma", "q8_0", 64, 4, 1, 0, behind))},
		{vulkan, halfQuery(attentionTest("attention_coop", "f16", 64, 4, 1, 0, behind))},
		{vulkan, halfQuery(attentionTest("attention_coop", "q8_0", 256, 8, 1, 0, few))},
		{mesa, attentionTest("attention_tiled", "f16", 64, 2, 2, 0, few)},
		{mesa, windowed(40, 2, attentionTest("attention_tiled", "q8_0", 64, 2, 1, 0, few))},
		{processor, attentionTest("attention_lanes", "f16", 64, 2, 1, 0, few)},
		{mesa, headsTest("q8_0", "neox", 64, 64, 1, true, few)},
		{mesa, headsTest("f16", "norm", 64, 32, 2, false, few)},
	} {
		t.Run(fmt.Sprint(i, " ", test.c.Family), func(t *testing.T) {
			t.Parallel()
			c := test.c
			if strings.Contains(c.Group, "head_dim=64") {
				c = steep(c)
			}
			c.Alone, c.Rounds = true, true
			c.CheckCut(t, test.on)
		})
	}
}

// steep makes scores of heads of 64 elements differ by more than f16 can weigh.
func steep(c kerneltest.Case) kerneltest.Case {
	c.Group = strings.ReplaceAll(c.Group, "scale=0.125", "scale=0.75")
	return c
}

// TestCutInTile: rows of a tile share when the top of one of them changes, so bits tell where a tile was cut.
func TestCutInTile(t *testing.T) {
	on := kerneltest.Lookup(t, "sm_90-cuda")
	c := halfQuery(steep(attentionTest("attention_wgmma", "f16", 64, 4, 1, 0, kerneltest.Case{Ctx: 448, Slots: 1, Rows: 512, N: 40, Pos: []int{300}, Rounds: true})))
	k := c.Candidates(t, c.Site(t, on))[0]
	if k.Grain != 32 || c.Cut(t, on, k, 32, nil) != "" || c.Cut(t, on, k, 31, nil) == "" {
		t.Errorf("with a grain of %d, cut at rows 32 and 31: %q and %q", k.Grain, c.Cut(t, on, k, 32, nil), c.Cut(t, on, k, 31, nil))
	}
}

package attention_test

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// TestPages has kernels that read and write caches in pages: of several slots, in any order, the last page half full,
// pages that nobody has full of NaNs. Of every family and of caches with scales and without.
func TestPages(t *testing.T) {
	few := kerneltest.Case{Ctx: 200, Slots: 2, Rows: 4, N: 3, Pos: []int{126, 127, 150}, Slot: []int{1, 1, 0}}
	one := kerneltest.Case{Ctx: 200, Slots: 2, Rows: 1, Pos: []int{128}, Slot: []int{1}}
	many := kerneltest.Case{Ctx: 200, Slots: 2, Rows: 40, N: 35, Pos: []int{110}, Slot: []int{1}}
	for _, c := range []kerneltest.Case{
		merged(128, 4, 3, attentionTest("attention_split", "f16", 128, 4, 1, 3, few)),
		merged(96, 8, 2, attentionTest("attention_split", "q4_0", 96, 8, 1, 2, few)),
		windowed(40, 4, attentionTest("attention_split", "f32", 64, 4, 2, 0, few)),
		fresh(64, 1, 3, headsTest("q8_0", "norm", 64, 64, 1, false, few)),
		fresh(128, 2, 0, headsTest("f16", "neox", 128, 128, 2, true, one)),
		headsTest("f16", "neox", 96, 32, 4, false, many),
		headsTest("q4_0", "neox", 64, 64, 2, true, many),
		latentKeyTest("q8_0", 256, 64, few),
		attentionTest("attention_tiled", "f16", 64, 2, 2, 0, many),
		attentionTest("attention_tiled", "q8_0", 96, 2, 2, 0, many),
		windowed(70, 2, attentionTest("attention_tiled", "f32", 96, 2, 1, 0, many)),
	} {
		c.Paged().Run(t)
	}
}

// TestPagesGivenBack has kernels of rows with a window, of slots that have given the pages before it back: what stands
// in their place is full of NaNs.
func TestPagesGivenBack(t *testing.T) {
	few := kerneltest.Case{Ctx: 300, Slots: 2, Rows: 4, N: 3, Pos: []int{170, 171, 250}, Slot: []int{1, 1, 0}}
	one := kerneltest.Case{Ctx: 300, Slots: 2, Rows: 1, Pos: []int{290}, Slot: []int{1}}
	many := kerneltest.Case{Ctx: 300, Slots: 2, Rows: 40, N: 35, Pos: []int{190}, Slot: []int{1}}
	for _, c := range []kerneltest.Case{
		windowed(40, 4, merged(128, 4, 3, attentionTest("attention_split", "f16", 128, 4, 1, 3, few))),
		windowed(40, 4, merged(64, 4, 3, attentionTest("attention_split", "q8_0", 64, 4, 2, 3, few))),
		windowed(40, 4, attentionTest("attention_split", "f32", 64, 4, 2, 0, few)),
		windowed(40, 4, attentionTest("attention_split", "q4_0", 64, 4, 1, 0, few)),
		windowed(33, 4, fresh(64, 1, 3, headsTest("f16", "neox", 64, 64, 1, true, one))),
		windowed(33, 4, fresh(64, 1, 3, headsTest("q8_0", "neox", 64, 64, 1, true, few))),
		windowed(70, 2, attentionTest("attention_tiled", "f32", 96, 2, 1, 0, many)),
		windowed(20, 2, attentionTest("attention_tiled", "q8_0", 64, 2, 2, 0, many)),
	} {
		c.Paged().GivenBack().Run(t)
	}
	many = kerneltest.Case{Ctx: 448, Slots: 2, Rows: 70, Pos: []int{300}, Slot: []int{1}}
	wide := kerneltest.Case{Ctx: 448, Slots: 2, Rows: 512, N: 70, Pos: []int{300}, Slot: []int{1}}
	for _, c := range []struct {
		on, kernel string
		test       kerneltest.Case
	}{
		{"sm_90", " matrices", windowed(40, 4, merged(128, 4, 3, attentionTest("attention_split", "f16", 128, 4, 1, 3, few)))},
		{"sm_90", " matrices", windowed(21, 4, fresh(64, 1, 3, headsTest("q8_0", "neox", 64, 64, 1, true, few)))},
		{"sm_90-cuda", " ahead", windowed(40, 4, merged(128, 4, 3, attentionTest("attention_split", "q8_0", 128, 4, 1, 3, one)))},
		{"sm_90-cuda", "attention_wgmma", windowed(150, 8, halfQuery(attentionTest("attention_wgmma", "f16", 128, 8, 2, 0, wide)))},
		{"sm_90-cuda", "attention_wgmma", windowed(70, 4, halfQuery(attentionTest("attention_wgmma", "q8_0", 64, 4, 1, 0, wide)))},
		{"sm_90", "attention_coop", windowed(70, 8, halfQuery(attentionTest("attention_coop", "f16", 128, 8, 2, 0, many)))},
		{"gfx1201", "attention_coop", windowed(70, 16, halfQuery(splitTiles(8, attentionTest("attention_coop", "q8_0", 256, 16, 2, 3, many))))},
	} {
		on, test := kerneltest.Lookup(t, c.on), c.test.Paged().GivenBack()
		test.Rounds = strings.Contains(c.kernel, "attention_")
		if k := test.Candidates(t, test.Site(t, on))[0].Kernel; !strings.Contains(k, c.kernel) || !strings.Contains(k, " pages=64") {
			t.Errorf("%s: %s", test.Group, k)
		}
		test.RunOn(t, on)
	}
}

// TestPagesOnMatrices is TestPages of kernels that need matrices, in the interpreter; their code is translated.
func TestPagesOnMatrices(t *testing.T) {
	few := kerneltest.Case{Ctx: 300, Slots: 2, Rows: 4, N: 3, Pos: []int{126, 127, 250}, Slot: []int{1, 1, 0}}
	one := kerneltest.Case{Ctx: 300, Slots: 2, Rows: 1, Pos: []int{290}, Slot: []int{1}}
	many := kerneltest.Case{Ctx: 300, Slots: 2, Rows: 70, Pos: []int{180}, Slot: []int{1}}
	wide := kerneltest.Case{Ctx: 448, Slots: 2, Rows: 512, N: 70, Pos: []int{180}, Slot: []int{1}}
	split := func(kv string, c kerneltest.Case) kerneltest.Case {
		return merged(128, 4, 3, attentionTest("attention_split", kv, 128, 4, 1, 3, c))
	}
	block := func(c kerneltest.Case) kerneltest.Case { // splits begin at whole tiles
		c.Group = strings.ReplaceAll(c.Group, "block=8", "block=32")
		return c
	}
	same := func(c kerneltest.Case) kerneltest.Case { // keys are values, too
		c.Globals = c.Globals[:strings.Index(c.Globals, "kv @v")]
		c.Group = strings.ReplaceAll(c.Group, "@k, @v", "@k, @k")
		return c
	}
	for _, c := range []struct {
		on, kernel string
		test       kerneltest.Case
	}{
		{"sm_90", " matrices", split("f16", few)},
		{"sm_90", " matrices", split("q8_0", few)},
		{"sm_90", " matrices", block(split("q8_0", few))},
		{"sm_90", " matrices", block(windowed(40, 4, split("f16", few)))},
		{"sm_90", " matrices", fresh(64, 1, 3, headsTest("q4_0", "norm", 64, 64, 1, false, few))},
		{"sm_90-cuda", " ahead", split("q8_0", one)},
		{"sm_90-cuda", " ahead", block(fresh(128, 2, 3, headsTest("f16", "neox", 128, 128, 2, true, one)))},
		{"sm_90-cuda", "attention_wgmma", halfQuery(attentionTest("attention_wgmma", "f16", 128, 8, 2, 0, wide))},
		{"sm_90-cuda", "attention_wgmma", halfQuery(attentionTest("attention_wgmma", "q8_0", 64, 4, 1, 0, wide))},
		{"sm_90-cuda", "attention_coop", halfQuery(same(attentionTest("attention_coop", "f16", 576, 4, 1, 0, many)))},
		{"gfx1201", "attention_coop", halfQuery(splitTiles(8, attentionTest("attention_coop", "q8_0", 256, 16, 2, 3, many)))},
	} {
		on, test := kerneltest.Lookup(t, c.on), c.test.Paged()
		test.Rounds = strings.Contains(c.kernel, "attention_")
		list := test.Candidates(t, test.Site(t, on))
		if k := list[0].Kernel; !strings.Contains(k, c.kernel) || !strings.Contains(k, " pages=64") {
			t.Errorf("%s: %s", test.Group, k)
		}
		test.RunOn(t, on)
		test.CheckOn(t, on)
	}
}

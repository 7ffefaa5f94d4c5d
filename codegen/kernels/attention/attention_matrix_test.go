package attention_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// TestAttentionMatrices runs attention of few rows on matrices, in the interpreter.
func TestAttentionMatrices(t *testing.T) {
	on := kerneltest.Lookup(t, "sm_90")
	split := func(kv string, headDim, heads, kvHeads, splits int, c kerneltest.Case) kerneltest.Case {
		return merged(headDim, heads, splits, attentionTest("attention_split", kv, headDim, heads, kvHeads, splits, c))
	}
	for i, kv := range []string{"f16", "q8_0", "q4_0"} {
		for j, c := range []kerneltest.Case{
			split(kv, 128, 4, 1, 3, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{40}}),
			split(kv, 64, 4, 4, 8, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 2, Pos: []int{5, 63}, Slot: []int{1, 0}}), // empty splits
			split(kv, 256, 8, 2, 2, kerneltest.Case{Ctx: 48, Slots: 3, Rows: 4, N: 3, Pos: []int{0, 46, 8}, Slot: []int{2, 0, 1}}),
			split(kv, 64, 6, 2, 4, kerneltest.Case{Ctx: 300, Slots: 1, Rows: 1, Pos: []int{299}}),
			split(kv, 64, 5, 1, 1, kerneltest.Case{Ctx: 48, Slots: 1, Rows: 1, Pos: []int{33}}),
			attentionTest("attention_split", kv, 128, 4, 1, 0, kerneltest.Case{Ctx: 300, Slots: 1, Rows: 1, Pos: []int{299}}),
			fresh(128, 2, 3, headsTest(kv, "neox", 128, 128, 2, true, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{40}})),
			fresh(64, 2, 0, headsTest(kv, "neox", 64, 64, 2, true, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{0}})),
			fresh(64, 1, 0, headsTest(kv, "norm", 64, 64, 1, false, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 4, N: 3, Pos: []int{6, 7, 31}, Slot: []int{1, 1, 0}})),
			fresh(64, 1, 3, headsTest(kv, "norm", 64, 64, 1, false, kerneltest.Case{Ctx: 300, Slots: 1, Rows: 8, Pos: []int{203}})),
			moreHeads(64, 3, fresh(64, 1, 3, headsTest(kv, "neox", 64, 64, 1, true, kerneltest.Case{Ctx: 300, Slots: 1, Rows: 2, Pos: []int{140, 141}}))), // two workgroups of a KV head
			fresh(256, 1, 2, headsTest(kv, "neox", 256, 64, 1, true, kerneltest.Case{Ctx: 300, Slots: 1, Rows: 4, Pos: []int{203}})),
			fresh(128, 1, 3, headsTest(kv, "neox", 128, 128, 1, true, kerneltest.Case{Ctx: 300, Slots: 1, Rows: 8, Pos: []int{140}})),
			gated(64, 4, true, fresh(64, 2, 4, slicedHeads("neox", 64, 32, true, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 4, N: 3, Pos: []int{5, 63, 40}, Slot: []int{1, 0, 1}}))),
		} {
			if !kerneltest.Takes(i+j, 3) {
				continue
			}
			if list := c.Candidates(t, c.Site(t, on)); !strings.Contains(list[0].Kernel, " matrices") {
				t.Errorf("%s: %s", c.Group, list[0].Kernel)
			}
			c.RunOn(t, on)
			c.CheckOn(t, on)
		}
	}
}

// TestAttentionAhead runs attention of one row through CUDA, where keys and values are loaded a turn ahead and parts of
// a workgroup merge the splits, in the interpreter.
func TestAttentionAhead(t *testing.T) {
	on := kerneltest.Lookup(t, "sm_90-cuda")
	for i, kv := range []string{"f16", "q8_0", "q4_0"} {
		for j, c := range []kerneltest.Case{
			merged(128, 4, 3, attentionTest("attention_split", kv, 128, 4, 1, 3, kerneltest.Case{Ctx: 600, Slots: 1, Rows: 1, Pos: []int{580}})), // the last turn is shorter
			fresh(128, 2, 3, headsTest(kv, "neox", 128, 128, 2, true, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{40}})),
			fresh(64, 2, 0, headsTest(kv, "neox", 64, 64, 2, true, kerneltest.Case{Ctx: 300, Slots: 1, Rows: 1, Pos: []int{290}})), // nothing to merge
			fresh(64, 1, 3, headsTest(kv, "norm", 64, 64, 1, false, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{0}})),   // and no position but its own
		} {
			if !kerneltest.Takes(i+j, 3) {
				continue
			}
			if list := c.Candidates(t, c.Site(t, on)); !strings.Contains(list[0].Kernel, " ahead") {
				t.Errorf("%s: %s", c.Group, list[0].Kernel)
			}
			c.RunOn(t, on)
		}
		few := kerneltest.Case{Ctx: 600, Slots: 1, Rows: 1, Pos: []int{580}}
		rows := kerneltest.Case{Ctx: 600, Slots: 1, Rows: 8, Pos: []int{580}}
		for j, c := range []kerneltest.Case{ // parts as wide as a workgroup's heads are more than subgroups
			merged(64, 4, 3, attentionTest("attention_split", kv, 64, 4, 4, 3, few)),
			merged(64, 4, 3, attentionTest("attention_split", kv, 64, 4, 4, 3, rows)),
			merged(32, 4, 3, attentionTest("attention_split", kv, 32, 4, 2, 3, few)),
		} {
			if !kerneltest.Takes(i+j, 3) {
				continue
			}
			c.RunOn(t, on)
		}
		if !kerneltest.Takes(i+2, 3) {
			continue
		}
		widths := kerneltest.Case{Ctx: 300, Slots: 8, Pos: []int{140, 3, 263, 0, 17, 16, 15, 41}, Slot: []int{3, 1, 0, 2, 7, 6, 5, 4}}
		fresh(64, 1, 3, headsTest(kv, "neox", 64, 64, 1, true, widths)).CheckWidthsOn(t, on, "%0")
	}
}

// moreHeads doubles the heads of q of a test of four in so many splits.
func moreHeads(headDim, splits int, c kerneltest.Case) kerneltest.Case {
	width, partial := 4*headDim, 4*splits*(headDim+2)
	more := strings.NewReplacer(fmt.Sprintf("f32[T, %d]", width), fmt.Sprintf("f32[T, %d]", 2*width),
		fmt.Sprintf("f32[T, %d]", partial), fmt.Sprintf("f32[T, %d]", 2*partial), "heads=4,", "heads=8,")
	c.Globals, c.Group = more.Replace(c.Globals), more.Replace(c.Group)
	return c
}

// atLeast gives the splits of a test at least so many positions.
func atLeast(n int, c kerneltest.Case) kerneltest.Case {
	c.Group = strings.Replace(c.Group, "rows=1}", fmt.Sprintf("rows=1, least=%d}", n), 1)
	return c
}

// TestAttentionEven runs attention of four heads of 256 through CUDA whose splits are any multiple of 16 positions, in
// the interpreter.
func TestAttentionEven(t *testing.T) {
	on := kerneltest.Lookup(t, "sm_90-cuda")
	for i, kv := range []string{"f16", "q8_0", "q4_0"} {
		four := func(splits int, c kerneltest.Case) kerneltest.Case {
			s := atLeast(128, moreHeads(256, splits, fresh(256, 1, splits, headsTest(kv, "neox", 256, 64, 1, true, c))))
			s.Group = strings.Replace(s.Group, "block=8", "block=16", 1)
			return s
		}
		for j, c := range []kerneltest.Case{
			four(3, kerneltest.Case{Ctx: 300, Slots: 1, Rows: 1, Pos: []int{128}}),
			four(4, kerneltest.Case{Ctx: 600, Slots: 1, Rows: 1, Pos: []int{590}}),
			four(4, kerneltest.Case{Ctx: 600, Slots: 2, Rows: 4, N: 3, Pos: []int{5, 583, 127}, Slot: []int{1, 0, 1}}),
		} {
			if !kerneltest.Takes(i+j, 3) {
				continue
			}
			if list := c.Candidates(t, c.Site(t, on)); !strings.Contains(list[0].Kernel, " g=4 ") || !strings.Contains(list[0].Kernel, " least") {
				t.Errorf("%s", list[0].Kernel)
			}
			c.RunOn(t, on)
		}
		if kerneltest.Takes(i, 3) {
			four(2, kerneltest.Case{Ctx: 300, Slots: 8, Pos: []int{140, 3, 263, 0, 127, 128, 129, 41}, Slot: []int{3, 1, 0, 2, 7, 6, 5, 4}}).CheckWidthsOn(t, on, "%0")
		}
	}
}

// TestAttentionWide runs attention of eight heads of 256 through CUDA, which a workgroup has together, in the
// interpreter: splits that are alone, that are merged at once and by twos, with no positions, and all widths of a step.
func TestAttentionWide(t *testing.T) {
	cuda := *kerneltest.Lookup(t, "sm_90-cuda")
	cuda.EightHeadsFrom = 1
	on := &cuda
	for i, kv := range []string{"f16", "q8_0", "q4_0"} {
		wide := func(splits int, c kerneltest.Case) kerneltest.Case {
			return moreHeads(256, splits, fresh(256, 1, splits, headsTest(kv, "neox", 256, 64, 1, true, c)))
		}
		few := kerneltest.Case{Ctx: 600, Slots: 1, Rows: 1, Pos: []int{580}}
		for j, c := range []kerneltest.Case{
			wide(3, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{0}}),
			atLeast(128, wide(3, kerneltest.Case{Ctx: 300, Slots: 1, Rows: 1, Pos: []int{40}})),  // one split
			atLeast(128, wide(3, kerneltest.Case{Ctx: 300, Slots: 1, Rows: 1, Pos: []int{203}})), // two of three
			wide(20, few), // in three turns
			atLeast(16, wide(66, few)),
			wide(0, few),
			atLeast(24, wide(9, kerneltest.Case{Ctx: 300, Slots: 2, Rows: 4, N: 3, Pos: []int{5, 263, 140}, Slot: []int{1, 0, 1}})),
			merged(256, 8, 3, attentionTest("attention_split", kv, 256, 8, 1, 3, few)),
			atLeast(16, windowed(100, 8, merged(256, 8, 9, attentionTest("attention_split", kv, 256, 8, 1, 9, few)))),
		} {
			if !kerneltest.Takes(i+j, 3) {
				continue
			}
			if list := c.Candidates(t, c.Site(t, on)); !strings.Contains(list[0].Kernel, " g=8 ") {
				t.Errorf("%s: %s", c.Group, list[0].Kernel)
			}
			c.RunOn(t, on)
		}
		if !kerneltest.Takes(i+1, 3) {
			continue
		}
		widths := kerneltest.Case{Ctx: 300, Slots: 8, Pos: []int{140, 3, 263, 0, 17, 16, 15, 41}, Slot: []int{3, 1, 0, 2, 7, 6, 5, 4}}
		atLeast(16, wide(9, widths)).CheckWidthsOn(t, on, "%0")
	}
	c := kerneltest.Case{Ctx: 300, Slots: 2, Rows: 4, N: 3, Pos: []int{5, 63, 240}, Slot: []int{1, 0, 1}}
	gated(256, 8, true, moreHeads(256, 9, fresh(256, 1, 9, headsTest("f16", "neox", 256, 64, 1, true, c)))).RunOn(t, on)
}

// TestSplitWithoutMatrices holds what teams of lanes compute.
func TestSplitWithoutMatrices(t *testing.T) {
	at := kerneltest.Case{Ctx: 99, Slots: 1, Rows: 1, Pos: []int{40}}
	for _, c := range []kerneltest.Case{
		merged(128, 4, 3, attentionTest("attention_split", "f32", 128, 4, 1, 3, at)),
		merged(80, 4, 3, attentionTest("attention_split", "f16", 80, 4, 1, 3, at)),
		merged(128, 4, 3, attentionTest("attention_split", "q8_0", 128, 4, 1, 3, at)), // four scales are not aligned
	} {
		for _, k := range c.Candidates(t, c.Site(t, kerneltest.Lookup(t, "sm_90"))) {
			if strings.Contains(k.Kernel, " matrices") {
				t.Errorf("%s: %s", c.Group, k.Kernel)
			}
		}
	}
}

// TestMatricesOfAnyWidth: rows of other sequences, and of one, which attend to each other.
func TestMatricesOfAnyWidth(t *testing.T) {
	on := kerneltest.Lookup(t, "sm_90")
	for i, at := range []kerneltest.Case{
		{Ctx: 64, Slots: 8, Pos: []int{40, 3, 63, 0, 17, 16, 15, 41}, Slot: []int{3, 1, 0, 2, 7, 6, 5, 4}},
		{Ctx: 64, Slots: 8, Pos: []int{20, 4, 5, 6, 7, 8, 9, 10}, Slot: []int{3, 1}},
		{Ctx: 64, Slots: 2, Pos: []int{13, 14, 15, 16, 17, 24, 40, 41}, Slot: []int{1}}, // in both halves of 16 positions and beyond
	} {
		for j, kv := range []string{"f16", "q8_0", "q4_0"} {
			if !kerneltest.Takes(i+j, 3) {
				continue
			}
			fresh(64, 1, 3, headsTest(kv, "neox", 64, 64, 1, true, at)).CheckWidthsOn(t, on, "%0")
		}
	}
}

// TestMatricesInWindows runs attention with a window and sinks on matrices, of few rows and of
// many, in the interpreter.
func TestMatricesInWindows(t *testing.T) {
	on := kerneltest.Lookup(t, "sm_90")
	few := kerneltest.Case{Ctx: 300, Slots: 1, Rows: 2, Pos: []int{140, 141}}
	for _, c := range kerneltest.Some([]kerneltest.Case{
		windowed(70, 4, merged(128, 4, 3, attentionTest("attention_split", "f16", 128, 4, 1, 3, few))),
		windowed(21, 4, fresh(64, 1, 3, headsTest("q8_0", "neox", 64, 64, 1, true, few))),
		windowed(21, 4, attentionTest("attention_split", "q8_0", 64, 4, 1, 0, few)),
		windowed(21, 4, attentionTest("attention_split", "q4_0", 64, 4, 1, 0, few)),
		ringed(128, windowed(70, 4, merged(128, 4, 3, attentionTest("attention_split", "f16", 128, 4, 1, 3, few)))),
		ringed(64, windowed(21, 4, fresh(64, 1, 3, headsTest("q8_0", "neox", 64, 64, 1, true, few)))),
	}) {
		if list := c.Candidates(t, c.Site(t, on)); !strings.Contains(list[0].Kernel, " matrices") {
			t.Errorf("%s: %s", c.Group, list[0].Kernel)
		}
		c.RunOn(t, on)
	}
	many := kerneltest.Case{Ctx: 128, Slots: 2, Rows: 20, N: 19, Pos: []int{100}, Rounds: true}
	for _, c := range kerneltest.Some([]kerneltest.Case{
		windowed(16, 8, attentionTest("attention_coop", "f16", 128, 8, 2, 0, many)),
		ringed(64, windowed(16, 8, attentionTest("attention_coop", "f16", 128, 8, 2, 0, many))),
		ringed(96, windowed(70, 16, splitTiles(8, attentionTest("attention_coop", "q8_0", 256, 16, 2, 3, many)))),
		windowed(70, 16, splitTiles(8, attentionTest("attention_coop", "q8_0", 256, 16, 2, 3, many))),
		windowed(70, 16, splitTiles(8, attentionTest("attention_coop", "q4_0", 256, 16, 2, 3, many))),
	}) {
		c = halfQuery(c)
		c.RunOn(t, on)
	}
}

// TestAttentionInTurns holds that 16 rows whose workgroups go through several splits, and copy keys and values of f16
// ahead, have the bits of steps where each split has a workgroup: rows of one split and of all, dead ones, runs of rows
// that attend to each other, windows, and caches in pages.
func TestAttentionInTurns(t *testing.T) {
	on := *kerneltest.Lookup(t, "sm_90-cuda")
	on.Units = 2
	_, assembler := exec.LookPath("ptxas")
	far := kerneltest.Case{Ctx: 1200, Slots: 16, Pos: []int{1023, 1022, 1199, 5, 6, 7, 8, 9}, Slot: []int{1, 0, 5}} // two workgroups have a row
	turns := func(kv string, headDim int, c kerneltest.Case) kerneltest.Case {
		kvHeads := 1 + headDim%256/128
		return fresh(headDim, kvHeads, 5, headsTest(kv, "neox", headDim, headDim, kvHeads, true, c))
	}
	window := func(c kerneltest.Case) kerneltest.Case { return windowed(300, 4, c) }
	pages := func(c kerneltest.Case) kerneltest.Case { // splits begin at whole tiles
		c.Group = strings.ReplaceAll(c.Group, "block=8", "block=16")
		return c.Paged()
	}
	for _, c := range kerneltest.Some([]struct {
		kv      string
		headDim int
		of      kerneltest.Case
		as      func(c kerneltest.Case) kerneltest.Case
	}{
		{"f16", 128, kerneltest.Case{Ctx: 64, Slots: 16, Pos: []int{14, 15, 16, 17, 63, 62, 30, 31}, Slot: []int{1, 1, 1, 1, 2, 3, 4, 4}}, nil},
		{"f16", 64, kerneltest.Case{Ctx: 64, Slots: 16, Pos: []int{40, 3, 63, 0, 17, 16, 15, 41}, Slot: []int{3, 1, 0, 2, 7, 6, 5, 4}}, nil},
		{"q8_0", 64, kerneltest.Case{Ctx: 64, Slots: 16, Pos: []int{14, 15, 16, 17, 63, 62, 30, 31}, Slot: []int{1, 1, 1, 1, 2, 3, 4, 4}}, nil},
		{"q8_0", 64, far, nil},
		{"f16", 64, far, nil},
		{"f16", 64, far, window},
		{"f16", 256, kerneltest.Case{Ctx: 300, Slots: 16, Pos: []int{140, 15, 16, 17, 263, 262, 30, 31}, Slot: []int{1, 1, 1, 1, 2, 3, 4, 4}}, nil},
		{"f16", 64, far, pages},
		{"f16", 192, kerneltest.Case{Ctx: 64, Slots: 16, Pos: []int{14, 15, 16, 17, 63, 62, 30, 31}, Slot: []int{1, 1, 1, 1, 2, 3, 4, 4}}, nil},
	}) {
		var bits [2][]byte
		for turn, rows := range []int{16, 8} {
			of := c.of
			of.Rows, of.N, of.RunRows = rows, 8, 8
			if of = turns(c.kv, c.headDim, of); c.as != nil {
				of = c.as(of)
			}
			candidates := of.Candidates(t, of.Site(t, &on))
			first := candidates[0].Kernel
			if strings.Contains(first, " apart=") != (turn == 0) || strings.Contains(first, " copies") != (turn == 0 && c.kv == "f16" && c.headDim != 192) {
				t.Fatal(first)
			}
			of.RunOn(t, &on)
			if assembler == nil {
				kerneltest.Assembled(t, candidates[0])
			}
			bits[turn] = of.FirstOf(t, &on, kerneltest.InterpretOnly)["%0"]
		}
		if !bytes.Equal(bits[0][:len(bits[1])], bits[1]) {
			t.Errorf("%s of %d, %v: 16 rows have other bits than 8", c.kv, c.headDim, c.of)
		}
	}
}

// TestAttentionDoubled holds that eight heads of a workgroup in turns have the bits of two workgroups of four: rows of
// one split and of several, which one workgroup or two share, dead ones, and runs of rows that attend to each other.
func TestAttentionDoubled(t *testing.T) {
	on := *kerneltest.Lookup(t, "sm_90-cuda")
	on.Units = 2
	for _, c := range kerneltest.Some([]kerneltest.Case{
		{Ctx: 300, Slots: 16, Pos: []int{140, 15, 16, 17, 263, 262, 30, 31}, Slot: []int{1, 1, 1, 1, 2, 3, 4, 4}},
		{Ctx: 300, Slots: 16, Pos: []int{40, 3, 263, 0, 17, 16, 15, 41}, Slot: []int{3, 1, 0, 2, 7, 6, 5, 4}},
		{Ctx: 1200, Slots: 16, Pos: []int{1023, 1022, 1199, 5, 6, 7, 8, 9}, Slot: []int{1, 0, 5}},
	}) {
		var bits [2][]byte
		for turn, rows := range []int{16, 8} {
			of := c
			of.Rows, of.N, of.RunRows = rows, 8, 8
			of = gated(256, 8, true, atLeast(128, moreHeads(256, 5, fresh(256, 1, 5, headsTest("f16", "neox", 256, 64, 1, true, of)))))
			small := *kerneltest.Lookup(t, "sm_80-cuda") // without room for eight heads
			small.Units = 2
			if first := of.Candidates(t, of.Site(t, &small))[0].Kernel; strings.Contains(first, " doubled") {
				t.Errorf("%s: %s", small.Name, first)
			}
			candidates := of.Candidates(t, of.Site(t, &on))
			if first := candidates[0].Kernel; strings.Contains(first, " copies doubled") != (turn == 0) {
				t.Fatal(first)
			}
			of.RunOn(t, &on)
			if _, err := exec.LookPath("ptxas"); err == nil {
				kerneltest.Assembled(t, candidates[0])
			}
			bits[turn] = of.FirstOf(t, &on, kerneltest.InterpretOnly)["%12"]
		}
		if len(bits[1]) == 0 || !bytes.Equal(bits[0][:len(bits[1])], bits[1]) {
			t.Errorf("%v: 16 rows have other bits than 8", c)
		}
	}
}

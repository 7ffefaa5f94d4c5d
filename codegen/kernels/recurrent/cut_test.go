package recurrent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/target"
)

// TestCut: steps of prompts cut at multiples of the grain leave the bits of whole steps, in results and states.
func TestCut(t *testing.T) {
	cuda, mesa, processor := kerneltest.Lookup(t, "sm_90-cuda"), kerneltest.Llvmpipe(t), kerneltest.Processor(t)
	many := kerneltest.Case{Ctx: 96, Slots: 2, Rows: 256, N: 45, Pos: []int{16}, Slot: []int{1}}
	begin := many
	begin.Pos, begin.N = []int{0}, 26
	tf32 := deltaChunkTest("chunked", "mod", 64, 1, 2, many)
	tf32.Family = "delta_tf32x3"
	for i, test := range []struct {
		on *target.Target
		c  kerneltest.Case
	}{
		{cuda, tf32},
		{cuda, deltaChunkTest("chunked", "div", 64, 1, 2, begin)},
		{cuda, deltaChunkTest("chunk", "mod", 64, 1, 2, many)},
		{mesa, kerneltest.DeltaTest("norm decay sigmoid gated", "mod", 64, 1, 2, many)},
		{processor, kerneltest.DeltaTest("norm decay sigmoid gated", "div", 64, 1, 2, begin)},
		{cuda, ssdTest(true, 2, 32, 1, 32, many)},
		{processor, ssdTest(false, 2, 32, 1, 32, begin)},
	} {
		t.Run(fmt.Sprint(i, " ", test.c.Family), func(t *testing.T) {
			t.Parallel()
			test.c.Alone = true
			test.c.CheckCut(t, test.on)
		})
	}
}

// TestCutInChunk: the rows of a chunk are computed together, so bits tell where it was cut.
func TestCutInChunk(t *testing.T) {
	on := kerneltest.Lookup(t, "sm_90-cuda")
	c := deltaChunkTest("chunk", "mod", 64, 1, 2, kerneltest.Case{Ctx: 96, Slots: 1, Rows: 256, N: 45})
	k := c.Candidates(t, c.Site(t, on))[0]
	if c.Cut(t, on, k, 8, nil) != "" || c.Cut(t, on, k, 12, nil) == "" {
		t.Errorf("cut at rows 8 and 12: %q and %q", c.Cut(t, on, k, 8, nil), c.Cut(t, on, k, 12, nil))
	}
}

// TestCutConv: a convolution has the same bits of rows of its ring as of rows of the step, wherever the step begins.
func TestCutConv(t *testing.T) {
	for _, width := range []int{300, 150} { // lanes take several rows; one
		c := kerneltest.Case{Family: "conv", Ctx: 99, Slots: 2, Rows: 60, N: 59, Pos: []int{0}, Slot: []int{1},
			Globals: fmt.Sprintf("step @m : f32[T, %d]\nweight @w : f32[%d, 4]\nstate @ring : f32[2, 16, %d]\n", width, width, width)}
		write := c
		write.Group = "conv_write @m, @ring, @pos, @slot"
		c.Group = fmt.Sprintf("%%0 = conv1d @m, @w, @ring, @pos, @slot : io f32[T, %d]", width)
		for _, on := range []*target.Target{kerneltest.Llvmpipe(t), kerneltest.Processor(t)} {
			first := func(c kerneltest.Case) kernels.Candidate { return c.Candidates(t, c.Site(t, on))[0] }
			k := first(c)
			if several := strings.Contains(k.Kernel, " rows="); several != (width == 300) || k.Grain != 1 {
				t.Errorf("%s: a grain of %d", k.Kernel, k.Grain)
			}
			for _, at := range []int{1, 2, 21, 58} {
				before := write
				before.N = at
				ring := map[string][]byte{"ring": before.FirstOf(t, on, kerneltest.InterpretOnly)["@ring"]}
				for _, v := range []string{c.Cut(t, on, k, at, ring), write.Cut(t, on, first(write), at, nil)} {
					if v != "" {
						t.Errorf("%s: with a cut at row %d %s has other bits", k.Kernel, at, v)
					}
				}
			}
		}
	}
}

package recurrent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/target"
)

// TestParts: a step of several runs gives each the bits of a step of its own. One run has several parts; one begins at
// position 0; the last ends within a chunk.
func TestParts(t *testing.T) {
	cuda, vulkan, mesa := kerneltest.Lookup(t, "sm_90-cuda"), kerneltest.Lookup(t, "sm_90"), kerneltest.Llvmpipe(t)
	runs := kerneltest.Case{Ctx: 96, Slots: 4, Rows: 256}.InParts(32, kerneltest.Run{Slot: 3, From: 16, Rows: 45}, kerneltest.Run{Slot: 1, From: 0, Rows: 3},
		kerneltest.Run{Slot: 2, From: 8, Rows: 32}, kerneltest.Run{Slot: 0, From: 24, Rows: 13})
	chunk := deltaChunkTest("chunk", "mod", 64, 1, 2, runs)
	chunk.Group = strings.Replace(chunk.Group, "delta_chunk %0, %1, %2, %3", "delta_chunk %0, %1, %2, %3, @pos", 1)
	tf32, chunked := deltaChunkTest("chunked log", "mod", 64, 1, 2, runs), deltaChunkTest("chunked log", "div", 64, 1, 2, runs)
	plain32, plain := deltaChunkTest("chunked", "mod", 64, 1, 2, runs), deltaChunkTest("chunked", "div", 64, 1, 2, runs)
	tf32.Family, plain32.Family = "delta_tf32x3", "delta_tf32x3"
	conv := func(width int, group string) kerneltest.Case {
		c := runs
		c.Family, c.Group = "conv", group
		c.Globals = fmt.Sprintf("step @m : f32[T, %d]\nweight @w : f32[%d, 4]\nstate @ring : f32[4, 16, %d]\n", width, width, width)
		return c
	}
	for i, test := range []struct {
		on *target.Target
		c  kerneltest.Case
	}{
		{cuda, chunk},
		{cuda, tf32},
		{cuda, chunked},
		{cuda, plain32},
		{cuda, plain},
		{vulkan, chunked},
		{mesa, kerneltest.DeltaTest("norm decay sigmoid gated log", "mod", 64, 1, 2, runs)},
		{cuda, ssdTest(true, 2, 32, 1, 32, runs)},
		{mesa, ssdTest(false, 2, 32, 1, 32, runs)},
		{mesa, conv(300, "%0 = conv1d @m, @w, @ring, @pos, @slot : io f32[T, 300]")},
		{mesa, conv(150, "%0 = conv1d @m, @w, @ring, @pos, @slot : io f32[T, 150]")},
		{mesa, conv(300, "conv_write @m, @ring, @pos, @slot")},
	} {
		t.Run(fmt.Sprint(i, " ", test.c.Family), func(t *testing.T) {
			t.Parallel()
			test.c.Alone = true
			test.c.CheckParts(t, test.on)
		})
	}
}

package recurrent_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/ir"
)

func TestDelta(t *testing.T) {
	for _, c := range kerneltest.Some([]kerneltest.Case{
		kerneltest.DeltaTest(kerneltest.DeltaAll, "mod", 128, 2, 4, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{40}}),
		kerneltest.DeltaTest(kerneltest.DeltaAll, "mod", 128, 1, 2, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{0}}),
		kerneltest.DeltaTest(kerneltest.DeltaAll, "div", 64, 2, 6, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 8, N: 5, Pos: []int{14}}), // over the end of the ring
		kerneltest.DeltaTest(kerneltest.DeltaAll, "mod", 32, 3, 3, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 8, Pos: []int{0}}),
		kerneltest.DeltaTest(kerneltest.DeltaAll, "mod", 64, 1, 3, kerneltest.Case{Ctx: 64, Slots: 4, Rows: 4, Pos: []int{20, 21, 0, 33}, Slot: []int{2, 1, 0, 3}}),
		kerneltest.DeltaTest(kerneltest.DeltaAll, "div", 96, 1, 2, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 8, N: 6, Pos: []int{7, 8, 9, 0, 1}, Slot: []int{1, 1, 1, 0}}),
		kerneltest.DeltaTest(kerneltest.DeltaAll, "mod", 16, 2, 4, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 8, N: 7, Pos: []int{3}}),
		kerneltest.DeltaTest(kerneltest.DeltaAll, "div", 48, 1, 2, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 2, Pos: []int{3}}),
		kerneltest.DeltaTest("conv norm decay sigmoid", "mod", 128, 1, 2, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 2, Pos: []int{31}}),
		kerneltest.DeltaTest("norm decay sigmoid gated", "mod", 64, 2, 4, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 40, N: 37, Slot: []int{1}}),
		kerneltest.DeltaTest("norm decay sigmoid gated", "div", 128, 1, 3, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 17, Pos: []int{5}}),
		kerneltest.DeltaTest("norm decay sigmoid", "mod", 128, 1, 2, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 256, N: 45, Pos: []int{5}}), // blocks in one go, and one of 5
		kerneltest.DeltaTest("norm decay sigmoid", "div", 256, 1, 1, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 3, Pos: []int{5}}),
		kerneltest.DeltaTest("norm floor decay sigmoid", "mod", 64, 1, 1, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 2, Pos: []int{5}}),
		kerneltest.DeltaTest("norm decay sigmoid gated", "div", 160, 1, 1, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 9, Pos: []int{5}}),
		kerneltest.DeltaTest(kerneltest.DeltaAll, "mod", 64, 1, 2, kerneltest.Case{Ctx: 64, Slots: 6, Rows: 16, RunRows: 8, N: 14,
			Pos: []int{3, 40, 41, 42, 0, 1, 5, 6, 7, 8, 9, 10, 11, 12}, Slot: []int{4, 1, 1, 1, 0, 0, 5, 5, 5, 5, 5, 5, 5, 5}}),
	}) {
		c.Run(t)
		c.RunOn(t, kerneltest.Processor(t))
		c.CheckBuild(t)
	}
}

// TestDeltaAsks runs a token of one slot as it is through CUDA, in the interpreter: with the weights loaded first and
// the ring written last.
func TestDeltaAsks(t *testing.T) {
	on := kerneltest.Lookup(t, "sm_90-cuda")
	for _, c := range []kerneltest.Case{
		kerneltest.DeltaTest(kerneltest.DeltaAll, "mod", 128, 2, 4, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{40}}),
		kerneltest.DeltaTest(kerneltest.DeltaAll, "mod", 128, 1, 2, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{0}}),
		kerneltest.DeltaTest(kerneltest.DeltaAll, "div", 32, 3, 3, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{2}}), // fewer lanes than channels
		kerneltest.DeltaTest("conv norm sigmoid", "mod", 64, 1, 3, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{16}}),
		kerneltest.DeltaTest("norm decay gated", "mod", 64, 1, 3, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{5}}),
	} {
		if list := c.Candidates(t, c.Site(t, on)); !strings.Contains(list[0].Kernel, " asks") {
			t.Errorf("%s: %s", c.Group, list[0].Kernel)
		}
		c.RunOn(t, on)
	}
}

func TestDeltaOfAnyWidth(t *testing.T) {
	c := kerneltest.DeltaTest(kerneltest.DeltaAll, "mod", 64, 2, 4, kerneltest.Case{Ctx: 64, Slots: 1, Pos: []int{12}})
	c.CheckWidths(t, "%9")
}

// TestDeltaChunks runs the same rows in steps of different lengths, from the state
// that the step before has left.
func TestDeltaChunks(t *testing.T) {
	c := kerneltest.DeltaTest("norm decay sigmoid gated", "mod", 64, 1, 2, kerneltest.Case{Ctx: 64, Slots: 1})
	c.Rows = 29
	y, state := steps(t, c, 29)
	for _, lengths := range [][]int{{1, 28}, {8, 8, 13}, {10, 19}, {3, 3, 3, 20}} {
		y2, state2 := steps(t, c, lengths...)
		if !bytes.Equal(y, y2) || !bytes.Equal(state, state2) {
			t.Errorf("chunks of %d differ from one of 29", lengths)
		}
	}
}

// steps runs the test's rows, which start at position 0, in steps of these
// lengths, and returns the results and the state after the last one.
func steps(t *testing.T, c kerneltest.Case, lengths ...int) (y, state []byte) {
	t.Helper()
	whole := c
	for _, rows := range lengths {
		first := len(y)
		c.Rows, c.Pos = rows, []int{kerneltest.At(whole.Pos, 0, 1)}
		s := c.Site(t, kerneltest.Lookup(t, "llvmpipe"))
		k := c.Candidates(t, s)[0]
		data := map[*ir.Value][]byte{}
		row := func(v *ir.Value) int { n, _ := v.Type.Bytes(1, c.Ctx); return int(n) }
		done := first
		for _, o := range k.Operands {
			if o.Name == "y" {
				done = first / row(o.Value)
			}
		}
		c.Pos = []int{done}
		for _, o := range k.Operands {
			v := o.Value
			switch {
			case o.Name == "state" && state != nil:
				data[v] = state
			case v.Class == ir.Step && v.Type.DType == ir.F32:
				data[v] = whole.Value(v)[done*row(v):][:rows*row(v)]
			default:
				data[v] = c.Value(v)
			}
		}
		for v, b := range kerneltest.InterpretOnly(t, k, func(v *ir.Value) int { return len(data[v]) }, data) {
			switch v {
			case k.Operands[len(k.Operands)-1].Value:
				y = append(y, b...)
			case k.Operands[len(k.Operands)-2].Value:
				state = b
			}
		}
	}
	return y, state
}

// TestDeltaApart has q, k and v in values of their own. Without norms errors grow
// from token to token, so that case has one.
func TestDeltaApart(t *testing.T) {
	for does, n := range map[string]int{"": 1, "norm": 4} {
		c := kerneltest.DeltaTest(does, "div", 64, 2, 4, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 5, N: n, Pos: []int{40}})
		c.Globals += "step @q : f32[T, 128]\nstep @k : f32[T, 128]\nstep @v : f32[T, 256]\n"
		c.Group = c.Group[strings.Index(c.Group, "%3"):] // without the slices
		c.Group = strings.NewReplacer("%0", "@q", "%1", "@k", "%2", "@v").Replace(c.Group)
		c.Run(t)
		c.CheckBuild(t)
	}
}

func TestConv(t *testing.T) {
	globals := "step @m : f32[T, %[1]d]\nweight @w : f32[%[1]d, %[2]d]\nstate @ring : f32[3, 16, %[1]d]\n"
	for _, c := range []kerneltest.Case{
		{Rows: 20, N: 18, Pos: []int{5}, Slot: []int{2}},
		{Rows: 40, Pos: []int{0}},
		{Rows: 1, Pos: []int{2}},
		{Rows: 6, N: 5, Pos: []int{16, 17, 18, 0, 1}, Slot: []int{2, 0, 0, 1, 1}},
	} {
		c.Family, c.Ctx, c.Slots = "conv", 64, 3
		for _, taps := range []int{4, 3} {
			c.Globals = fmt.Sprintf(globals, 300, taps)
			for _, c.Group = range []string{"%0 = conv1d @m, @w, @ring, @pos, @slot : io f32[T, 300]", "conv_write @m, @ring, @pos, @slot"} {
				c.Run(t)
				c.CheckBuild(t)
			}
		}
	}
}

// deltaChunkTest is what makes the chunks of a delta rule, or the rule that uses them.
func deltaChunkTest(does, headMap string, dim, keys, heads int, c kerneltest.Case) kerneltest.Case {
	does, log := strings.CutSuffix(does, " log")
	state, with := "s", "norm decay sigmoid"
	if log {
		state, with = "logged", with+" log"
	}
	c = kerneltest.DeltaTest(with, headMap, dim, keys, heads, c)
	key, value := keys*dim, heads*dim
	attrs := fmt.Sprintf("head_dim=%d, k_heads=%d, v_heads=%d, map=%q", dim, keys, heads, headMap)
	q := fmt.Sprintf("%%0 = slice @m {first=0, width=%d} : f32[T, %d]\n", key, key)
	k := fmt.Sprintf("%%1 = slice @m {first=%d, width=%d} : f32[T, %d]\n", key, key, key)
	v := fmt.Sprintf("%%2 = slice @m {first=%d, width=%d} : f32[T, %d]\n", 2*key, value, value)
	switch does {
	case "chunk":
		c.Family = "delta_chunk"
		c.Group = q + k + fmt.Sprintf("%%2 = decay @a, @dt, @rate : f32[T, %d]\n%%3 = sigmoid @b : f32[T, %d]\n", heads, heads) +
			fmt.Sprintf("%%4 = delta_chunk %%0, %%1, %%2, %%3 {%s, scale=0.125, eps=1e-06} : io f32[T, %d]", attrs, heads*ir.DeltaChunkWidth)
	case "chunked":
		c.Family = "delta_chunked"
		c.Globals += fmt.Sprintf("step @chunk : f32[T, %d]\n", heads*ir.DeltaChunkWidth)
		c.Group = q + k + v + fmt.Sprintf("%%3 = deltanet_chunked %%0, %%1, %%2, @chunk, @%s, @pos, @slot {%s} : io f32[T, %d]", state, attrs, value)
	}
	return c
}

func TestDeltaChunk(t *testing.T) {
	for _, c := range []kerneltest.Case{
		deltaChunkTest("chunk", "mod", 128, 2, 4, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 256, N: 21, Pos: []int{5}}),
		deltaChunkTest("chunk", "div", 64, 2, 6, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 256, N: 8, Pos: []int{5}}),
	} {
		c.Run(t)
		c.CheckBuild(t)
	}
}

func TestDeltaChunked(t *testing.T) {
	for _, c := range kerneltest.Some([]kerneltest.Case{
		deltaChunkTest("chunked", "mod", 128, 2, 4, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 256, N: 21, Pos: []int{5}}),
		deltaChunkTest("chunked", "div", 64, 1, 2, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 256, N: 17, Pos: []int{0}, Slot: []int{1}}),
		deltaChunkTest("chunked", "mod", 128, 1, 3, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 256, N: 1, Pos: []int{9}}), // less than is copied ahead
		deltaChunkTest("chunked", "mod", 64, 1, 1, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 256, N: 40, Pos: []int{0}}), // whole chunks
		deltaChunkTest("chunked log", "mod", 128, 1, 2, kerneltest.Case{Ctx: 64, Slots: 4, Rows: 256, N: 21, Pos: []int{5}, Slot: []int{3}}),
		deltaChunkTest("chunked log", "div", 64, 1, 2, kerneltest.Case{Ctx: 64, Slots: 4, Rows: 256, N: 17, Pos: []int{0}, Slot: []int{3}}),
	}) {
		for _, name := range []string{"sm_90", "sm_90-cuda"} { // where lanes copy
			c.Alone = true
			c.RunOn(t, kerneltest.Lookup(t, name))
		}
		c.CheckBuild(t)
		c.Family = "delta_tf32x3"
		on := kerneltest.Lookup(t, "sm_90-cuda")
		c.RunOn(t, on)
		for _, k := range c.Candidates(t, c.Site(t, on)) {
			kerneltest.Assembled(t, k)
		}
	}
}

// TestDeltaOfManySequences has a delta rule that takes the rows of a step as one sequence.
func TestDeltaOfManySequences(t *testing.T) {
	kerneltest.DeltaTest("", "mod", 128, 2, 4, kerneltest.Case{Ctx: 96, Slots: 2, Rows: 16}).CheckSequences(t)
}

// TestDeltaDefers has states with a log: what waits there is applied, and rows of many sequences add to it, but where
// it is full, where it is the slot's turn, and where a sequence begins or has several rows. Through CUDA, as it is in
// the interpreter, workgroups take several rows in turn.
func TestDeltaDefers(t *testing.T) {
	const all = kerneltest.DeltaAll + " log"
	pos, slot := []int{3, 40, 41, 42, 0, 1, 5, 6, 12, 9, 0, 2, 4}, []int{4, 1, 1, 1, 0, 0, 5, 6, 7, 8, 9, 10, 11}
	wide := kerneltest.Case{Ctx: 64, Slots: 12, Rows: 16, RunRows: 8, N: 13, Pos: pos, Slot: slot}
	narrow := *kerneltest.Lookup(t, "sm_90-cuda")
	narrow.Units = 2 // so that there are turns
	for _, c := range []kerneltest.Case{
		kerneltest.DeltaTest(all+" defer", "mod", 128, 1, 2, wide),
		kerneltest.DeltaTest(all+" defer", "div", 64, 1, 3, wide),
		kerneltest.DeltaTest("norm decay log defer", "mod", 64, 1, 1, wide),
		kerneltest.DeltaTest("norm decay log defer", "mod", 64, 1, 1, kerneltest.Case{Ctx: 64, Slots: 4, Rows: 16, RunRows: 8, N: 3, Pos: []int{3, 0, 1}, Slot: []int{1, 0, 0}}),
	} {
		if list := c.Candidates(t, c.Site(t, &narrow)); !strings.Contains(list[0].Kernel, " every=") {
			t.Errorf("%s: %s", c.Group, list[0].Kernel)
		}
		c.RunOn(t, &narrow)
		c.Run(t)
		c.CheckBuild(t)
	}
	for _, c := range []kerneltest.Case{
		kerneltest.DeltaTest(all, "mod", 128, 2, 4, kerneltest.Case{Ctx: 64, Slots: 12, Rows: 1, Pos: []int{40}, Slot: []int{3}}),
		kerneltest.DeltaTest(all, "mod", 128, 2, 4, kerneltest.Case{Ctx: 64, Slots: 12, Rows: 1, Pos: []int{0}, Slot: []int{3}}),
		kerneltest.DeltaTest("conv norm decay sigmoid log", "mod", 128, 1, 2, kerneltest.Case{Ctx: 64, Slots: 12, Rows: 1, Pos: []int{31}, Slot: []int{2}}),
		kerneltest.DeltaTest(all, "div", 64, 2, 6, kerneltest.Case{Ctx: 64, Slots: 12, Rows: 8, N: 7, Pos: []int{7, 8, 9, 0, 1, 5, 3}, Slot: []int{1, 1, 1, 0, 0, 2, 3}}),
		kerneltest.DeltaTest("norm decay sigmoid log", "div", 128, 1, 3, kerneltest.Case{Ctx: 64, Slots: 12, Rows: 17, Pos: []int{5}, Slot: []int{3}}),
		// All rows of a sequence in one block:
		kerneltest.DeltaTest(all+" defer", "div", 64, 1, 2, kerneltest.Case{Ctx: 64, Slots: 12, Rows: 16, RunRows: 1, N: 5, Pos: []int{3, 40, 0, 8, 6}, Slot: []int{4, 1, 0, 3, 7}}),
		kerneltest.DeltaTest(all+" defer", "mod", 64, 1, 2, kerneltest.Case{Ctx: 64, Slots: 12, Rows: 8, N: 5, Pos: []int{3, 8, 9, 0, 6}, Slot: []int{4, 1, 1, 0, 7}}),
		kerneltest.DeltaTest(all+" defer", "mod", 64, 1, 2, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{5}}),
	} {
		c.Run(t)
		c.RunOn(t, kerneltest.Lookup(t, "sm_90-cuda"))
		c.CheckBuild(t)
	}
}

// TestDeltaLogOnProcessors: no kernel of a processor takes a state with a log, which it would not apply.
func TestDeltaLogOnProcessors(t *testing.T) {
	for does, want := range map[string]bool{kerneltest.DeltaAll: true, kerneltest.DeltaAll + " log": false} {
		c := kerneltest.DeltaTest(does, "mod", 128, 1, 2, kerneltest.Case{Ctx: 64, Slots: 12, Rows: 8})
		if list := kernels.Candidates(c.Site(t, kerneltest.Processor(t))); len(list) > 0 != want {
			t.Errorf("%s: %d kernels", does, len(list))
		}
	}
}

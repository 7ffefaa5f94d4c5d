package recurrent_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// ssdTest is the state space model of a Mamba2 layer, its time steps of their own or a slice of rows.
func ssdTest(cut bool, heads, dim, groups, n int, c kerneltest.Case) kerneltest.Case {
	c.Family = "ssd"
	width, inner := heads*dim+2*groups*n, heads*dim
	c.Globals = fmt.Sprintf(`step @m : f32[T, %d]
step @dt : f32[T, %d]
step @all : f32[T, %d]
weight @bias : f32[%d]
weight @rate : f32[%d]
weight @skip : f32[%d]
state @s : f32[%d, %d, %d, %d]
`, width, heads, width+heads+4, heads, heads, heads, c.Slots, heads, n, dim)
	dt := "@dt"
	if cut {
		dt = "%1"
		c.Group = fmt.Sprintf("%%1 = slice @all {first=%d, width=%d} : f32[T, %d]\n", width+3, heads, heads)
	}
	c.Group += fmt.Sprintf("%%0 = ssd @m, %s, @bias, @rate, @skip, @s, @pos, @slot {heads=%d, head_dim=%d, groups=%d, state_dim=%d} : io f32[T, %d]", dt, heads, dim, groups, n, inner)
	return c
}

// ssdAroundTest is a Mamba2 layer of few rows, between its two projections but for the norm: what it does has "bias" of
// the convolution, "write" of its ring, "gate", and "cut", which is that all of them read slices of the same rows.
func ssdAroundTest(does string, heads, dim, groups, n int, c kerneltest.Case) kerneltest.Case {
	c.Family = "ssd"
	has := func(name string) bool { return strings.Contains(does, name) }
	width, inner := heads*dim+2*groups*n, heads*dim
	all := inner + width + heads + 4
	c.Globals = fmt.Sprintf(`step @x : f32[T, %d]
step @dt : f32[T, %d]
step @z : f32[T, %d]
step @all : f32[T, %d]
weight @conv : f32[%d, 4]
weight @conv_bias : f32[%d]
state @ring : f32[%d, 16, %d]
weight @bias : f32[%d]
weight @rate : f32[%d]
weight @skip : f32[%d]
state @s : f32[%d, %d, %d, %d]
`, width, heads, inner, all, width, width, c.Slots, width, heads, heads, heads, c.Slots, heads, n, dim)
	var ops []string
	op := func(format string, args ...any) string {
		name := fmt.Sprintf("%%%d", len(ops))
		ops = append(ops, name+" = "+fmt.Sprintf(format, args...))
		return name
	}
	x, x2, dt, z, bias := "@x", "@x", "@dt", "@z", ""
	if has("cut") {
		x, x2 = op("slice @all {first=%d, width=%d} : f32[T, %d]", inner, width, width), op("slice @all {first=%d, width=%d} : f32[T, %d]", inner, width, width)
		dt = op("slice @all {first=%d, width=%d} : f32[T, %d]", inner+width+3, heads, heads)
		z = op("slice @all {first=1, width=%d} : f32[T, %d]", inner, inner)
	}
	if has("bias") {
		bias = ", @conv_bias"
	}
	m := op("conv1d %s, @conv, @ring, @pos, @slot%s : f32[T, %d]", x, bias, width)
	y := op("ssd %s, %s, @bias, @rate, @skip, @s, @pos, @slot {heads=%d, head_dim=%d, groups=%d, state_dim=%d} : f32[T, %d]", m, dt, heads, dim, groups, n, inner)
	if has("gate") {
		op("glu %s, %s {act=\"silu\"} : f32[T, %d]", z, y, inner)
	} else {
		ops = slices.DeleteFunc(ops, func(op string) bool { return strings.HasPrefix(op, z+" ") })
	}
	last := len(ops) - 1
	ops[last] = strings.Replace(ops[last], " : f32", " : io f32", 1)
	if has("write") {
		ops = append(ops, fmt.Sprintf("conv_write %s, @ring, @pos, @slot", x2))
	} else {
		ops = slices.DeleteFunc(ops, func(op string) bool { return strings.HasPrefix(op, x2+" ") && x2 != x })
	}
	c.Group = strings.Join(ops, "\n")
	return c
}

func TestSSDAround(t *testing.T) {
	for _, c := range kerneltest.Some([]kerneltest.Case{
		ssdAroundTest("cut bias write gate", 4, 64, 2, 128, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{40}}),
		ssdAroundTest("cut bias write gate", 2, 64, 1, 64, kerneltest.Case{Ctx: 64, Slots: 3, Rows: 1, Pos: []int{0}, Slot: []int{2}}),
		ssdAroundTest("write gate", 4, 16, 4, 16, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 8, N: 5, Pos: []int{14}}), // over the end of the ring
		ssdAroundTest("bias gate", 6, 32, 2, 32, kerneltest.Case{Ctx: 64, Slots: 4, Rows: 4, Pos: []int{20, 21, 0, 33}, Slot: []int{2, 1, 0, 3}}),
		ssdAroundTest("cut write", 2, 64, 1, 32, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 8, N: 6, Pos: []int{7, 8, 9, 0, 1}, Slot: []int{1, 1, 1, 0}}),
		ssdAroundTest("cut write gate", 2, 48, 2, 96, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 2, Pos: []int{0, 1}, Slot: []int{1, 1}}),
	}) {
		c.Run(t)
		c.RunOn(t, kerneltest.Lookup(t, "sm_90"))
		c.RunOn(t, kerneltest.Lookup(t, "sm_90-cuda"))
		c.CheckBuild(t)
	}
}

func TestSSDAroundOfAnyWidth(t *testing.T) {
	c := ssdAroundTest("cut bias write gate", 4, 32, 2, 32, kerneltest.Case{Ctx: 64, Slots: 1, Pos: []int{12}})
	c.CheckWidths(t, "%6")
}

func TestSSD(t *testing.T) {
	for _, c := range kerneltest.Some([]kerneltest.Case{
		ssdTest(false, 4, 64, 2, 128, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{40}}),
		ssdTest(true, 2, 64, 1, 128, kerneltest.Case{Ctx: 64, Slots: 3, Rows: 1, Pos: []int{0}, Slot: []int{2}}),
		ssdTest(true, 4, 16, 4, 16, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 8, N: 5, Pos: []int{14}}),
		ssdTest(false, 6, 24, 2, 20, kerneltest.Case{Ctx: 64, Slots: 4, Rows: 4, Pos: []int{20, 21, 0, 33}, Slot: []int{2, 1, 0, 3}}),
		ssdTest(true, 2, 64, 1, 32, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 8, N: 6, Pos: []int{7, 8, 9, 0, 1}, Slot: []int{1, 1, 1, 0}}),
		ssdTest(true, 3, 8, 1, 12, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 40, N: 37, Slot: []int{1}}),
		ssdTest(false, 2, 80, 2, 96, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 17, Pos: []int{5}}),
		ssdTest(true, 4, 32, 2, 64, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 20, N: 19, Pos: []int{5}, Slot: []int{1}}),
		// Kernels do not take the convolution in at these sizes.
		ssdTest(true, 2, 64, 1, 80, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 8, N: 5, Pos: []int{14}}),
		ssdTest(true, 2, 64, 1, 112, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{14}}),
		ssdTest(true, 2, 64, 1, 256, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 8, N: 8, Pos: []int{14}}),
	}) {
		c.Run(t)
		c.RunOn(t, kerneltest.Processor(t))
		c.RunOn(t, kerneltest.Lookup(t, "sm_90"))
		c.CheckBuild(t)
	}
}

// TestSSDOddHeads has heads of so few columns that wide subgroups cannot share their states.
func TestSSDOddHeads(t *testing.T) {
	c := ssdTest(true, 3, 7, 1, 16, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 2, Pos: []int{14, 15}})
	c.Run(t)
}

func TestSSDOfAnyWidth(t *testing.T) {
	c := ssdTest(true, 4, 32, 2, 32, kerneltest.Case{Ctx: 64, Slots: 1, Pos: []int{12}})
	c.CheckWidths(t, "%0")
}

// TestSSDChunks runs the same rows in steps of different lengths, from the state that the step before has left.
func TestSSDChunks(t *testing.T) {
	c := ssdTest(false, 2, 32, 1, 32, kerneltest.Case{Ctx: 64, Slots: 1})
	c.Rows = 29
	y, state := steps(t, c, 29)
	for _, lengths := range [][]int{{1, 28}, {8, 8, 13}, {10, 19}, {3, 3, 3, 20}} {
		y2, state2 := steps(t, c, lengths...)
		if !bytes.Equal(y, y2) || !bytes.Equal(state, state2) {
			t.Errorf("chunks of %d differ from one of 29", lengths)
		}
	}
}

// TestConvOfSlices has a bias, and rows that are slices of others.
func TestConvOfSlices(t *testing.T) {
	on := *kerneltest.Llvmpipe(t)
	on.Units = 1
	for _, first := range []int{8, 5} { // accesses of four, and of one
		for _, rows := range []int{1, 6, 40} {
			c := kerneltest.Case{Family: "conv", Ctx: 99, Slots: 2, Rows: rows, Pos: []int{3}, Slot: []int{1}}
			c.Globals = "step @m : f32[T, 400]\nweight @w : f32[300, 4]\nweight @b : f32[300]\nstate @ring : f32[2, 16, 300]\n"
			cut := fmt.Sprintf("%%1 = slice @m {first=%d, width=300} : f32[T, 300]\n", first)
			for _, c.Group = range []string{cut + "%0 = conv1d %1, @w, @ring, @pos, @slot, @b : io f32[T, 300]", cut + "conv_write %1, @ring, @pos, @slot"} {
				if list := c.Candidates(t, c.Site(t, &on)); !strings.Contains(list[0].Kernel, " cut") {
					t.Errorf("%s: %s", c.Group, list[0].Kernel)
				}
				c.RunOn(t, &on)
				c.CheckOn(t, &on)
			}
		}
	}
}

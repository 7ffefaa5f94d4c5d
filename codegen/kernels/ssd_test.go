package kernels_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// ssdTest is the state space model of a Mamba2 layer, its time steps of their own or a slice of rows.
func ssdTest(cut bool, heads, dim, groups, n int, c siteTest) siteTest {
	c.family = "ssd"
	width, inner := heads*dim+2*groups*n, heads*dim
	c.globals = fmt.Sprintf(`step @m : f32[T, %d]
step @dt : f32[T, %d]
step @all : f32[T, %d]
weight @bias : f32[%d]
weight @rate : f32[%d]
weight @skip : f32[%d]
state @s : f32[%d, %d, %d, %d]
`, width, heads, width+heads+4, heads, heads, heads, c.slots, heads, n, dim)
	dt := "@dt"
	if cut {
		dt = "%1"
		c.group = fmt.Sprintf("%%1 = slice @all {first=%d, width=%d} : f32[T, %d]\n", width+3, heads, heads)
	}
	c.group += fmt.Sprintf("%%0 = ssd @m, %s, @bias, @rate, @skip, @s, @pos, @slot {heads=%d, head_dim=%d, groups=%d, state_dim=%d} : io f32[T, %d]", dt, heads, dim, groups, n, inner)
	return c
}

// ssdAroundTest is a Mamba2 layer of few rows, between its two projections but for the norm: what it does has "bias" of the
// convolution, "write" of its ring, "gate", and "cut", which is that all of them read slices of the same rows.
func ssdAroundTest(does string, heads, dim, groups, n int, c siteTest) siteTest {
	c.family = "ssd"
	has := func(name string) bool { return strings.Contains(does, name) }
	width, inner := heads*dim+2*groups*n, heads*dim
	all := inner + width + heads + 4
	c.globals = fmt.Sprintf(`step @x : f32[T, %d]
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
`, width, heads, inner, all, width, width, c.slots, width, heads, heads, heads, c.slots, heads, n, dim)
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
	c.group = strings.Join(ops, "\n")
	return c
}

func TestSSDAround(t *testing.T) {
	for _, c := range some([]siteTest{
		ssdAroundTest("cut bias write gate", 4, 64, 2, 128, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{40}}),
		ssdAroundTest("cut bias write gate", 2, 64, 1, 64, siteTest{ctx: 64, slots: 3, rows: 1, pos: []int{0}, slot: []int{2}}),
		ssdAroundTest("write gate", 4, 16, 4, 16, siteTest{ctx: 64, slots: 1, rows: 8, n: 5, pos: []int{14}}), // over the end of the ring
		ssdAroundTest("bias gate", 6, 32, 2, 32, siteTest{ctx: 64, slots: 4, rows: 4, pos: []int{20, 21, 0, 33}, slot: []int{2, 1, 0, 3}}),
		ssdAroundTest("cut write", 2, 64, 1, 32, siteTest{ctx: 64, slots: 2, rows: 8, n: 6, pos: []int{7, 8, 9, 0, 1}, slot: []int{1, 1, 1, 0}}),
		ssdAroundTest("cut write gate", 2, 48, 2, 96, siteTest{ctx: 64, slots: 2, rows: 2, pos: []int{0, 1}, slot: []int{1, 1}}),
	}) {
		c.run(t)
		c.runOn(t, lookup(t, "sm_90"))
		c.runOn(t, lookup(t, "sm_90-cuda"))
		c.checkBuild(t)
	}
}

func TestSSDAroundOfAnyWidth(t *testing.T) {
	c := ssdAroundTest("cut bias write gate", 4, 32, 2, 32, siteTest{ctx: 64, slots: 1, pos: []int{12}})
	c.checkWidths(t, "%6")
}

func TestSSD(t *testing.T) {
	for _, c := range some([]siteTest{
		ssdTest(false, 4, 64, 2, 128, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{40}}),
		ssdTest(true, 2, 64, 1, 128, siteTest{ctx: 64, slots: 3, rows: 1, pos: []int{0}, slot: []int{2}}),
		ssdTest(true, 4, 16, 4, 16, siteTest{ctx: 64, slots: 1, rows: 8, n: 5, pos: []int{14}}),
		ssdTest(false, 6, 24, 2, 20, siteTest{ctx: 64, slots: 4, rows: 4, pos: []int{20, 21, 0, 33}, slot: []int{2, 1, 0, 3}}),
		ssdTest(true, 2, 64, 1, 32, siteTest{ctx: 64, slots: 2, rows: 8, n: 6, pos: []int{7, 8, 9, 0, 1}, slot: []int{1, 1, 1, 0}}),
		ssdTest(true, 3, 8, 1, 12, siteTest{ctx: 64, slots: 2, rows: 40, n: 37, slot: []int{1}}),
		ssdTest(false, 2, 80, 2, 96, siteTest{ctx: 64, slots: 1, rows: 17, pos: []int{5}}),
		ssdTest(true, 4, 32, 2, 64, siteTest{ctx: 64, slots: 2, rows: 20, n: 19, pos: []int{5}, slot: []int{1}}),
		// Kernels do not take the convolution in at these sizes.
		ssdTest(true, 2, 64, 1, 80, siteTest{ctx: 64, slots: 1, rows: 8, n: 5, pos: []int{14}}),
		ssdTest(true, 2, 64, 1, 112, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{14}}),
		ssdTest(true, 2, 64, 1, 256, siteTest{ctx: 64, slots: 1, rows: 8, n: 8, pos: []int{14}}),
	}) {
		c.run(t)
		c.runOn(t, processor(t))
		c.runOn(t, lookup(t, "sm_90"))
		c.checkBuild(t)
	}
}

// TestSSDOddHeads has heads of so few columns that wide subgroups cannot share their states.
func TestSSDOddHeads(t *testing.T) {
	c := ssdTest(true, 3, 7, 1, 16, siteTest{ctx: 64, slots: 1, rows: 2, pos: []int{14, 15}})
	c.run(t)
}

func TestSSDOfAnyWidth(t *testing.T) {
	c := ssdTest(true, 4, 32, 2, 32, siteTest{ctx: 64, slots: 1, pos: []int{12}})
	c.checkWidths(t, "%0")
}

// TestSSDChunks runs the same rows in steps of different lengths, from the state that the step before has left.
func TestSSDChunks(t *testing.T) {
	c := ssdTest(false, 2, 32, 1, 32, siteTest{ctx: 64, slots: 1})
	c.rows = 29
	y, state := c.steps(t, 29)
	for _, lengths := range [][]int{{1, 28}, {8, 8, 13}, {10, 19}, {3, 3, 3, 20}} {
		y2, state2 := c.steps(t, lengths...)
		if !bytes.Equal(y, y2) || !bytes.Equal(state, state2) {
			t.Errorf("chunks of %d differ from one of 29", lengths)
		}
	}
}

// TestConvOfSlices has a bias, and rows that are slices of others.
func TestConvOfSlices(t *testing.T) {
	on := *llvmpipe(t)
	on.Units = 1
	for _, first := range []int{8, 5} { // accesses of four, and of one
		for _, rows := range []int{1, 6, 40} {
			c := siteTest{family: "conv", ctx: 99, slots: 2, rows: rows, pos: []int{3}, slot: []int{1}}
			c.globals = "step @m : f32[T, 400]\nweight @w : f32[300, 4]\nweight @b : f32[300]\nstate @ring : f32[2, 16, 300]\n"
			cut := fmt.Sprintf("%%1 = slice @m {first=%d, width=300} : f32[T, 300]\n", first)
			for _, c.group = range []string{cut + "%0 = conv1d %1, @w, @ring, @pos, @slot, @b : io f32[T, 300]", cut + "conv_write %1, @ring, @pos, @slot"} {
				if list := c.candidates(t, c.site(t, &on)); !strings.Contains(list[0].Kernel, " cut") {
					t.Errorf("%s: %s", c.group, list[0].Kernel)
				}
				c.runOn(t, &on)
				c.checkOn(t, &on)
			}
		}
	}
}

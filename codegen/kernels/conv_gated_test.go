package kernels_test

import (
	"fmt"
	"strings"
	"testing"
)

// gatedConvTest is a short gated convolution between its two projections: of slices of the same rows, or of rows of their own, the gate
// first or second.
func gatedConvTest(cut, first bool, width int, c siteTest) siteTest {
	c.family = "conv"
	c.globals = fmt.Sprintf(`step @a : f32[T, %[1]d]
step @b : f32[T, %[1]d]
step @c : f32[T, %[1]d]
step @all : f32[T, %[2]d]
weight @w : f32[%[1]d, 3]
weight @bias : f32[%[1]d]
state @ring : f32[%[3]d, 16, %[1]d]
`, width, 3*width+4, c.slots)
	x, by, z, bias := "@a", "@b", "@c", ""
	if cut {
		for i := range 3 {
			c.group += fmt.Sprintf("%%%d = slice @all {first=%d, width=%d} : f32[T, %[3]d]\n", i, i*width+i, width)
		}
		x, by, z, bias = "%0", "%2", "%1", ", @bias"
	}
	gate := z + ", %4"
	if !first {
		gate = "%4, " + z
	}
	c.group += fmt.Sprintf(`%%3 = mul %s, %s : f32[T, %d]
%%4 = conv1d %%3, @w, @ring, @pos, @slot%s {act="none"} : f32[T, %[3]d]
conv_write %%3, @ring, @pos, @slot
%%5 = mul %[5]s : io f32[T, %[3]d]`, x, by, width, bias, gate)
	return c
}

func TestGatedConv(t *testing.T) {
	for _, c := range []siteTest{
		gatedConvTest(true, true, 64, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{40}}),
		gatedConvTest(true, true, 300, siteTest{ctx: 64, slots: 3, rows: 1, pos: []int{0}, slot: []int{2}}),
		gatedConvTest(false, true, 64, siteTest{ctx: 64, slots: 1, rows: 8, n: 5, pos: []int{14}}), // over the end of the ring
		gatedConvTest(true, false, 96, siteTest{ctx: 64, slots: 4, rows: 4, pos: []int{20, 21, 0, 33}, slot: []int{2, 1, 0, 3}}),
		gatedConvTest(false, false, 64, siteTest{ctx: 64, slots: 2, rows: 8, n: 6, pos: []int{7, 8, 9, 0, 1}, slot: []int{1, 1, 1, 0}}),
	} {
		if list := c.candidates(t, c.site(t, llvmpipe(t))); !strings.Contains(list[0].Kernel, " gate") {
			t.Errorf("%s: %s", c.group, list[0].Kernel)
		}
		c.run(t)
		c.runOn(t, lookup(t, "sm_90-cuda"))
		c.checkBuild(t)
	}
}

func TestGatedConvOfAnyWidth(t *testing.T) {
	c := gatedConvTest(true, true, 64, siteTest{ctx: 64, slots: 1, pos: []int{12}})
	c.checkWidths(t, "%5")
}

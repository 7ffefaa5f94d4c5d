package kernels_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
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
		c.runAs(t, " gate")
	}
}

// TestGatedConvOfOneSlice has a slice as either factor of the rows, and an activation: kernels of one name are one module, so the slice is the same argument.
func TestGatedConvOfOneSlice(t *testing.T) {
	names := map[string]string{}
	for _, factors := range []string{"%0, @b", "@b, %0"} {
		c := gatedConvTest(false, true, 64, siteTest{ctx: 64, slots: 2, rows: 8, n: 6, pos: []int{7, 8, 9, 0, 1}, slot: []int{1, 1, 1, 0}})
		c.group = "%0 = slice @all {first=65, width=64} : f32[T, 64]\n" + strings.NewReplacer("mul @a, @b", "mul "+factors, ` {act="none"}`, "").Replace(c.group)
		k := c.candidates(t, c.site(t, llvmpipe(t)))[0]
		declares := ""
		for _, o := range k.Operands {
			declares += o.Name + " "
		}
		for _, o := range k.Consts {
			declares += o.Name + " "
		}
		if was, ok := names[k.Kernel]; ok && was != declares {
			t.Errorf("%s declares %q and %q", k.Kernel, was, declares)
		}
		names[k.Kernel] = declares
		c.run(t)
		if list := kernels.Candidates(c.site(t, lookup(t, "cpu:x86-64-v4"))); len(list) > 0 {
			t.Errorf("a processor has %s, which passes leave apart there", list[0].Kernel)
		}
	}
}

func TestGatedConvOfAnyWidth(t *testing.T) {
	c := gatedConvTest(true, true, 64, siteTest{ctx: 64, slots: 1, pos: []int{12}})
	c.checkWidths(t, "%5")
}

package recurrent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// gatedConvTest is a short gated convolution between its two projections: of slices of the same rows, or of rows of
// their own, the gate first or second.
func gatedConvTest(cut, first bool, width int, c kerneltest.Case) kerneltest.Case {
	c.Family = "conv"
	c.Globals = fmt.Sprintf(`step @a : f32[T, %[1]d]
step @b : f32[T, %[1]d]
step @c : f32[T, %[1]d]
step @all : f32[T, %[2]d]
weight @w : f32[%[1]d, 3]
weight @bias : f32[%[1]d]
state @ring : f32[%[3]d, 16, %[1]d]
`, width, 3*width+4, c.Slots)
	x, by, z, bias := "@a", "@b", "@c", ""
	if cut {
		for i := range 3 {
			c.Group += fmt.Sprintf("%%%d = slice @all {first=%d, width=%d} : f32[T, %[3]d]\n", i, i*width+i, width)
		}
		x, by, z, bias = "%0", "%2", "%1", ", @bias"
	}
	gate := z + ", %4"
	if !first {
		gate = "%4, " + z
	}
	c.Group += fmt.Sprintf(`%%3 = mul %s, %s : f32[T, %d]
%%4 = conv1d %%3, @w, @ring, @pos, @slot%s {act="none"} : f32[T, %[3]d]
conv_write %%3, @ring, @pos, @slot
%%5 = mul %[5]s : io f32[T, %[3]d]`, x, by, width, bias, gate)
	return c
}

func TestGatedConv(t *testing.T) {
	for _, c := range []kerneltest.Case{
		gatedConvTest(true, true, 64, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{40}}),
		gatedConvTest(true, true, 300, kerneltest.Case{Ctx: 64, Slots: 3, Rows: 1, Pos: []int{0}, Slot: []int{2}}),
		gatedConvTest(false, true, 64, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 8, N: 5, Pos: []int{14}}), // over the end of the ring
		gatedConvTest(true, false, 96, kerneltest.Case{Ctx: 64, Slots: 4, Rows: 4, Pos: []int{20, 21, 0, 33}, Slot: []int{2, 1, 0, 3}}),
		gatedConvTest(false, false, 64, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 8, N: 6, Pos: []int{7, 8, 9, 0, 1}, Slot: []int{1, 1, 1, 0}}),
	} {
		c.RunAs(t, " gate")
	}
}

// TestGatedConvOfOneSlice has a slice as either factor of the rows, and an activation: kernels of one name are one
// module, so the slice is the same argument.
func TestGatedConvOfOneSlice(t *testing.T) {
	names := map[string]string{}
	for _, factors := range []string{"%0, @b", "@b, %0"} {
		c := gatedConvTest(false, true, 64, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 8, N: 6, Pos: []int{7, 8, 9, 0, 1}, Slot: []int{1, 1, 1, 0}})
		c.Group = "%0 = slice @all {first=65, width=64} : f32[T, 64]\n" + strings.NewReplacer("mul @a, @b", "mul "+factors, ` {act="none"}`, "").Replace(c.Group)
		k := c.Candidates(t, c.Site(t, kerneltest.Llvmpipe(t)))[0]
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
		c.Run(t)
		if list := kernels.Candidates(c.Site(t, kerneltest.Lookup(t, "cpu:x86-64-v4"))); len(list) > 0 {
			t.Errorf("a processor has %s, which passes leave apart there", list[0].Kernel)
		}
	}
}

func TestGatedConvOfAnyWidth(t *testing.T) {
	c := gatedConvTest(true, true, 64, kerneltest.Case{Ctx: 64, Slots: 1, Pos: []int{12}})
	c.CheckWidths(t, "%5")
}

package matmul_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// ringTest is a projection whose result is three parts of a short gated convolution: the gate and the factors in an
// order of its own.
func ringTest(dtype string, in, width int, order [3]int, normed bool, c kerneltest.Case) kerneltest.Case {
	c.Family, c.Terms, c.Offered = "gemv", 64*in, true
	c.Globals = fmt.Sprintf(`step @h : f32[T, %[1]d]
weight @gain : f32[%[1]d]
weight @all : %[2]s[%[3]d, %[1]d]
weight @w : f32[%[4]d, 3]
state @ring : f32[%[5]d, 16, %[4]d]
`, in, dtype, 3*width, width, c.Slots)
	x := "@h"
	if normed {
		x, c.Group = "%6", fmt.Sprintf("%%6 = rmsnorm @h, @gain {eps=0.125, group=%d} : f32[T, %[1]d]\n", in)
	}
	c.Group += fmt.Sprintf("%%7 = linear %s, @all : f32[T, %d]\n", x, 3*width)
	for i, part := range order {
		c.Group += fmt.Sprintf("%%%d = slice %%7 {first=%d, width=%d} : f32[T, %[3]d]\n", i, part*width, width)
	}
	c.Group += fmt.Sprintf(`%%3 = mul %%0, %%1 : f32[T, %[1]d]
%%4 = conv1d %%3, @w, @ring, @pos, @slot {act="none"} : f32[T, %[1]d]
conv_write %%3, @ring, @pos, @slot
%%5 = mul %%2, %%4 : io f32[T, %[1]d]`, width)
	return c
}

func TestProjectionWithRing(t *testing.T) {
	for _, c := range kerneltest.Some([]kerneltest.Case{
		ringTest("f32", 64, 40, [3]int{0, 2, 1}, true, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{40}}),
		ringTest("q8_0", 256, 64, [3]int{0, 2, 1}, false, kerneltest.Case{Ctx: 64, Slots: 3, Rows: 1, Pos: []int{0}, Slot: []int{2}}),
		ringTest("q4_k", 512, 72, [3]int{1, 0, 2}, true, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 2, Pos: []int{15}}), // over the end of the ring
		ringTest("q4_k", 512, 64, [3]int{0, 2, 1}, true, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 2, N: 1, Pos: []int{1}, Slot: []int{1}}),
		ringTest("f16", 128, 64, [3]int{2, 1, 0}, true, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 2, Pos: []int{20, 7}, Slot: []int{1, 0}}),
		ringTest("q8_0", 256, 40, [3]int{0, 2, 1}, true, kerneltest.Case{Ctx: 64, Slots: 2, Rows: 5, N: 4, Pos: []int{14}, Slot: []int{1}}),
		ringTest("f16", 128, 64, [3]int{0, 2, 1}, true, kerneltest.Case{Ctx: 64, Slots: 3, Rows: 8, Pos: []int{3, 9, 31}, Slot: []int{2, 0, 1}}),
	}) {
		for _, on := range []string{"llvmpipe", "sm_90-cuda", "gfx1200"} {
			c.RunOn(t, kerneltest.Lookup(t, on))
		}
		c.CheckBuild(t)
	}
}

// TestRingInFixedPoint has x in fixed point, as decode has it, on targets with dot products of bytes.
func TestRingInFixedPoint(t *testing.T) {
	for _, rows := range []int{1, 2, 3} {
		c := ringTest("q4_k", 512, 72, [3]int{0, 2, 1}, true, kerneltest.Case{Ctx: 64, Slots: 2, Rows: rows, Pos: []int{30}, Slot: []int{1, 1}})
		on := kerneltest.Lookup(t, "sm_90-cuda")
		if readers := kerneltest.RoundedFor(c.Site(t, on), "fixed12"); len(readers) != 1 {
			t.Fatalf("%d readers are to be rounded", len(readers))
		}
		c.Group = strings.Replace(c.Group, "%7 = linear %6", "%8 = fixed12 %6 : f32[T, 512]\n%7 = linear %8", 1)
		for _, k := range c.Candidates(t, c.Site(t, on)) {
			if !strings.Contains(k.Kernel, " conv3") || k.Grid[1] != 1 {
				t.Errorf("%d rows: %s, grid %v", rows, k.Kernel, k.Grid)
			}
		}
		c.RunOn(t, on)
	}
}

// TestRingHasTheBitsOfTwoKernels compares every candidate with a projection of the same order and the convolution of
// what that makes: wider steps have those.
func TestRingHasTheBitsOfTwoKernels(t *testing.T) {
	for i, dtype := range []string{"f32", "q4_k", "q6_k"} {
		for j, rows := range []int{1, 2, 4} {
			if !kerneltest.Takes(i+j, 3) {
				continue
			}
			at := kerneltest.Case{Ctx: 64, Slots: 2, Rows: rows, Pos: []int{30}, Slot: []int{1}}
			both := ringTest(dtype, 512, 72, [3]int{0, 2, 1}, true, at)
			if dtype != "f32" {
				both.Group = strings.Replace(both.Group, "%7 = linear %6", "%8 = fixed12 %6 : f32[T, 512]\n%7 = linear %8", 1)
			}
			first, second := both, both
			first.Alone = true
			cut := strings.Index(both.Group, "%0 = slice")
			first.Group = strings.Replace(both.Group[:cut], "@all : f32", "@all : io f32", 1)
			second.Family, second.Group = "conv", strings.ReplaceAll(both.Group[cut:], "%7", "@made")
			second.Globals += "step @made : f32[T, 216]\n"
			on := kerneltest.Lookup(t, "sm_90-cuda")
			of := func(order string) map[string][]byte {
				first.Order, both.Order = order, order
				second.Given = map[string][]byte{"made": first.FirstOf(t, on, kerneltest.InterpretOnly)["%7"]}
				return second.FirstOf(t, on, kerneltest.InterpretOnly)
			}
			orders := map[string]bool{}
			for _, k := range kernels.Candidates(both.Site(t, on)) {
				if orders[k.Order] {
					continue
				}
				orders[k.Order] = true
				want := of(k.Order)
				for _, k := range both.Candidates(t, both.Site(t, on)) {
					both.Kernel = k.Kernel
					for name, b := range both.FirstOf(t, on, kerneltest.InterpretOnly) {
						if w := want[name]; (name == "%5" || name == "@ring") && !bytes.Equal(b, w) {
							t.Errorf("%s: %s differs", k.Kernel, name)
						}
					}
				}
				both.Kernel = ""
			}
		}
	}
}

// TestOtherRings has groups that no projection takes in: more rows than decode steps have, a part that is no slice of
// the result, an activation, another ring to write to, a result that others read, and a processor.
func TestOtherRings(t *testing.T) {
	for _, c := range []struct {
		old, new, on string
		rows         int
	}{
		{"", "", "sm_90-cuda", 9},
		{"%2 = slice %7 {first=64, width=64}", "%2 = slice @wide {first=64, width=64}", "sm_90-cuda", 1},
		{` {act="none"}`, "", "sm_90-cuda", 1},
		{"conv_write %3, @ring,", "conv_write %3, @other,", "sm_90-cuda", 1},
		{"%7 = linear %6, @all : f32", "%7 = linear %6, @all : io f32", "sm_90-cuda", 1},
		{"", "", "cpu:x86-64-v4", 1},
	} {
		other := ringTest("f16", 128, 64, [3]int{0, 2, 1}, true, kerneltest.Case{Ctx: 64, Slots: 1, Rows: c.rows, Pos: []int{20}})
		other.Globals += "step @wide : f32[T, 192]\nstate @other : f32[1, 16, 64]\n"
		if len(kernels.Candidates(other.Site(t, kerneltest.Lookup(t, "sm_90-cuda")))) == 0 == (c.rows < 9) {
			t.Errorf("%d rows have no candidate, or should have none", c.rows)
		}
		other.Group = strings.Replace(other.Group, c.old, c.new, 1)
		for _, k := range kernels.Candidates(other.Site(t, kerneltest.Lookup(t, c.on))) {
			t.Errorf("%s on %s: %s", other.Group, c.on, k.Kernel)
		}
	}
}

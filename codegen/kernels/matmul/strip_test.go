package matmul_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// stripTest is a projection of in to width elements whose activation is multiplied by elements of the rows of b, from
// first on.
func stripTest(dtype string, in, width, first int, more string, c kerneltest.Case) kerneltest.Case {
	c.Family, c.Terms, c.Ctx, c.Slots = "gemv", 8*in, 64, 1
	c.Globals = fmt.Sprintf(`step @a : f32[T, %[1]d]
step @b : f32[T, %[3]d]
weight @gain : f32[%[1]d]
weight @bias : f32[%[2]d]
weight @w : %[4]s[%[2]d, %[1]d]
`, in, width, 3*width, dtype)
	x, bias := "@a", ""
	if strings.Contains(more, "norm") {
		x, c.Group = "%6", fmt.Sprintf("%%6 = rmsnorm @a, @gain {eps=0.125, group=%d} : f32[T, %[1]d]\n", in)
	}
	if strings.Contains(more, "bias") {
		bias = ", @bias"
	}
	c.Group += fmt.Sprintf(`%%0 = linear %[1]s, @w%[2]s : f32[T, %[3]d]
%%1 = slice @b {first=%[4]d, width=%[3]d} : f32[T, %[3]d]
%%2 = glu %%0, %%1 {act="gelu"} : io f32[T, %[3]d]`, x, bias, width, first)
	return c
}

// TestGemvStrip has what gemma 4 has in a layer: a projection whose activation gates the layer's part of other rows.
func TestGemvStrip(t *testing.T) {
	whole := stripTest("f16", 96, 24, 0, "", kerneltest.Case{Rows: 2})
	whole.Globals = strings.Replace(whole.Globals, "@b : f32[T, 72]", "@b : f32[T, 24]", 1)
	whole.Group = strings.Replace(strings.Replace(whole.Group, "%1 = slice @b {first=0, width=24} : f32[T, 24]\n", "", 1), "%1", "@b", 1)
	for _, c := range []kerneltest.Case{
		stripTest("f16", 96, 24, 24, "", kerneltest.Case{Rows: 3}),
		stripTest("f32", 64, 40, 7, "bias", kerneltest.Case{Rows: 1}),
		stripTest("q4_0", 256, 40, 80, "norm", kerneltest.Case{Rows: 8}),
		whole,
	} {
		for _, on := range []string{"llvmpipe", "sm_90-cuda", "gfx1200"} {
			c.RunOn(t, kerneltest.Lookup(t, on))
		}
		c.CheckBuild(t)
	}
}

// TestStripHasTheBitsOfTwoKernels compares every candidate with a projection of the same order and the GLU of what that
// makes.
func TestStripHasTheBitsOfTwoKernels(t *testing.T) {
	for i, dtype := range []string{"f32", "q4_0", "q6_k"} {
		for j, rows := range []int{1, 2, 4} {
			if !kerneltest.Takes(i+j, 3) {
				continue
			}
			both := stripTest(dtype, 512, 72, 72, "norm", kerneltest.Case{Rows: rows})
			if dtype != "f32" {
				both.Group = strings.Replace(both.Group, "%0 = linear %6", "%8 = fixed12 %6 : f32[T, 512]\n%0 = linear %8", 1)
			}
			first, second := both, both
			first.Alone = true
			cut := strings.Index(both.Group, "%1 = slice")
			first.Group = strings.Replace(both.Group[:cut], "@w : f32", "@w : io f32", 1)
			second.Family, second.Group = "elementwise", strings.ReplaceAll(both.Group[cut:], "%0", "@made")
			second.Globals += "step @made : f32[T, 72]\n"
			on := kerneltest.Lookup(t, "sm_90-cuda")
			orders := map[string][]byte{}
			for _, k := range kernels.Candidates(both.Site(t, on)) {
				if orders[k.Order] == nil {
					first.Order = k.Order
					second.Given = map[string][]byte{"made": first.FirstOf(t, on, kerneltest.InterpretOnly)["%0"]}
					orders[k.Order] = second.FirstOf(t, on, kerneltest.InterpretOnly)["%2"]
				}
				both.Kernel = k.Kernel
				if got := both.FirstOf(t, on, kerneltest.InterpretOnly)["%2"]; len(got) == 0 || !bytes.Equal(got, orders[k.Order]) {
					t.Errorf("%s of %d rows: %s differs", dtype, rows, k.Kernel)
				}
			}
			both.Kernel = ""
			if len(orders) == 0 {
				t.Errorf("%s of %d rows: no candidate", dtype, rows)
			}
		}
	}
}

// TestStripIsNoPart refuses rows that the group itself makes or reads as its input, experts' projections and many rows.
func TestStripIsNoPart(t *testing.T) {
	for _, c := range []kerneltest.Case{
		{Rows: 3, Group: "%0 = linear @a, @w : f32[T, 24]\n%2 = glu %0, %0 {act=\"gelu\"} : io f32[T, 24]"},
		{Rows: 3, Group: "%0 = linear @a, @w : f32[T, 24]\n%1 = slice @a {first=0, width=24} : f32[T, 24]\n%2 = glu %0, %1 {act=\"gelu\"} : io f32[T, 24]"},
		{Rows: 3, Group: "%0 = linear @a, @w : f32[T, 24]\n%1 = slice @a {first=0, width=24} : f32[T, 24]\n%2 = relu2 %0 : io f32[T, 24]"},
		{Rows: 3, Group: "%0 = linear @a, @w : f32[T, 24]\n%2 = glu @b, %0 {act=\"gelu\"} : io f32[T, 24]"},
		{Rows: 16, Group: "%0 = linear @a, @w : f32[T, 24]\n%2 = glu %0, @b {act=\"gelu\"} : io f32[T, 24]"},
	} {
		c.Terms, c.Ctx, c.Slots, c.Globals = 96, 64, 1, "step @a : f32[T, 96]\nstep @b : f32[T, 24]\nweight @w : f16[24, 96]\n"
		if found := kernels.Candidates(c.Site(t, kerneltest.Lookup(t, "sm_90-cuda"))); len(found) > 0 {
			t.Errorf("%s has %s", c.Group, found[0].Name())
		}
	}
}

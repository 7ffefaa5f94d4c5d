package kernels_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// horizontalTest is deltaTest, without the gated norm, beside the projection of a row of 512 elements to so many.
func horizontalTest(does, headMap string, dim, keys, heads, width int, c kerneltest.Case) kerneltest.Case {
	c = kerneltest.DeltaTest(does, headMap, dim, keys, heads, c)
	c.Family, c.Terms = "horizontal", 512
	c.Globals += fmt.Sprintf("step @h : f32[T, 512]\nweight @hg : f32[512]\nweight @w : q8_0[%d, 512]\n", width)
	c.Group = fmt.Sprintf("%%90 = rmsnorm @h, @hg {eps=1e-06, group=512} : f32[T, 512]\n%%91 = fixed12 %%90 : f32[T, 512]\n%%92 = linear %%91, @w : io f32[T, %d]\n", width) + c.Group
	return c
}

// TestHorizontal runs a delta rule beside a projection, as they are through CUDA, in the interpreter.
func TestHorizontal(t *testing.T) {
	on := kerneltest.Lookup(t, "sm_90-cuda")
	for _, c := range []kerneltest.Case{
		horizontalTest("conv norm decay sigmoid", "mod", 128, 2, 4, 500, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{40}}),
		horizontalTest("conv norm decay sigmoid", "div", 128, 1, 2, 7, kerneltest.Case{Ctx: 64, Slots: 3, Rows: 1, Pos: []int{0}, Slot: []int{2}}),
		horizontalTest("norm sigmoid", "mod", 128, 1, 1, 64, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{5}}),
	} {
		list := c.Candidates(t, c.Site(t, on))
		if len(list) < 3 || !list[0].Early {
			t.Errorf("%s: %d candidates, early %v", c.Group, len(list), list[0].Early)
		}
		c.RunOn(t, on)
		c.CheckOn(t, on)
	}
}

// TestHorizontalRefuses has groups for which there is no such kernel.
func TestHorizontalRefuses(t *testing.T) {
	on := kerneltest.Lookup(t, "sm_90-cuda")
	c := horizontalTest("conv norm decay sigmoid", "mod", 128, 2, 4, 64, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1})
	two := c
	two.Rows = 2
	wide := horizontalTest("conv norm decay sigmoid", "mod", 128, 66, 132, 64, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1}) // a head for each unit
	whole := c
	whole.Group = strings.Replace(c.Group, "%91 = fixed12 %90 : f32[T, 512]\n%92 = linear %91", "%92 = linear %90", 1) // x is not shared
	for _, c := range []kerneltest.Case{two, wide, whole} {
		if list := kernels.Candidates(c.Site(t, on)); len(list) > 0 {
			t.Errorf("%s: %s", c.Group, list[0].Kernel)
		}
	}
}

// TestGatedProjection has a projection that norms and gates the heads which it reads, with the bits that the delta
// rule's own norm gives.
func TestGatedProjection(t *testing.T) {
	on := kerneltest.Lookup(t, "sm_90-cuda")
	for _, of := range []struct{ dim, heads int }{{128, 4}, {64, 8}, {48, 32}} { // teams of 8, 8 and 4 lanes; 1,536 elements are three a lane
		gated := kerneltest.DeltaTest(kerneltest.DeltaAll, "mod", of.dim, 1, of.heads, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{9}})
		raw := kerneltest.DeltaTest("conv norm decay sigmoid", "mod", of.dim, 1, of.heads, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1, Pos: []int{9}})
		last := func(c kerneltest.Case) []byte {
			s := c.Site(t, on)
			return c.FirstOf(t, on, kerneltest.InterpretOnly)[kerneltest.Label(s.Outputs[0])]
		}
		width := of.dim * of.heads
		c := kerneltest.Case{Family: "gemv", Ctx: 64, Slots: 1, Rows: 1, Terms: width,
			Globals: fmt.Sprintf("step @x : f32[T, %[1]d]\nstep @z : f32[T, %[1]d]\nweight @gain : f32[%[2]d]\nweight @w : q8_0[40, %[1]d]\nstep @a : f32[T, 40]\n", width, of.dim)}
		plain := c
		c.Group = fmt.Sprintf("%%0 = gated_rmsnorm @x, @gain, @z {eps=1e-06, group=%[2]d} : f32[T, %[1]d]\n%%1 = fixed12 %%0 : f32[T, %[1]d]\n%%2 = linear %%1, @w : f32[T, 40]\n%%3 = add %%2, @a : io f32[T, 40]",
			width, of.dim)
		plain.Group = fmt.Sprintf("%%1 = fixed12 @x : f32[T, %[1]d]\n%%2 = linear %%1, @w : f32[T, 40]\n%%3 = add %%2, @a : io f32[T, 40]", width)
		c.Given, plain.Given = map[string][]byte{"x": last(raw)}, map[string][]byte{"x": last(gated)}
		for _, k := range c.Candidates(t, c.Site(t, on)) {
			if !strings.Contains(k.Kernel, " gated ") {
				t.Errorf("%s", k.Kernel)
			}
		}
		c.RunOn(t, on)
		c.CheckOn(t, on)
		if got, want := last(c), last(plain); !bytes.Equal(got, want) {
			t.Errorf("heads of %d: the projection's norm gives other bits than the rule's", of.dim)
		}
		float := c
		float.Globals += fmt.Sprintf("weight @f : f32[40, %d]\n", width)
		float.Group += fmt.Sprintf("\n%%4 = linear %%0, @f : io f32[T, 40]")
		if list := kernels.Candidates(float.Site(t, on)); len(list) > 0 {
			t.Errorf("a projection of x as it is: %s", list[0].Kernel)
		}
		rows := c
		rows.Rows = 2
		if list := kernels.Candidates(rows.Site(t, on)); slices.ContainsFunc(list, func(k kernels.Candidate) bool { return k.Rows == 2 }) {
			t.Errorf("two rows: %s", list[0].Kernel)
		}
	}
}

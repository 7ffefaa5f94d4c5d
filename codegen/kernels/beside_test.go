package kernels_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
)

// besideTest is deltaTest, without the gated norm, beside the projection of a row of 512 elements to so many.
func besideTest(does, headMap string, dim, keys, heads, width int, c siteTest) siteTest {
	c = deltaTest(does, headMap, dim, keys, heads, c)
	c.family, c.terms = "beside", 512
	c.globals += fmt.Sprintf("step @h : f32[T, 512]\nweight @hg : f32[512]\nweight @w : q8_0[%d, 512]\n", width)
	c.group = fmt.Sprintf("%%90 = rmsnorm @h, @hg {eps=1e-06, group=512} : f32[T, 512]\n%%91 = fixed12 %%90 : f32[T, 512]\n%%92 = linear %%91, @w : io f32[T, %d]\n", width) + c.group
	return c
}

// TestBeside runs a delta rule beside a projection, as they are through CUDA, in the interpreter.
func TestBeside(t *testing.T) {
	on := lookup(t, "sm_90-cuda")
	for _, c := range []siteTest{
		besideTest("conv norm decay sigmoid", "mod", 128, 2, 4, 500, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{40}}),
		besideTest("conv norm decay sigmoid", "div", 128, 1, 2, 7, siteTest{ctx: 64, slots: 3, rows: 1, pos: []int{0}, slot: []int{2}}),
		besideTest("norm sigmoid", "mod", 128, 1, 1, 64, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{5}}),
	} {
		list := c.candidates(t, c.site(t, on))
		if len(list) < 3 || !list[0].Early {
			t.Errorf("%s: %d candidates, early %v", c.group, len(list), list[0].Early)
		}
		c.runOn(t, on)
		c.checkOn(t, on)
	}
}

// TestBesideRefuses has groups for which there is no such kernel.
func TestBesideRefuses(t *testing.T) {
	on := lookup(t, "sm_90-cuda")
	c := besideTest("conv norm decay sigmoid", "mod", 128, 2, 4, 64, siteTest{ctx: 64, slots: 1, rows: 1})
	two := c
	two.rows = 2
	wide := besideTest("conv norm decay sigmoid", "mod", 128, 66, 132, 64, siteTest{ctx: 64, slots: 1, rows: 1}) // a head for each unit
	whole := c
	whole.group = strings.Replace(c.group, "%91 = fixed12 %90 : f32[T, 512]\n%92 = linear %91", "%92 = linear %90", 1) // x is not shared
	for _, c := range []siteTest{two, wide, whole} {
		if list := kernels.Candidates(c.site(t, on)); len(list) > 0 {
			t.Errorf("%s: %s", c.group, list[0].Kernel)
		}
	}
}

// TestGatedProjection has a projection that norms and gates the heads which it reads, with the bits that the delta rule's own norm gives.
func TestGatedProjection(t *testing.T) {
	on := lookup(t, "sm_90-cuda")
	for _, of := range []struct{ dim, heads int }{{128, 4}, {64, 8}, {48, 32}} { // teams of 8, 8 and 4 lanes; 1,536 elements are three a lane
		gated := deltaTest(deltaAll, "mod", of.dim, 1, of.heads, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{9}})
		raw := deltaTest("conv norm decay sigmoid", "mod", of.dim, 1, of.heads, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{9}})
		last := func(c siteTest) []byte {
			s := c.site(t, on)
			return c.firstOf(t, on, interpretOnly)[label(s.Outputs[0])]
		}
		width := of.dim * of.heads
		c := siteTest{family: "gemv", ctx: 64, slots: 1, rows: 1, terms: width,
			globals: fmt.Sprintf("step @x : f32[T, %[1]d]\nstep @z : f32[T, %[1]d]\nweight @gain : f32[%[2]d]\nweight @w : q8_0[40, %[1]d]\nstep @a : f32[T, 40]\n", width, of.dim)}
		plain := c
		c.group = fmt.Sprintf("%%0 = gated_rmsnorm @x, @gain, @z {eps=1e-06, group=%[2]d} : f32[T, %[1]d]\n%%1 = fixed12 %%0 : f32[T, %[1]d]\n%%2 = linear %%1, @w : f32[T, 40]\n%%3 = add %%2, @a : io f32[T, 40]",
			width, of.dim)
		plain.group = fmt.Sprintf("%%1 = fixed12 @x : f32[T, %[1]d]\n%%2 = linear %%1, @w : f32[T, 40]\n%%3 = add %%2, @a : io f32[T, 40]", width)
		c.given, plain.given = map[string][]byte{"x": last(raw)}, map[string][]byte{"x": last(gated)}
		for _, k := range c.candidates(t, c.site(t, on)) {
			if !strings.Contains(k.Kernel, " gated ") {
				t.Errorf("%s", k.Kernel)
			}
		}
		c.runOn(t, on)
		c.checkOn(t, on)
		if got, want := last(c), last(plain); !bytes.Equal(got, want) {
			t.Errorf("heads of %d: the projection's norm gives other bits than the rule's", of.dim)
		}
		float := c
		float.globals += fmt.Sprintf("weight @f : f32[40, %d]\n", width)
		float.group += fmt.Sprintf("\n%%4 = linear %%0, @f : io f32[T, 40]")
		if list := kernels.Candidates(float.site(t, on)); len(list) > 0 {
			t.Errorf("a projection of x as it is: %s", list[0].Kernel)
		}
		rows := c
		rows.rows = 2
		if list := kernels.Candidates(rows.site(t, on)); slices.ContainsFunc(list, func(k kernels.Candidate) bool { return k.Rows == 2 }) {
			t.Errorf("two rows: %s", list[0].Kernel)
		}
	}
}

package recurrent_test

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// TestConvInRows is convolution where lanes take several rows, of which some are not of the
// step, and others of another sequence than those before them.
func TestConvInRows(t *testing.T) {
	on := *kerneltest.Llvmpipe(t)
	on.Units = 1
	c := kerneltest.Case{Family: "conv", Ctx: 99, Slots: 2, Rows: 60, N: 59, Globals: "step @m : f32[T, 1200]\nweight @w : f32[1200, 4]\nstate @ring : f32[2, 16, 1200]\n"}
	for i := range 23 {
		c.Slot, c.Pos = append(c.Slot, 0), append(c.Pos, 5+i)
	}
	for i := range 37 {
		c.Slot, c.Pos = append(c.Slot, 1), append(c.Pos, i)
	}
	for _, c.Group = range []string{"%0 = conv1d @m, @w, @ring, @pos, @slot : io f32[T, 1200]", "conv_write @m, @ring, @pos, @slot",
		`%0 = conv1d @m, @w, @ring, @pos, @slot {act="none"} : io f32[T, 1200]`} {
		if list := c.Candidates(t, c.Site(t, &on)); !strings.Contains(list[0].Kernel, " rows=") {
			t.Errorf("%s: %s", c.Group, list[0].Kernel)
		}
		c.RunOn(t, &on)
		c.CheckOn(t, &on)
	}
}

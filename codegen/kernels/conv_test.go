package kernels_test

import (
	"strings"
	"testing"
)

// TestConvInRows is convolution where lanes take several rows, of which some are not of the
// step, and others of another sequence than those before them.
func TestConvInRows(t *testing.T) {
	on := *llvmpipe(t)
	on.Units = 1
	c := siteTest{family: "conv", ctx: 99, slots: 2, rows: 60, n: 59, globals: "step @m : f32[T, 1200]\nweight @w : f32[1200, 4]\nstate @ring : f32[2, 16, 1200]\n"}
	for i := range 23 {
		c.slot, c.pos = append(c.slot, 0), append(c.pos, 5+i)
	}
	for i := range 37 {
		c.slot, c.pos = append(c.slot, 1), append(c.pos, i)
	}
	for _, c.group = range []string{"%0 = conv1d @m, @w, @ring, @pos, @slot : io f32[T, 1200]", "conv_write @m, @ring, @pos, @slot",
		`%0 = conv1d @m, @w, @ring, @pos, @slot {act="none"} : io f32[T, 1200]`} {
		if list := c.candidates(t, c.site(t, &on)); !strings.Contains(list[0].Kernel, " rows=") {
			t.Errorf("%s: %s", c.group, list[0].Kernel)
		}
		c.runOn(t, &on)
		c.checkOn(t, &on)
	}
}

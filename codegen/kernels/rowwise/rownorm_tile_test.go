package rowwise_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// TestNormTile has norms write tiles, of the second of which three rows are there: with few and many lanes a run, some
// without anything to do, and with the rows as f32 and as f16, too.
func TestNormTile(t *testing.T) {
	for _, c := range []struct {
		norm         string
		width, group int
		lanes        string
		f32, f16     bool
		lines        int // rows of a workgroup of the first candidate
	}{
		{"rmsnorm @x, @gain", 512, 512, "13 12", false, false, 2},
		{"rmsnorm @x, @gain", 1280, 1280, "23", true, false, 2},
		{"rmsnorm @x, @gain", 3328, 3328, "01 34", true, true, 2},
		{"gated_rmsnorm @x, @gain, @z", 512, 128, "13", false, false, 4},
		{"gated_rmsnorm @x, @gain, @z", 768, 96, "24 12", false, true, 2},
	} {
		class := func(written bool) string {
			if written {
				return "io "
			}
			return ""
		}
		gain := c.width
		if strings.HasPrefix(c.norm, "gated") {
			gain = c.group
		}
		test := kerneltest.Case{Family: "rownorm", Ctx: 16, Slots: 1, Rows: 256, N: 131,
			Globals: fmt.Sprintf("step @x : f32[T, %[1]d]\nstep @z : f32[T, %[1]d]\nweight @gain : f32[%[2]d]\n", c.width, gain),
			Group: fmt.Sprintf("%%0 = %s {eps=1e-05, group=%d} : %sf32[T, %d]\n%%1 = half %%0 : %sf16[T, %d]\n%%2 = tile %%1 {rows=256, lanes=%q} : io f16[%d, 1024]",
				c.norm, c.group, class(c.f32), c.width, class(c.f16), c.width, c.lanes, 2*len(strings.Fields(c.lanes))*c.width/8)}
		t.Run(fmt.Sprintf("%d of %d", c.group, c.width), func(t *testing.T) {
			t.Parallel()
			on := kerneltest.Lookup(t, "sm_90-cuda")
			test.RunOn(t, on)
			list := kernels.Candidates(test.Site(t, on))
			if list[0].Shape != fmt.Sprintf("rows=%d", c.lines) {
				t.Errorf("%s comes first", list[0].Kernel)
			}
			for _, k := range list {
				kerneltest.Assembled(t, k)
			}
		})
	}
}

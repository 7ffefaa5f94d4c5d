package verify_test

import (
	"math"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/runtime/verify"
)

// TestLargeScores holds that attention with large scores passes, whose rounding moves the weights of positions, and
// that a scale which is off by a hundredth is seen nevertheless.
func TestLargeScores(t *testing.T) {
	model := writeModelOf(t, 16)
	for _, scale := range []float64{1, 1.01} {
		plan := compileSlots(t, model, "llvmpipe", ir.F16, 2)
		keepEntries(plan, "decode/2", "prefill/48")
		if scale != 1 {
			setConst("scale", math.Float32bits(float32(scale/math.Sqrt(headDim))))(t, plan, find(t, plan, "decode/2", "blk.0.attention"))
		}
		src, dev := open(t, plan)
		r, err := verify.Plan(t.Context(), plan, src, dev, verify.Options{Context: 75, Only: func(entry string, _ int) bool { return entry == "decode/2" }})
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, res := range r.Results {
			if !strings.HasSuffix(res.Site, ".attention") {
				continue
			}
			seen++
			if (res.Difference != nil) != (scale != 1 && res.Site == "blk.0.attention") {
				t.Errorf("scale times %g: %s is off by %g of %g: %+v", scale, res.Site, res.Error, res.Tolerance, res.Difference)
			}
		}
		if seen != 4 { // of two layers, in two steps
			t.Errorf("%d dispatches of attention", seen)
		}
	}
}

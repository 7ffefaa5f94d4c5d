package plans

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/ir"
)

// TestBatches holds that batches are all dispatches in order, that nobody waits for one of its own batch, and that a
// batch ends only where the next dispatch waits for one of it.
func TestBatches(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var e Entry
		stage := 0
		for range rapid.IntRange(0, 12).Draw(rt, "dispatches") {
			stage += rapid.IntRange(0, 1).Draw(rt, "more")
			waits := stage - rapid.SampledFrom([]int{0, 0, 0, 1, 2, 5}).Draw(rt, "less")
			e.Dispatches = append(e.Dispatches, Dispatch{Order: ir.Order{Stage: stage, Waits: max(0, waits)}})
		}
		waits := func(i, j int) bool { return e.Dispatches[j].Stage < e.Dispatches[i].Waits }
		next := 0
		for from, to := range e.Batches() {
			if from != next || to <= from {
				rt.Fatalf("batch %d to %d behind %d", from, to, next)
			}
			for i := from; i < to; i++ {
				for j := from; j < i; j++ {
					if waits(i, j) {
						rt.Errorf("dispatch %d waits for %d of its batch", i, j)
					}
				}
			}
			if to < len(e.Dispatches) && !waits(to, from) {
				rt.Errorf("batch %d to %d ends before a dispatch that waits for none of it", from, to)
			}
			next = to
		}
		if next != len(e.Dispatches) {
			rt.Errorf("batches end at %d of %d", next, len(e.Dispatches))
		}
	})
}

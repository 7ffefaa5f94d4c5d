package runtime_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// timed is a stepRecorder whose dispatches take no time.
type timed struct{ stepRecorder }

func (x *timed) Profile(_ context.Context, e *plans.Entry, _ int) ([]time.Duration, error) {
	return make([]time.Duration, len(e.Dispatches)), nil
}

// TestProfileSequences holds that rows of an exact entry are of as many sequences as the plan holds, those of others of
// one.
func TestProfileSequences(t *testing.T) {
	type place struct{ pos, slot int32 }
	for _, c := range []struct {
		class ir.StepClass
		slots int
		want  []place
	}{
		{ir.ExactStep, 8, []place{{5, 0}, {5, 1}, {5, 2}, {5, 3}}},
		{ir.ExactStep, 3, []place{{5, 0}, {6, 0}, {5, 1}, {6, 1}}},
		{ir.ExactStep, 1, []place{{5, 0}, {6, 0}, {7, 0}, {8, 0}}},
		{ir.PromptStep, 8, []place{{5, 0}, {6, 0}, {7, 0}, {8, 0}}},
	} {
		plan := &plans.Plan{
			Header:  plans.Header{Ctx: 9, Slots: c.slots, Model: plans.Model{Vocab: 8}},
			Entries: []plans.Entry{{Name: "e", Rows: 4, Class: c.class.String()}},
		}
		x := &timed{}
		if _, err := runtime.Profile(t.Context(), plan, x, "e", 0, 5, 1); err != nil {
			t.Fatal(err)
		}
		var got []place
		for _, r := range x.last.Rows {
			got = append(got, place{r.Pos, r.Slot})
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v rows of %d sequences: %v, want %v", c.class, c.slots, got, c.want)
		}
	}
}

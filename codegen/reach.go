package codegen

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/passes"
)

// worthSplitting is the largest share that two steps may take of the time of one step for all
// rows, since predictions of narrow entries are the least exact.
const worthSplitting = 0.95

// setReach sets the reach of prefill entries. A step of a few rows more than an entry has would
// leave most of the next wider entry idle, since its tiles have many rows. A full step and
// another for the rest can take less time.
func (e *emitter) setReach() error {
	if e.t.IsHost() {
		return nil
	}
	var order []int // entries that take prompts, narrow ones first, without others of as many rows
	for i := range e.plan.Entries {
		if x := &e.plan.Entries[i]; x.Kind != passes.Score && x.Run == x.Rows {
			order = append(order, i)
		}
	}
	rows := func(i int) int { return e.plan.Entries[i].Rows }
	slices.SortStableFunc(order, func(a, b int) int { return rows(a) - rows(b) })
	order = slices.CompactFunc(order, func(a, b int) bool { return rows(a) == rows(b) })
	for n := 0; n+1 < len(order); n++ {
		entry := &e.plan.Entries[order[n]]
		if entry.Kind != passes.Prefill {
			continue
		}
		full := entry.Predict(0).Seconds()
		for _, i := range order[:n] {
			rest := &e.plan.Entries[i]
			one, err := e.seconds(order[n+1], entry.Rows+rest.Rows)
			if err != nil {
				return err
			}
			if full+rest.Predict(0).Seconds() >= worthSplitting*one {
				break
			}
			entry.Reach = entry.Rows + rest.Rows
		}
	}
	return nil
}

// seconds predicts a step of so many rows of an entry, behind an empty cache.
func (e *emitter) seconds(entry, rows int) (float64, error) {
	f := *e.p.Funcs[entry]
	f.Rows = min(rows, f.Rows)
	uses := f.Uses()
	var sum float64
	for i, g := range f.Groups {
		d := &e.plan.Entries[entry].Dispatches[i]
		c, err := cost(e.p, e.t, &f, g, g.Outputs(uses))
		if err != nil {
			return 0, fmt.Errorf("%s: %s: %w", f.Name, g.Name, err)
		}
		sum += e.predicted(d, e.chosen[g], c, rowsOf(&f, g), d.Cost.Predicted.Stage > 0).Seconds()
	}
	return sum, nil
}

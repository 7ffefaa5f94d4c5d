package exec

import (
	"context"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/driver"
)

// Profile runs the entry on the step block as the host has written it, repeats
// times from the same state of it, with every dispatch a stage of its own, and returns
// the median time of each dispatch, the wait for what comes behind included.
func (x *Executor) Profile(ctx context.Context, e *plans.Entry, repeats int) ([]time.Duration, error) {
	clock, err := x.dev.Clock(len(e.Dispatches) + 1)
	if err != nil {
		return nil, err
	}
	defer clock.Free()
	stages := []driver.Stage{{Stamp: driver.Stamp{Clock: clock}}}
	for i := range e.Dispatches {
		stages = append(stages, driver.Stage{Dispatches: []driver.Dispatch{x.dispatch(e, i)}, Stamp: driver.Stamp{Clock: clock, Slot: i + 1}})
	}
	work, err := x.dev.Record(stages...)
	if err != nil {
		return nil, err
	}
	defer work.Free()
	all := make([][]time.Duration, len(e.Dispatches))
	for range repeats {
		block, err := x.bring()
		if err != nil {
			return nil, err
		}
		x.dirty = true // the entry changes it on the device
		if err := x.finish(ctx, append(block, work)...); err != nil {
			return nil, err
		}
		at, err := clock.Read()
		if err != nil {
			return nil, err
		}
		for i := range all {
			all[i] = append(all[i], at[i+1]-at[i])
		}
	}
	times := make([]time.Duration, len(all))
	for i, t := range all {
		slices.Sort(t)
		times[i] = t[len(t)/2]
	}
	return times, nil
}

package cuda

import (
	"context"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/plans"
)

// Profile runs the entry on the step block as the host has written it, repeats
// times from the same state of it, with an event behind every dispatch. It returns the
// median time of each dispatch, including its delay behind the one before it.
func (x *Executor) Profile(ctx context.Context, e *plans.Entry, repeats int) ([]time.Duration, error) {
	stamps := make([]uintptr, len(e.Dispatches)+1)
	defer func() {
		for _, s := range stamps {
			if s != 0 {
				_ = x.dev.call(cuEventDestroy, s)
			}
		}
	}()
	for i := range stamps {
		var err error
		if stamps[i], err = x.dev.event(); err != nil {
			return nil, err
		}
	}
	const external = 1 // the event is of the graph, not of its making
	stamp := func(i int) error {
		if err := x.dev.call(cuEventRecordWithFlags, stamps[i], x.dev.stream, external); err != nil {
			return x.dev.errorf("event: %w", err)
		}
		return nil
	}
	g, err := x.entry(e, work{stamp: stamp})
	if err != nil {
		return nil, err
	}
	defer g.free()
	all := make([][]time.Duration, len(e.Dispatches))
	for range repeats {
		x.dirty = true
		if err := x.flush(); err != nil {
			return nil, err
		}
		if err := g.launch(); err != nil {
			return nil, err
		}
		if err := x.wait(ctx, 0); err != nil {
			return nil, err
		}
		for i := range all {
			t, err := x.dev.between(stamps[i], stamps[i+1])
			if err != nil {
				return nil, x.dev.errorf("%w", err)
			}
			all[i] = append(all[i], t)
		}
	}
	x.dirty = true
	times := make([]time.Duration, len(all))
	for i, t := range all {
		slices.Sort(t)
		times[i] = t[len(t)/2]
	}
	return times, nil
}

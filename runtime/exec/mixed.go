package exec

import (
	"context"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/driver"
)

// Mixed returns a function that times the entry as a whole, with kernels of its copies: dispatch i comes from copy
// from(i). The caller must call free.
func (x *Executor) Mixed(e *plans.Entry, from func(i int) *plans.Entry) (run func(ctx context.Context, times int) (time.Duration, error), free func(), err error) {
	clock, err := x.dev.Clock(2)
	if err != nil {
		return nil, nil, err
	}
	var parts []driver.Work
	free = func() {
		for _, w := range parts {
			w.Free()
		}
		clock.Free()
	}
	stamp := func(slot int) driver.Stage { return driver.Stage{Stamp: driver.Stamp{Clock: clock, Slot: slot}} }
	mixed := x.stages(e, func(e *plans.Entry, i int) driver.Dispatch { return x.instead(e, i, from(i)) })
	for _, stages := range [][]driver.Stage{{stamp(0)}, mixed, {stamp(1)}} {
		w, err := x.dev.Record(stages...)
		if err != nil {
			free()
			return nil, nil, err
		}
		parts = append(parts, w)
	}
	run = func(ctx context.Context, times int) (time.Duration, error) {
		block, err := x.bring()
		if err != nil {
			return 0, err
		}
		x.dirty = true // the entry changes it on the device
		works := slices.Concat(block, parts[:1], slices.Repeat(parts[1:2], times), parts[2:])
		if err := x.finish(ctx, works...); err != nil {
			return 0, err
		}
		at, err := clock.Read()
		if err != nil {
			return 0, err
		}
		return at[1] / time.Duration(times), nil
	}
	return run, free, nil
}

// instead is dispatch i of e as a copy of e computes it: where both have the same arguments, with those of e.
func (x *Executor) instead(e *plans.Entry, i int, other *plans.Entry) driver.Dispatch {
	d := x.dispatch(other, i)
	same := func(a, b plans.Arg) bool { return a.Name == b.Name }
	if slices.EqualFunc(other.Dispatches[i].Args, e.Dispatches[i].Args, same) {
		d.Arguments = x.memory.arguments[e.Name][i]
	}
	return d
}

package vulkan

import (
	"context"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/plans"
)

// Profile runs the entry on the step block as the host has written it, repeats
// times from the same state of it, with a barrier and a timestamp behind every
// dispatch, and returns the median time of each dispatch, its barrier included.
func (x *Executor) Profile(ctx context.Context, e *plans.Entry, repeats int) ([]time.Duration, error) {
	return x.time(ctx, len(e.Dispatches)+1, repeats, func(c *Commands, stamps *Timestamps) {
		c.Barrier(Compute|Transfer, Compute)
		c.Timestamp(stamps, 0)
		for i, d := range e.Dispatches {
			c.Bind(x.pipes[d.Pipeline])
			c.Push(x.memory.arguments[e.Name][i]...)
			c.Dispatch(uint32(d.Grid[0]), uint32(d.Grid[1]), uint32(d.Grid[2]))
			c.Barrier(Compute, Compute)
			c.Timestamp(stamps, i+1)
		}
	})
}

// time records commands with timestamps in so many slots, submits them on the step
// block as the host has written it, repeats times, and returns the medians of the
// times from slot to slot.
func (x *Executor) time(ctx context.Context, slots, repeats int, record func(c *Commands, stamps *Timestamps)) ([]time.Duration, error) {
	stamps, err := x.dev.NewTimestamps(slots)
	if err != nil {
		return nil, err
	}
	defer stamps.Free()
	c, err := x.dev.NewCommands()
	if err != nil {
		return nil, err
	}
	defer c.Free()
	c.ResetTimestamps(stamps)
	record(c, stamps)
	if err := c.End(); err != nil {
		return nil, err
	}
	all := make([][]time.Duration, slots-1)
	for range repeats {
		if err := x.submit(ctx, x.step, c); err != nil {
			return nil, err
		}
		at, err := stamps.Read()
		if err != nil {
			return nil, err
		}
		for i := range all {
			all[i] = append(all[i], at[i+1]-at[i])
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

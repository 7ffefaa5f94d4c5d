package cuda

import (
	"context"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/plans"
)

// Mixed returns a function that times the entry as a whole, with kernels of its copies: dispatch i comes
// from copy from(i). The caller must call free.
func (x *Executor) Mixed(e *plans.Entry, from func(i int) *plans.Entry) (run func(ctx context.Context, times int) (time.Duration, error), free func(), err error) {
	g, err := x.entry(e, work{from: from})
	if err != nil {
		return nil, nil, err
	}
	run = func(ctx context.Context, times int) (time.Duration, error) {
		begin, err := x.dev.event()
		if err != nil {
			return 0, err
		}
		defer func() { _ = x.dev.call(cuEventDestroy, begin) }()
		x.dirty = true
		if err := x.flush(); err != nil {
			return 0, err
		}
		if err := x.dev.call(cuEventRecord, begin, x.dev.stream); err != nil {
			return 0, x.dev.errorf("event: %w", err)
		}
		for range times {
			if err := g.launch(); err != nil {
				return 0, err
			}
		}
		if err := x.wait(ctx, 0); err != nil { // it records ended first
			return 0, err
		}
		x.dirty = true
		t, err := x.dev.between(begin, x.ended)
		return t / time.Duration(times), err
	}
	return run, g.free, nil
}

// instead returns dispatch i of e as a copy of e computes it: where both have the same arguments, with those of e.
func (x *Executor) instead(e *plans.Entry, i int, other *plans.Entry) (*plans.Dispatch, []uint64) {
	d, own := &other.Dispatches[i], &e.Dispatches[i]
	same := func(a, b plans.Arg) bool { return a.Name == b.Name }
	if slices.EqualFunc(d.Args, own.Args, same) {
		return d, x.memory.arguments[e.Name][i]
	}
	return d, x.memory.arguments[other.Name][i]
}

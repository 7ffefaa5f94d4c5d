package cpu

import (
	"context"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cpu/native"
)

// Profile runs the entry on the step block as the host has written it, repeats times from the
// same state of it, and returns the median time of each dispatch. Between dispatches
// that otherwise run together all threads wait for each other, and one of them looks at the clock.
func (x *Executor) Profile(ctx context.Context, e *plans.Entry, repeats int) ([]time.Duration, error) {
	var stamps []uint64
	var p *program
	mem, err := layOut(func(b *builder) error {
		stamps = put[uint64](b, len(e.Dispatches)+1)
		stamp := func(i int) native.Dispatch {
			return b.row(native.StampAddress(), 1, []uintptr{addressOf(stamps[i:])}, nil, [3]int{1, 1, 1})
		}
		rows := []native.Dispatch{stamp(0)}
		for i := range e.Dispatches {
			r, err := x.dispatch(b, &e.Dispatches[i])
			if err != nil {
				return err
			}
			rows = append(rows, r, stamp(i+1))
		}
		p = b.program(rows, len(x.team.threads), each)
		return nil
	})
	if err != nil {
		return nil, err
	}
	defer mem.Free()
	defer x.team.leave()
	restore := x.keepStep()
	all := make([][]time.Duration, len(e.Dispatches))
	for range repeats {
		began := time.Now()
		err := x.run(ctx, p, 1, false)
		took := time.Since(began)
		restore()
		if err != nil {
			return nil, err
		}
		ticks := max(1, stamps[len(stamps)-1]-stamps[0])
		for i := range all {
			all[i] = append(all[i], time.Duration(float64(took)*float64(stamps[i+1]-stamps[i])/float64(ticks)))
		}
	}
	times := make([]time.Duration, len(all))
	for i, t := range all {
		slices.Sort(t)
		times[i] = t[len(t)/2]
	}
	return times, nil
}

// keepStep copies the step block and returns what writes the copy back.
func (x *Executor) keepStep() (restore func()) {
	kept := map[place][]byte{}
	for at, r := range x.memory.regions {
		if at.space == "step" {
			kept[at] = slices.Clone(r)
		}
	}
	return func() {
		for at, r := range kept {
			copy(x.memory.regions[at], r)
		}
	}
}

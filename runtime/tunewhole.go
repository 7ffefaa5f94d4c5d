package runtime

import (
	"context"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// Mixer is an executor whose dispatches may overlap, so that only the time of an entry counts.
type Mixer interface {
	Executor
	// Overlaps reports whether dispatches of an entry do.
	Overlaps(e *plans.Entry) bool
	// Mixed returns what times steps of the entry, dispatch i computed as the copy from(i) of the entry does.
	// free has to be called.
	Mixed(e *plans.Entry, from func(i int) *plans.Entry) (run func(ctx context.Context, times int) (time.Duration, error), free func(), err error)
}

// wholeSteps is the steps that are timed at once.
const wholeSteps = 4

// wholeTimes times entries whose dispatches overlap.
type wholeTimes struct {
	plan    *plans.Plan
	exec    Executor
	entries []*wholeEntry
}

// wholeEntry is an entry with its own kernels, and with a copy's at the dispatches of one site.
type wholeEntry struct {
	entry  *plans.Entry
	run    func(ctx context.Context, times int) (time.Duration, error)
	free   func()
	others []wholeOther
}

type wholeOther struct {
	count      int // dispatches of the site
	own, timed *candidateTimes
	run        func(ctx context.Context, times int) (time.Duration, error)
	free       func()
}

func (w *wholeTimes) overlaps(e *plans.Entry) bool {
	m, ok := w.exec.(Mixer)
	return ok && m.Overlaps(e)
}

// add adds the candidate that copied, which is f, has where the entry has own.
func (w *wholeTimes) add(entry, copied *plans.Entry, f *ir.Func, timed, own *candidateTimes) error {
	m := w.exec.(Mixer)
	if len(w.entries) == 0 || w.entries[len(w.entries)-1].entry != entry {
		e := &wholeEntry{entry: entry}
		var err error
		if e.run, e.free, err = m.Mixed(entry, func(int) *plans.Entry { return entry }); err != nil {
			return err
		}
		w.entries = append(w.entries, e)
	}
	e, count := w.entries[len(w.entries)-1], 0
	from := make([]*plans.Entry, len(entry.Dispatches))
	for i := range from {
		from[i] = entry
		if tuning.SiteOf(f, f.Groups[i]) == timed.Site {
			from[i] = copied
			count++
		}
	}
	run, free, err := m.Mixed(entry, func(i int) *plans.Entry { return from[i] })
	if err != nil {
		return err
	}
	e.others = append(e.others, wholeOther{count, own, timed, run, free})
	return nil
}

// turn times all once. The times of the entries' own candidates are of this turn.
func (w *wholeTimes) turn(ctx context.Context, depth int) error {
	for _, e := range w.entries {
		most := w.plan.Header.Ctx - wholeSteps*e.entry.Rows
		if err := prepareStep(w.plan, w.exec, e.entry, 0, max(0, min(depth, most))); err != nil {
			return err
		}
		var base time.Duration
		for i, o := range e.others {
			var err error
			if i%8 == 0 {
				if base, err = e.run(ctx, wholeSteps); err != nil {
					return err
				}
			}
			t, err := o.run(ctx, wholeSteps)
			if err != nil {
				return err
			}
			if o.own.count > 0 { // not in the first turn
				o.timed.sum += o.own.sum/time.Duration(o.own.count)*time.Duration(o.count) + t - base
				o.timed.count += o.count
			}
		}
	}
	return nil
}

func (w *wholeTimes) free() {
	for _, e := range w.entries {
		e.free()
		for _, o := range e.others {
			o.free()
		}
	}
}

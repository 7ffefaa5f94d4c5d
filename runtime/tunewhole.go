package runtime

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// Mixer is an executor whose dispatches may begin early, so only the time of a whole entry counts.
type Mixer interface {
	Executor
	// Mixed returns a function that times steps of the entry with dispatch i taken from copy from(i) of the entry.
	// The caller must call free.
	Mixed(e *plans.Entry, from func(i int) *plans.Entry) (run func(ctx context.Context, times int) (time.Duration, error), free func(), err error)
}

const (
	// wholeSteps is the steps that are timed at once.
	wholeSteps = 4
	// wholeBeside is the candidates that are timed between two times of the entry's own, of which the mean counts.
	wholeBeside = 4
	// wholeLeast is the candidates of a site that are timed until the end, beside the entry's own.
	wholeLeast = 3
)

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
	others []*wholeOther
	left   []*wholeOther // of which there are times still to come
}

type wholeOther struct {
	count      int // dispatches of the site
	own, timed *candidateTimes
	run        func(ctx context.Context, times int) (time.Duration, error)
	free       func()
}

func (w *wholeTimes) overlaps(e *plans.Entry) bool {
	_, ok := w.exec.(Mixer)
	return ok && e.LoadsEarly()
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
	o := &wholeOther{count, own, timed, run, free}
	e.others, e.left = append(e.others, o), append(e.left, o)
	return nil
}

// turn times once what is left. The times of the entries' own candidates are of this turn.
func (w *wholeTimes) turn(ctx context.Context, depth int) error {
	for _, e := range w.entries {
		most := w.plan.Header.Ctx - wholeSteps*e.entry.Rows
		if err := prepareStep(w.plan, w.exec, e.entry, 0, max(0, min(depth, most))); err != nil {
			return err
		}
		before, err := e.run(ctx, wholeSteps)
		if err != nil {
			return err
		}
		for some := range slices.Chunk(e.left, wholeBeside) {
			var times []time.Duration
			for _, o := range some {
				t, err := o.run(ctx, wholeSteps)
				if err != nil {
					return err
				}
				times = append(times, t)
			}
			after, err := e.run(ctx, wholeSteps)
			if err != nil {
				return err
			}
			for i, o := range some {
				if o.own.count > 0 { // not in the first turn
					o.timed.sum += o.own.sum/time.Duration(o.own.count)*time.Duration(o.count) + times[i] - (before+after)/2
					o.timed.count += o.count
				}
			}
			before = after
		}
	}
	return nil
}

// halve drops the slower half of what is left of each site: what is near the best is timed more often so.
func (w *wholeTimes) halve() {
	for _, e := range w.entries {
		bySite := map[string][]*wholeOther{}
		for _, o := range e.left {
			bySite[o.timed.Site] = append(bySite[o.timed.Site], o)
		}
		for site, list := range bySite {
			slices.SortStableFunc(list, func(a, b *wholeOther) int { return cmp.Compare(a.timed.median(), b.timed.median()) })
			bySite[site] = list[:min(len(list), max(wholeLeast, len(list)/2))]
		}
		e.left = slices.DeleteFunc(e.left, func(o *wholeOther) bool { return !slices.Contains(bySite[o.timed.Site], o) })
	}
}

func (w *wholeTimes) free() {
	for _, e := range w.entries {
		e.free()
		for _, o := range e.others {
			o.free()
		}
	}
}

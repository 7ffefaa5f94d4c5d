// Package exec is the executor of back ends that implement runtime/driver: it holds a plan's weights and state on a
// device and replays its entries.
//
// The host keeps the step block in memory of its own. A submission takes one of a few seats: memory through which the
// step block goes to the device and comes back with the chosen ids. So the host may prepare and submit a step while the
// one before it runs.
package exec

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/internal/contents"
)

// Executor holds a plan's weights and state on a device and replays its entries. It is for one goroutine.
type Executor struct {
	dev     driver.Device
	info    driver.Info
	plan    *plans.Plan
	memory  *memory
	entries map[string]driver.Work
	results map[part]driver.Work // copy what is large back
	parts   map[entryPart]driver.Work
	heads   map[string]int // rows of logits, by region
	seats   [MaxOpen]*seat
	works   []driver.Work            // of a submission, in memory that is used again
	last    *seat                    // whose results Ints returns
	dirty   bool                     // the host has written to the step block
	near    func()                   // Near; nil: nobody wants to know
	givenUp driver.Fence             // a submission that nobody waited for to its end; 0 without one
	took    map[replay]time.Duration // the last time
	spare   []driver.Memory          // of states that were freed
	staged  map[driver.Kind]driver.Memory
}

// New loads a plan onto an open device, which the executor owns from then on, also if it fails. progress, if not nil,
// is called with the number of bytes of weights that have arrived.
func New(ctx context.Context, dev driver.Device, plan *plans.Plan, src *plans.Source, progress func(int64)) (*Executor, error) {
	x := &Executor{dev: dev, info: dev.Info(), plan: plan,
		entries: map[string]driver.Work{}, results: map[part]driver.Work{}, parts: map[entryPart]driver.Work{}, heads: map[string]int{}, took: map[replay]time.Duration{}, staged: map[driver.Kind]driver.Memory{}}
	for i := range plan.Entries {
		x.heads[plan.Entries[i].Logits] = plan.Entries[i].Heads()
	}
	if err := x.prepare(ctx, src, progress); err != nil {
		dev.Close()
		return nil, err
	}
	return x, nil
}

func (x *Executor) prepare(ctx context.Context, src *plans.Source, progress func(int64)) error {
	var err error
	if x.memory, err = newMemory(ctx, x.dev, x.plan); err != nil {
		return err
	}
	// The one waits for processors, the other for the disk.
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return x.load(ctx) })
	both.Go(func() error { return x.memory.fill(ctx, x.plan, src, progress) })
	if err := both.Wait(); err != nil {
		return err
	}
	for i := range x.seats {
		if x.seats[i], err = x.newSeat(); err != nil {
			return err
		}
	}
	x.last = x.seats[0]
	return nil
}

// load makes the pipelines, and records each entry.
func (x *Executor) load(ctx context.Context) error {
	if err := x.dev.Load(ctx, x.plan); err != nil {
		return err
	}
	for i := range x.plan.Entries {
		e := &x.plan.Entries[i]
		work, err := x.dev.Record(x.stages(e, x.dispatch)...)
		if err != nil {
			return fmt.Errorf("entry %s: %w", e.Name, err)
		}
		x.entries[e.Name] = work
	}
	return nil
}

// work is what a launch submits. Parts of an entry are recorded when they are first asked for.
func (x *Executor) work(l runtime.Launch) (driver.Work, error) {
	whole := x.entries[l.Entry.Name]
	switch {
	case whole == nil:
		return nil, fmt.Errorf("plan has no entry %q", l.Entry.Name)
	case l.Part == runtime.Whole:
		return whole, nil
	}
	k := entryPart{l.Entry.Name, l.Part}
	if w := x.parts[k]; w != nil {
		return w, nil
	}
	at, n := x.plan.Program.Func(l.Entry.Name).Choice(), 0
	for from, to := range l.Entry.Batches() {
		if from < at && to > at {
			return nil, fmt.Errorf("entry %s: dispatch %d, which chooses tokens, does not wait for those before it", l.Entry.Name, at)
		}
		if to <= at {
			n++
		}
	}
	stages := x.stages(l.Entry, x.dispatch)
	if l.Part == runtime.Logits {
		stages = stages[:n]
	} else if stages = stages[n:]; len(stages) > 0 {
		for i := range stages[0].Dispatches {
			stages[0].Dispatches[i].Early = false // nothing is before it in this work
		}
	}
	w, err := x.dev.Record(stages...)
	x.parts[k] = w
	return w, err
}

// entryPart is a part of an entry, or of one that leaves ids in a region.
type entryPart struct {
	name string
	part runtime.Part
}

// stages are the work of an entry: dispatches that do not wait for each other side by side. one makes dispatch i.
func (x *Executor) stages(e *plans.Entry, one func(e *plans.Entry, i int) driver.Dispatch) []driver.Stage {
	var stages []driver.Stage
	for from, to := range e.Batches() {
		var s driver.Stage
		for i := from; i < to; i++ {
			d := one(e, i)
			d.Queue, d.Early = e.Dispatches[i].Queue, e.Dispatches[i].BeginsEarly()
			s.Dispatches = append(s.Dispatches, d)
		}
		stages = append(stages, s)
	}
	return stages
}

// dispatch is a dispatch of the entry as it is alone in a stage.
func (x *Executor) dispatch(e *plans.Entry, i int) driver.Dispatch {
	d := &e.Dispatches[i]
	return driver.Dispatch{Pipeline: d.Pipeline, Arguments: x.memory.arguments[e.Name][i],
		Grid: [3]uint32{uint32(d.Grid[0]), uint32(d.Grid[1]), uint32(d.Grid[2])}, Site: d.Site, Cost: d.Cost}
}

// Device names the device.
func (x *Executor) Device() string { return x.info.Name }

// Overlaps says whether the device runs a submission while the host works.
func (x *Executor) Overlaps() bool { return !x.info.Host }

// Backend names what runs the kernels.
func (x *Executor) Backend() string { return x.info.Backend }

// Driver names the driver and its version.
func (x *Executor) Driver() string { return x.info.Driver }

// Write sets the first values of a region of the step block, for the submissions that follow.
func (x *Executor) Write(name string, data []int32) error {
	r, ok := x.memory.regions[name]
	if !ok || r.buf != x.memory.step || int64(4*len(data)) > r.bytes {
		return fmt.Errorf("%d values do not fit region %q of the step block", len(data), name)
	}
	if m := x.memory.mask; m != nil {
		switch name {
		case ir.StepMask: // alone it leaves what the device has made of the rest
			m.write(x.memory.block, data)
			return nil
		case ir.StepMasked:
			if err := m.check(data); err != nil {
				return err
			}
		}
	}
	x.dirty = true
	for _, t := range x.memory.tables {
		if name == ir.TableNames[t.group] {
			return t.write(x.plan, x.memory.block, data)
		}
	}
	copy(contents.Numbers[int32](x.memory.block[r.at:]), data)
	for _, s := range x.seats {
		s.stale[name] = max(s.stale[name], int64(4*len(data)))
	}
	return nil
}

// Ints returns a region of the step block, but for the block table and the mask, or the ids that an entry chose, as
// they were behind the submission that was waited for last.
func (x *Executor) Ints(name string) ([]int32, error) {
	b, err := x.bytes(name)
	return contents.Numbers[int32](b), err
}

// Floats returns the logits of an entry, as they are on the device. Where rows are named, the others may hold anything.
func (x *Executor) Floats(name string, rows ...int) ([]float32, error) {
	b, err := x.bytes(name, rows...)
	return contents.Numbers[float32](b), err
}

func (x *Executor) bytes(name string, rows ...int) ([]byte, error) {
	r, ok := x.memory.regions[name]
	switch {
	case !ok || r.back < 0:
		return nil, fmt.Errorf("plan has no region %q", name)
	case r.small:
		return x.last.back.Bytes()[r.back : r.back+r.bytes], nil
	case r.mapped() != nil:
		return r.mapped(), x.settle()
	}
	for _, row := range rows {
		if row < 0 || row >= x.heads[name] {
			return nil, fmt.Errorf("region %q has no row %d", name, row)
		}
	}
	if 2*len(rows) > x.heads[name] {
		rows = nil // a copy of each takes longer than one of all
	}
	works := x.works[:0]
	if rows == nil {
		rows = []int{allRows}
	}
	for _, row := range rows {
		work, err := x.result(part{name, row})
		if err != nil {
			return nil, err
		}
		works = append(works, work)
	}
	x.works = works
	if err := x.finish(context.Background(), works...); err != nil {
		return nil, err
	}
	return x.memory.back.Bytes()[r.back : r.back+r.bytes], nil
}

// part is a row of a region of logits, or allRows.
type part struct {
	region string
	row    int
}

const allRows = -1

// result is the work that copies a part back.
func (x *Executor) result(p part) (driver.Work, error) {
	if work := x.results[p]; work != nil {
		return work, nil
	}
	r, at := x.memory.regions[p.region], int64(0)
	n := r.bytes
	if p.row != allRows {
		n /= int64(x.heads[p.region])
		at = int64(p.row) * n
	}
	work, err := x.dev.Record(driver.Stage{Copies: []driver.Copy{r.to(x.memory.back, r.back+at, at, n)}})
	if err != nil {
		return nil, err
	}
	x.results[p] = work
	return work, nil
}

// Close frees everything on the device.
func (x *Executor) Close() error {
	x.dev.Close()
	return nil
}

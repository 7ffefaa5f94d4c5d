package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/driver"
)

// MaxOpen is how many submissions may be open: the logits of a step are computed while its choice and the logits of the
// next one wait for them.
const MaxOpen = 3

// poll is how long the host waits for the device before it looks whether the
// caller has lost interest.
const poll = 100 * time.Millisecond

// settleTimeout bounds the wait for a submission that was given up.
const settleTimeout = time.Minute

// replay is a submission of one launch while no other was open, or of a part of an entry, which follow each other: what
// takes the same time again.
type replay struct {
	entry string
	times int
	part  runtime.Part
}

// seat is what a submission has for its own: memory between host and device, and the copies.
type seat struct {
	up, back driver.Memory
	patch    driver.Work               // copies the step block to the device, but for the block table
	rows     map[int64]driver.Work     // copy rows of block tables, by where they are in the step block
	masks    map[int64]driver.Work     // copy rows of the mask, by their bytes
	fetch    map[entryPart]driver.Work // copy the ids that entries chose back, by their region, and the step block
	stale    map[string]int64          // bytes of regions of the step block that the host has written since they were put here
	fence    driver.Fence              // 0 while nobody has the seat
	replay   replay                    // of no entry if it is none
	began    time.Time
}

func (x *Executor) newSeat() (*seat, error) {
	m := x.memory
	s := &seat{rows: map[int64]driver.Work{}, masks: map[int64]driver.Work{}, fetch: map[entryPart]driver.Work{}, stale: map[string]int64{}}
	for _, r := range x.plan.Memory.Step {
		if !apart(r.Name) {
			s.stale[r.Name] = r.Bytes
		}
	}
	var err error
	if s.up, err = x.dev.Alloc(m.step.Size(), driver.Upload); err != nil {
		return nil, err
	}
	if s.back, err = x.dev.Alloc(m.small, driver.Readback); err != nil {
		return nil, err
	}
	clear(s.back.Bytes())
	clear(s.up.Bytes())
	s.patch, err = x.dev.Record(driver.Stage{Copies: []driver.Copy{{To: m.step, From: s.up, Bytes: m.head}}})
	return s, err
}

// put brings the step block to the seat and adds the works that bring it to the device from there.
func (x *Executor) put(s *seat, works []driver.Work) ([]driver.Work, error) {
	m := x.memory
	for name, n := range s.stale {
		at := m.regions[name].at
		copy(s.up.Bytes()[at:at+n], m.block[at:])
	}
	clear(s.stale)
	return x.putRows(s, append(works, s.patch))
}

// fetches is the work that reads back the ids and candidates of an entry, and behind the whole of it the step block.
func (x *Executor) fetches(s *seat, l runtime.Launch) (driver.Work, error) {
	k := entryPart{l.Entry.Next, l.Part}
	if w := s.fetch[k]; w != nil {
		return w, nil
	}
	m := x.memory
	var copies []driver.Copy
	if l.Part == runtime.Whole {
		copies = append(copies, driver.Copy{To: s.back, From: m.step, Bytes: m.head})
	}
	for _, name := range []string{l.Entry.Candidates, l.Entry.Next} { // as they lie
		if r, ok := m.regions[name]; ok {
			copies = join(copies, r.to(s.back, r.back, 0, r.bytes))
		}
	}
	w, err := x.dev.Record(driver.Stage{Copies: copies})
	s.fetch[k] = w
	return w, err
}

// join appends a copy, to the last one if it goes on where that ends but for what aligns places.
func join(copies []driver.Copy, c driver.Copy) []driver.Copy {
	if len(copies) > 0 {
		last := &copies[len(copies)-1]
		if gap := c.ToAt - last.ToAt - last.Bytes; last.To == c.To && last.From == c.From && gap >= 0 && gap < placeAlign && c.FromAt-last.FromAt-last.Bytes == gap {
			last.Bytes += gap + c.Bytes
			return copies
		}
	}
	return append(copies, c)
}

// Submit begins to run launches one behind the other, the first of them on the step block as the host has written it.
// It returns at once. MaxOpen submissions may be open: each must be waited for.
func (x *Executor) Submit(ctx context.Context, launches ...runtime.Launch) (runtime.Ticket, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := x.settle(); err != nil {
		return 0, err
	}
	s, alone := x.seat()
	if s == nil {
		return 0, fmt.Errorf("device %s: %d submissions are open, wait for one of them", x.info.Name, MaxOpen)
	}
	works := x.works[:0]
	var err error
	if x.dirty {
		if works, err = x.put(s, works); err != nil {
			return 0, err
		}
	}
	if works, err = x.putMask(s, works); err != nil {
		return 0, err
	}
	for _, l := range launches {
		work, err := x.work(l)
		if err != nil {
			return 0, err
		}
		for range l.Times {
			works = append(works, work)
		}
	}
	for _, l := range launches {
		if l.Part == runtime.Logits {
			continue
		}
		work, err := x.fetches(s, l)
		if err != nil {
			return 0, err
		}
		works = append(works, work)
	}
	s.replay, s.began = replay{}, time.Now()
	if l := launches[0]; len(launches) == 1 && (alone || l.Part != runtime.Whole) {
		s.replay = replay{l.Entry.Name, l.Times, l.Part}
	}
	x.works = works
	fence, err := x.dev.Submit(works...)
	if err != nil {
		return 0, err
	}
	x.dirty, s.fence = false, fence
	return runtime.Ticket(fence), nil
}

// seat returns one that is free, nil if there is none, and whether all are.
func (x *Executor) seat() (free *seat, all bool) {
	all = true
	for _, s := range x.seats {
		switch {
		case s.fence != 0:
			all = false
		case free == nil:
			free = s
		}
	}
	return free, all
}

// Wait waits for the end of a submission, or until the caller loses interest; it is given up then. Behind it Ints tells
// what the submission chose, until its seat is taken by another.
func (x *Executor) Wait(ctx context.Context, t runtime.Ticket) error {
	i := slices.IndexFunc(x.seats[:], func(s *seat) bool { return t != 0 && s.fence == driver.Fence(t) })
	if i < 0 {
		return fmt.Errorf("device %s: submission %d is not open", x.info.Name, t)
	}
	s := x.seats[i]
	defer func() { s.fence, x.near = 0, nil }()
	if err := x.await(ctx, s.fence, s.began, x.took[s.replay]); err != nil {
		return err
	}
	if s.replay.entry != "" {
		x.took[s.replay] = time.Since(s.began)
	}
	x.last = s
	return nil
}

// Near implements runtime.Nearing.
func (x *Executor) Near(f func()) { x.near = f }

// await waits for a submission, which began then, until the caller loses interest; it is given up then. It sleeps for
// most of the time that is expected, if any is, then looks for the end all the time, for as long again: the end is seen
// some 40 us sooner than by waiting for it, which counts for prompts and small models. A device that computes on the
// host's processors would lose one to that.
func (x *Executor) await(ctx context.Context, f driver.Fence, began time.Time, expected time.Duration) (err error) {
	if x.info.Host {
		expected = 0
	}
	if s, ok := x.dev.(driver.Stopper); ok && ctx.Done() != nil {
		stopped := make(chan struct{})
		cancel := context.AfterFunc(ctx, func() { s.Stop(f); close(stopped) })
		defer func() {
			if !cancel() {
				<-stopped
				if err == nil {
					err = ctx.Err()
				}
			}
		}()
	}
	for {
		timeout := poll
		if past, most := time.Since(began), expected*9/10; past < most {
			timeout = min(poll, most-past)
		} else if past < 2*expected {
			if timeout = 0; x.near != nil {
				x.near()
				x.near = nil
			}
		}
		err := x.dev.Wait(f, timeout)
		if !errors.Is(err, driver.ErrTimeout) {
			return err
		}
		if ctx.Err() != nil {
			x.givenUp = max(x.givenUp, f)
			return ctx.Err()
		}
	}
}

// settle waits for a submission that was given up: it uses its seat, which the next one may take.
func (x *Executor) settle() error {
	if x.givenUp == 0 {
		return nil
	}
	err := x.dev.Wait(x.givenUp, settleTimeout)
	if errors.Is(err, driver.ErrTimeout) {
		return fmt.Errorf("device %s: submission %d was given up and has not ended %v later: %w", x.info.Name, x.givenUp, settleTimeout, err)
	}
	if err == nil {
		x.givenUp = 0
	}
	return err
}

// finish submits works, which have no seat, and waits for their end.
func (x *Executor) finish(ctx context.Context, works ...driver.Work) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := x.settle(); err != nil {
		return err
	}
	f, err := x.dev.Submit(works...)
	if err != nil {
		return err
	}
	return x.await(ctx, f, time.Now(), 0)
}

// once records stages, runs them and waits for their end.
func (x *Executor) once(ctx context.Context, stages ...driver.Stage) error {
	work, err := x.dev.Record(stages...)
	if err != nil {
		return err
	}
	defer work.Free()
	return x.finish(ctx, work)
}

// flush brings the step block to the device if the host has written to it.
func (x *Executor) flush(ctx context.Context) error {
	if !x.dirty && x.memory.mask.fresh() {
		return x.settle()
	}
	works, err := x.bring()
	if err != nil {
		return err
	}
	x.dirty = false
	return x.finish(ctx, works...)
}

// bring is the works that bring the step block to the device.
func (x *Executor) bring() ([]driver.Work, error) {
	if err := x.settle(); err != nil {
		return nil, err
	}
	s, all := x.seat()
	if !all {
		return nil, fmt.Errorf("device %s: a submission is open, wait for it", x.info.Name)
	}
	works, err := x.put(s, nil)
	if err != nil {
		return nil, err
	}
	return x.putMask(s, works)
}

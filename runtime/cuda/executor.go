package cuda

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/internal/contents"
	"github.com/zincc-dev/zincc/runtime/internal/spare"
)

// poll is how often the host looks whether the caller has lost interest.
const poll = 100 * time.Millisecond

// settleTimeout bounds the wait for a step that was given up.
const settleTimeout = time.Minute

// Executor holds a plan's weights and state on a device and replays its entries. Each entry is a graph,
// captured once.
type Executor struct {
	dev       *Device
	plan      *plans.Plan
	memory    *memory
	functions []*function
	entries   map[string]*graph
	ended     uintptr // event: the last step has
	dirty     bool    // the host has written to its copy of the step block
	took      map[replay]time.Duration
	givenUp   bool                    // nobody waited for the last step to its end
	spare     spare.Pool[*allocation] // of states that were freed
}

// replay is an entry and how often it runs in a row.
type replay struct {
	entry string
	times int
}

// NewExecutor opens the device of that index, or with -1 the first that meets the plan's
// requirements. progress, if not nil, is called with the number of bytes of weights that have
// arrived.
func NewExecutor(ctx context.Context, index int, plan *plans.Plan, src *plans.Source, progress func(int64)) (*Executor, error) {
	if index < 0 {
		var err error
		if index, err = choose(plan.Require); err != nil {
			return nil, err
		}
	}
	dev, err := Open(index, plan.Require)
	if err != nil {
		return nil, err
	}
	x := &Executor{dev: dev, plan: plan, entries: map[string]*graph{}, took: map[replay]time.Duration{}}
	x.spare = spare.Pool[*allocation]{
		Most: plan.Header.Slots, Alloc: dev.alloc, Size: func(a *allocation) int64 { return a.bytes }, Free: (*allocation).free,
	}
	if err := x.fits(); err != nil {
		x.Close()
		return nil, err
	}
	if err := x.prepare(ctx, src, progress); err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

// choose returns the first device that meets need, else what the first lacks.
func choose(need plans.Requirements) (int, error) {
	all, err := Enumerate()
	if err != nil {
		return 0, ir.Unsupported("%s", err)
	}
	var first error
	for _, info := range Ranked(all) {
		err := info.Check(need)
		if err == nil {
			return info.Index, nil
		}
		if first == nil {
			first = err
		}
	}
	if first == nil {
		first = ir.Unsupported("there is no CUDA device")
	}
	return 0, first
}

// fits fails if the plan needs more memory than is free: before anything is read.
func (x *Executor) fits() error {
	free, total, err := x.dev.memory()
	if err != nil {
		return err
	}
	if need := uint64(x.plan.Require.Memory); need > free {
		return x.dev.errorf("the plan needs %s of device memory, of %s only %s are free", table.Bytes(need), table.Bytes(total), table.Bytes(free))
	}
	return nil
}

// prepare compiles kernels and makes the graphs of entries while it fills the memory: the one waits for
// processors, the other for the disk.
func (x *Executor) prepare(ctx context.Context, src *plans.Source, progress func(int64)) (err error) {
	if x.memory, err = newMemory(x.dev, x.plan); err != nil {
		return err
	}
	if x.ended, err = x.dev.event(); err != nil {
		return err
	}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return x.compile(ctx) })
	both.Go(func() error { return x.memory.fill(ctx, x.plan, src, progress) })
	return both.Wait()
}

// compile makes the kernels, and the graph of each entry of them.
func (x *Executor) compile(ctx context.Context) (err error) {
	if x.functions, err = x.dev.functions(ctx, x.plan); err != nil {
		return err
	}
	for i := range x.plan.Entries {
		e := &x.plan.Entries[i]
		if x.entries[e.Name], err = x.entry(e, work{}); err != nil {
			return fmt.Errorf("entry %s: %w", e.Name, err)
		}
		if err := x.entries[e.Name].upload(); err != nil {
			return fmt.Errorf("entry %s: %w", e.Name, err)
		}
	}
	return nil
}

// Device names the device.
func (x *Executor) Device() string { return x.dev.Info.Name }

// Underlying is the open device.
func (x *Executor) Underlying() *Device { return x.dev }

// Write sets the first values of a region of the step block.
func (x *Executor) Write(name string, data []int32) error {
	r, ok := x.memory.regions[name]
	if !ok || r.step < 0 || int64(4*len(data)) > r.bytes {
		return fmt.Errorf("%d values do not fit region %q of the step block", len(data), name)
	}
	if err := x.settle(); err != nil {
		return err
	}
	copy(contents.Numbers[int32](x.memory.stepHost.mapped[r.step:]), data)
	x.dirty = true
	return nil
}

// Run replays the entry `times` times in a row, without returning to the host in between.
func (x *Executor) Run(ctx context.Context, entry *plans.Entry, times int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	this, began := replay{entry.Name, times}, time.Now()
	if err := x.flush(); err != nil {
		return err
	}
	for range times {
		if err := x.entries[entry.Name].launch(); err != nil {
			return err
		}
	}
	if err := x.memory.fetch(entry); err != nil {
		return err
	}
	if err := x.wait(ctx, x.took[this]); err != nil {
		return err
	}
	x.took[this] = time.Since(began)
	return nil
}

// flush brings the step block to the device if the host has written to it.
func (x *Executor) flush() error {
	if err := x.settle(); err != nil {
		return err
	}
	if !x.dirty {
		return nil
	}
	x.dirty = false
	if err := x.dev.upload(x.memory.step.address, x.memory.stepHost.mapped); err != nil {
		return x.dev.errorf("step block: %w", err)
	}
	return nil
}

// wait waits until all work has ended, or the caller loses interest; it is given up then.
// It sleeps for most of the time that is expected and then looks all the time, for as
// long again: the end is seen sooner than by sleeping, which counts for small models.
func (x *Executor) wait(ctx context.Context, expected time.Duration) error {
	if err := x.dev.call(cuEventRecord, x.ended, x.dev.stream); err != nil {
		return x.dev.errorf("%w", err)
	}
	began := time.Now()
	const spin = 2 * time.Millisecond
	if expected > 2*spin {
		sleep(ctx, expected-expected/8-spin/2)
	}
	for {
		err := x.dev.call(cuEventQuery, x.ended)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, notReady):
			return x.dev.errorf("%w", err)
		case ctx.Err() != nil:
			x.givenUp = true
			return ctx.Err()
		}
		if past := time.Since(began); past > 2*expected+spin {
			sleep(ctx, min(past/64, poll))
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// settle waits for a step that was given up: it uses the step block, which the next one
// writes anew.
func (x *Executor) settle() error {
	if !x.givenUp {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), settleTimeout)
	defer stop()
	if err := x.wait(ctx, 0); err != nil {
		return err
	}
	x.givenUp = false
	return nil
}

// Ints returns a region of the step block or the ids that an entry chose, as
// they were after the last run.
func (x *Executor) Ints(name string) ([]int32, error) {
	b, err := x.bytes(name)
	return contents.Numbers[int32](b), err
}

// Floats returns the logits of an entry.
func (x *Executor) Floats(name string) ([]float32, error) {
	b, err := x.bytes(name)
	return contents.Numbers[float32](b), err
}

func (x *Executor) bytes(name string) ([]byte, error) {
	r, ok := x.memory.regions[name]
	if !ok || r.back < 0 {
		return nil, fmt.Errorf("plan has no region %q", name)
	}
	to := x.memory.back.mapped[r.back : r.back+r.bytes]
	for _, e := range x.plan.Entries {
		if e.Logits != name {
			continue
		}
		if err := x.settle(); err != nil {
			return nil, err
		}
		if err := x.dev.download(to, r.address); err != nil {
			return nil, x.dev.errorf("%w", err)
		}
		if err := x.wait(context.Background(), 0); err != nil {
			return nil, err
		}
		break
	}
	return to, nil
}

// Close frees everything on the device.
func (x *Executor) Close() error {
	for _, g := range x.entries {
		g.free()
	}
	if x.ended != 0 {
		_ = x.dev.call(cuEventDestroy, x.ended)
	}
	x.dev.Close()
	return nil
}

// Backend names what runs the kernels.
func (x *Executor) Backend() string { return "CUDA" }

// Driver names the driver and its version.
func (x *Executor) Driver() string { return x.dev.Info.DriverText() }

// ReadBandwidth measures the bytes a second of a kernel that only reads the
// device's memory.
func (x *Executor) ReadBandwidth(ctx context.Context) (float64, error) {
	var r runtime.ProbeResult
	err := x.dev.probeRead(ctx, &r)
	return r.ReadBandwidth, err
}

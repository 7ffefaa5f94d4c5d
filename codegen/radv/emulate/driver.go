package emulate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/internal/rdna"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/driver"
)

// Verbs is a device as the runtime's executor takes it. One goroutine runs what is submitted.
type Verbs struct {
	dev   *Device
	pipes []pipe // of the plan, by index

	mu      sync.Mutex
	changed *sync.Cond // with mu: a submission was made or has ended, the device is lost or closed
	lost    error
	closed  bool
	live    []*memory
	made    int // allocations
	queue   [][]*work
	last    driver.Fence // submitted
	done    driver.Fence
	counts  []rdna.Counts // of dispatches since count
	counted bool          // somebody asks for them
}

// Verbs makes a driver of the device, which closes it.
func (d *Device) Verbs() *Verbs {
	v := &Verbs{dev: d}
	v.changed = sync.NewCond(&v.mu)
	go v.run()
	return v
}

// largest bounds an allocation: all are in the host's memory.
const largest = 4 << 30

// Info says that the device is emulated.
func (v *Verbs) Info() driver.Info {
	return driver.Info{Backend: "AMD emulated", Name: v.dev.name + " (emulated)", Driver: v.dev.compiler.Driver(), Largest: largest, Host: true}
}

type memory struct {
	v       *Verbs
	address uint64
	bytes   []byte
	kind    driver.Kind
	freed   bool
}

// Alloc gives memory of NaNs. Each allocation has a window of addresses of its own.
func (v *Verbs) Alloc(bytes int64, kind driver.Kind) (driver.Memory, error) {
	if bytes <= 0 || bytes > largest {
		return nil, v.errorf("allocate %d bytes: an allocation has %d at most", bytes, int64(largest))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	m := &memory{v: v, address: rdna.Address(v.made), bytes: slices.Repeat([]byte{0xff}, int(bytes)), kind: kind}
	v.made++
	v.live = append(v.live, m)
	return m, nil
}

func (m *memory) Address() uint64 { return m.address }
func (m *memory) Size() int64     { return int64(len(m.bytes)) }
func (m *memory) Bytes() []byte {
	if m.kind == driver.Local || m.freed {
		return nil
	}
	return m.bytes
}

// Free forgets the memory; what was recorded holds it.
func (m *memory) Free() {
	m.v.mu.Lock()
	defer m.v.mu.Unlock()
	m.freed = true
	m.v.live = slices.DeleteFunc(m.v.live, func(o *memory) bool { return o == m })
}

// pipe is a pipeline of the plan.
type pipe struct {
	name      string
	kernel    *rdna.Kernel
	program   *rdna.Program
	workgroup int
	args      []extent // what the plan's dispatches of the pipeline may touch
}

type extent struct {
	name  string
	bytes int64 // at most
	write bool
}

// Load has the driver's compiler make the code of all kernels.
func (v *Verbs) Load(ctx context.Context, plan *plans.Plan) error {
	if plan.Require.Vulkan == nil {
		return ir.Unsupported("the plan is for backend %s, not for Vulkan", plan.Require.Backend)
	}
	if what := plan.Require.Missing(&plans.Capabilities{Vulkan: v.dev.compiler.Has()}); what != "" {
		return ir.Unsupported("device %s: %s", v.Info().Name, what)
	}
	modules := make([][]uint32, len(plan.Modules))
	for i, m := range plan.Modules {
		if m.Format != plans.SPIRV {
			return ir.Unsupported("kernel %s is in format %s, Mesa takes %s", m.Name, m.Format, plans.SPIRV)
		}
		modules[i] = make([]uint32, len(m.Bytes)/4)
		for k := range modules[i] {
			modules[i][k] = binary.LittleEndian.Uint32(m.Bytes[4*k:])
		}
	}
	pipes := make([]pipe, len(plan.Pipelines))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range plan.Pipelines {
		group.Go(func() (err error) {
			p := &plan.Pipelines[i]
			k := radv.Kernel{Name: plan.Modules[p.Module].Name, Words: modules[p.Module], Consts: map[uint32]uint32{}, Wave: p.Wave,
				Full: p.Wave > 0 && p.Workgroup%p.Wave == 0}
			for _, c := range p.Consts {
				k.Consts[c.ID] = c.Value
			}
			pipes[i] = pipe{name: k.Name, workgroup: p.Workgroup}
			if pipes[i].kernel, pipes[i].program, err = v.dev.Code(ctx, &k); err != nil {
				return v.errorf("kernel %s: %w", k.Name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, e := range plan.Entries {
		for _, d := range e.Dispatches {
			p := &pipes[d.Pipeline]
			p.args = slices.Grow(p.args, len(d.Args))[:max(len(p.args), len(d.Args))]
			for i, a := range d.Args {
				x := &p.args[i]
				x.name, x.bytes, x.write = a.Name, max(x.bytes, a.Bytes), x.write || a.Write
			}
		}
	}
	v.pipes = pipes
	return nil
}

// work is recorded stages; launches are of their dispatches, in their order.
type work struct {
	stages   []driver.Stage
	launches [][]rdna.Launch
}

func (w *work) Free() {}

// Record finds the memory of dispatches.
func (v *Verbs) Record(stages ...driver.Stage) (driver.Work, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	w := &work{stages: slices.Clone(stages), launches: make([][]rdna.Launch, len(stages))}
	for i, s := range stages {
		w.stages[i].Dispatches, w.stages[i].Copies = slices.Clone(s.Dispatches), slices.Clone(s.Copies)
		for _, c := range s.Copies {
			if c.Bytes <= 0 || c.ToAt < 0 || c.FromAt < 0 || c.ToAt+c.Bytes > c.To.Size() || c.FromAt+c.Bytes > c.From.Size() {
				return nil, v.errorf("a copy of %d bytes from %d of %d to %d of %d", c.Bytes, c.FromAt, c.From.Size(), c.ToAt, c.To.Size())
			}
		}
		for _, d := range s.Dispatches {
			l, err := v.launch(d)
			if err != nil {
				return nil, err
			}
			w.launches[i] = append(w.launches[i], l)
		}
	}
	return w, nil
}

// launch is a dispatch for the machine. Its buffers are what the plan says that its pipeline touches; those that
// overlap are one. Whatever a load finds that no wait or barrier orders is noise: kernels that load ahead do not use
// it, and what others make of it shows. The caller holds mu.
func (v *Verbs) launch(d driver.Dispatch) (rdna.Launch, error) {
	p := &v.pipes[d.Pipeline]
	l := rdna.Launch{Gen: v.dev.gen, Kernel: p.kernel, Program: p.program, Workgroup: p.workgroup, Push: d.Arguments, Ahead: true,
		Grid: [3]int{int(d.Grid[0]), int(d.Grid[1]), int(d.Grid[2])}}
	if len(d.Arguments) != len(p.args) {
		return l, v.errorf("%s: %d arguments for %d", p.name, len(d.Arguments), len(p.args))
	}
	for i, a := range p.args {
		at := d.Arguments[i]
		within := slices.IndexFunc(v.live, func(m *memory) bool { return at >= m.address && at-m.address < uint64(len(m.bytes)) })
		if within < 0 {
			return l, v.errorf("%s: argument %s: nothing is at %#x", p.name, a.name, at)
		}
		m := v.live[within]
		end := min(at+uint64(a.bytes), m.address+uint64(len(m.bytes)))
		b := &rdna.Buffer{Name: a.name, Address: at, Writable: a.write}
		l.Args = slices.DeleteFunc(l.Args, func(o *rdna.Buffer) bool {
			if o.Address >= end || at >= o.Address+uint64(len(o.Data)) {
				return false
			}
			b.Name, b.Address, b.Writable = o.Name+" and "+b.Name, min(b.Address, o.Address), b.Writable || o.Writable
			end = max(end, o.Address+uint64(len(o.Data)))
			return true
		})
		b.Data = m.bytes[b.Address-m.address : end-m.address]
		l.Args = append(l.Args, b)
	}
	return l, nil
}

// Submit appends to the queue.
func (v *Verbs) Submit(works ...driver.Work) (driver.Fence, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.lost != nil {
		return 0, v.lost
	}
	var list []*work
	for _, w := range works {
		list = append(list, w.(*work))
	}
	v.last++
	v.queue = append(v.queue, list)
	v.changed.Broadcast()
	return v.last, nil
}

// run takes submissions from the queue until the device is closed or lost.
func (v *Verbs) run() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for {
		for !v.closed && len(v.queue) == 0 {
			v.changed.Wait()
		}
		if v.closed {
			return
		}
		works := v.queue[0]
		v.mu.Unlock()
		err := v.works(works)
		v.mu.Lock()
		if err != nil {
			v.lost = v.errorf("%w: %w", err, driver.ErrLost)
			v.changed.Broadcast()
			return
		}
		v.queue, v.done = v.queue[1:], v.done+1
		v.changed.Broadcast()
	}
}

var errClosed = errors.New("the device was closed")

func (v *Verbs) works(works []*work) error {
	for _, w := range works {
		for i, s := range w.stages {
			for k := range w.launches[i] {
				if err := v.dispatch(&w.launches[i][k], s.Dispatches[k].Pipeline); err != nil {
					return err
				}
			}
			for _, c := range s.Copies {
				copy(c.To.(*memory).bytes[c.ToAt:c.ToAt+c.Bytes], c.From.(*memory).bytes[c.FromAt:])
			}
			if k, ok := s.Stamp.Clock.(*clock); ok {
				k.times[s.Stamp.Slot] = time.Now()
			}
		}
	}
	return nil
}

func (v *Verbs) dispatch(l *rdna.Launch, pipeline int) error {
	v.mu.Lock()
	closed := v.closed
	v.mu.Unlock()
	if closed {
		return errClosed
	}
	n, err := rdna.Run(l)
	if err != nil {
		return fmt.Errorf("%s: %w", v.pipes[pipeline].name, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.counted {
		v.counts = append(v.counts, n)
	}
	return nil
}

// count makes the device count what dispatches execute, or returns what they have executed since, in their order, and
// ends that.
func (v *Verbs) count(on bool) []rdna.Counts {
	v.mu.Lock()
	defer v.mu.Unlock()
	list := v.counts
	v.counts, v.counted = nil, on
	return list
}

// Wait waits as the contract says.
func (v *Verbs) Wait(f driver.Fence, timeout time.Duration) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f > v.last {
		return v.errorf("wait for submission %d of %d", f, v.last)
	}
	return v.wait(f, timeout)
}

// wait waits for a submission or the loss of the device. The caller holds mu.
func (v *Verbs) wait(f driver.Fence, timeout time.Duration) error {
	late := timeout <= 0
	timer := time.AfterFunc(timeout, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		late = true
		v.changed.Broadcast()
	})
	defer timer.Stop()
	for v.done < f && v.lost == nil {
		if late {
			return driver.ErrTimeout
		}
		v.changed.Wait()
	}
	return v.lost
}

// clock has times of the host.
type clock struct{ times []time.Time }

// Clock makes slots for times of the host: how long it emulates.
func (v *Verbs) Clock(slots int) (driver.Clock, error) {
	return &clock{make([]time.Time, slots)}, nil
}

func (k *clock) Free() {}

func (k *clock) Read() ([]time.Duration, error) {
	since := make([]time.Duration, len(k.times))
	for i, t := range k.times {
		since[i] = t.Sub(k.times[0])
	}
	return since, nil
}

// Close ends the queue behind the dispatch that runs, and the compiler.
func (v *Verbs) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return
	}
	_ = v.wait(v.last, time.Second) // what has not ended ends behind its dispatch
	v.closed, v.live = true, nil
	v.changed.Broadcast()
	v.dev.Close()
}

func (v *Verbs) errorf(format string, args ...any) error {
	return fmt.Errorf("device "+v.Info().Name+": "+format, args...)
}

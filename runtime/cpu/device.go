package cpu

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/zincc-dev/zincc/internal/processor"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cpu/native"
	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/internal/owned"
)

// device is the processor as package driver has it: all memory is the host's, work is copies and tables of machine
// code. Who waits for a submission computes it, as the first thread of the team that walks the tables: to hand it over
// to a goroutine, and its end back, wakes threads of the system, which take processors from the team. A goroutine
// computes what somebody only looks at.
type device struct {
	options Options
	src     *plans.Source // of the weights
	shelf   shelf
	info    driver.Info
	team    *team
	plan    *plans.Plan
	code    *code

	more  chan struct{} // has something when there is work for the goroutine
	ended chan struct{} // has something when a submission has ended
	over  chan struct{} // closed when the goroutine has
	timer *time.Timer   // of Wait

	turn sync.Mutex // of who computes

	owned owned.Set[resource]

	mu     sync.Mutex
	queue  [][]*work
	lists  [][]*work // that were in the queue, for others
	last   driver.Fence
	done   driver.Fence
	stop   driver.Fence // submissions up to this one need not come to their end
	closed bool
}

// resource is something that was made on the device.
type resource interface{ release() }

// open starts the threads, with so many bytes of scratch memory each.
func open(o Options, scratch int64) (*device, error) {
	t, err := newTeam(o.Threads, o.nodes, scratch)
	if err != nil {
		return nil, err
	}
	d := &device{options: o, team: t, owned: owned.Set[resource]{Release: resource.release}, timer: time.NewTimer(time.Hour),
		more: make(chan struct{}, 1), ended: make(chan struct{}, 1), over: make(chan struct{}),
		info: driver.Info{Backend: "CPU", Name: fmt.Sprintf("cpu (%d threads)", o.Threads), Driver: processor.Arch, Host: true}}
	go d.run()
	return d, nil
}

func (d *device) errorf(format string, a ...any) error {
	return fmt.Errorf("device cpu: "+format, a...)
}

// Info is what the device is.
func (d *device) Info() driver.Info { return d.info }

// Load links the plan's code.
func (d *device) Load(ctx context.Context, plan *plans.Plan) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.plan = plan
	d.code, err = newCode(plan)
	return err
}

// Submit appends to the queue.
func (d *device) Submit(works ...driver.Work) (driver.Fence, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []*work
	if n := len(d.lists); n > 0 {
		list, d.lists = d.lists[n-1], d.lists[:n-1]
	}
	for _, w := range works {
		list = append(list, w.(*work))
	}
	d.queue = append(d.queue, list)
	d.last++
	return d.last, nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// brief is a time in which nobody computes who waits.
const brief = 50 * time.Millisecond

// Wait waits as the contract says. What is worth waiting for is computed here.
func (d *device) Wait(f driver.Fence, timeout time.Duration) error {
	if timeout > brief {
		d.compute(f)
	} else {
		signal(d.more)
	}
	d.timer.Reset(max(0, timeout))
	defer d.timer.Stop()
	for late := timeout <= 0; ; {
		d.mu.Lock()
		done, last := d.done, d.last
		d.mu.Unlock()
		switch {
		case f <= done:
			return nil
		case f > last:
			return d.errorf("wait for submission %d of %d", f, last)
		case late:
			return driver.ErrTimeout
		}
		select {
		case <-d.ended:
		case <-d.timer.C:
			late = true
		}
	}
}

// Stop ends submissions up to f between two of their stages.
func (d *device) Stop(f driver.Fence) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop = max(d.stop, f)
	if len(d.queue) > 0 && d.done < f {
		d.team.stop()
	}
}

// stopped says whether submission f need not go on.
func (d *device) stopped(f driver.Fence) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return f <= d.stop || d.closed
}

// run takes submissions until the device is closed.
func (d *device) run() {
	defer close(d.over)
	for range d.more {
		d.compute(math.MaxUint64)
		d.mu.Lock()
		closed := d.closed
		d.mu.Unlock()
		if closed {
			return
		}
	}
}

// compute does the submissions up to f, and frees what is not in use any more.
func (d *device) compute(f driver.Fence) {
	d.turn.Lock()
	defer d.turn.Unlock()
	for d.next(f) {
	}
}

// next does a submission; false if there is none up to f.
func (d *device) next(most driver.Fence) bool {
	d.owned.Sweep(d.behind)
	d.mu.Lock()
	if d.closed || len(d.queue) == 0 || d.done >= most {
		d.mu.Unlock()
		return false
	}
	works, f := d.queue[0], d.done+1
	d.mu.Unlock()
	for i := 0; i < len(works); {
		times := 1
		for i+times < len(works) && works[i+times] == works[i] {
			times++
		}
		works[i].run(d, f, times)
		i += times
	}
	d.mu.Lock()
	if f <= d.stop {
		d.team.resume()
	}
	d.queue = append(d.queue[:0], d.queue[1:]...)
	d.lists = append(d.lists, works[:0])
	d.done = f
	d.mu.Unlock()
	signal(d.ended)
	return true
}

// job makes passes over a table, unless submission f is stopped.
func (d *device) job(p *program, f driver.Fence, times int) {
	if d.stopped(f) {
		return
	}
	j := job{p, p.passes, p.passes + uint64(times)}
	if p.passes = j.end; !d.team.run(j) {
		d.team.leave()
		p.reset()
	}
}

// free releases a resource once what was submitted before has ended.
func (d *device) free(r resource) {
	d.mu.Lock()
	last := d.last
	d.mu.Unlock()
	d.owned.Free(r, last)
	signal(d.more)
}

// behind is the last submission that has ended, also for threads that are late and may look at its tables.
func (d *device) behind() (driver.Fence, error) {
	d.team.leave()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done, nil
}

// Close ends what runs, the threads, and frees all.
func (d *device) Close() {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return
	}
	d.closed = true
	d.team.stop()
	d.mu.Unlock()
	signal(d.more)
	<-d.over
	d.turn.Lock()
	defer d.turn.Unlock()
	d.team.close()
	d.owned.Close()
	d.queue = nil
	d.shelf.close()
	if d.code != nil {
		d.code.mapped.Free()
	}
}

// memory is some of the host's.
type memory struct {
	dev   *device
	kind  driver.Kind
	bytes []byte
	own   *native.Memory // nil: somebody else frees it
}

// Alloc takes memory.
func (d *device) Alloc(bytes int64, kind driver.Kind) (driver.Memory, error) {
	if bytes <= 0 {
		return nil, d.errorf("allocate %d bytes", bytes)
	}
	own, err := native.AllocMemory(bytes)
	if err != nil {
		return nil, d.errorf("%w", err)
	}
	m := &memory{dev: d, kind: kind, bytes: own.Bytes, own: own}
	d.owned.Own(m)
	return m, nil
}

func (m *memory) Address() uint64 { return uint64(addressOf(m.bytes)) }
func (m *memory) Size() int64     { return int64(len(m.bytes)) }
func (m *memory) Bytes() []byte   { return m.bytes }
func (m *memory) Free()           { m.dev.free(m) }
func (m *memory) release()        { m.own.Free() }

// clock holds ticks of the processor's clock.
type clock struct {
	dev   *device
	own   *native.Memory
	began time.Time // the work that stamped slot 0 last
	tick  float64   // nanoseconds
}

// Clock makes slots for times.
func (d *device) Clock(slots int) (driver.Clock, error) {
	own, err := native.AllocMemory(8 * int64(slots))
	if err != nil {
		return nil, d.errorf("%w", err)
	}
	k := &clock{dev: d, own: own}
	d.owned.Own(k)
	return k, nil
}

// Read turns ticks into times.
func (k *clock) Read() ([]time.Duration, error) {
	ticks := numbers[uint64](k.own.Bytes)
	times := make([]time.Duration, len(ticks))
	for i, t := range ticks {
		times[i] = time.Duration(float64(int64(t-ticks[0])) * k.tick)
	}
	return times, nil
}

func (k *clock) Free()    { k.dev.free(k) }
func (k *clock) release() { k.own.Free() }

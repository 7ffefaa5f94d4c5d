// Package fake is a device for tests of the executor: it computes with Go functions, writes down what is submitted, and
// fails when told to. It is also the least that a back end is.
package fake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/driver"
)

// Kernel computes a dispatch. Arguments are memory from their addresses to the end of the allocation.
type Kernel func(arguments [][]byte, grid [3]uint32)

// Device is a device with one queue. Its fields are set before it is used.
type Device struct {
	Largest int64 // bytes of an allocation; 0 for any
	Most    int64 // bytes of all; 0 for any
	Shared  bool  // all memory is the host's
	// Fail is asked at every call of a verb, with the calls of it before, and at every submission that runs, as "run".
	// An error is what the call returns; with driver.ErrLost in it the device is lost from then on. It must not call
	// the device.
	Fail func(verb string, before int) error

	kernels      map[string]Kernel
	mu           sync.Mutex
	changed      *sync.Cond // with mu: a submission was made or has ended, or the fields below have changed
	held, closed bool
	lost         error
	plan         *plans.Plan
	calls        map[string]int
	log          []string
	live         []*memory
	next         uint64 // address
	queue        [][]driver.Stage
	last         driver.Fence // submitted
	done         driver.Fence
	order        *rand.Rand
}

// New makes a device that computes with the kernels, by names of modules. Close ends it.
func New(kernels map[string]Kernel) *Device {
	d := &Device{kernels: kernels, calls: map[string]int{}, next: 1 << 32, order: rand.New(rand.NewPCG(1, 2))}
	d.changed = sync.NewCond(&d.mu)
	go d.run()
	return d
}

// Log is a line for every submission since Log was called last: its stages in braces.
func (d *Device) Log() (log []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	log, d.log = d.log, nil
	return log
}

// Hold makes the queue stand still, so that no submission ends, or run again.
func (d *Device) Hold(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = on
	d.changed.Broadcast()
}

// Used is the bytes of memory that is not freed.
func (d *Device) Used() (bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.live {
		bytes += int64(len(m.bytes))
	}
	return bytes
}

// fail is the error of a call. The caller holds mu.
func (d *Device) fail(verb string) error {
	n := d.calls[verb]
	d.calls[verb]++
	if d.Fail == nil {
		return nil
	}
	err := d.Fail(verb, n)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("device fake: %s: %w", verb, err)
	if errors.Is(err, driver.ErrLost) {
		d.lose(err)
	}
	return err
}

// lose ends all work with an error. The caller holds mu.
func (d *Device) lose(err error) {
	d.lost = err
	d.changed.Broadcast()
}

// Info is what the device is.
func (d *Device) Info() driver.Info {
	return driver.Info{Backend: "Fake", Name: "fake", Driver: "fake 1", Largest: d.Largest}
}

type memory struct {
	dev     *Device
	address uint64
	bytes   []byte
	kind    driver.Kind
	freed   bool
	after   driver.Fence // freed behind it
}

// Alloc gives memory whose content is rubbish.
func (d *Device) Alloc(bytes int64, kind driver.Kind) (driver.Memory, error) {
	used := d.Used()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fail("alloc"); err != nil {
		return nil, err
	}
	if bytes <= 0 || d.Largest != 0 && bytes > d.Largest || d.Most != 0 && used+bytes > d.Most {
		return nil, fmt.Errorf("device fake: allocate %d bytes: %d of %d are used, one allocation is limited to %d", bytes, used, d.Most, d.Largest)
	}
	m := &memory{dev: d, address: d.next, bytes: slices.Repeat([]byte{0xa5}, int(bytes)), kind: kind}
	d.next += uint64(bytes+511) / 256 * 256 // a gap behind each
	d.live = append(d.live, m)
	return m, nil
}

func (m *memory) Address() uint64 { return m.address }
func (m *memory) Size() int64     { return int64(len(m.bytes)) }
func (m *memory) Bytes() []byte {
	if m.kind == driver.Local && !m.dev.Shared {
		return nil
	}
	return m.bytes
}

func (m *memory) Free() {
	m.dev.mu.Lock()
	defer m.dev.mu.Unlock()
	m.freed, m.after = true, m.dev.last
	m.dev.sweep()
}

// sweep drops memory that was freed and is no longer in use. The caller holds mu.
func (d *Device) sweep() {
	d.live = slices.DeleteFunc(d.live, func(m *memory) bool { return m.freed && m.after <= d.done })
}

// Load takes plans whose modules are all among the kernels.
func (d *Device) Load(_ context.Context, plan *plans.Plan) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range plan.Modules {
		if d.kernels[m.Name] == nil {
			return fmt.Errorf("device fake: no kernel %s", m.Name)
		}
	}
	d.plan = plan
	return d.fail("load")
}

type work struct {
	stages []driver.Stage
	text   string
}

func (w *work) Free() {}

// Record checks what it can.
func (d *Device) Record(stages ...driver.Stage) (driver.Work, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := &work{stages: slices.Clone(stages)}
	for i, s := range stages {
		w.stages[i].Copies = slices.Clone(s.Copies)
		var parts []string
		for _, p := range s.Dispatches {
			part := d.module(p.Pipeline)
			if p.Queue != 0 {
				part += fmt.Sprintf(" on queue %d", p.Queue)
			}
			if p.Early {
				part += " early"
			}
			parts = append(parts, part)
		}
		for _, c := range s.Copies {
			if c.Bytes <= 0 || c.ToAt < 0 || c.FromAt < 0 || c.ToAt+c.Bytes > c.To.Size() || c.FromAt+c.Bytes > c.From.Size() {
				return nil, fmt.Errorf("device fake: a copy of %d bytes from %d of %d to %d of %d", c.Bytes, c.FromAt, c.From.Size(), c.ToAt, c.To.Size())
			}
			parts = append(parts, fmt.Sprintf("copy %d %s to %s", c.Bytes, kindNames[c.From.(*memory).kind], kindNames[c.To.(*memory).kind]))
		}
		w.text += " {" + strings.Join(parts, ", ") + "}"
	}
	return w, d.fail("record")
}

var kindNames = [...]string{driver.Local: "local", driver.Upload: "upload", driver.Readback: "readback"}

func (d *Device) module(pipeline int) string {
	return d.plan.Modules[d.plan.Pipelines[pipeline].Module].Name
}

// Submit appends to the queue.
func (d *Device) Submit(works ...driver.Work) (driver.Fence, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fail("submit"); err != nil || d.lost != nil {
		return 0, cmp.Or(err, d.lost)
	}
	var list []driver.Stage
	text := ""
	for _, w := range works {
		list = append(list, w.(*work).stages...)
		text += w.(*work).text
	}
	d.last++
	d.log = append(d.log, fmt.Sprintf("%d:%s", d.last, text))
	d.queue = append(d.queue, list)
	d.changed.Broadcast()
	return d.last, nil
}

// run takes submissions from the queue until the device is closed or lost.
func (d *Device) run() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		for d.lost == nil && !d.closed && (d.held || len(d.queue) == 0) {
			d.changed.Wait()
		}
		if d.lost != nil || d.closed {
			return
		}
		err := d.fail("run")
		stages := d.queue[0]
		d.mu.Unlock()
		for _, s := range stages {
			err = cmp.Or(err, d.stage(s))
		}
		d.mu.Lock()
		if err != nil {
			d.lose(fmt.Errorf("%w: %w", err, driver.ErrLost))
			return
		}
		d.queue, d.done = d.queue[1:], d.done+1
		d.sweep()
		d.changed.Broadcast()
	}
}

// stage does what a stage says, in any order.
func (d *Device) stage(s driver.Stage) error {
	for _, i := range d.order.Perm(len(s.Dispatches) + len(s.Copies)) {
		if i >= len(s.Dispatches) {
			c := s.Copies[i-len(s.Dispatches)]
			copy(c.To.(*memory).bytes[c.ToAt:c.ToAt+c.Bytes], c.From.(*memory).bytes[c.FromAt:])
			continue
		}
		p := s.Dispatches[i]
		arguments := make([][]byte, len(p.Arguments))
		for j, a := range p.Arguments {
			if arguments[j] = d.at(a); arguments[j] == nil {
				return fmt.Errorf("device fake: %s: nothing is at %#x", d.module(p.Pipeline), a)
			}
		}
		d.kernels[d.module(p.Pipeline)](arguments, p.Grid)
	}
	if k, ok := s.Stamp.Clock.(*clock); ok {
		k.now++
		k.times[s.Stamp.Slot] = k.now
	}
	return nil
}

// at is the memory from an address on, nil if none is there.
func (d *Device) at(address uint64) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.live, func(m *memory) bool { return address >= m.address && address < m.address+uint64(len(m.bytes)) })
	if i < 0 {
		return nil
	}
	return d.live[i].bytes[address-d.live[i].address:]
}

// Wait waits as the contract says.
func (d *Device) Wait(f driver.Fence, timeout time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fail("wait"); err != nil {
		return err
	}
	if f > d.last {
		return fmt.Errorf("device fake: wait for submission %d of %d", f, d.last)
	}
	return d.wait(f, timeout)
}

// wait waits for a submission or the loss of the device. The caller holds mu.
func (d *Device) wait(f driver.Fence, timeout time.Duration) error {
	late := timeout <= 0
	timer := time.AfterFunc(timeout, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		late = true
		d.changed.Broadcast()
	})
	defer timer.Stop()
	for d.done < f && d.lost == nil {
		if late {
			return driver.ErrTimeout
		}
		d.changed.Wait()
	}
	return d.lost
}

// clock counts stages.
type clock struct {
	times []time.Duration
	now   time.Duration
}

// Clock counts stages: each takes a nanosecond.
func (d *Device) Clock(slots int) (driver.Clock, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &clock{times: make([]time.Duration, slots)}, d.fail("clock")
}

func (k *clock) Free() {}

func (k *clock) Read() ([]time.Duration, error) {
	since := slices.Clone(k.times)
	for i := range since {
		since[i] -= k.times[0]
	}
	return since, nil
}

// Close ends the queue. Memory goes if no submission is left.
func (d *Device) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.wait(d.last, time.Second); err != driver.ErrTimeout {
		d.live = nil
	}
	d.closed = true
	d.changed.Broadcast()
}

package cuda

import (
	"slices"
	"unsafe"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/runtime/driver"
)

// work is recorded stages: a graph, which is made once and never changed, or where there are no kernels the copies and
// times themselves, which take less to begin so.
type work struct {
	dev    *Device
	graph  uintptr // 0 if there is none
	stages []driver.Stage
}

// Record makes a graph of stages with kernels.
func (d *Device) Record(stages ...driver.Stage) (driver.Work, error) {
	return d.record(d.functions, stages)
}

func (d *Device) record(functions []*function, stages []driver.Stage) (*work, error) {
	w := &work{dev: d}
	if !slices.ContainsFunc(stages, func(s driver.Stage) bool { return len(s.Dispatches) > 0 }) {
		w.stages = slices.Clone(stages)
		for i := range stages {
			w.stages[i].Copies = slices.Clone(stages[i].Copies)
		}
		return w, nil
	}
	c, err := d.newCapture(functions, stages)
	if err != nil {
		return nil, err
	}
	defer c.free()
	if w.graph, err = c.graph(stages); err != nil {
		return nil, err
	}
	// Else the first launch does it.
	if err := d.call(cuGraphUpload, w.graph, d.stream); err != nil {
		w.release()
		return nil, d.errorf("upload: %w", err)
	}
	d.owned.Own(w)
	return w, nil
}

// begin puts the work on the stream.
func (w *work) begin(stream uintptr) error {
	if w.graph != 0 {
		return w.dev.call(cuGraphLaunch, w.graph, stream)
	}
	for _, s := range w.stages {
		if err := w.dev.finish(stream, s, 0); err != nil {
			return err
		}
	}
	return nil
}

// Free frees the graph once nothing uses it.
func (w *work) Free() { w.dev.free(w) }

func (w *work) release() { _ = w.dev.call(cuGraphExecDestroy, w.graph) }

// finish puts the copies of a stage on a stream, and its stamp.
func (d *Device) finish(stream uintptr, s driver.Stage, flags uintptr) error {
	for _, c := range s.Copies {
		to, from := c.To.Address()+uint64(c.ToAt), c.From.Address()+uint64(c.FromAt)
		if err := d.call(cuMemcpyAsync, uintptr(to), uintptr(from), uintptr(c.Bytes), stream); err != nil {
			return err
		}
	}
	if k, ok := s.Stamp.Clock.(*clock); ok {
		return d.call(cuEventRecordWithFlags, k.events[s.Stamp.Slot], stream, flags)
	}
	return nil
}

// capture records a graph: the stream that it is the record of, and one beside it for each queue from 1 on.
type capture struct {
	dev       *Device
	functions []*function
	streams   []uintptr
	fork      uintptr   // event on the first
	joins     []uintptr // events at the end of what runs in each of the others
}

// newCapture makes as many streams as the stages have queues. They are not the device's, on which things go on
// meanwhile.
func (d *Device) newCapture(functions []*function, stages []driver.Stage) (*capture, error) {
	c := &capture{dev: d, functions: functions}
	last := 0
	for _, s := range stages {
		for _, p := range s.Dispatches {
			last = max(last, p.Queue)
		}
	}
	err := c.open(last)
	if err != nil {
		c.free()
		return nil, d.errorf("record: %w", err)
	}
	return c, nil
}

func (c *capture) open(last int) (err error) {
	if c.fork, err = c.dev.event(noTime); err != nil {
		return err
	}
	for queue := range last + 1 {
		const nonBlocking = 1
		var s uintptr
		if err := c.dev.call(cuStreamCreate, uintptr(unsafe.Pointer(&s)), nonBlocking); err != nil {
			return err
		}
		c.streams = append(c.streams, s)
		if queue == 0 {
			continue
		}
		join, err := c.dev.event(noTime)
		if err != nil {
			return err
		}
		c.joins = append(c.joins, join)
	}
	return nil
}

func (c *capture) free() {
	for _, s := range c.streams {
		_ = c.dev.call(cuStreamDestroy, s)
	}
	for _, e := range append(c.joins, c.fork) {
		if e != 0 {
			_ = c.dev.call(cuEventDestroy, e)
		}
	}
}

// graph makes the graph of the stages.
func (c *capture) graph(stages []driver.Stage) (graph uintptr, err error) {
	const relaxed = 2 // other threads may go on meanwhile
	d, main := c.dev, c.streams[0]
	if err := d.call(cuStreamBeginCapture, main, relaxed); err != nil {
		return 0, d.errorf("capture: %w", err)
	}
	for _, s := range stages {
		const external = 1 // the event is of the graph, not of its making
		if err = c.dispatches(s.Dispatches); err != nil {
			break
		}
		if err = d.finish(main, s, external); err != nil {
			err = d.errorf("capture: %w", err)
			break
		}
	}
	var recorded uintptr
	if end := d.call(cuStreamEndCapture, main, uintptr(unsafe.Pointer(&recorded))); err == nil && end != nil {
		err = d.errorf("capture: %w", end)
	}
	if recorded != 0 {
		defer func() { _ = d.call(cuGraphDestroy, recorded) }()
	}
	if err != nil {
		return 0, err
	}
	if err := d.call(cuGraphInstantiate, uintptr(unsafe.Pointer(&graph)), recorded, 0); err != nil {
		return 0, d.errorf("graph: %w", err)
	}
	return graph, nil
}

// dispatches launches the dispatches of a stage, each on the stream of its queue, behind what is on the main one and
// before what comes there next.
func (c *capture) dispatches(list []driver.Dispatch) error {
	d, main := c.dev, c.streams[0]
	var used [ir.Queues]bool
	if slices.ContainsFunc(list, func(p driver.Dispatch) bool { return p.Queue != 0 }) {
		if err := d.call(cuEventRecord, c.fork, main); err != nil {
			return d.errorf("fork: %w", err)
		}
	}
	for i := range list {
		p := &list[i]
		stream := c.streams[p.Queue]
		if p.Queue != 0 && !used[p.Queue] {
			if err := d.call(cuStreamWaitEvent, stream, c.fork, 0); err != nil {
				return d.errorf("fork: %w", err)
			}
		}
		used[p.Queue] = true
		if err := c.functions[p.Pipeline].launch(d, stream, p.Grid, p.Arguments, p.Early); err != nil {
			return d.errorf("%s: %w", p.Site, err)
		}
	}
	for queue := 1; queue < len(used); queue++ {
		if !used[queue] {
			continue
		}
		if err := d.call(cuEventRecord, c.joins[queue-1], c.streams[queue]); err != nil {
			return d.errorf("join: %w", err)
		}
		if err := d.call(cuStreamWaitEvent, main, c.joins[queue-1], 0); err != nil {
			return d.errorf("join: %w", err)
		}
	}
	return nil
}

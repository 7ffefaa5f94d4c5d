package cuda

import (
	"slices"
	"unsafe"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// graph is the work of an entry, made once and launched any number of times.
type graph struct {
	dev    *Device
	handle uintptr
}

func (g *graph) launch() error {
	if err := g.dev.call(cuGraphLaunch, g.handle, g.dev.stream); err != nil {
		return g.dev.errorf("launch: %w", err)
	}
	return nil
}

// upload brings it to the device, which the first launch does else.
func (g *graph) upload() error {
	if err := g.dev.call(cuGraphUpload, g.handle, g.dev.stream); err != nil {
		return g.dev.errorf("upload: %w", err)
	}
	return nil
}

func (g *graph) free() {
	if g != nil && g.handle != 0 {
		_ = g.dev.call(cuGraphExecDestroy, g.handle)
		g.handle = 0
	}
}

// launchConfig is CUlaunchConfig.
type launchConfig struct {
	grid, block [3]uint32
	shared      uint32
	_           uint32
	stream      uintptr
	attributes  *launchAttribute
	count       uint32
	_           uint32
}

// launchAttribute is CUlaunchAttribute.
type launchAttribute struct {
	id    uint32
	_     uint32
	value [16]uint32
}

// dispatch launches a dispatch on a stream. If early it begins while the one before there runs.
func (x *Executor) dispatch(stream uintptr, e *plans.Entry, i int, of work, early bool) error {
	d, arguments := &e.Dispatches[i], x.memory.arguments[e.Name][i]
	if of.from != nil {
		d, arguments = x.instead(e, i, of.from(i))
	}
	grid := [3]uint32{uint32(d.Grid[0]), uint32(d.Grid[1]), uint32(d.Grid[2])}
	if err := x.functions[d.Pipeline].launch(x.dev, stream, grid, arguments, early); err != nil {
		return x.dev.errorf("%s: %s: %w", e.Name, d.Site, err)
	}
	return nil
}

// work is how an entry is made a graph.
type work struct {
	// stamp, if not nil, is called with the number of dispatches before, 0 at first. Each waits for the one before
	// then.
	stamp func(i int) error
	// from, if not nil, returns the copy of the entry whose kernel computes dispatch i.
	from func(i int) *plans.Entry
}

// launch launches a kernel with the addresses of its arguments.
func (f *function) launch(d *Device, stream uintptr, grid [3]uint32, arguments []uint64, early bool) error {
	pointers := make([]unsafe.Pointer, len(arguments))
	for i := range arguments {
		pointers[i] = unsafe.Pointer(&arguments[i])
	}
	c := &launchConfig{grid: grid, block: [3]uint32{uint32(f.workgroup), 1, 1}, shared: uint32(f.shared), stream: stream}
	if early {
		const programmaticStreamSerialization = 6
		c.attributes, c.count = &launchAttribute{id: programmaticStreamSerialization, value: [16]uint32{1}}, 1
	}
	return d.call(cuLaunchKernelEx, uintptr(unsafe.Pointer(c)), f.handle, uintptr(unsafe.Pointer(unsafe.SliceData(pointers))), 0)
}

// capture makes a graph of the work that record puts on the stream.
func (d *Device) capture(record func() error) (*graph, error) {
	const relaxed = 2 // other threads may go on meanwhile
	if err := d.call(cuStreamBeginCapture, d.stream, relaxed); err != nil {
		return nil, d.errorf("capture: %w", err)
	}
	err := record()
	var recorded uintptr
	if end := d.call(cuStreamEndCapture, d.stream, uintptr(unsafe.Pointer(&recorded))); err == nil && end != nil {
		err = d.errorf("capture: %w", end)
	}
	if recorded != 0 {
		defer func() { _ = d.call(cuGraphDestroy, recorded) }()
	}
	if err != nil {
		return nil, err
	}
	g := &graph{dev: d}
	if err := d.call(cuGraphInstantiate, uintptr(unsafe.Pointer(&g.handle)), recorded, 0); err != nil {
		return nil, d.errorf("graph: %w", err)
	}
	return g, nil
}

// entry makes the graph of an entry.
func (x *Executor) entry(e *plans.Entry, of work) (*graph, error) {
	lanes, err := x.lanes(e)
	if err != nil {
		return nil, err
	}
	defer lanes.free()
	return x.dev.capture(func() error { return x.record(e, lanes, of) })
}

// record puts the dispatches of an entry on streams, as the plan says.
func (x *Executor) record(e *plans.Entry, l *lanes, of work) error {
	if of.stamp != nil {
		return x.recordTimed(e, of)
	}
	for from, to := range e.Batches() {
		if err := x.batch(e, from, to, l, of); err != nil {
			return err
		}
	}
	return nil
}

// recordTimed puts all dispatches on the main stream, with a stamp behind each.
func (x *Executor) recordTimed(e *plans.Entry, of work) error {
	if err := of.stamp(0); err != nil {
		return err
	}
	for i := range e.Dispatches {
		if err := x.dispatch(x.dev.stream, e, i, of, false); err != nil {
			return err
		}
		if err := of.stamp(i + 1); err != nil {
			return err
		}
	}
	return nil
}

// batch launches the dispatches of a batch, each on the stream of its queue, behind what is on the main one and before
// what comes there next.
func (x *Executor) batch(e *plans.Entry, from, to int, l *lanes, of work) error {
	call, main := x.dev.call, x.dev.stream
	list := e.Dispatches[from:to]
	var used [ir.Queues]bool
	if slices.ContainsFunc(list, func(d plans.Dispatch) bool { return d.Queue != 0 }) {
		if err := call(cuEventRecord, l.fork, main); err != nil {
			return x.dev.errorf("fork: %w", err)
		}
	}
	for i := range list {
		d, stream := &list[i], main
		if d.Queue != 0 {
			stream = l.streams[d.Queue-1]
			if !used[d.Queue] {
				if err := call(cuStreamWaitEvent, stream, l.fork, 0); err != nil {
					return x.dev.errorf("fork: %w", err)
				}
			}
			used[d.Queue] = true
		}
		if err := x.dispatch(stream, e, from+i, of, d.BeginsEarly()); err != nil {
			return err
		}
		if d.Queue != 0 {
			if err := call(cuEventRecord, l.joins[d.Queue-1], stream); err != nil {
				return x.dev.errorf("join: %w", err)
			}
		}
	}
	for queue, used := range used {
		if used {
			if err := call(cuStreamWaitEvent, main, l.joins[queue-1], 0); err != nil {
				return x.dev.errorf("join: %w", err)
			}
		}
	}
	return nil
}

// lanes are streams beside the main one, for the queues from 1 on.
type lanes struct {
	dev     *Device
	streams []uintptr
	joins   []uintptr // events at the end of what runs in each
	fork    uintptr
}

// lanes makes as many as the entry has queues.
func (x *Executor) lanes(e *plans.Entry) (*lanes, error) {
	l := &lanes{dev: x.dev}
	last := 0
	for i := range e.Dispatches {
		last = max(last, e.Dispatches[i].Queue)
	}
	const nonBlocking = 1
	var err error
	if l.fork, err = x.dev.event(); err != nil {
		return nil, err
	}
	for range last {
		var s uintptr
		if err := x.dev.call(cuStreamCreate, uintptr(unsafe.Pointer(&s)), nonBlocking); err != nil {
			l.free()
			return nil, x.dev.errorf("stream: %w", err)
		}
		l.streams = append(l.streams, s)
		join, err := x.dev.event()
		if err != nil {
			l.free()
			return nil, err
		}
		l.joins = append(l.joins, join)
	}
	return l, nil
}

func (l *lanes) free() {
	for _, s := range l.streams {
		_ = l.dev.call(cuStreamDestroy, s)
	}
	for _, e := range append(l.joins, l.fork) {
		_ = l.dev.call(cuEventDestroy, e)
	}
}

package cuda

import (
	"unsafe"

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

// dispatch launches a dispatch on a stream. With overlap it begins while the one before there runs.
func (x *Executor) dispatch(stream uintptr, e *plans.Entry, i int, of work, overlap bool) error {
	d, arguments := &e.Dispatches[i], x.memory.arguments[e.Name][i]
	if of.from != nil {
		d, arguments = x.instead(e, i, of.from(i))
	}
	grid := [3]uint32{uint32(d.Grid[0]), uint32(d.Grid[1]), uint32(d.Grid[2])}
	if err := x.functions[d.Pipeline].launch(x.dev, stream, grid, arguments, overlap); err != nil {
		return x.dev.errorf("%s: %s: %w", e.Name, d.Site, err)
	}
	return nil
}

// work is how an entry is made a graph.
type work struct {
	// stamp, if not nil, is called with the number of dispatches before, 0 at first. Each is a step of its own then.
	stamp func(i int) error
	// from, if not nil, returns the copy of the entry whose kernel computes dispatch i.
	from func(i int) *plans.Entry
}

// launch launches a kernel with the addresses of its arguments.
func (f *function) launch(d *Device, stream uintptr, grid [3]uint32, arguments []uint64, overlap bool) error {
	pointers := make([]unsafe.Pointer, len(arguments))
	for i := range arguments {
		pointers[i] = unsafe.Pointer(&arguments[i])
	}
	c := &launchConfig{grid: grid, block: [3]uint32{uint32(f.workgroup), 1, 1}, shared: uint32(f.shared), stream: stream}
	if overlap {
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

// entry makes the graph of an entry: dispatches of one step side by side, steps one after the
// other.
func (x *Executor) entry(e *plans.Entry, of work) (*graph, error) {
	lanes, err := x.lanes(e)
	if err != nil {
		return nil, err
	}
	defer lanes.free()
	return x.dev.capture(func() error { return x.record(e, lanes, of) })
}

func (x *Executor) record(e *plans.Entry, l *lanes, of work) error {
	stamp := of.stamp
	if stamp != nil {
		if err := stamp(0); err != nil {
			return err
		}
	}
	overlaps := x.plan.Require.CUDA.Overlap && stamp == nil
	alone := false // the step before has one dispatch
	for i := 0; i < len(e.Dispatches); {
		n := 1
		for stamp == nil && i+n < len(e.Dispatches) && e.Dispatches[i+n].Step == e.Dispatches[i].Step {
			n++
		}
		overlap := overlaps && alone && n == 1
		alone = n == 1
		err := l.beside(x.dev.stream, n, e.Exact(), func(j int, stream uintptr) error { return x.dispatch(stream, e, i+j, of, overlap) })
		if err == nil && stamp != nil {
			err = stamp(i + 1)
		}
		if err != nil {
			return err
		}
		i += n
	}
	return nil
}

// lanes are streams beside the main one, for dispatches of one step.
type lanes struct {
	dev     *Device
	streams []uintptr
	joins   []uintptr // events at the end of what runs in each
	fork    uintptr
}

// lanes makes as many as the widest step of the entry needs.
func (x *Executor) lanes(e *plans.Entry) (*lanes, error) {
	l := &lanes{dev: x.dev}
	widest, n := 1, 0
	for i, d := range e.Dispatches {
		if n++; i > 0 && d.Step != e.Dispatches[i-1].Step {
			n = 1
		}
		widest = max(widest, n)
	}
	const nonBlocking = 1
	var err error
	if l.fork, err = x.dev.event(); err != nil {
		return nil, err
	}
	for range widest - 1 {
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

// beside calls do n times, each with a stream of its own, behind what is on the main one and before what comes there
// next. The last is on the main one, and first: what the device begins with delays the others. Of few rows the first is
// on the main one, and last (docs/lab/hybrids.md).
func (l *lanes) beside(stream uintptr, n int, few bool, do func(i int, stream uintptr) error) error {
	call := l.dev.call
	if n > 1 {
		if err := call(cuEventRecord, l.fork, stream); err != nil {
			return l.dev.errorf("fork: %w", err)
		}
	}
	if !few {
		if err := do(n-1, stream); err != nil {
			return err
		}
	}
	for side := range n - 1 {
		i := n - 2 - side
		if few {
			i = side + 1
		}
		s, join := l.streams[side], l.joins[side]
		if err := call(cuStreamWaitEvent, s, l.fork, 0); err != nil {
			return l.dev.errorf("fork: %w", err)
		}
		if err := do(i, s); err != nil {
			return err
		}
		if err := call(cuEventRecord, join, s); err != nil {
			return l.dev.errorf("join: %w", err)
		}
	}
	if few {
		if err := do(0, stream); err != nil {
			return err
		}
	}
	for _, join := range l.joins[:n-1] {
		if err := call(cuStreamWaitEvent, stream, join, 0); err != nil {
			return l.dev.errorf("join: %w", err)
		}
	}
	return nil
}

func (l *lanes) free() {
	for _, s := range l.streams {
		_ = l.dev.call(cuStreamDestroy, s)
	}
	for _, e := range append(l.joins, l.fork) {
		_ = l.dev.call(cuEventDestroy, e)
	}
}

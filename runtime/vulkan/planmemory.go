package vulkan

import (
	"context"
	"fmt"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/internal/contents"
)

const (
	// placeAlign is the alignment of everything inside a buffer.
	placeAlign = 256
	// poolBytes is the size of the buffers that weights and caches share, unless
	// one of them is larger or the device allows less.
	poolBytes = 1 << 30
	// stagingBytes is the size of a staging buffer.
	stagingBytes = 16 << 20
)

// place is where something lies on the device, and where the host finds it after
// a fetch; back is -1 for what is not fetched.
type place struct {
	buf   *Buffer
	at    int64
	bytes int64
	back  int64
}

func (p place) address() uint64 { return p.buf.Address() + uint64(p.at) }

// memory is all of a plan's memory on a device.
type memory struct {
	dev       *Device
	weights   map[string]place
	regions   map[string]place // tables, caches, step block and io, by name
	arena     *Buffer
	step      *Buffer               // the step block
	stepHost  *Buffer               // what the host writes of it
	back      *Buffer               // step block and io as the host reads them
	arguments map[string][][]uint64 // addresses of each dispatch's arguments, by entry
}

func newMemory(ctx context.Context, dev *Device, plan *plans.Plan, src *plans.Source, progress func(int64)) (*memory, error) {
	m := &memory{dev: dev, weights: map[string]place{}, regions: map[string]place{}, arguments: map[string][][]uint64{}}
	up, err := dev.NewUploader(stagingBytes, progress)
	if err != nil {
		return nil, err
	}
	defer up.Close()
	for _, f := range []func() error{
		func() error { return m.placeWeights(plan) },
		func() error { return m.placeRegions(plan) },
		func() error { return contents.Weights(ctx, plan, src, writer(up, m.weights)) },
		func() error { return contents.Tables(ctx, plan, writer(up, m.regions)) },
		func() error { return m.findArguments(plan) },
		up.Flush,
	} {
		if err := f(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// writer uploads to places.
func writer(up *Uploader, places map[string]place) contents.Writer {
	return func(name string, bytes int64, fill func(p []byte, at int64) error) error {
		return up.Write(places[name].buf, places[name].at, bytes, fill)
	}
}

// pool hands out places in buffers of a common size.
type pool struct {
	dev   *Device
	sizes []int64 // bytes of each buffer
	items []poolItem
}

type poolItem struct {
	name   string
	bytes  int64
	buffer int
	at     int64
}

func (p *pool) add(name string, bytes int64) {
	limit := int64(poolBytes)
	if l := p.dev.Info.Limits.AllocationSize; l != 0 {
		limit = min(limit, int64(l))
	}
	last := len(p.sizes) - 1
	if last < 0 || p.sizes[last]+bytes > limit {
		p.sizes = append(p.sizes, 0)
		last++
	}
	p.items = append(p.items, poolItem{name, bytes, last, p.sizes[last]})
	p.sizes[last] += (bytes + placeAlign - 1) / placeAlign * placeAlign
}

// allocate makes the buffers and enters every item into places.
func (p *pool) allocate(places map[string]place) error {
	buffers := make([]*Buffer, len(p.sizes))
	for i, n := range p.sizes {
		var err error
		if buffers[i], err = p.dev.Alloc(n, DeviceLocal); err != nil {
			return err
		}
	}
	for _, it := range p.items {
		places[it.name] = place{buffers[it.buffer], it.at, it.bytes, -1}
	}
	return nil
}

func (m *memory) placeWeights(plan *plans.Plan) error {
	p := pool{dev: m.dev}
	for _, w := range plan.Weights {
		p.add(w.Name, w.Bytes)
	}
	return p.allocate(m.weights)
}

func (m *memory) placeRegions(plan *plans.Plan) error {
	p := pool{dev: m.dev}
	for _, list := range [][]plans.Region{plan.Memory.KV, plan.Memory.State, plan.Memory.Tables, plan.Memory.IO} {
		for _, r := range list {
			p.add(r.Name, r.Bytes)
		}
	}
	if err := p.allocate(m.regions); err != nil {
		return err
	}
	var err error
	if m.arena, err = m.dev.Alloc(max(plan.Memory.Arena, placeAlign), DeviceLocal); err != nil {
		return err
	}
	size := int64(0)
	next := func(bytes int64) int64 {
		at := size
		size += (bytes + placeAlign - 1) / placeAlign * placeAlign
		return at
	}
	var step []place
	for _, r := range plan.Memory.Step {
		at := next(r.Bytes)
		step = append(step, place{nil, at, r.Bytes, at})
	}
	if m.step, err = m.dev.Alloc(size, DeviceLocal); err != nil {
		return err
	}
	if m.stepHost, err = m.dev.Alloc(size, Upload); err != nil {
		return err
	}
	clear(m.stepHost.Bytes())
	for i, r := range plan.Memory.Step {
		step[i].buf = m.step
		m.regions[r.Name] = step[i]
	}
	for _, r := range plan.Memory.IO {
		p := m.regions[r.Name]
		p.back = next(r.Bytes)
		m.regions[r.Name] = p
	}
	m.back, err = m.dev.Alloc(size, Readback)
	return err
}

// findArguments computes the addresses of the arguments of every dispatch.
func (m *memory) findArguments(plan *plans.Plan) error {
	for _, e := range plan.Entries {
		for _, d := range e.Dispatches {
			var list []uint64
			for _, a := range d.Args {
				addr, err := m.argument(a)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", e.Name, d.Site, err)
				}
				list = append(list, addr)
			}
			m.arguments[e.Name] = append(m.arguments[e.Name], list)
		}
	}
	return nil
}

func (m *memory) argument(a plans.Arg) (uint64, error) {
	p, err := m.locate(a, 0)
	if err != nil {
		return 0, fmt.Errorf("argument %s: %w", a.Name, err)
	}
	return p.address(), nil
}

// locate returns the place of n bytes at a.
func (m *memory) locate(a plans.Arg, n int64) (place, error) {
	var p place
	ok := true
	switch a.Space {
	case "arena":
		p = place{m.arena, 0, m.arena.Size(), -1}
	case "weight":
		p, ok = m.weights[a.Region]
	default:
		p, ok = m.regions[a.Region]
	}
	if !ok {
		return p, fmt.Errorf("no region %q in space %s", a.Region, a.Space)
	}
	if a.Offset < 0 || n > p.bytes-a.Offset {
		return p, fmt.Errorf("%d bytes at %d of %s %q, which has %d", n, a.Offset, a.Space, a.Region, p.bytes)
	}
	p.at += a.Offset
	p.bytes -= a.Offset
	return p, nil
}

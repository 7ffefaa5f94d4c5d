package cuda

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/internal/contents"
)

// placeAlign is the alignment of everything.
const placeAlign = 256

// place is where something lies on the device. step is where the host writes it, of the step
// block, and back where it finds it after a fetch; -1 where it does not.
type place struct {
	address    uint64
	bytes      int64
	step, back int64
}

// memory is all of a plan's memory on a device.
type memory struct {
	dev       *Device
	weights   map[string]place
	regions   map[string]place // tables, caches, step block and io, by name
	arena     place
	step      *allocation
	stepHost  *allocation           // what the host writes of it
	back      *allocation           // step block and io as the host reads them
	arguments map[string][][]uint64 // addresses of each dispatch's arguments, by entry
}

// newMemory takes the memory of a plan.
func newMemory(dev *Device, plan *plans.Plan) (*memory, error) {
	m := &memory{dev: dev, weights: map[string]place{}, regions: map[string]place{}, arguments: map[string][][]uint64{}}
	if err := m.place(plan); err != nil {
		return nil, err
	}
	return m, m.findArguments(plan)
}

// fill brings what lies there before the first step. Tables are computed while weights are read.
func (m *memory) fill(ctx context.Context, plan *plans.Plan, src *plans.Source, progress func(int64)) error {
	up, err := m.dev.newUploader(ctx, progress)
	if err != nil {
		return err
	}
	to := func(places map[string]place) contents.Writer {
		return func(name string, bytes int64, fill func(p []byte, at int64) error) error {
			return up.write(places[name].address, bytes, func(p []byte, at int64) error {
				if err := fill(p, at); err != nil {
					return fmt.Errorf("%q: %w", name, err)
				}
				return nil
			})
		}
	}
	var both errgroup.Group
	both.Go(func() error { return contents.Tables(up.ctx, plan, to(m.regions)) })
	both.Go(func() error { return contents.Weights(up.ctx, plan, src, to(m.weights)) })
	err = both.Wait()
	if end := up.finish(); end != nil { // what ended the others
		err = end
	}
	return err
}

// layout gives things places behind each other.
type layout struct {
	bytes int64
}

func (l *layout) next(bytes int64) (at int64) {
	at = l.bytes
	l.bytes += (bytes + placeAlign - 1) / placeAlign * placeAlign
	return at
}

func (m *memory) place(plan *plans.Plan) error {
	var weights, regions, step, back layout
	at := map[string]int64{}
	for _, w := range plan.Weights {
		at[w.Name] = weights.next(w.Bytes)
	}
	base, err := m.dev.alloc(weights.bytes)
	if err != nil {
		return err
	}
	for _, w := range plan.Weights {
		m.weights[w.Name] = place{base.address + uint64(at[w.Name]), w.Bytes, -1, -1}
	}
	for _, list := range [][]plans.Region{plan.Memory.KV, plan.Memory.State, plan.Memory.Tables, plan.Memory.IO} {
		for _, r := range list {
			m.regions[r.Name] = place{uint64(regions.next(r.Bytes)), r.Bytes, -1, -1}
		}
	}
	if base, err = m.dev.alloc(regions.bytes); err != nil {
		return err
	}
	for name, p := range m.regions {
		p.address += base.address
		m.regions[name] = p
	}
	for _, r := range plan.Memory.Step {
		from := step.next(r.Bytes)
		m.regions[r.Name] = place{uint64(from), r.Bytes, from, back.next(r.Bytes)}
	}
	if m.step, err = m.dev.alloc(step.bytes); err != nil {
		return err
	}
	for _, r := range plan.Memory.Step {
		p := m.regions[r.Name]
		p.address += m.step.address
		m.regions[r.Name] = p
	}
	for _, r := range plan.Memory.IO {
		p := m.regions[r.Name]
		p.back = back.next(r.Bytes)
		m.regions[r.Name] = p
	}
	arena, err := m.dev.alloc(max(plan.Memory.Arena, placeAlign))
	if err != nil {
		return err
	}
	m.arena = place{arena.address, arena.bytes, -1, -1}
	if m.stepHost, err = m.dev.allocHost(step.bytes); err != nil {
		return err
	}
	clear(m.stepHost.mapped)
	m.back, err = m.dev.allocHost(back.bytes)
	return err
}

// fetch reads back the step block and the ids that the entry chose.
func (m *memory) fetch(e *plans.Entry) error {
	err := m.dev.download(m.back.mapped[:m.step.bytes], m.step.address)
	if e.Next != "" && err == nil {
		r := m.regions[e.Next]
		err = m.dev.download(m.back.mapped[r.back:r.back+r.bytes], r.address)
	}
	if err != nil {
		return m.dev.errorf("%w", err)
	}
	return nil
}

// findArguments computes the addresses of the arguments of every dispatch.
func (m *memory) findArguments(plan *plans.Plan) error {
	for _, e := range plan.Entries {
		for _, d := range e.Dispatches {
			list := make([]uint64, len(d.Args))
			for i, a := range d.Args {
				p, err := m.locate(a, 0)
				if err != nil {
					return fmt.Errorf("%s: %s: argument %s: %w", e.Name, d.Site, a.Name, err)
				}
				list[i] = p.address
			}
			m.arguments[e.Name] = append(m.arguments[e.Name], list)
		}
	}
	return nil
}

// locate returns the place of n bytes at a.
func (m *memory) locate(a plans.Arg, n int64) (place, error) {
	p, ok := m.arena, true
	switch a.Space {
	case "arena":
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
	p.address += uint64(a.Offset)
	p.bytes -= a.Offset
	return p, nil
}

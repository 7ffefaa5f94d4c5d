package exec

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"slices"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/internal/contents"
)

const (
	// placeAlign is the alignment of everything inside a buffer.
	placeAlign = 256
	// poolBytes is the size of the buffers that weights and caches share, unless
	// one of them is larger or the device allows less.
	poolBytes = 1 << 30
)

// place is where something lies on the device. The host finds it at back: of a seat's memory if it is small, else of
// memory.back; -1 is nowhere.
type place struct {
	buf   driver.Memory
	at    int64
	bytes int64
	back  int64
	small bool
}

func (p place) address() uint64 { return p.buf.Address() + uint64(p.at) }

// mapped is its bytes where they are in the host's memory, else nil.
func (p place) mapped() []byte {
	if b := p.buf.Bytes(); b != nil {
		return b[p.at : p.at+p.bytes : p.at+p.bytes]
	}
	return nil
}

// to copies n bytes at offset of the place to memory m, from copies them back.
func (p place) to(m driver.Memory, at, offset, n int64) driver.Copy {
	return driver.Copy{To: m, ToAt: at, From: p.buf, FromAt: p.at + offset, Bytes: n}
}

func (p place) from(m driver.Memory, at, offset, n int64) driver.Copy {
	return driver.Copy{To: p.buf, ToAt: p.at + offset, From: m, FromAt: at, Bytes: n}
}

// memory is all of a plan's memory on a device.
type memory struct {
	dev       driver.Device
	weights   map[string]place
	there     bool             // the weights were in their places from the beginning
	regions   map[string]place // tables, caches, step block and io, by name
	arena     driver.Memory
	step      driver.Memory         // the step block
	block     []byte                // the step block as the host has written it
	head      int64                 // bytes of it before the block table: they go to the device and back with every step
	tables    []*table              // none where no cache lies in pages
	mask      *mask                 // nil where nothing bounds choices
	small     int64                 // bytes of the head, of ids and of candidates of entries, which come back with every step
	back      driver.Memory         // other results; nil if there are none
	arguments map[string][][]uint64 // addresses of each dispatch's arguments, by entry
}

// newMemory takes the memory of a plan.
func newMemory(ctx context.Context, dev driver.Device, plan *plans.Plan) (*memory, error) {
	m := &memory{dev: dev, weights: map[string]place{}, regions: map[string]place{}, arguments: map[string][][]uint64{}}
	for _, f := range []func() error{
		func() error { return m.placeWeights(ctx, plan) },
		func() error { return m.placeRegions(plan) },
		func() error { return m.findArguments(plan) },
	} {
		if err := f(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// fill brings weights and tables to their places. Tables are computed while weights are read.
func (m *memory) fill(ctx context.Context, plan *plans.Plan, src *plans.Source, progress func(int64)) error {
	up := newUploader(m.dev, pieceBytes, progress)
	defer up.close()
	both, ctx := errgroup.WithContext(ctx)
	var tables []func() error // that are computed
	both.Go(func() error {
		write := writer(up, m.regions, nil)
		return contents.Tables(ctx, plan, func(name string, bytes int64, fill func(p []byte, at int64) error) error {
			tables = append(tables, func() error { return write(name, bytes, fill) })
			return nil
		})
	})
	both.Go(func() error { return m.fillWeights(ctx, plan, src, up) })
	if err := both.Wait(); err != nil {
		return err
	}
	for _, write := range tables {
		if err := write(); err != nil {
			return err
		}
	}
	return up.flush()
}

// writer fills places that are in the host's memory, and uploads to the others; filled gets the bytes of the first
// kind, of which the uploader knows nothing.
func writer(up *uploader, places map[string]place, filled func(int64)) contents.Writer {
	return func(name string, bytes int64, fill func(p []byte, at int64) error) error {
		to := places[name].mapped()
		if to == nil {
			return up.write(places[name].buf, places[name].at, bytes, fill)
		}
		if int64(len(to)) != bytes {
			return fmt.Errorf("%q: %d bytes for a region of %d", name, bytes, len(to))
		}
		err := contents.Fill(to, 0, fill)
		if err == nil && filled != nil {
			filled(bytes)
		}
		return err
	}
}

// bump gives things places one behind the other: it is the end of the last.
type bump int64

func (b *bump) next(bytes int64) (at int64) {
	at = int64(*b)
	*b += bump((bytes + placeAlign - 1) / placeAlign * placeAlign)
	return at
}

// pool hands out places in buffers of a common size.
type pool struct {
	dev   driver.Device
	sizes []bump // of each buffer
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
	if l := p.dev.Info().Largest; l != 0 {
		limit = min(limit, l)
	}
	last := len(p.sizes) - 1
	if last < 0 || int64(p.sizes[last])+bytes > limit {
		p.sizes = append(p.sizes, 0)
		last++
	}
	p.items = append(p.items, poolItem{name, bytes, last, p.sizes[last].next(bytes)})
}

// allocate makes the buffers and enters every item into places.
func (p *pool) allocate(places map[string]place) error {
	buffers := make([]driver.Memory, len(p.sizes))
	for i, n := range p.sizes {
		var err error
		if buffers[i], err = p.dev.Alloc(int64(n), driver.Local); err != nil {
			return err
		}
	}
	for _, it := range p.items {
		places[it.name] = place{buf: buffers[it.buffer], at: it.at, bytes: it.bytes, back: -1}
	}
	return nil
}

func (m *memory) placeWeights(ctx context.Context, plan *plans.Plan) (err error) {
	if own, ok := m.dev.(driver.Shelf); ok {
		var each []driver.Memory
		if each, m.there, err = own.Weights(ctx, plan); err != nil {
			return err
		}
		for i, w := range plan.Weights {
			m.weights[w.Name] = place{buf: each[i], bytes: w.Bytes, back: -1}
		}
		return nil
	}
	p := pool{dev: m.dev}
	for _, w := range plan.Weights {
		p.add(w.Name, w.Bytes)
	}
	return p.allocate(m.weights)
}

// fillWeights brings weights into their layouts, unless they are there.
func (m *memory) fillWeights(ctx context.Context, plan *plans.Plan, src *plans.Source, up *uploader) error {
	if m.there {
		up.report(plan.WeightBytes())
		return nil
	}
	if err := contents.Weights(ctx, plan, src, writer(up, m.weights, up.report)); err != nil {
		return err
	}
	if own, ok := m.dev.(driver.Shelf); ok {
		own.Filled(ctx)
	}
	return nil
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
	if m.arena, err = m.dev.Alloc(max(plan.Memory.Arena, placeAlign), driver.Local); err != nil {
		return err
	}
	var step bump
	for _, r := range plan.Memory.Step {
		if !apart(r.Name) {
			at := step.next(r.Bytes)
			m.regions[r.Name] = place{at: at, bytes: r.Bytes, back: at, small: true}
		}
	}
	m.head = int64(step)
	for _, r := range plan.Memory.Step {
		if apart(r.Name) {
			m.regions[r.Name] = place{at: step.next(r.Bytes), bytes: r.Bytes, back: -1}
		}
	}
	if m.step, err = m.dev.Alloc(int64(step), driver.Local); err != nil {
		return err
	}
	m.block = make([]byte, step)
	m.tables, m.mask = newTables(plan, m.block, m.regions), newMask(plan, m.regions[ir.StepMask])
	for _, r := range plan.Memory.Step {
		p := m.regions[r.Name]
		p.buf = m.step
		m.regions[r.Name] = p
	}
	return m.placeResults(plan, bump(m.head))
}

// apart says whether a region of the step block stands behind the head, and goes to the device when it has changed.
func apart(region string) bool {
	return slices.Contains(ir.TableNames[:], region) || region == ir.StepMask
}

// placeResults says where the host finds what entries give: ids and candidates behind the step block, the rest in
// memory of its own.
func (m *memory) placeResults(plan *plans.Plan, small bump) (err error) {
	ids := map[string]bool{}
	for _, e := range plan.Entries {
		ids[e.Next], ids[e.Candidates] = true, true
	}
	var large bump
	for _, r := range plan.Memory.IO {
		p := m.regions[r.Name]
		switch p.small = ids[r.Name]; {
		case p.small:
			p.back = small.next(r.Bytes)
		case p.mapped() != nil:
			p.back = 0 // where it is
		default:
			p.back = large.next(r.Bytes)
		}
		m.regions[r.Name] = p
	}
	m.small = int64(small)
	if large > 0 {
		m.back, err = m.dev.Alloc(int64(large), driver.Readback)
	}
	return err
}

// findArguments computes the addresses of the arguments of every dispatch.
func (m *memory) findArguments(plan *plans.Plan) error {
	for _, e := range plan.Entries {
		for _, d := range e.Dispatches {
			list := make([]uint64, len(d.Args))
			for i, a := range d.Args {
				p, err := m.locate(a, a.Bytes)
				if err != nil {
					return fmt.Errorf("%s: %s: argument %s: %w", e.Name, d.Site, a.Name, err)
				}
				list[i] = p.address()
			}
			m.arguments[e.Name] = append(m.arguments[e.Name], list)
		}
	}
	return nil
}

// locate returns the place of n bytes at a.
func (m *memory) locate(a plans.Arg, n int64) (place, error) {
	var p place
	ok := true
	switch a.Space {
	case "arena":
		p = place{buf: m.arena, bytes: m.arena.Size(), back: -1}
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

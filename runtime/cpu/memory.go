package cpu

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cpu/native"
	"github.com/zincc-dev/zincc/runtime/internal/contents"
	"github.com/zincc-dev/zincc/runtime/internal/kept"
)

// placeAlign is the alignment of every region: kernels load whole lines of caches.
const placeAlign = 64

// place names a region in its space; the arena has no name.
type place struct{ space, name string }

// memory is all of a plan's memory.
type memory struct {
	all     *native.Memory
	kept    *kept.File // that holds the weights; nil where all does
	regions map[place][]byte
}

// weightSpace is that of the weights.
const weightSpace = "weight"

// newMemory takes the memory and fills it: weights in the plan's layouts, tables; the rest is zero.
func newMemory(ctx context.Context, plan *plans.Plan, src *plans.Source, o Options) (*memory, error) {
	m := &memory{regions: map[place][]byte{}}
	if o.Said == nil {
		o.Said = func(string) {}
	}
	if o.Keep != "" {
		m.find(ctx, plan, src, o)
	}
	size := int64(0)
	type item struct {
		place
		at, bytes int64
	}
	var items []item
	add := func(space, name string, bytes int64) {
		items = append(items, item{place{space, name}, size, bytes})
		size += (bytes + placeAlign - 1) / placeAlign * placeAlign
	}
	if m.kept == nil {
		for _, w := range plan.Weights {
			add(weightSpace, w.Name, w.Bytes)
		}
	}
	weights := size
	for _, s := range []struct {
		name string
		list []plans.Region
	}{
		{"table", plan.Memory.Tables}, {"kv", plan.Memory.KV}, {"state", plan.Memory.State}, {"io", plan.Memory.IO}, {"step", plan.Memory.Step},
	} {
		for _, r := range s.list {
			add(s.name, r.Name, r.Bytes)
		}
	}
	add("arena", "", plan.Memory.Arena)
	var err error
	if m.all, err = native.AllocMemory(size); err != nil {
		m.free()
		return nil, err
	}
	for _, it := range items {
		m.regions[it.place] = m.all.Bytes[it.at : it.at+it.bytes : it.at+it.bytes]
	}
	if m.kept == nil && o.nodes != nil && o.Threads >= len(o.nodes) { // with fewer, weights would take the memory of some nodes alone
		m.touch(plan, o.Threads, o.nodes)
	}
	if err := m.fill(ctx, plan, src, o.Progress); err != nil {
		m.free()
		return nil, err
	}
	if o.Keep != "" && m.kept == nil {
		keep(ctx, plan, src, m.all.Bytes[:weights], o)
	}
	return m, nil
}

// free gives all back.
func (m *memory) free() {
	if m.all != nil {
		m.all.Free()
	}
	if m.kept != nil {
		_ = m.kept.Close() // of memory that was mapped
	}
}

// fill brings weights into their layouts, unless they were kept so, and computes tables, on all processors.
func (m *memory) fill(ctx context.Context, plan *plans.Plan, src *plans.Source, progress func(int64)) error {
	write := func(space string, done func(int64)) contents.Writer {
		return func(name string, bytes int64, fill func(p []byte, at int64) error) error {
			dst := m.regions[place{space, name}]
			if int64(len(dst)) != bytes {
				return fmt.Errorf("%d bytes for a region of %d", bytes, len(dst))
			}
			if err := contents.Fill(dst, 0, fill); err != nil {
				return err
			}
			if done != nil {
				done(bytes)
			}
			return nil
		}
	}
	if m.kept == nil {
		if err := contents.Weights(ctx, plan, src, write(weightSpace, progress)); err != nil {
			return err
		}
	}
	return contents.Tables(ctx, plan, write("table", nil))
}

// locate returns n bytes at a.
func (m *memory) locate(a plans.Arg, n int64) ([]byte, error) {
	r, ok := m.regions[place{a.Space, a.Region}]
	if !ok || a.Offset < 0 || n < 0 || n > int64(len(r))-a.Offset {
		return nil, fmt.Errorf("argument %q: %d bytes at %d of %s %q, which has %d", a.Name, n, a.Offset, a.Space, a.Region, len(r))
	}
	return r[a.Offset : a.Offset+n], nil
}

// addressOf is the address of the first byte.
func addressOf[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

package cpu

import (
	"fmt"
	"time"

	"github.com/zincc-dev/zincc/runtime/cpu/native"
	"github.com/zincc-dev/zincc/runtime/driver"
)

// work is tables and copies, one behind the other.
type work struct {
	dev    *device
	tables *native.Memory
	parts  []part
	// The clock that stages of it stamp, nil if none does, and the first and the last of its slots.
	clock       *clock
	first, last *uint64
}

// part is a table or, without one, copies.
type part struct {
	table  *program
	copies []bytesCopy
}

type bytesCopy struct{ to, from []byte }

// Record makes tables of dispatches. Stages without copies share one.
func (d *device) Record(stages ...driver.Stage) (driver.Work, error) {
	w := &work{dev: d}
	var err error
	w.tables, err = layOut(func(b *builder) error {
		w.parts, w.clock, w.first = nil, nil, nil
		var rows []native.Dispatch
		var ends []bool // of stages
		flush := func() {
			if len(rows) > 0 {
				behind := ends
				w.parts = append(w.parts, part{table: b.program(rows, len(d.team.threads), func(i int) bool { return behind[i] })})
				rows, ends = nil, nil
			}
		}
		for _, s := range stages {
			for i, p := range s.Dispatches {
				r, err := d.dispatch(b, &p)
				if err != nil {
					return d.errorf("%s: %w", p.Site, err)
				}
				rows, ends = append(rows, r), append(ends, i == len(s.Dispatches)-1)
			}
			if len(s.Copies) > 0 {
				flush()
				copies, err := d.copies(s.Copies)
				if err != nil {
					return err
				}
				w.parts = append(w.parts, part{copies: copies})
			}
			if k, ok := s.Stamp.Clock.(*clock); ok {
				slot := numbers[uint64](k.own.Bytes)[s.Stamp.Slot:]
				rows = append(rows, b.row(native.StampAddress(), 1, []uintptr{addressOf(slot)}, nil, [3]uint32{1, 1, 1}))
				ends = append(ends, true)
				if w.last = &slot[0]; w.first == nil {
					w.clock, w.first = k, w.last
				}
			}
		}
		flush()
		return nil
	})
	if err != nil {
		return nil, err
	}
	d.owned.Own(w)
	return w, nil
}

// copies are the bytes of copies.
func (d *device) copies(list []driver.Copy) (all []bytesCopy, err error) {
	for _, c := range list {
		to, from := c.To.(*memory), c.From.(*memory)
		if c.Bytes <= 0 || c.ToAt < 0 || c.FromAt < 0 || c.Bytes > to.Size()-c.ToAt || c.Bytes > from.Size()-c.FromAt {
			return nil, d.errorf("a copy of %d bytes from %d of %d to %d of %d", c.Bytes, c.FromAt, from.Size(), c.ToAt, to.Size())
		}
		if to.own == nil {
			return nil, d.errorf("a weight is not written") // it may lie in a file that was mapped
		}
		all = append(all, bytesCopy{to.bytes[c.ToAt:][:c.Bytes], from.bytes[c.FromAt:][:c.Bytes]})
	}
	return all, nil
}

// dispatch is a row.
func (d *device) dispatch(b *builder, p *driver.Dispatch) (native.Dispatch, error) {
	pl := &d.plan.Pipelines[p.Pipeline]
	m := &d.plan.Modules[pl.Module]
	in := &m.Interface
	if in.Args != len(p.Arguments) {
		return native.Dispatch{}, fmt.Errorf("%d arguments, kernel %s takes %d", len(p.Arguments), m.Name, in.Args)
	}
	args := make([]uintptr, len(p.Arguments))
	for i, a := range p.Arguments {
		args[i] = uintptr(a)
	}
	values := map[uint32]uint32{}
	for _, k := range pl.Consts {
		values[k.ID] = k.Value
	}
	var consts []uint32 // by id
	for _, o := range in.Open {
		if _, ok := values[o.ID]; !ok || o.ID > maxConst {
			return native.Dispatch{}, fmt.Errorf("constant %d, %s, of kernel %s has no value", o.ID, o.Name, m.Name)
		}
		consts = append(consts, make([]uint32, max(0, int(o.ID)+1-len(consts)))...)
		consts[o.ID] = values[o.ID]
	}
	workgroups := uint64(p.Grid[0]) * uint64(p.Grid[1]) * uint64(p.Grid[2])
	r := b.row(d.code.fns[pl.Module], workgroups, args, consts, p.Grid)
	r.Chunk = chunkOf(d.plan, p.Pipeline, &p.Cost, workgroups, len(d.team.threads))
	return r, nil
}

// run does a work times in a row, as part of submission f. A lone table is walked in one call.
func (w *work) run(d *device, f driver.Fence, times int) {
	if len(w.parts) == 1 && w.parts[0].table != nil && w.clock == nil {
		d.job(w.parts[0].table, f, times)
		return
	}
	for range times {
		began := time.Now()
		for _, p := range w.parts {
			if p.table != nil {
				d.job(p.table, f, 1)
			}
			if p.copies != nil && !d.stopped(f) {
				for _, c := range p.copies {
					copy(c.to, c.from)
				}
			}
		}
		if k := w.clock; k != nil {
			first := &numbers[uint64](k.own.Bytes)[0]
			if w.first == first {
				k.began = began
			}
			k.tick = float64(time.Since(k.began)) / float64(max(1, int64(*w.last-*first)))
		}
	}
}

// Free frees the tables.
func (w *work) Free()    { w.dev.free(w) }
func (w *work) release() { w.tables.Free() }

package cpu

import (
	"fmt"
	"unsafe"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cpu/native"
)

// program is the table of an entry, and how often all of it has been run.
type program struct {
	table    []native.Dispatch
	counters []*counter
	passes   uint64
}

// counter is the line of a dispatch that threads write.
type counter struct {
	claimed, done uint64
	_             [6]uint64
}

// reset sets the counters back after a run that did not come to its end.
func (p *program) reset() {
	for _, c := range p.counters {
		c.claimed, c.done = 0, 0
	}
	p.passes = 0
}

// builder lays out tables and what they point to in memory that the garbage collector does not own.
type builder struct {
	mem      []byte // nil while it counts
	used     int
	counters []*counter // of the rows since the last table
}

// put returns n zero numbers.
func put[T any](b *builder, n int) []T {
	var x T
	size := (n*int(unsafe.Sizeof(x)) + placeAlign - 1) / placeAlign * placeAlign
	at := b.used
	b.used += size
	if b.mem == nil {
		return make([]T, n)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b.mem[at:b.used]))), n)
}

// Of a dispatch, every thread gets about so many chunks, so that fast ones take more; no chunk
// reads less than so many bytes, so that claiming it costs little and the memory is read in long runs.
const (
	chunksPerThread = 4
	leastChunk      = 16 << 10
)

// chunkOf is how many workgroups of a dispatch a thread takes at a time.
func chunkOf(d *plans.Dispatch, workgroups uint64, threads int) uint64 {
	if threads == 1 {
		return workgroups
	}
	bytes := uint64(d.Cost.ReadBytes+d.Cost.WriteBytes)/workgroups + 1
	chunk := workgroups / uint64(chunksPerThread*threads)
	return min(workgroups, max(1, chunk, leastChunk/bytes))
}

func workgroupsOf(d *plans.Dispatch) uint64 {
	return uint64(d.Grid[0]) * uint64(d.Grid[1]) * uint64(d.Grid[2])
}

// program builds the table of an entry.
func (x *Executor) program(b *builder, e *plans.Entry) (*program, error) {
	var rows []native.Dispatch
	group, sum := 0, uint64(0) // the first dispatch of the step, and its workgroups
	for i := range e.Dispatches {
		d := &e.Dispatches[i]
		r, err := x.dispatch(b, d)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", e.Name, d.Site, err)
		}
		rows = append(rows, r)
		sum += r.Workgroups
		if i+1 < len(e.Dispatches) && e.Dispatches[i+1].Step == d.Step {
			continue
		}
		for j := group; j <= i; j++ {
			rows[j].Need, rows[j].Done = 0, r.Done
		}
		rows[i].Need = sum
		group, sum = i+1, 0
	}
	return b.program(rows), nil
}

// dispatch is a row for which all threads wait.
func (x *Executor) dispatch(b *builder, d *plans.Dispatch) (native.Dispatch, error) {
	pl := &x.plan.Pipelines[d.Pipeline]
	m := &x.plan.Modules[pl.Module]
	in := &m.Interface
	if in.Args != len(d.Args) {
		return native.Dispatch{}, fmt.Errorf("%d arguments, kernel %s takes %d", len(d.Args), m.Name, in.Args)
	}
	args := make([]uintptr, len(d.Args))
	for i, a := range d.Args {
		bytes, err := x.memory.locate(a, a.Bytes)
		if err != nil {
			return native.Dispatch{}, err
		}
		args[i] = addressOf(bytes)
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
	r := b.row(x.code.fns[pl.Module], workgroupsOf(d), args, consts, d.Grid)
	r.Chunk = chunkOf(d, r.Workgroups, len(x.team.threads))
	return r, nil
}

// row is a row for which all threads wait, with a copy of what it points to.
func (b *builder) row(fn uintptr, workgroups uint64, args []uintptr, consts []uint32, grid [3]int) native.Dispatch {
	c := &put[counter](b, 1)[0]
	b.counters = append(b.counters, c)
	addresses, words := put[uintptr](b, len(args)+1), put[uint32](b, len(grid)+len(consts))
	copy(addresses, args)
	for i, n := range grid {
		words[i] = uint32(n)
	}
	copy(words[len(grid):], consts)
	return native.Dispatch{
		Fn: fn, Args: addressOf(addresses), Grid: addressOf(words), Consts: addressOf(words) + 4*uintptr(len(grid)),
		Workgroups: workgroups, Chunk: workgroups, Need: workgroups,
		Claimed: uintptr(unsafe.Pointer(&c.claimed)), Done: uintptr(unsafe.Pointer(&c.done)),
	}
}

// program is a table of rows.
func (b *builder) program(rows []native.Dispatch) *program {
	p := &program{table: put[native.Dispatch](b, len(rows)), counters: b.counters}
	copy(p.table, rows)
	b.counters = nil
	return p
}

// layOut runs build twice: to see how much memory it takes, and to keep what it makes.
func layOut(build func(b *builder) error) (*native.Memory, error) {
	var count builder
	if err := build(&count); err != nil {
		return nil, err
	}
	mem, err := native.AllocMemory(int64(count.used))
	if err != nil {
		return nil, err
	}
	if err := build(&builder{mem: mem.Bytes}); err != nil {
		mem.Free()
		return nil, err
	}
	return mem, nil
}

// maxConst bounds the ids of constants, which index a list.
const maxConst = 255

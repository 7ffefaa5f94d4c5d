package cpu

import (
	"fmt"
	"unsafe"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cpu/native"
)

// program is the table of an entry, and how often all of it has been run.
type program struct {
	native.Program
	passes uint64
}

// reset sets the counters back after a run that did not come to its end.
func (p *program) reset() {
	p.Reset()
	p.passes = 0
}

// builder lays out tables and what they point to in memory that the garbage collector does not own.
type builder struct {
	mem  []byte // nil while it counts
	used int
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

// How a dispatch is cut into chunks, by what it takes one core. A chunk costs a claim, and in a projection x is rounded
// for each. So every thread has one, if that is worth while; more where they are long, so that others can help a thread
// that the system has taken away. In attention nothing is done anew for a chunk, and workgroups differ: those of
// positions that are not there yet come last and have nothing to do.
const (
	shortestChunk   = 500e-9 // seconds
	lightChunk      = 250e-9 // of one that fills lightShared bytes of shared memory at most
	lightShared     = 512
	longChunk       = 250e-6
	chunksPerThread = 8
	sharedBytes     = 400e6 // a second, of shared memory that is filled anew for each chunk
	coreBytes       = 32e9  // a second, of weights
	coreFLOPs       = 256e9
)

// chunkOf is how many workgroups of a dispatch a thread takes at a time. What grows with the cache counts as at the end
// of the context.
func chunkOf(p *plans.Plan, d *plans.Dispatch, workgroups uint64, threads int) uint64 {
	c, shared := d.Cost.At(p.Header.Ctx), p.Pipelines[d.Pipeline].Shared
	seconds := max(float64(c.ReadBytes+c.WriteBytes)/coreBytes, float64(c.FLOPs)/coreFLOPs)
	all := float64(threads)
	rounds := max(1, min(chunksPerThread, float64(uint64(seconds/all/max(longChunk, float64(shared)/sharedBytes)))))
	shortest := shortestChunk
	if shared <= lightShared {
		shortest = lightChunk
	}
	chunks := uint64(min(all*rounds, seconds/shortest))
	if threads > 1 && (c.BytesPerPos > 0 || c.FLOPsPerPos > 0) {
		chunks = uint64(chunksPerThread * threads)
	}
	chunks = min(workgroups, max(1, chunks))
	return (workgroups + chunks - 1) / chunks
}

func workgroupsOf(d *plans.Dispatch) uint64 {
	return uint64(d.Grid[0]) * uint64(d.Grid[1]) * uint64(d.Grid[2])
}

// program builds the table of an entry.
func (x *Executor) program(b *builder, e *plans.Entry) (*program, error) {
	var rows []native.Dispatch
	for i := range e.Dispatches {
		d := &e.Dispatches[i]
		r, err := x.dispatch(b, d)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", e.Name, d.Site, err)
		}
		rows = append(rows, r)
	}
	last := map[int]bool{}
	for _, to := range e.Batches() {
		last[to-1] = true
	}
	return b.program(rows, len(x.team.threads), func(i int) bool { return last[i] }), nil
}

// each is for tables whose dispatches are stages of their own.
func each(int) bool { return true }

// dispatch is a row.
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
	r.Chunk = chunkOf(x.plan, d, r.Workgroups, len(x.team.threads))
	return r, nil
}

// row is a row, one chunk, with a copy of what it points to.
func (b *builder) row(fn uintptr, workgroups uint64, args []uintptr, consts []uint32, grid [3]int) native.Dispatch {
	addresses, words := put[uintptr](b, len(args)+1), put[uint32](b, len(grid)+len(consts))
	copy(addresses, args)
	for i, n := range grid {
		words[i] = uint32(n)
	}
	copy(words[len(grid):], consts)
	return native.Dispatch{
		Fn: fn, Args: addressOf(addresses), Grid: addressOf(words), Consts: addressOf(words) + 4*uintptr(len(grid)),
		Workgroups: workgroups, Chunk: workgroups,
	}
}

// program is a table of rows; last says behind which of them all wait.
func (b *builder) program(rows []native.Dispatch, threads int, last func(i int) bool) *program {
	table, p := put[native.Dispatch](b, len(rows)), &put[program](b, 1)[0]
	copy(table, rows)
	p.Init(table, threads, put[byte](b, native.CounterBytes(len(rows), threads)), last)
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

package cpu

import (
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

// placeAlign is the alignment of all that kernels read: they load whole lines of caches.
const placeAlign = 64

func aligned(bytes int64) int64 { return (bytes + placeAlign - 1) / placeAlign * placeAlign }

// put returns n zero numbers.
func put[T any](b *builder, n int) []T {
	var x T
	at := b.used
	b.used += int(aligned(int64(n) * int64(unsafe.Sizeof(x))))
	if b.mem == nil {
		return make([]T, n)
	}
	return numbers[T](b.mem[at:b.used])[:n]
}

// numbers is memory as numbers.
func numbers[T any](b []byte) []T {
	var x T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(x)))
}

// addressOf is the address of the first byte.
func addressOf[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

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
func chunkOf(p *plans.Plan, pipeline int, cost *plans.Cost, workgroups uint64, threads int) uint64 {
	c, shared := cost.At(p.Header.Ctx), p.Pipelines[pipeline].Shared
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

// row is a row, one chunk, with a copy of what it points to.
func (b *builder) row(fn uintptr, workgroups uint64, args []uintptr, consts []uint32, grid [3]uint32) native.Dispatch {
	addresses, words := put[uintptr](b, len(args)+1), put[uint32](b, len(grid)+len(consts))
	copy(addresses, args)
	copy(words, grid[:])
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

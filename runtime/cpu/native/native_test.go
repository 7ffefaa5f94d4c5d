package native

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/plans/object"
)

// triples are what llc calls the machines of these tests.
var triples = map[string][2]string{
	"amd64": {"x86_64-unknown-linux-gnu", ""},
	"arm64": {"aarch64-unknown-linux-gnu", "+reserve-x18,+reserve-x28"},
}

// loadMix maps the kernel mix of testdata.
func loadMix(t testing.TB) uintptr {
	m := triples[runtime.GOARCH]
	o, err := object.Read(compileIR(t, "testdata/kernels.ll", m[0], m[1]))
	if err != nil {
		t.Fatal(err)
	}
	f, err := o.Func("mix")
	if err != nil {
		t.Fatal(err)
	}
	blob := make([]byte, 4*o.Align+o.Size)
	if err := o.Link(blob[4*o.Align:], 4*o.Align); err != nil {
		t.Fatal(err)
	}
	code, err := MapCode(blob)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(code.Free)
	return code.Address(4*o.Align + f.Offset)
}

// bench is memory for tables of the tests.
type bench struct {
	t    testing.TB
	mem  []byte
	used int
}

func newBench(t testing.TB) *bench {
	mem, err := AllocMemory(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mem.Free)
	return &bench{t: t, mem: mem.Bytes}
}

// take returns n words with a place of their own in the caches.
func take[T any](b *bench, n int) []T {
	var x T
	size := (n*int(unsafe.Sizeof(x)) + 127) / 64 * 64
	if b.used+size > len(b.mem) {
		b.t.Fatal("the test needs more memory")
	}
	p := unsafe.Pointer(&b.mem[b.used])
	b.used += size
	return unsafe.Slice((*T)(p), n)
}

func address[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

// chain is a table of dispatches of mix, each of which reads what the one before it wrote; two in
// a group write the halves of one array.
type chain struct {
	table  []Dispatch
	b      *bench
	arrays [][]uint32
	shifts []uint32
	n      int
}

func newChain(b *bench, mix uintptr, n int, shifts []uint32, chunk uint64) *chain {
	c := &chain{b: b, n: n, shifts: shifts, arrays: [][]uint32{take[uint32](b, n), take[uint32](b, n)}}
	for i := range c.arrays[0] {
		c.arrays[0][i] = uint32(i)
	}
	c.table = take[Dispatch](b, len(shifts))
	for i, s := range shifts {
		args, consts, grid := take[uintptr](b, 2), take[uint32](b, 1), take[uint32](b, 3)
		args[0], args[1] = address(c.arrays[i%2]), address(c.arrays[(i+1)%2])
		consts[0], grid[0], grid[1], grid[2] = s, uint32(n), 1, 1
		c.table[i] = Dispatch{Fn: mix, Args: address(args), Consts: address(consts), Grid: address(grid), Workgroups: uint64(n), Chunk: chunk}
	}
	return c
}

// program is the table for some threads; last says which dispatches end a step.
func (c *chain) program(threads int, last func(i int) bool) *Program {
	p := &take[Program](c.b, 1)[0]
	p.Init(c.table, threads, take[byte](c.b, CounterBytes(len(c.table), threads)), last)
	return p
}

func each(int) bool { return true }

// want is what the arrays hold after so many passes.
func (c *chain) want(passes int) [2][]uint32 {
	a := [2][]uint32{make([]uint32, c.n), make([]uint32, c.n)}
	for i := range a[0] {
		a[0][i] = uint32(i)
	}
	for range passes {
		for i, s := range c.shifts {
			in, out := a[i%2], a[(i+1)%2]
			for w := range out {
				out[w] = in[(w*7+int(s))%c.n]*3 + []uint32{3, 5, 7, 11}[w%4]
			}
		}
	}
	return a
}

func (c *chain) check(t rapid.TB, passes int) {
	want := c.want(passes)
	for i, a := range c.arrays {
		if !slices.Equal(a, want[i]) {
			t.Fatalf("array %d after %d passes: %d, want %d", i, passes, a, want[i])
		}
	}
}

// gang runs calls on several threads.
func gang(t testing.TB, threads int, run func(thread int, d *Driver, s *Stack, scratch uintptr)) {
	d, err := TheDriver()
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	var all sync.WaitGroup
	for i := range threads {
		s, err := NewStack()
		if err != nil {
			t.Fatal(err)
		}
		scratch := address(take[byte](b, 64))
		all.Go(func() {
			defer s.Free()
			run(i, d, s, scratch)
		})
	}
	all.Wait()
}

// TestRun compares tables of all shapes, on several threads that begin at different times and
// more of them than processors, with what Go computes.
func TestRun(t *testing.T) {
	mix := loadMix(t)
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 70).Draw(r, "workgroups")
		shifts := rapid.SliceOfN(rapid.Uint32Range(0, 1000), 2, 9).Draw(r, "shifts")
		if len(shifts)%2 != 0 {
			shifts = shifts[1:] // so that the last writes what the first reads
		}
		if len(shifts) == 0 {
			shifts = []uint32{1, 2}
		}
		chunk := rapid.Uint64Range(1, 80).Draw(r, "chunk")
		calls := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 4).Draw(r, "passes of each call")
		threads := rapid.IntRange(1, 5).Draw(r, "threads")
		c := newChain(newBench(t), mix, n, shifts, chunk)
		p := c.program(threads, each)
		control := &take[Control](newBench(t), 1)[0]
		control.Init()
		total := 0
		for _, passes := range calls {
			total += passes
		}
		gang(t, threads, func(thread int, d *Driver, s *Stack, scratch uintptr) {
			pass := uint64(0)
			for _, passes := range calls {
				if !d.Run(s, p, pass, pass+uint64(passes), thread, scratch, control) {
					t.Error("stopped")
				}
				pass += uint64(passes)
			}
		})
		c.check(r, total)
	})
}

// TestGroup checks that dispatches of a group are all done before the next begins, and that
// threads need not wait between them.
func TestGroup(t *testing.T) {
	b := newBench(t)
	c := newChain(b, loadMix(t), 40, []uint32{1, 2, 3, 4}, 3)
	// Halve each dispatch: two of a group, each with half of the workgroups, by an array of its own.
	var table []Dispatch
	for _, d := range c.table {
		first, second := d, d
		first.Workgroups, second.Workgroups = 20, 20
		args, old := take[uintptr](b, 2), unsafe.Slice((*uintptr)(*(*unsafe.Pointer)(unsafe.Pointer(&d.Args))), 2)
		args[0], args[1] = old[0], old[1]+20*4
		second.Args = address(args)
		consts := take[uint32](b, 1)
		consts[0] = *(*uint32)(*(*unsafe.Pointer)(unsafe.Pointer(&d.Consts))) + 20*7 // mask[w%4] is the same at w+20
		second.Consts = address(consts)
		table = append(table, first, second)
	}
	c.table = take[Dispatch](b, len(table))
	copy(c.table, table)
	p := c.program(3, func(i int) bool { return i%2 == 1 })
	control := &take[Control](b, 1)[0]
	control.Init()
	gang(t, 3, func(thread int, d *Driver, s *Stack, scratch uintptr) { d.Run(s, p, 0, 5, thread, scratch, control) })
	c.check(t, 5)
}

// TestHelp checks that what a thread which never comes would do is done by those that wait.
func TestHelp(t *testing.T) {
	c := newChain(newBench(t), loadMix(t), 40, []uint32{1, 2, 3, 4}, 3)
	p := c.program(4, each)
	control := &take[Control](c.b, 1)[0]
	control.Init()
	gang(t, 2, func(thread int, d *Driver, s *Stack, scratch uintptr) { d.Run(s, p, 0, 5, thread+1, scratch, control) })
	c.check(t, 5)
}

// TestStop checks that a thread which waits for what nobody does leaves when it shall.
func TestStop(t *testing.T) {
	b := newBench(t)
	c := newChain(b, loadMix(t), 8, []uint32{1, 2}, 1)
	p := c.program(2, each)
	c.table[1].over++
	control := &take[Control](b, 1)[0]
	control.Init()
	time.AfterFunc(20*time.Millisecond, func() { atomic.StoreUint64(&control.Stop, 1) })
	gang(t, 2, func(thread int, d *Driver, s *Stack, scratch uintptr) {
		if d.Run(s, p, 0, 1, thread, scratch, control) {
			t.Error("the run came to an end")
		}
	})
}

// TestWait checks that a waiting thread neither stops the garbage collector nor misses what is posted.
func TestWait(t *testing.T) {
	control := &take[Control](newBench(t), 1)[0]
	control.Init()
	var started atomic.Bool
	go func() {
		for !started.Load() {
			runtime.Gosched()
		}
		time.Sleep(5 * time.Millisecond)
		began := time.Now()
		runtime.GC()
		runtime.GC()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("two collections took %v beside a waiting thread", took)
		}
		atomic.StoreUint64(&control.Posted, 7)
	}()
	gang(t, 1, func(_ int, d *Driver, s *Stack, _ uintptr) {
		if got := d.Wait(s, control, 0, 10); got != 0 {
			t.Errorf("after 10 turns: %d", got)
		}
		started.Store(true)
		if got := d.Wait(s, control, 0, 1<<62); got != 7 {
			t.Errorf("woken by %d", got)
		}
	})
}

// TestCallAllocatesNothing counts allocations of a run.
func TestCallAllocatesNothing(t *testing.T) {
	c := newChain(newBench(t), loadMix(t), 64, []uint32{1, 2}, 8)
	p := c.program(1, each)
	control := &take[Control](newBench(t), 1)[0]
	control.Init()
	gang(t, 1, func(thread int, d *Driver, s *Stack, scratch uintptr) {
		pass := uint64(0)
		if n := testing.AllocsPerRun(100, func() { d.Run(s, p, pass, pass+8, thread, scratch, control); pass += 8 }); n != 0 {
			t.Errorf("%v allocations a run", n)
		}
	})
}

// TestProtected checks that mapped code cannot be written.
func TestProtected(t *testing.T) {
	code, err := MapCode([]byte{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	defer code.Free()
	defer func() {
		if r := recover(); r == nil {
			t.Error("code was written")
		}
	}()
	defer debugFaults()()
	code.mem[0] = 9
}

func BenchmarkRun(b *testing.B) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			shifts := make([]uint32, 100)
			c := newChain(newBench(b), loadMix(b), 8, shifts, 4)
			p := c.program(threads, each)
			control := &take[Control](newBench(b), 1)[0]
			control.Init()
			b.ResetTimer()
			gang(b, threads, func(thread int, d *Driver, s *Stack, scratch uintptr) {
				d.Run(s, p, 0, uint64(b.N), thread, scratch, control)
			})
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/dispatch")
		})
	}
}

// debugFaults makes faults of this goroutine panics, until what it returns is called.
func debugFaults() func() {
	old := debug.SetPanicOnFault(true)
	return func() { debug.SetPanicOnFault(old) }
}

// Package native runs machine code without cgo: it maps code, calls it on stacks of its own, and
// holds the step driver, the one function that it calls for a burst of steps.
package native

//go:generate go test -run ^TestDriverObject$ -update

import (
	_ "embed"
	"fmt"
	"sync"
	"unsafe"

	"github.com/zincc-dev/zincc/plans/object"
)

// StackBytes is what a thread's stack has for generated code: what the loader lets a kernel take,
// and as much for the driver.
const StackBytes = 2 * object.MaxStack

// Dispatch is a row of the driver's table: a kernel with its arguments, and how its
// workgroups are shared out. All pointers are to memory that the garbage collector does not own.
type Dispatch struct {
	Fn         uintptr
	Args       uintptr // addresses, one for each argument
	Consts     uintptr // uint32, the specialization constants that the kernel reads
	Grid       uintptr // 3 uint32
	Workgroups uint64
	Chunk      uint64 // workgroups that a thread takes at a time
	rounds     uint64 // chunks of every thread
	extra      uint64 // threads, the first, that have one more
	claimed    uintptr
	over       uint64
	_          [2]uint64
}

// Program is a table for some threads, with its counters.
type Program struct {
	rows       uintptr
	n          uint64
	done       uintptr // workgroups that a thread has done, over all passes: a line for each thread
	threads    uint64
	stride     uint64 // bytes from the claims of a thread to those of the next
	workgroups uint64 // of a pass
	counters   []byte
}

// line is what threads write apart from each other: a line of the caches, and that which is fetched with it.
const line = 128

// CounterBytes is the memory that the counters of a table of n dispatches take.
func CounterBytes(n, threads int) int { return line + threads*(line+claimBytes(n)) }

// claimBytes is that of the claims of a thread: chunks of each dispatch that were taken, over all passes.
func claimBytes(n int) int { return (8*n + line - 1) / line * line }

// Init makes p the table, which Init completes, for so many threads. last says whether a dispatch is the last of its
// step, for which all threads wait. The counters are zero, CounterBytes of them.
func (p *Program) Init(table []Dispatch, threads int, counters []byte, last func(i int) bool) {
	first := (uintptr(unsafe.Pointer(unsafe.SliceData(counters))) + line - 1) &^ (line - 1)
	*p = Program{rows: uintptr(unsafe.Pointer(unsafe.SliceData(table))), n: uint64(len(table)), done: first, threads: uint64(threads),
		stride: uint64(claimBytes(len(table))), counters: counters}
	claims := first + uintptr(threads*line)
	for i := range table {
		d := &table[i]
		chunks := (d.Workgroups + d.Chunk - 1) / d.Chunk
		d.rounds, d.extra, d.claimed, d.over = chunks/p.threads, chunks%p.threads, claims+uintptr(8*i), 0
		p.workgroups += d.Workgroups
		if last(i) {
			d.over = p.workgroups
		}
	}
}

// Reset sets the counters back after a run that did not come to its end. No thread may run it.
func (p *Program) Reset() { clear(p.counters) }

// Control is what threads share beside the table.
type Control struct {
	relax  uintptr
	_      [7]uint64
	Stop   uint64 // atomic: not 0 once all threads shall leave
	_      [7]uint64
	Posted uint64 // atomic: the number that Wait watches
	_      [7]uint64
}

// Init makes c ready for Run and Wait.
func (c *Control) Init() { c.relax = relaxAddress() }

// Run makes passes [first, end) over the table on the calling thread, of that number, together with all other
// threads that do; it returns false if Control.Stop ended it. Passes count from the moment at which all
// counters were 0.
func (d *Driver) Run(s *Stack, p *Program, first, end uint64, thread int, scratch uintptr, c *Control) bool {
	return invoke(d.run, s.top, &[6]uintptr{uintptr(unsafe.Pointer(p)), uintptr(first), uintptr(end), uintptr(thread), scratch,
		uintptr(unsafe.Pointer(c))}, d.blocks) == 0
}

// Wait returns Control.Posted as soon as it is not seen, or after so many turns, each of which
// lets a processor rest for a moment.
func (d *Driver) Wait(s *Stack, c *Control, seen, turns uint64) uint64 {
	return uint64(invoke(d.wait, s.top, &[6]uintptr{uintptr(unsafe.Pointer(c)), uintptr(seen), uintptr(turns)}, d.blocks))
}

// StampAddress is that of a kernel that writes the time to its first argument, in ticks of the
// processor's clock.
func StampAddress() uintptr { return stampAddress() }

// Driver is the step driver of this machine.
type Driver struct {
	run, wait uintptr
	blocks    bool
}

// Blocking returns a driver whose calls say to the Go runtime that they block. Then nothing is left to watch: else its
// monitor wakes up every 20 us to see how long they take, on a processor that computes. They begin and end under one
// lock.
func (d *Driver) Blocking() *Driver {
	b := *d
	b.blocks = true
	return &b
}

// TheDriver maps the driver when it is first asked for.
var TheDriver = sync.OnceValues(func() (*Driver, error) {
	if len(driverObject) == 0 {
		return nil, fmt.Errorf("there is no step driver for this processor")
	}
	o, err := object.Read(driverObject)
	if err != nil {
		return nil, fmt.Errorf("step driver: %w", err)
	}
	code := make([]byte, o.Size)
	if err := o.Link(code, 0); err != nil {
		return nil, err
	}
	run, err := o.Func("run")
	if err != nil {
		return nil, err
	}
	wait, err := o.Func("wait")
	if err != nil {
		return nil, err
	}
	m, err := MapCode(code)
	if err != nil {
		return nil, fmt.Errorf("step driver: %w", err)
	}
	return &Driver{run: m.Address(run.Offset), wait: m.Address(wait.Offset)}, nil
})

// Code is machine code that can be run and no longer written.
type Code struct{ mem []byte }

// MapCode copies code to memory of its own, which becomes executable once it cannot be written.
func MapCode(code []byte) (*Code, error) {
	mem, err := allocate(int64(len(code)))
	if err != nil {
		return nil, err
	}
	copy(mem, code)
	if err := protectExec(mem); err != nil {
		free(mem)
		return nil, fmt.Errorf("memory cannot be made executable: %w", err)
	}
	flush(mem)
	return &Code{mem}, nil
}

// Address is that of the byte at offset.
func (c *Code) Address(offset int) uintptr {
	return uintptr(unsafe.Pointer(&c.mem[offset]))
}

// Free unmaps the code; nothing may run in it any more.
func (c *Code) Free() { free(c.mem); c.mem = nil }

// HugePage is the size of huge pages on most machines.
const HugePage = 2 << 20

// Memory is zeroed memory that the garbage collector knows nothing of.
type Memory struct {
	Bytes []byte
	whole []byte
}

// AllocMemory returns memory of so many bytes that begins at a page. Large memory begins at a huge page, and its end
// lies in one, too.
func AllocMemory(size int64) (*Memory, error) {
	if size < HugePage {
		whole, err := allocate(max(size, 1))
		if err != nil {
			return nil, err
		}
		return &Memory{whole[:size], whole}, nil
	}
	pages := (size + HugePage - 1) &^ (HugePage - 1)
	whole, err := allocate(pages + HugePage)
	if err != nil {
		return nil, err
	}
	at := -int64(uintptr(unsafe.Pointer(unsafe.SliceData(whole)))) & (HugePage - 1)
	advise(whole[at : at+pages])
	return &Memory{whole[at : at+size : at+size], whole}, nil
}

// Free gives the memory back.
func (m *Memory) Free() {
	if m.whole != nil {
		free(m.whole)
	}
	m.Bytes, m.whole = nil, nil
}

// allocate returns zeroed memory that begins at a page.
func allocate(size int64) ([]byte, error) {
	mem, err := alloc(size)
	if err != nil {
		return nil, fmt.Errorf("%d bytes of memory: %w", size, err)
	}
	return mem, nil
}

// Stack is memory for the stack of generated code, with a page below it that faults.
type Stack struct {
	mem []byte
	top uintptr
}

// NewStack returns a stack of StackBytes.
func NewStack() (*Stack, error) {
	mem, err := allocate(object.PageSize*guardPages + StackBytes)
	if err != nil {
		return nil, err
	}
	if err := protectNone(mem[:object.PageSize*guardPages]); err != nil {
		free(mem)
		return nil, err
	}
	return &Stack{mem, uintptr(unsafe.Pointer(unsafe.SliceData(mem))) + uintptr(len(mem))}, nil
}

// guardPages of 4 KiB fill a page of every system.
const guardPages = 16

// Free gives the stack back.
func (s *Stack) Free() { free(s.mem); s.mem = nil }

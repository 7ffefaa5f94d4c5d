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
	Chunk      uint64  // workgroups that a thread takes at a time
	Claimed    uintptr // uint64: workgroups that were taken, over all passes
	Done       uintptr // uint64: workgroups of the group that are done, over all passes
	Need       uint64  // 0, or for the last dispatch of a group the workgroups of all of its dispatches
	_          [3]uint64
}

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

// Run makes passes [first, end) over the table on the calling thread, together with all other
// threads that do; it returns false if Control.Stop ended it. Passes count from the moment at which all
// counters were 0.
func (d *Driver) Run(s *Stack, table []Dispatch, first, end uint64, scratch uintptr, c *Control) bool {
	return invoke(d.run, s.top, &[6]uintptr{uintptr(unsafe.Pointer(unsafe.SliceData(table))), uintptr(len(table)),
		uintptr(first), uintptr(end), scratch, uintptr(unsafe.Pointer(c))}) == 0
}

// Wait returns Control.Posted as soon as it is not seen, or after so many turns, each of which
// lets a processor rest for a moment.
func (d *Driver) Wait(s *Stack, c *Control, seen, turns uint64) uint64 {
	return uint64(invoke(d.wait, s.top, &[6]uintptr{uintptr(unsafe.Pointer(c)), uintptr(seen), uintptr(turns)}))
}

// StampAddress is that of a kernel that writes the time to its first argument, in ticks of the
// processor's clock.
func StampAddress() uintptr { return stampAddress() }

// Driver is the step driver of this machine.
type Driver struct{ run, wait uintptr }

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
	return &Driver{m.Address(run.Offset), m.Address(wait.Offset)}, nil
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

// hugePage is the size of huge pages on most machines.
const hugePage = 2 << 20

// Memory is zeroed memory that the garbage collector knows nothing of.
type Memory struct {
	Bytes []byte
	whole []byte
}

// AllocMemory returns memory of so many bytes that begins at a page; where it is large, at a huge page.
func AllocMemory(size int64) (*Memory, error) {
	extra := int64(0)
	if size >= hugePage {
		extra = hugePage
	}
	whole, err := allocate(max(size, 1) + extra)
	if err != nil {
		return nil, err
	}
	m := &Memory{whole[:size], whole}
	if extra > 0 {
		at := -int64(uintptr(unsafe.Pointer(unsafe.SliceData(whole)))) & (hugePage - 1)
		m.Bytes = whole[at : at+size : at+size]
		advise(m.Bytes)
	}
	return m, nil
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

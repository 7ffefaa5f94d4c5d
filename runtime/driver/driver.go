// Package driver is what the executor asks of a device: eight verbs. A back end implements them, the executor
// (runtime/exec) does the rest: it places a plan's memory, uploads weights, records entries, keeps submissions open
// and reads results back.
//
// The executor calls the verbs in this order:
//
//	Load, Record                        when a plan is opened: once, and once an entry, beside Alloc and uploads
//	Record                              once for each copy that repeats
//	Submit, Wait                        every step
//	Clock, Record, Submit, Wait, Read   to time dispatches
//	Close                               at the end, also where something before failed
//
// Load, and Record behind it, run beside the other verbs while a plan is opened; those, and all verbs later, come from
// one goroutine.
package driver

import (
	"context"
	"errors"
	"time"

	"github.com/zincc-dev/zincc/plans"
)

// ErrTimeout is the error of Wait for work that has not ended in time.
var ErrTimeout = errors.New("the device has not ended in time")

// ErrLost is in the errors of a device that has failed and will do nothing more. Every later Submit and Wait returns
// such an error.
var ErrLost = errors.New("the device is lost")

// Device is an open device. Its errors, but for ErrTimeout, name it.
type Device interface {
	// Info says what the device is. It never changes.
	Info() Info

	// Alloc takes bytes of memory, more than 0 and no more than Info.Largest. The content is undefined. The
	// address is a multiple of 256. The error says what there is where that is not enough.
	Alloc(bytes int64, kind Kind) (Memory, error)

	// Load makes the plan's pipelines, all or none, for the dispatches of Record. It ends early with ctx. The error
	// names the kernel that the device refuses. A code that the back end does not know is ir.Unsupported.
	Load(ctx context.Context, plan *plans.Plan) error

	// Record prepares work that is submitted any number of times, also while it still runs. The addresses of
	// dispatches and the memory of copies must live as long.
	Record(stages ...Stage) (Work, error)

	// Submit begins to run works one behind the other, behind all that was submitted before, and returns at once. What
	// the host has written to Upload memory before, the work sees.
	Submit(works ...Work) (Fence, error)

	// Wait waits until a submission and all before it have ended. It returns ErrTimeout where that takes longer; with
	// a timeout of 0 it looks and returns. Then the host sees what copies have written to Readback memory.
	Wait(f Fence, timeout time.Duration) error

	// Clock makes slots for times of the device. The error says so if it has no clock.
	Clock(slots int) (Clock, error)

	// Close frees the device and all that was made on it. It waits for submissions for a second at most; those that run
	// longer keep what they use until the process ends. Once is enough.
	Close()
}

// Info describes a device.
type Info struct {
	Backend string // what runs the kernels, for people: "Vulkan"
	Name    string // of the device, for people
	Driver  string // name and version of the driver
	Largest int64  // bytes of an allocation, at most; 0 where nothing bounds them
	// Host says that the device computes on the host's processors: who polls takes one from it.
	// It may begin a submission once somebody waits, and return from a Wait of more than a moment at its end.
	Host bool
}

// Kind says who uses memory and how.
type Kind int

// Kinds of memory.
const (
	Local    Kind = iota // the device's own; the host touches it where it is mapped, while nothing runs
	Upload               // mapped: the host writes, copies read; slow for the host to read
	Readback             // mapped: copies write, the host reads
)

// Memory is an allocation.
type Memory interface {
	Address() uint64 // for kernels
	Size() int64     // bytes that were asked for
	Bytes() []byte   // the mapped memory; nil for Local that is not in the host's memory; gone behind Free
	Free()           // once what was submitted before has ended; once is enough
}

// Work is recorded stages.
type Work interface {
	Free() // once what was submitted before has ended
}

// Fence is the number of a submission. Submissions count from 1; waiting for 0 is done at once.
type Fence uint64

// Stage is dispatches and copies that do not depend on each other: they may run at once, in any order. They begin in
// the order of the lists where the device takes them one by one. A stage begins when all before it has ended and is
// visible, also in works that were submitted before.
type Stage struct {
	Dispatches []Dispatch
	Copies     []Copy
	// Stamp takes the time at which the stage and all before it have ended, if its Clock is not nil.
	Stamp Stamp
}

// Dispatch runs a pipeline of the loaded plan.
type Dispatch struct {
	Pipeline  int       // index in the plan
	Arguments []uint64  // addresses, in the order of the kernel's arguments
	Grid      [3]uint32 // workgroups
	// Queue has dispatches of a stage that run one behind the other, those of different queues at once, where the
	// device has queues; it is less than ir.Queues.
	Queue int
	// Early says that the dispatch may begin while the one before it in the work runs, for whose end its kernel waits
	// itself. Both are alone in their stages, on queue 0. Only plans for devices that have this say so.
	Early bool
	Site  string     // where it is in the plan, for errors
	Cost  plans.Cost // what it is expected to take
}

// Copy copies bytes between allocations that do not overlap there.
type Copy struct {
	To     Memory
	ToAt   int64
	From   Memory
	FromAt int64
	Bytes  int64
}

// Stamp is a slot of a clock.
type Stamp struct {
	Clock Clock
	Slot  int
}

// Clock holds times of the device. A work takes each slot once at most.
type Clock interface {
	// Read returns the time of every slot since slot 0, in the last submission, which has ended.
	Read() ([]time.Duration, error)
	Free() // once what was submitted before has ended
}

// Stopper is a device that can end work before its end. The others just go on.
type Stopper interface {
	// Stop says that nobody wants what was submitted up to f: it may end early, and what it writes is rubbish then. It
	// is called beside Wait.
	Stop(f Fence)
}

// Shelf is a device in the host's memory that has a place of its own for weights, such as a file that it maps.
type Shelf interface {
	// Weights returns memory for each of the plan's weights; there says that they are in it already. It is asked once,
	// and if they are not, Filled is called once they are. Their addresses are multiples of 64.
	Weights(ctx context.Context, plan *plans.Plan) (each []Memory, there bool, err error)
	Filled(ctx context.Context)
}

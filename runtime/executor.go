package runtime

import (
	"context"

	"github.com/zincc-dev/zincc/plans"
)

// Executor is a device that holds a plan's weights and state and runs its entries on the step block. It is for one
// goroutine.
type Executor interface {
	// Device names the device for people.
	Device() string
	// Write sets the first values of a region of the step block, for the submissions that follow.
	Write(region string, data []int32) error
	// Submit begins to run launches one behind the other, without returning to the host in between, the first of them
	// on the step block as the host has written it. It does not wait for their end, but on the oracle. Three
	// submissions may be open, and each must be waited for.
	Submit(ctx context.Context, launches ...Launch) (Ticket, error)
	// Wait waits for the end of a submission, or until the caller loses interest; it is given up then.
	Wait(ctx context.Context, t Ticket) error
	// Ints and Floats return the content of a step or io region behind the submission that was waited for last, valid
	// until the next one. Where rows of an entry's logits are named, the others may hold anything: they are not copied.
	Ints(region string) ([]int32, error)
	Floats(region string, rows ...int) ([]float32, error)
	// SaveState copies parts of caches and states, RestoreState writes the copy to spans of the same sizes in the same
	// order: those that it was made of, or another sequence's.
	SaveState(ctx context.Context, spans []plans.Span) (State, error)
	RestoreState(ctx context.Context, s State, to []plans.Span) error
	// Copy copies parts of caches and states to others, of the same sizes in the same order, which do not overlap them.
	Copy(ctx context.Context, to, from []plans.Span) error
	Close() error
}

// Overlapping is an executor that may say that its device runs a submission while the host works. On a device that
// computes on the host's processors nothing is gained by submitting a step ahead.
type Overlapping interface{ Overlaps() bool }

// Nearing is an executor that calls a function once while the next submission is waited for, shortly before its end is
// expected; not at all where it does not know when that is.
type Nearing interface{ Near(f func()) }

// Launch is an entry, or a part of it, and how often it runs in a row.
type Launch struct {
	Entry *plans.Entry
	Times int
	Part  Part
}

// Part is a part of an entry. A plan that chooses within masks (ir.StepMask) has decode entries in two parts, so that
// the host can make the masks of a step while the device computes its logits.
type Part int

// Parts of an entry.
const (
	Whole  Part = iota
	Logits      // all up to the logits
	Choice      // the choice of tokens by the logits, and the advance of the step block, which does not come back
)

// Ticket is an open submission.
type Ticket uint64

// Run runs an entry times times in a row, in one submission, and waits for its end.
func Run(ctx context.Context, x Executor, entry *plans.Entry, times int) error {
	t, err := x.Submit(ctx, Launch{Entry: entry, Times: times})
	if err != nil {
		return err
	}
	return x.Wait(ctx, t)
}

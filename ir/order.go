package ir

import (
	"fmt"
	"slices"
)

// Order says when the dispatch of a group is launched and what must have ended before. Dispatches are launched in the
// order of the list of groups. Passes of stage schedule decide it; executors do what it says.
type Order struct {
	// Stage: no dispatch of a stage waits for another of it. Stages never decrease along the list.
	Stage int
	// Waits is how many stages must have ended before the dispatch touches memory, but for what it may touch Early:
	// stages 0 to Waits-1. It is no more than Stage.
	Waits int
	// Queue has dispatches that begin one behind the other. Those of a stage on different queues may run at once.
	Queue int
	Early Early
}

// Queues bounds the queues of a function.
const Queues = 16

// Early says whether a dispatch begins before what it waits for has ended: while the dispatch before it in the list
// runs, for whose end its kernel then waits itself.
type Early string

// How dispatches begin.
const (
	NotEarly   Early = ""      // when what it waits for has ended
	WaitsFirst Early = "waits" // early; the kernel waits first of all
	LoadsFirst Early = "loads" // early; the kernel first loads what nothing that may still run writes
)

func (e Early) known() bool { return slices.Contains([]Early{NotEarly, WaitsFirst, LoadsFirst}, e) }

// String writes the order as .zir text does.
func (o Order) String() string {
	text := fmt.Sprintf("stage=%d waits=%d", o.Stage, o.Waits)
	if o.Queue != 0 {
		text += fmt.Sprintf(" queue=%d", o.Queue)
	}
	if o.Early != NotEarly {
		text += " early=" + string(o.Early)
	}
	return text
}

// verify fails if a number is out of range; before is the order of the group before.
func (o Order) verify(before Order) error {
	switch {
	case o.Stage < before.Stage:
		return fmt.Errorf("stage %d behind stage %d", o.Stage, before.Stage)
	case o.Waits < 0 || o.Waits > o.Stage:
		return fmt.Errorf("in stage %d it waits for %d stages", o.Stage, o.Waits)
	case o.Queue < 0 || o.Queue >= Queues:
		return fmt.Errorf("queue %d of %d", o.Queue, Queues)
	case !o.Early.known():
		return fmt.Errorf("early start %q", o.Early)
	}
	return nil
}

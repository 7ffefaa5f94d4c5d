package engine

import (
	goruntime "runtime"
	"sync/atomic"
	"time"
)

// crew is goroutines that help to choose by candidates for many rows. They come shortly before the rows do: to wake a
// processor takes longer than to choose for some rows, and the device waits meanwhile. A nil crew is nobody.
type crew struct {
	work atomic.Pointer[work]
	here atomic.Int64 // helpers that look for work, or do some
	over atomic.Bool
}

// work is what is to be done for each of a list.
type work struct {
	list       []int
	f          func(i int)
	next, done atomic.Int64
}

// run does what is left of the work, and returns how much that was.
func (w *work) run() (own int) {
	for k := int(w.next.Add(1)); k <= len(w.list); k = int(w.next.Add(1)) {
		w.f(w.list[k-1])
		w.done.Add(1)
		own++
	}
	return own
}

const (
	// lookFor is how long helpers look for work.
	lookFor = 2 * time.Millisecond
	// crewShare is the work that somebody comes for who is there in time.
	crewShare = 20 * time.Microsecond
)

// callHelpers starts so many.
func callHelpers(n int) *crew {
	c := &crew{}
	c.here.Store(int64(n))
	for range n {
		go c.help()
	}
	return c
}

// help does its part of the work once there is some.
func (c *crew) help() {
	defer c.here.Add(-1)
	for began := time.Now(); time.Since(began) < lookFor; { // clocks leave the core to the one that shares it
		if c.over.Load() {
			return
		}
		if w := c.work.Load(); w != nil {
			w.run()
			return
		}
	}
}

// each calls f for numbers and returns how many of the calls it made itself. If nobody of the crew is there, so many
// others are called: a step has taken longer than they look for work.
func (c *crew) each(list []int, helpers int, f func(i int)) (own int) {
	if c == nil || c.here.Load() == 0 {
		return each(list, helpers, f)
	}
	w := &work{list: list, f: f}
	c.work.Store(w)
	own = w.run()
	for int(w.done.Load()) < len(list) { // helpers are in the middle of the last ones
		goruntime.Gosched()
	}
	return own
}

// helpersFor is how many helpers are to come, if the host chooses for so many of a group that this pays. A quarter of
// the processors is left to readers.
func (e *Engine) helpersFor(group []*seq) int {
	rows := 0
	for _, s := range group {
		if s.onHost() && !s.needsLogits() {
			rows++
		}
	}
	return min(int(e.perRow.mean*float64(rows)/crewShare.Seconds()), goruntime.GOMAXPROCS(0)*3/4-1)
}

// dismiss ends the helpers' wait.
func (e *Engine) dismiss() {
	if e.crew != nil {
		e.crew.over.Store(true)
		e.crew = nil
	}
}

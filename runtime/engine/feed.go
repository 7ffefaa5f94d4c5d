package engine

import (
	"sync"
	"time"
)

// feed carries what the engine chooses to the goroutine that reads it. It never makes the
// engine wait; it grows to what one answer has at most.
type feed struct {
	// The engine's alone:
	fresh  []choice  // that the reader was not told of
	since  time.Time // when the first of these was put
	urgent bool      // one of these is to wait for no other

	mu     sync.Mutex
	list   []choice
	done   *Done
	signal chan struct{} // holds something when there is something new
}

// together is how long a token waits for others at most. Readers write what they get to the network, which takes the
// processor for as long as a step of a small model; a burst makes its first token wait for longer.
const together = 2 * time.Millisecond

// choice is a token as the engine has it.
type choice struct {
	id        int32
	logprob   float32
	top       []scored
	reasoning bool
}

func newFeed() *feed { return &feed{signal: make(chan struct{}, 1)} }

// put appends a token. The reader gets it by tell, flush or end.
func (f *feed) put(c choice, now time.Time) {
	if len(f.fresh) == 0 {
		f.since = now
	}
	f.fresh = append(f.fresh, c)
}

// tell gives the reader the tokens if one is urgent, or would have waited for longer than together by a time.
func (f *feed) tell(by time.Time) {
	if f.urgent || by.Sub(f.since) > together {
		f.flush()
	}
}

// flush gives the reader the tokens.
func (f *feed) flush() {
	if len(f.fresh) > 0 {
		f.hand(nil)
	}
}

// end says that nothing follows.
func (f *feed) end(d *Done) { f.hand(d) }

func (f *feed) hand(d *Done) {
	f.mu.Lock()
	f.list = append(f.list, f.fresh...)
	f.done = d
	f.mu.Unlock()
	f.fresh, f.urgent = f.fresh[:0], false
	f.wake()
}

func (f *feed) wake() {
	select {
	case f.signal <- struct{}{}:
	default:
	}
}

// take returns what has come since the last take, in the memory of spare.
func (f *feed) take(spare []choice) ([]choice, *Done) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.list
	f.list = spare[:0]
	return list, f.done
}

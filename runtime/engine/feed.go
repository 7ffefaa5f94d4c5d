package engine

import "sync"

// feed carries what the engine chooses to the goroutine that reads it. It never makes the
// engine wait; it grows to what one answer has at most.
type feed struct {
	mu     sync.Mutex
	list   []choice
	done   *Done
	signal chan struct{} // holds something when there is something new
}

// choice is a token as the engine has it.
type choice struct {
	id        int32
	logprob   float32
	top       []scored
	reasoning bool
}

func newFeed() *feed { return &feed{signal: make(chan struct{}, 1)} }

// put appends a token.
func (f *feed) put(c choice) {
	f.mu.Lock()
	f.list = append(f.list, c)
	f.mu.Unlock()
	f.wake()
}

// end says that nothing follows.
func (f *feed) end(d *Done) {
	f.mu.Lock()
	f.done = d
	f.mu.Unlock()
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

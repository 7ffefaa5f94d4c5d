package spare

import (
	"fmt"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// State is a copy of spans of a plan's state, one behind the other, in memory of a pool.
type State[M any] struct {
	Spans  []plans.Span
	Memory M
	bytes  int64    // of it that are used
	pool   *Pool[M] // nil where there is nothing to keep, and once it is freed
}

// Bytes is what the state holds.
func (s *State[M]) Bytes() int64 {
	if s.pool == nil {
		return 0
	}
	return s.bytes
}

// Free leaves the memory to the next state: a turn of a conversation drops one and saves one.
func (s *State[M]) Free() {
	if s.pool != nil {
		s.pool.Leave(s.Memory)
		s.pool = nil
	}
}

// Save takes memory for the spans, which fill copies there.
func (p *Pool[M]) Save(spans []plans.Span, fill func(s *State[M]) error) (runtime.State, error) {
	s := &State[M]{Spans: spans}
	for _, span := range spans {
		s.bytes += span.Bytes
	}
	if s.bytes == 0 {
		return s, nil
	}
	var err error
	if s.Memory, err = p.Take(s.bytes); err != nil {
		return nil, err
	}
	s.pool = p
	if err := fill(s); err != nil {
		s.Free()
		return nil, err
	}
	return s, nil
}

// Restore has back copy a saved state back, if it holds anything.
func (p *Pool[M]) Restore(saved runtime.State, back func(s *State[M]) error) error {
	s, ok := saved.(*State[M])
	if !ok {
		return fmt.Errorf("the state is not of this device")
	}
	if s.pool == nil {
		return nil
	}
	return back(s)
}

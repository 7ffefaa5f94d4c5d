package cpu

import (
	"context"
	"fmt"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// state is a copy of spans of the plan's state.
type state struct {
	windows [][]byte // in the plan's memory
	copies  [][]byte
}

func (s *state) Bytes() int64 {
	n := int64(0)
	for _, c := range s.copies {
		n += int64(len(c))
	}
	return n
}

func (s *state) Free() { s.windows, s.copies = nil, nil }

// SaveState copies the spans.
func (x *Executor) SaveState(_ context.Context, spans []plans.Span) (runtime.State, error) {
	s := &state{}
	for _, span := range spans {
		r, ok := x.memory.regions[place{"state", span.Region}]
		if !ok || span.Offset < 0 || span.Bytes < 0 || span.Bytes > int64(len(r))-span.Offset {
			return nil, fmt.Errorf("plan has no state %q of %d bytes", span.Region, span.Offset+span.Bytes)
		}
		w := r[span.Offset : span.Offset+span.Bytes]
		s.windows, s.copies = append(s.windows, w), append(s.copies, append([]byte(nil), w...))
	}
	return s, nil
}

// RestoreState writes back what SaveState copied.
func (x *Executor) RestoreState(_ context.Context, saved runtime.State) error {
	s, ok := saved.(*state)
	if !ok {
		return fmt.Errorf("the state is not of this device")
	}
	for i, w := range s.windows {
		copy(w, s.copies[i])
	}
	return nil
}

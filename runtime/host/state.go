package host

import (
	"context"
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// state is a copy of spans of the machine's state.
type state struct {
	windows [][]float32 // in the machine
	copies  [][]float32
}

func (s *state) Bytes() int64 {
	n := 0
	for _, c := range s.copies {
		n += 4 * len(c)
	}
	return int64(n)
}

func (s *state) Free() { s.windows, s.copies = nil, nil }

// SaveState copies the spans.
func (x *Executor) SaveState(_ context.Context, spans []plans.Span) (runtime.State, error) {
	s := &state{}
	for _, span := range spans {
		all, err := x.Floats(span.Region)
		if err != nil {
			return nil, err
		}
		w := all[span.Offset/4 : (span.Offset+span.Bytes)/4]
		s.windows = append(s.windows, w)
		s.copies = append(s.copies, slices.Clone(w))
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

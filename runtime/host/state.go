package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

var errNotOurs = errors.New("the state is not of this device")

// state is a copy of spans of the machine's state.
type state struct{ copies [][]float32 }

func (s *state) Bytes() int64 {
	n := 0
	for _, c := range s.copies {
		n += 4 * len(c)
	}
	return int64(n)
}

func (s *state) Free() { s.copies = nil }

// SaveState copies the spans.
func (x *Executor) SaveState(_ context.Context, spans []plans.Span) (runtime.State, error) {
	windows, err := x.windows(spans)
	if err != nil {
		return nil, err
	}
	s := &state{}
	for _, w := range windows {
		s.copies = append(s.copies, slices.Clone(w))
	}
	return s, nil
}

// RestoreState writes what SaveState copied to spans.
func (x *Executor) RestoreState(_ context.Context, saved runtime.State, to []plans.Span) error {
	s, ok := saved.(*state)
	if !ok {
		return errNotOurs
	}
	return x.fill(to, s.copies)
}

// Copy copies spans to others.
func (x *Executor) Copy(_ context.Context, to, from []plans.Span) error {
	windows, err := x.windows(from)
	if err != nil {
		return err
	}
	return x.fill(to, windows)
}

// fill writes floats to spans of the same sizes.
func (x *Executor) fill(to []plans.Span, from [][]float32) error {
	windows, err := x.windows(to)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(windows, from, func(a, b []float32) bool { return len(a) == len(b) }) {
		return fmt.Errorf("%d spans are to be copied to %d of other sizes", len(from), len(to))
	}
	for i, w := range windows {
		copy(w, from[i])
	}
	return nil
}

// windows are the spans in the machine.
func (x *Executor) windows(spans []plans.Span) ([][]float32, error) {
	var list [][]float32
	for _, s := range spans {
		all, err := x.Floats(s.Region)
		if err != nil {
			return nil, err
		}
		if s.Offset < 0 || s.Bytes < 0 || s.Bytes > int64(4*len(all))-s.Offset {
			return nil, fmt.Errorf("plan has no state %q of %d bytes", s.Region, s.Offset+s.Bytes)
		}
		list = append(list, all[s.Offset/4:(s.Offset+s.Bytes)/4])
	}
	return list, nil
}

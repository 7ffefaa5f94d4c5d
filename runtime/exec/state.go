package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/driver"
)

// state is a copy of spans of a plan's state, one behind the other.
type state struct {
	owner  *Executor
	spans  []plans.Span
	memory driver.Memory // nil where there is nothing to keep, and once it is freed
	bytes  int64         // of it that are used
}

// Bytes is what the state holds.
func (s *state) Bytes() int64 {
	if s.memory == nil {
		return 0
	}
	return s.bytes
}

// Free leaves the memory to the next state: a turn of a conversation drops one and saves one, and memory takes
// milliseconds to get. As much is kept as there are slots.
func (s *state) Free() {
	m, x := s.memory, s.owner
	s.memory = nil
	switch {
	case m == nil:
	case len(x.spare) < x.plan.Header.Slots:
		x.spare = append(x.spare, m)
	default:
		m.Free()
	}
}

// take returns memory of that size at least: what another state has left, or new.
func (x *Executor) take(bytes int64) (driver.Memory, error) {
	if i := slices.IndexFunc(x.spare, func(m driver.Memory) bool { return m.Size() >= bytes }); i >= 0 {
		m := x.spare[i]
		x.spare = slices.Delete(x.spare, i, i+1)
		return m, nil
	}
	// What is too small has no use any more, and may be in the way.
	for _, m := range x.spare {
		m.Free()
	}
	x.spare = nil
	return x.dev.Alloc(bytes, driver.Local)
}

// SaveState copies the spans.
func (x *Executor) SaveState(ctx context.Context, spans []plans.Span) (runtime.State, error) {
	s := &state{owner: x, spans: spans}
	for _, span := range spans {
		s.bytes += span.Bytes
	}
	if s.bytes == 0 {
		return s, nil
	}
	var err error
	if s.memory, err = x.take(s.bytes); err != nil {
		return nil, err
	}
	if err := x.copyState(ctx, s, spans, place.to); err != nil {
		s.Free()
		return nil, err
	}
	return s, nil
}

// RestoreState writes what SaveState copied, if anything, to spans.
func (x *Executor) RestoreState(ctx context.Context, saved runtime.State, to []plans.Span) error {
	s, err := x.own(saved)
	if err != nil {
		return err
	}
	if err := sameSizes(to, s.spans); err != nil || s.memory == nil {
		return err
	}
	return x.copyState(ctx, s, to, place.from)
}

// own is a state that SaveState of this device has made.
func (x *Executor) own(saved runtime.State) (*state, error) {
	if s, ok := saved.(*state); ok && s.owner == x {
		return s, nil
	}
	return nil, errors.New("the state is not of this device")
}

// copyState runs one submission with a copy for every span between its region and the checkpoint.
func (x *Executor) copyState(ctx context.Context, s *state, spans []plans.Span, way func(p place, m driver.Memory, at, offset, n int64) driver.Copy) error {
	var copies []driver.Copy
	at := int64(0)
	for _, span := range spans {
		p, err := x.memory.span(span)
		if err != nil {
			return err
		}
		copies = append(copies, way(p, s.memory, at, 0, span.Bytes))
		at += span.Bytes
	}
	return x.once(ctx, driver.Stage{Copies: copies})
}

// Copy copies spans to others in one submission.
func (x *Executor) Copy(ctx context.Context, to, from []plans.Span) error {
	if err := sameSizes(to, from); err != nil || len(to) == 0 {
		return err
	}
	var copies []driver.Copy
	for i := range to {
		t, err := x.memory.span(to[i])
		if err != nil {
			return err
		}
		f, err := x.memory.span(from[i])
		if err != nil {
			return err
		}
		if t.buf == f.buf && t.at < f.at+f.bytes && f.at < t.at+t.bytes {
			return fmt.Errorf("a copy of %d bytes within %q overlaps itself", t.bytes, to[i].Region)
		}
		copies = append(copies, f.to(t.buf, t.at, 0, t.bytes))
	}
	return x.once(ctx, driver.Stage{Copies: copies})
}

// sameSizes fails unless spans have the sizes of others.
func sameSizes(to, from []plans.Span) error {
	if !slices.EqualFunc(to, from, func(t, f plans.Span) bool { return t.Bytes == f.Bytes }) {
		return fmt.Errorf("%d spans are to be copied to %d of other sizes", len(from), len(to))
	}
	return nil
}

// span is the place of a span.
func (m *memory) span(s plans.Span) (place, error) {
	p, ok := m.regions[s.Region]
	if !ok || s.Offset < 0 || s.Bytes < 0 || s.Bytes > p.bytes-s.Offset {
		return p, fmt.Errorf("plan has no state %q of %d bytes", s.Region, s.Offset+s.Bytes)
	}
	p.at, p.bytes = p.at+s.Offset, s.Bytes
	return p, nil
}

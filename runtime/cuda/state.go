package cuda

import (
	"context"
	"fmt"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// state is a copy of spans of the plan's state, on the device.
type state struct {
	exec  *Executor
	spans []plans.Span
	bytes int64
	held  *allocation // nil when there is nothing to keep
}

func (s *state) Bytes() int64 {
	if s.held == nil {
		return 0
	}
	return s.bytes
}

// Free leaves the memory to the next state: a turn of a conversation drops one and saves one.
func (s *state) Free() {
	if s.held != nil {
		s.exec.spare.Leave(s.held)
		s.held = nil
	}
}

// SaveState copies the spans.
func (x *Executor) SaveState(ctx context.Context, spans []plans.Span) (runtime.State, error) {
	s := &state{exec: x, spans: spans}
	for _, span := range spans {
		s.bytes += span.Bytes
	}
	if s.bytes == 0 {
		return s, nil
	}
	var err error
	if s.held, err = x.spare.Take(s.bytes); err != nil {
		return nil, err
	}
	if err := x.copyState(ctx, s, func(region, held uint64, n int64) error { return x.dev.copy(held, region, n) }); err != nil {
		s.Free()
		return nil, err
	}
	return s, nil
}

// RestoreState writes back what SaveState copied.
func (x *Executor) RestoreState(ctx context.Context, saved runtime.State) error {
	s, ok := saved.(*state)
	if !ok {
		return fmt.Errorf("the state is not of this device")
	}
	if s.held == nil {
		return nil
	}
	return x.copyState(ctx, s, func(region, held uint64, n int64) error { return x.dev.copy(region, held, n) })
}

// copyState copies every span between its region and the checkpoint, and waits for all.
func (x *Executor) copyState(ctx context.Context, s *state, one func(region, held uint64, n int64) error) error {
	if err := x.settle(); err != nil {
		return err
	}
	at := s.held.address
	for _, span := range s.spans {
		p, ok := x.memory.regions[span.Region]
		if !ok || span.Offset < 0 || span.Bytes > p.bytes-span.Offset {
			return fmt.Errorf("plan has no state %q of %d bytes", span.Region, span.Offset+span.Bytes)
		}
		if err := one(p.address+uint64(span.Offset), at, span.Bytes); err != nil {
			return x.dev.errorf("state: %w", err)
		}
		at += uint64(span.Bytes)
	}
	return x.wait(ctx, 0)
}

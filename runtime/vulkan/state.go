package vulkan

import (
	"context"
	"fmt"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/internal/spare"
)

// state is a copy of spans of the plan's state, on the device.
type state struct {
	exec  *Executor
	spans []plans.Span
	buf   *Buffer // nil when there is nothing to keep
	bytes int64   // of it that are used
}

func (s *state) Bytes() int64 {
	if s.buf == nil {
		return 0
	}
	return s.bytes
}

// Free leaves the memory to the next state: a turn of a conversation drops one and saves one.
func (s *state) Free() {
	if s.buf != nil {
		s.exec.spare.Leave(s.buf)
		s.buf = nil
	}
}

// newSpare keeps as many as the plan has slots.
func newSpare(dev *Device, plan *plans.Plan) spare.Pool[*Buffer] {
	return spare.Pool[*Buffer]{
		Most: plan.Header.Slots, Size: (*Buffer).Size, Free: (*Buffer).Free,
		Alloc: func(bytes int64) (*Buffer, error) { return dev.Alloc(bytes, DeviceLocal) },
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
	if s.buf, err = x.spare.Take(s.bytes); err != nil {
		return nil, err
	}
	if err := x.copyState(ctx, s, func(c *Commands, p place, at, n, offset int64) { c.Copy(s.buf, at, p.buf, p.at+offset, n) }); err != nil {
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
	if s.buf == nil {
		return nil
	}
	return x.copyState(ctx, s, func(c *Commands, p place, at, n, offset int64) { c.Copy(p.buf, p.at+offset, s.buf, at, n) })
}

// copyState runs one submission with a copy for every span: n bytes at offset of
// the region at p, and at of the checkpoint.
func (x *Executor) copyState(ctx context.Context, s *state, one func(c *Commands, p place, at, n, offset int64)) error {
	c, err := x.dev.NewCommands()
	if err != nil {
		return err
	}
	defer c.Free()
	c.Barrier(Compute|Transfer, Transfer)
	at := int64(0)
	for _, span := range s.spans {
		p, ok := x.memory.regions[span.Region]
		if !ok || span.Offset < 0 || span.Bytes > p.bytes-span.Offset {
			return fmt.Errorf("plan has no state %q of %d bytes", span.Region, span.Offset+span.Bytes)
		}
		one(c, p, at, span.Bytes, span.Offset)
		at += span.Bytes
	}
	c.Barrier(Transfer, Compute|Transfer)
	if err := c.End(); err != nil {
		return err
	}
	return x.submit(ctx, c)
}

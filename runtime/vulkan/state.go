package vulkan

import (
	"context"
	"fmt"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/internal/spare"
)

// newSpare keeps as many as the plan has slots.
func newSpare(dev *Device, plan *plans.Plan) spare.Pool[*Buffer] {
	return spare.Pool[*Buffer]{
		Most: plan.Header.Slots, Size: (*Buffer).Size, Free: (*Buffer).Free,
		Alloc: func(bytes int64) (*Buffer, error) { return dev.Alloc(bytes, DeviceLocal) },
	}
}

// SaveState copies the spans.
func (x *Executor) SaveState(ctx context.Context, spans []plans.Span) (runtime.State, error) {
	return x.spare.Save(spans, func(s *spare.State[*Buffer]) error {
		return x.copyState(ctx, s, func(c *Commands, p place, at, n, offset int64) { c.Copy(s.Memory, at, p.buf, p.at+offset, n) })
	})
}

// RestoreState writes back what SaveState copied.
func (x *Executor) RestoreState(ctx context.Context, saved runtime.State) error {
	return x.spare.Restore(saved, func(s *spare.State[*Buffer]) error {
		return x.copyState(ctx, s, func(c *Commands, p place, at, n, offset int64) { c.Copy(p.buf, p.at+offset, s.Memory, at, n) })
	})
}

// copyState runs one submission with a copy for every span: n bytes at offset of
// the region at p, and at of the checkpoint.
func (x *Executor) copyState(ctx context.Context, s *spare.State[*Buffer], one func(c *Commands, p place, at, n, offset int64)) error {
	c, err := x.dev.NewCommands()
	if err != nil {
		return err
	}
	defer c.Free()
	c.Barrier(Compute|Transfer, Transfer)
	at := int64(0)
	for _, span := range s.Spans {
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

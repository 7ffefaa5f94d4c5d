package cuda

import (
	"context"
	"fmt"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/internal/spare"
)

// SaveState copies the spans.
func (x *Executor) SaveState(ctx context.Context, spans []plans.Span) (runtime.State, error) {
	return x.spare.Save(spans, func(s *spare.State[*allocation]) error {
		return x.copyState(ctx, s, func(region, held uint64, n int64) error { return x.dev.copy(held, region, n) })
	})
}

// RestoreState writes back what SaveState copied.
func (x *Executor) RestoreState(ctx context.Context, saved runtime.State) error {
	return x.spare.Restore(saved, func(s *spare.State[*allocation]) error {
		return x.copyState(ctx, s, func(region, held uint64, n int64) error { return x.dev.copy(region, held, n) })
	})
}

// copyState copies every span between its region and the checkpoint, and waits for all.
func (x *Executor) copyState(ctx context.Context, s *spare.State[*allocation], one func(region, held uint64, n int64) error) error {
	if err := x.settle(); err != nil {
		return err
	}
	at := s.Memory.address
	for _, span := range s.Spans {
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

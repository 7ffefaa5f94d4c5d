package exec

import (
	"context"
	"fmt"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/internal/spare"
)

// SaveState copies the spans.
func (x *Executor) SaveState(ctx context.Context, spans []plans.Span) (runtime.State, error) {
	return x.spare.Save(spans, func(s *spare.State[driver.Memory]) error { return x.copyState(ctx, s, place.to) })
}

// RestoreState writes back what SaveState copied.
func (x *Executor) RestoreState(ctx context.Context, saved runtime.State) error {
	return x.spare.Restore(saved, func(s *spare.State[driver.Memory]) error { return x.copyState(ctx, s, place.from) })
}

// copyState runs one submission with a copy for every span between its region and the checkpoint.
func (x *Executor) copyState(ctx context.Context, s *spare.State[driver.Memory], way func(p place, m driver.Memory, at, offset, n int64) driver.Copy) error {
	var copies []driver.Copy
	at := int64(0)
	for _, span := range s.Spans {
		p, ok := x.memory.regions[span.Region]
		if !ok || span.Offset < 0 || span.Bytes > p.bytes-span.Offset {
			return fmt.Errorf("plan has no state %q of %d bytes", span.Region, span.Offset+span.Bytes)
		}
		copies = append(copies, way(p, s.Memory, at, span.Offset, span.Bytes))
		at += span.Bytes
	}
	return x.once(ctx, driver.Stage{Copies: copies})
}

package runtime

import (
	"context"

	"github.com/zincc-dev/zincc/plans"
)

// SpanCopier is an Executor that copies parts of caches and states to the host's memory and back. The bytes of all
// spans lie one behind the other; an error tells where they are not as many, or a span is not of the plan.
type SpanCopier interface {
	ReadSpans(ctx context.Context, spans []plans.Span, to []byte) error
	WriteSpans(ctx context.Context, spans []plans.Span, from []byte) error
	// ReadState copies bytes of what SaveState has copied, from one on: WriteSpans takes all of them as those of the
	// spans that RestoreState writes.
	ReadState(ctx context.Context, s State, from int64, to []byte) error
}

package host

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/plans"
)

// ReadSpans copies spans to bytes.
func (x *Executor) ReadSpans(_ context.Context, spans []plans.Span, to []byte) error {
	return x.eachFloat(spans, to, func(f *float32, b []byte) { binary.LittleEndian.PutUint32(b, math.Float32bits(*f)) })
}

// WriteSpans copies bytes to spans.
func (x *Executor) WriteSpans(_ context.Context, spans []plans.Span, from []byte) error {
	return x.eachFloat(spans, from, func(f *float32, b []byte) { *f = math.Float32frombits(binary.LittleEndian.Uint32(b)) })
}

// eachFloat calls do with each float of spans and its bytes.
func (x *Executor) eachFloat(spans []plans.Span, b []byte, do func(f *float32, b []byte)) error {
	windows, err := x.windows(spans)
	if err != nil {
		return err
	}
	sum := 0
	for _, w := range windows {
		sum += 4 * len(w)
	}
	if sum != len(b) {
		return fmt.Errorf("%d bytes for spans of %d", len(b), sum)
	}
	for _, w := range windows {
		for i := range w {
			do(&w[i], b[:4])
			b = b[4:]
		}
	}
	return nil
}

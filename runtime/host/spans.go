package host

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// ReadSpans copies spans to bytes.
func (x *Executor) ReadSpans(_ context.Context, spans []plans.Span, to []byte) error {
	return x.eachFloat(spans, to, putFloat)
}

func putFloat(f *float32, b []byte) { binary.LittleEndian.PutUint32(b, math.Float32bits(*f)) }

// WriteSpans copies bytes to spans.
func (x *Executor) WriteSpans(_ context.Context, spans []plans.Span, from []byte) error {
	return x.eachFloat(spans, from, func(f *float32, b []byte) { *f = math.Float32frombits(binary.LittleEndian.Uint32(b)) })
}

// ReadState copies bytes of a state, from one on; both are at whole floats.
func (x *Executor) ReadState(_ context.Context, saved runtime.State, from int64, to []byte) error {
	s, ok := saved.(*state)
	if !ok {
		return errNotOurs
	}
	n := int64(len(to))
	if from < 0 || n > s.Bytes()-from || (from|n)%4 != 0 {
		return fmt.Errorf("%d bytes from %d on of a state of %d", n, from, s.Bytes())
	}
	var part [][]float32
	from, n = from/4, n/4
	for _, c := range s.copies {
		first := min(from, int64(len(c)))
		last := min(first+n, int64(len(c)))
		part = append(part, c[first:last])
		from, n = from-first, n-(last-first)
	}
	return each(part, to, putFloat)
}

// eachFloat calls do with each float of spans and its bytes.
func (x *Executor) eachFloat(spans []plans.Span, b []byte, do func(f *float32, b []byte)) error {
	windows, err := x.windows(spans)
	if err != nil {
		return err
	}
	return each(windows, b, do)
}

// each calls do with each float and its bytes.
func each(windows [][]float32, b []byte, do func(f *float32, b []byte)) error {
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

package exec

import (
	"context"
	"fmt"
	"sync"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/driver"
)

// ReadSpans copies spans to the host's memory.
func (x *Executor) ReadSpans(ctx context.Context, spans []plans.Span, to []byte) error {
	return x.stageSpans(ctx, spans, to, driver.Readback, place.to, copyWide)
}

// ReadState copies bytes of a state, from one on, to the host's memory.
func (x *Executor) ReadState(ctx context.Context, saved runtime.State, from int64, to []byte) error {
	s, err := x.own(saved)
	if err != nil {
		return err
	}
	if n := int64(len(to)); from < 0 || n > s.Bytes()-from {
		return fmt.Errorf("%d bytes from %d on of a state of %d", n, from, s.Bytes())
	}
	return x.stage(ctx, []place{{buf: s.memory, at: from, bytes: int64(len(to))}}, to, driver.Readback, place.to, copyWide)
}

// WriteSpans copies the host's memory to spans.
func (x *Executor) WriteSpans(ctx context.Context, spans []plans.Span, from []byte) error {
	return x.stageSpans(ctx, spans, from, driver.Upload, place.from, func(host, staged []byte) { copyWide(staged, host) })
}

// stageSpans copies spans through memory of a kind that both sees. way is the device's part of it, move the host's.
func (x *Executor) stageSpans(ctx context.Context, spans []plans.Span, host []byte, kind driver.Kind,
	way func(p place, m driver.Memory, at, offset, n int64) driver.Copy, move func(host, staged []byte)) error {
	var places []place
	sum := int64(0)
	for _, s := range spans {
		p, err := x.memory.span(s)
		if err != nil {
			return err
		}
		places, sum = append(places, p), sum+s.Bytes
	}
	if sum != int64(len(host)) {
		return fmt.Errorf("%d bytes for spans of %d", len(host), sum)
	}
	return x.stage(ctx, places, host, kind, way, move)
}

// stage is stageSpans for places, which have as many bytes as the host's memory.
func (x *Executor) stage(ctx context.Context, places []place, host []byte, kind driver.Kind,
	way func(p place, m driver.Memory, at, offset, n int64) driver.Copy, move func(host, staged []byte)) error {
	if len(host) == 0 {
		return nil
	}
	m, err := x.staging(kind)
	if err != nil {
		return err
	}
	var copies []driver.Copy
	used := int64(0)
	flush := func() error {
		part := host[:used]
		if kind == driver.Upload {
			move(part, m.Bytes())
		}
		if err := x.once(ctx, driver.Stage{Copies: copies}); err != nil {
			return err
		}
		if kind == driver.Readback {
			move(part, m.Bytes())
		}
		host, copies, used = host[used:], nil, 0
		return nil
	}
	for _, p := range places {
		for at := int64(0); at < p.bytes; {
			n := min(p.bytes-at, m.Size()-used)
			copies = append(copies, way(p, m, used, at, n))
			if at, used = at+n, used+n; used == m.Size() {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	if used > 0 {
		return flush()
	}
	return nil
}

// copyPart is how many bytes are worth a processor of their own, which alone copies less than a bus takes.
const copyPart = 512 << 10

// copyWide is copy by several processors.
func copyWide(to, from []byte) {
	var left sync.WaitGroup
	n := min(len(to), len(from))
	to, from = to[:n], from[:n]
	each := max(copyPart, (len(from)+mostFillers-1)/mostFillers)
	for len(from) > each {
		a, b := to[:each], from[:each]
		left.Go(func() { copy(a, b) })
		to, from = to[each:], from[each:]
	}
	copy(to, from)
	left.Wait()
}

// staging is memory of a kind through which spans go. It is made once: a driver takes milliseconds for that.
func (x *Executor) staging(kind driver.Kind) (driver.Memory, error) {
	if m := x.staged[kind]; m != nil {
		return m, nil
	}
	m, err := x.dev.Alloc(inspectBytes, kind)
	if err == nil {
		x.staged[kind] = m
	}
	return m, err
}

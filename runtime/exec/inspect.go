package exec

import (
	"context"
	"fmt"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/driver"
)

// inspectBytes is the size of an inspector's staging buffers.
const inspectBytes = 8 << 20

// Inspector looks into an executor: it runs single dispatches and moves bytes
// between the host and any place that the plan names. It is for tools that
// compare; every call is a submission of its own.
type Inspector struct {
	*Executor
	in, out driver.Memory
}

// Inspect makes an inspector; it lives as long as the executor.
func (x *Executor) Inspect() (*Inspector, error) {
	in, err := x.dev.Alloc(inspectBytes, driver.Upload)
	if err != nil {
		return nil, err
	}
	out, err := x.dev.Alloc(inspectBytes, driver.Readback)
	if err != nil {
		in.Free()
		return nil, err
	}
	return &Inspector{x, in, out}, nil
}

// Dispatch runs dispatch i of the entry alone, on the step block as the host has
// written it.
func (s *Inspector) Dispatch(ctx context.Context, e *plans.Entry, i int) error {
	if i < 0 || i >= len(e.Dispatches) {
		return fmt.Errorf("entry %s has no dispatch %d", e.Name, i)
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	return s.once(ctx, driver.Stage{Dispatches: []driver.Dispatch{s.dispatch(e, i)}})
}

// Read fills dst with the bytes at the place of a.
func (s *Inspector) Read(ctx context.Context, a plans.Arg, dst []byte) error {
	return s.move(ctx, a, dst, func(p place, at int64, part []byte) error {
		err := s.once(ctx, driver.Stage{Copies: []driver.Copy{p.to(s.out, 0, at, int64(len(part)))}})
		copy(part, s.out.Bytes())
		return err
	})
}

// Overwrite puts src at the place of a.
func (s *Inspector) Overwrite(ctx context.Context, a plans.Arg, src []byte) error {
	return s.move(ctx, a, src, func(p place, at int64, part []byte) error {
		copy(s.in.Bytes(), part)
		return s.once(ctx, driver.Stage{Copies: []driver.Copy{p.from(s.in, 0, at, int64(len(part)))}})
	})
}

// move takes the bytes at the place of a through a staging buffer, part by part.
func (s *Inspector) move(ctx context.Context, a plans.Arg, data []byte, one func(p place, at int64, part []byte) error) error {
	p, err := s.memory.locate(a, int64(len(data)))
	if err != nil {
		return err
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	for at := 0; at < len(data); at += inspectBytes {
		if err := one(p, int64(at), data[at:min(at+inspectBytes, len(data))]); err != nil {
			return err
		}
	}
	return nil
}

package cuda

import (
	"context"
	"fmt"

	"github.com/zincc-dev/zincc/plans"
)

// inspectBytes is the size of an inspector's staging buffer.
const inspectBytes = 8 << 20

// Inspector looks into an executor: it runs single dispatches and moves bytes
// between the host and any place that the plan names. It is for tools that
// compare; every call waits for its end.
type Inspector struct {
	*Executor
	staging *allocation
}

// Inspect makes an inspector; it lives as long as the executor.
func (x *Executor) Inspect() (*Inspector, error) {
	staging, err := x.dev.allocHost(inspectBytes)
	if err != nil {
		return nil, err
	}
	return &Inspector{x, staging}, nil
}

// Dispatch runs dispatch i of the entry alone, on the step block as the host has
// written it.
func (s *Inspector) Dispatch(ctx context.Context, e *plans.Entry, i int) error {
	if i < 0 || i >= len(e.Dispatches) {
		return fmt.Errorf("entry %s has no dispatch %d", e.Name, i)
	}
	if err := s.flush(); err != nil {
		return err
	}
	if err := s.dispatch(s.dev.stream, e, i, work{}, false); err != nil {
		return err
	}
	if err := s.wait(ctx, 0); err != nil {
		return fmt.Errorf("%s: %s: %w", e.Name, e.Dispatches[i].Site, err)
	}
	return nil
}

// Read fills dst with the bytes at the place of a.
func (s *Inspector) Read(ctx context.Context, a plans.Arg, dst []byte) error {
	return s.move(ctx, a, dst, func(address uint64, host, part []byte) error {
		if err := s.dev.download(host, address); err != nil {
			return err
		}
		if err := s.wait(ctx, 0); err != nil {
			return err
		}
		copy(part, host)
		return nil
	})
}

// Overwrite puts src at the place of a.
func (s *Inspector) Overwrite(ctx context.Context, a plans.Arg, src []byte) error {
	return s.move(ctx, a, src, func(address uint64, host, part []byte) error {
		copy(host, part)
		if err := s.dev.upload(address, host); err != nil {
			return err
		}
		return s.wait(ctx, 0)
	})
}

// move takes the bytes at the place of a through the staging buffer, part by part.
func (s *Inspector) move(ctx context.Context, a plans.Arg, data []byte, one func(address uint64, host, part []byte) error) error {
	p, err := s.memory.locate(a, int64(len(data)))
	if err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	for at := 0; at < len(data); at += inspectBytes {
		part := data[at:min(at+inspectBytes, len(data))]
		if err := one(p.address+uint64(at), s.staging.mapped[:len(part)], part); err != nil {
			return s.dev.errorf("%s %q: %w", a.Space, a.Region, err)
		}
	}
	return ctx.Err()
}

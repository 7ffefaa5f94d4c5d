package vulkan

import (
	"context"
	"fmt"

	"github.com/zincc-dev/zincc/plans"
)

// inspectBytes is the size of an inspector's staging buffers.
const inspectBytes = 8 << 20

// Inspector looks into an executor: it runs single dispatches and moves bytes
// between the host and any place that the plan names. It is for tools that
// compare; every call is a submission of its own.
type Inspector struct {
	*Executor
	in, out *Buffer
}

// Inspect makes an inspector; it lives as long as the executor.
func (x *Executor) Inspect() (*Inspector, error) {
	in, err := x.dev.Alloc(inspectBytes, Upload)
	if err != nil {
		return nil, err
	}
	out, err := x.dev.Alloc(inspectBytes, Readback)
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
	d := &e.Dispatches[i]
	return s.once(ctx, func(c *Commands) {
		c.Barrier(Compute|Transfer, Compute)
		c.Bind(s.pipes[d.Pipeline])
		c.Push(s.memory.arguments[e.Name][i]...)
		c.Dispatch(uint32(d.Grid[0]), uint32(d.Grid[1]), uint32(d.Grid[2]))
	})
}

// Read fills dst with the bytes at the place of a.
func (s *Inspector) Read(ctx context.Context, a plans.Arg, dst []byte) error {
	p, err := s.memory.locate(a, int64(len(dst)))
	if err != nil {
		return err
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	for at := 0; at < len(dst); at += inspectBytes {
		part := dst[at:min(at+inspectBytes, len(dst))]
		err := s.once(ctx, func(c *Commands) {
			c.Barrier(Compute|Transfer, Transfer)
			c.Copy(s.out, 0, p.buf, p.at+int64(at), int64(len(part)))
			c.Barrier(Transfer, Host)
		})
		if err != nil {
			return err
		}
		copy(part, s.out.Bytes())
	}
	return nil
}

// Overwrite puts src at the place of a.
func (s *Inspector) Overwrite(ctx context.Context, a plans.Arg, src []byte) error {
	p, err := s.memory.locate(a, int64(len(src)))
	if err != nil {
		return err
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	for at := 0; at < len(src); at += inspectBytes {
		part := src[at:min(at+inspectBytes, len(src))]
		copy(s.in.Bytes(), part)
		err := s.once(ctx, func(c *Commands) {
			c.Barrier(Compute|Transfer|Host, Transfer)
			c.Copy(p.buf, p.at+int64(at), s.in, 0, int64(len(part)))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// flush brings the step block to the device if the host has written to it.
func (s *Inspector) flush(ctx context.Context) error {
	if !s.dirty {
		return nil
	}
	s.dirty = false
	return s.submit(ctx, s.step)
}

// once records and runs commands, and waits for them.
func (s *Inspector) once(ctx context.Context, record func(*Commands)) error {
	c, err := s.dev.NewCommands()
	if err != nil {
		return err
	}
	defer c.Free()
	record(c)
	if err := c.End(); err != nil {
		return err
	}
	return s.submit(ctx, c)
}

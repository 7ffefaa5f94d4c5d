package text

import "context"

// cancel says now and then whether work is to end. A nil one never does.
type cancel struct {
	ctx   context.Context
	asked uint
	over  bool
}

// cancelWith returns nil for a context that never ends.
func cancelWith(ctx context.Context) *cancel {
	if ctx.Done() == nil {
		return nil
	}
	return &cancel{ctx: ctx}
}

func (c *cancel) now() bool {
	if c == nil {
		return false
	}
	if c.asked++; c.asked%1024 == 0 && !c.over {
		c.over = c.ctx.Err() != nil
	}
	return c.over
}

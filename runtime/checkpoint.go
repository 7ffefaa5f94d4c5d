package runtime

import (
	"context"
	"fmt"
)

// State is a copy of recurrent state, held by the executor.
type State interface {
	Bytes() int64
	Free() // once is enough
}

// Checkpoint is a place in a sequence that the session can go back to.
type Checkpoint struct {
	session *Session
	pos     int
	state   State
}

// Bytes is the memory that the checkpoint takes. Models without recurrent state
// need none: their KV cache is the state.
func (c *Checkpoint) Bytes() int64 { return c.state.Bytes() }

// Free gives the memory back.
func (c *Checkpoint) Free() { c.state.Free() }

// Save takes a checkpoint of the sequence as it is now.
func (s *Session) Save(ctx context.Context) (*Checkpoint, error) {
	state, err := s.exec.SaveState(ctx, s.plan.Memory.Checkpoint(0, s.pos))
	if err != nil {
		return nil, err
	}
	return &Checkpoint{s, s.pos, state}, nil
}

// Holds reports whether the session can go back to c. Caches of layers with a window are
// rings: they may have lost positions before c that it needs.
func (s *Session) Holds(c *Checkpoint) bool { return s.plan.Memory.Hold(s.end, c.pos) }

// Restore goes back to c, which must be a checkpoint of this sequence. It drops the tokens after
// c; those before it must still be there. It fails unless Holds.
func (s *Session) Restore(ctx context.Context, c *Checkpoint) error {
	if c.session != s || c.pos > s.pos {
		return fmt.Errorf("a checkpoint at position %d is not of this sequence of %d tokens", c.pos, s.pos)
	}
	if !s.Holds(c) {
		return fmt.Errorf("the checkpoint at position %d is too far back: caches of layers with a window hold only positions behind %d", c.pos, s.plan.Memory.First(s.end))
	}
	if err := s.exec.RestoreState(ctx, c.state, s.plan.Memory.Checkpoint(0, c.pos)); err != nil {
		return err
	}
	if s.pos = c.pos; s.pos == 0 {
		s.end = 0
	}
	return nil
}

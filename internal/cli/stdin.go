package cli

import (
	"context"
	"io"
	"os"
)

// Stdin returns standard input as a reader whose reads end with ctx: an interrupt
// must not wait for the user's next line.
func Stdin(ctx context.Context) io.Reader { return Input(ctx, os.Stdin) }

// Input does the same for any reader.
func Input(ctx context.Context, in io.Reader) io.Reader { return &stdin{ctx: ctx, in: in} }

type stdin struct {
	ctx  context.Context
	in   io.Reader
	rest []byte // read and not yet handed out
}

type read struct {
	data []byte
	err  error
}

func (s *stdin) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		// A read that is given up goes on alone, so it has a buffer of its own.
		done := make(chan read, 1)
		go func() {
			b := make([]byte, 32<<10)
			n, err := s.in.Read(b)
			done <- read{b[:n], err}
		}()
		select {
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		case r := <-done:
			if len(r.data) == 0 {
				return 0, r.err
			}
			s.rest = r.data
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

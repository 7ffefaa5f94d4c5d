package api

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/runtime/text"
)

// bodyRate is how many bytes of a body must come in a second, behind Options.BodyTime.
const bodyRate = 64 << 10

// expectBody gives the body of a request its time, whoever reads it: without a reader the connection waits for its end
// before it closes.
func (s *Server) expectBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.o.BodyTime))
	}
}

// dropBody closes the connection of a request that is refused before its body was read.
func (c *call) dropBody() {
	if !c.read && c.r.ContentLength != 0 {
		c.w.Header().Set("Connection", "close")
		http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(time.Second))
	}
}

var (
	errSlow   = &Error{Kind: tooSlow, Code: "request_timeout", Message: "the body came too slowly"}
	errBodies = &Error{Kind: unavailable, Code: "overloaded", Retry: time.Second, Message: "the server reads as much from others as it can"}
)

// readBody reads the JSON of a request. What comes counts against what all requests may hold until the call forgets its
// text.
func (c *call) readBody() error {
	if media, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type")); err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return &Error{Kind: badMedia, Message: "the Content-Type must be application/json"}
	}
	rc := http.NewResponseController(c.w)
	began, raw := time.Now(), []byte{}
	for {
		if len(raw) == cap(raw) {
			more := max(4<<10, cap(raw)) // doubled
			if !c.s.bodies.TryAcquire(int64(more)) {
				return errBodies
			}
			c.held += int64(more)
			raw = append(make([]byte, 0, cap(raw)+more), raw...)
		}
		n, err := c.r.Body.Read(raw[len(raw):cap(raw)])
		raw = raw[:len(raw)+n]
		switch {
		case err == io.EOF:
			c.raw, c.read, c.size = raw, true, int64(len(raw))
			rc.SetReadDeadline(time.Time{}) // a recorder of a test has none
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return errSlow
		case err != nil:
			return err
		}
		if n > 0 {
			rc.SetReadDeadline(began.Add(c.s.o.BodyTime + time.Duration(len(raw))*time.Second/bodyRate))
		}
	}
}

// body reads and decodes the request.
func (c *call) body(v any) error {
	if err := c.readBody(); err != nil {
		return err
	}
	return c.text(func(context.Context) error {
		return decode(c.raw, v, func(string) { c.s.metrics.ignored.Inc() })
	})
}

// text works on the text of a request, when it is its turn: texts of all requests together take no more memory and
// processors than two of the largest, and of long ones there is one at a time, so that others find room beside it. The
// work ends when the client goes.
func (c *call) text(work func(ctx context.Context) error) error {
	ctx := c.r.Context()
	weight := min(c.s.o.MaxBody, max(c.size, leastText))
	if weight >= longText {
		if err := c.s.long.Acquire(ctx, 1); err != nil {
			return err
		}
		defer c.s.long.Release(1)
	}
	if err := c.s.texts.Acquire(ctx, weight); err != nil {
		return err
	}
	defer c.s.texts.Release(weight)
	return work(text.Remember(ctx, c.user.owner()))
}

const (
	leastText = 64 << 10 // bounds how many texts are worked on at once, however short
	longText  = 1 << 20  // bytes of one that others are not to wait for
)

// forget lets go of the text of a request that has become tokens.
func (c *call) forget() {
	c.s.bodies.Release(c.held)
	c.raw, c.held = nil, 0
}

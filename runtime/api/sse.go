package api

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// A stream writes server-sent events.
type stream struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	media string // "": events
	buf   bytes.Buffer
	begun bool
}

func newStream(w http.ResponseWriter) *stream {
	return &stream{w: w, rc: http.NewResponseController(w)}
}

// begin sends the headers. Until then an error can still be a reply of its own.
func (s *stream) begin() {
	if s.begun {
		return
	}
	s.begun = true
	h := s.w.Header()
	media := s.media
	if media == "" {
		media = "text/event-stream; charset=utf-8"
	}
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
}

// data sends v as an event; name is "" for one without.
func (s *stream) data(name string, v any) error {
	s.buf.Reset()
	if name != "" {
		s.buf.WriteString("event: " + name + "\n")
	}
	s.buf.WriteString("data: ")
	enc := json.NewEncoder(&s.buf) // ends with a line feed, and has none within
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	s.buf.WriteByte('\n')
	return s.flush()
}

// line sends v as a line of JSON.
func (s *stream) line(v any) error {
	s.buf.Reset()
	enc := json.NewEncoder(&s.buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	return s.flush()
}

// comment sends a line that clients skip: it keeps idle connections open.
func (s *stream) comment() error {
	s.buf.Reset()
	s.buf.WriteString(": keep-alive\n\n")
	return s.flush()
}

// end sends OpenAI's mark of the end.
func (s *stream) end() error {
	s.buf.Reset()
	s.buf.WriteString("data: [DONE]\n\n")
	return s.flush()
}

func (s *stream) flush() error {
	s.begin()
	if _, err := s.w.Write(s.buf.Bytes()); err != nil {
		return err
	}
	return s.rc.Flush()
}

// Package sse reads streams of server-sent events (HTML Standard, section 9.2).
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxEvent bounds the bytes of one event.
const maxEvent = 1 << 20

// ErrTooLong ends a stream with an event that is larger than it may be.
var ErrTooLong = errors.New("an event of the stream has more than 1 MiB")

// Reader reads a stream. It returns an event as soon as the empty line behind it has come: it never
// waits for what may follow.
type Reader struct {
	r      *bufio.Reader
	line   []byte
	begun  bool // the first line was read
	skipLF bool // the last line ended with a carriage return: a line feed behind it belongs to it
}

// NewReader reads from r.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReader(r)} }

// Next returns the data of the next event that has any; names, ids and retry times are
// skipped. The bytes are the caller's. The error at the end of the stream is io.EOF, and
// io.ErrUnexpectedEOF within an event.
func (e *Reader) Next() ([]byte, error) {
	var data []byte
	has, begun := false, false
	for {
		line, err := e.readLine()
		if err == io.EOF && (begun || len(line) > 0) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if has {
				return data[:len(data)-1], nil
			}
			begun = false
			continue
		}
		begun = true
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(name) != "data" {
			continue // a comment has no name
		}
		has = true
		data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
		if len(data) > maxEvent {
			return nil, ErrTooLong
		}
	}
}

// readLine returns a line without its end, which is a line feed, a carriage return or both. The
// bytes are good until the next call.
func (e *Reader) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		b, err := e.r.ReadByte()
		if err != nil {
			return e.first(), err
		}
		skip := e.skipLF && b == '\n'
		e.skipLF = b == '\r'
		if skip {
			continue
		}
		if b == '\n' || b == '\r' {
			break
		}
		if e.line = append(e.line, b); len(e.line) > maxEvent {
			return nil, ErrTooLong
		}
	}
	line := e.first()
	e.begun = true
	return line, nil
}

// first is the line that was read, without the mark that may stand before the first one.
func (e *Reader) first() []byte {
	if e.begun {
		return e.line
	}
	return bytes.TrimPrefix(e.line, []byte("\ufeff"))
}

package lineedit

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// TestRead types keys and checks the messages; \x1b[200~ and \x1b[201~ are what terminals put around
// what is pasted.
func TestRead(t *testing.T) {
	for _, c := range []struct{ name, keys, want string }{
		{"a line", "hello\r", "hello"},
		{"edited", "helo\x1b[Dl\r", "hello"},
		{"goes on", "one\\\rtwo\r", "one\ntwo"},
		{"fenced", "\"\"\"\rone\\\r\rtwo\"\"\"\r", "one\\\n\ntwo"},
		{"fenced from the first line", "\"\"\"one\rtwo\r\"\"\"\r", "one\ntwo"},
		{"fenced in one line", "\"\"\"one\"\"\"\r", "one"},
		{"pasted", "\x1b[200~one\rtwo\rthree\x1b[201~ four\r", "one\ntwo\nthree four"},
		{"characters", "\u65e5\u672c\u00e9\r", "\u65e5\u672c\u00e9"},
		{"nothing", "\r", ""},
	} {
		e := newEditor(strings.NewReader(c.keys), io.Discard, "")
		got, err := e.Read("> ", ". ")
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

func TestReadEnds(t *testing.T) {
	for keys, want := range map[string]error{"": io.EOF, "\x04": io.EOF, "ab\x03": ErrInterrupt, "\x03": ErrInterrupt} {
		if _, err := newEditor(strings.NewReader(keys), io.Discard, "").Read("> ", ". "); !errors.Is(err, want) {
			t.Errorf("%q: error %v, want %v", keys, err, want)
		}
	}
}

// TestHistory checks that the next program gives the lines of the one before, also such of
// several lines or with control characters.
func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "history")
	e := newEditor(strings.NewReader("first\rsecond\rsecond\r \r"), io.Discard, path)
	for range 4 {
		if _, err := e.Read("> ", ". "); err != nil {
			t.Fatal(err)
		}
	}
	e.history.Add("of\ntwo lines \x1b[31m")
	again := newEditor(strings.NewReader("\x1b[A\x1b[A\x1b[A\r"), io.Discard, path)
	if got, err := again.Read("> ", ". "); err != nil || got != "first" {
		t.Errorf("three lines up: %q, %v", got, err)
	}
	if again.history.Len() != 4 || again.history.At(1) != "of\ntwo lines \x1b[31m" {
		t.Errorf("history %q", again.history.lines)
	}
	if h := readHistory(t.TempDir()); h.Len() != 0 {
		t.Errorf("a folder as history has %d lines", h.Len())
	}
}

func TestHistoryIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	h := readHistory(path)
	for i := range maxHistory + 50 {
		h.Add(strings.Repeat("x", i+1))
	}
	if h := readHistory(path); h.Len() != maxHistory || len(h.At(0)) != maxHistory+50 {
		t.Errorf("%d lines, the last of %d bytes", h.Len(), len(h.At(0)))
	}
	if h := readHistory(path); h.Len() != maxHistory {
		t.Errorf("read again: %d lines", h.Len())
	}
}

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
		{"a line break by key", "one\ntwo\x1b\rthree\r", "one\ntwo\nthree"},
		{"pasted with a \\", "\x1b[200~make \\\n  all\x1b[201~\r", "make \\\n  all"},
		{"pasted controls", "\x1b[200~a\x1b[2Jb\x07\r\nc\x1b[201~\r", "a[2Jb\nc"},
		{"words", "one two three\x1bb\x17\r", "one three"},
		{"killed and yanked", "one two\x17\x01\x19\x05.\r", "twoone ."},
		{"to the line's ends", "b\x01a\x05c\x02\x04\r", "ab"},
		{"a family and an accent are one each", "\U0001F468\u200d\U0001F469\u200d\U0001F467e\u0301\x7f\x7fx\r", "x"},
		{"up and down", "one\ntwo\x1b[A1\x1b[B2\r", "one1\ntwo2"},
		{"an unknown key", "a\x1b[99;3Zb\r", "ab"},
	} {
		e := newEditor(strings.NewReader(c.keys), io.Discard, "")
		got, err := e.Read("> ", ". ")
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

func TestReadEnds(t *testing.T) {
	for keys, want := range map[string]error{"": io.EOF, "\x04": io.EOF, "ab\x03": ErrInterrupt, "\x03": ErrInterrupt, "\x12a\x03\x03": ErrInterrupt} {
		if _, err := newEditor(strings.NewReader(keys), io.Discard, "").Read("> ", ". "); !errors.Is(err, want) {
			t.Errorf("%q: error %v, want %v", keys, err, want)
		}
	}
}

// TestInterrupt checks that ^C takes the line that is typed, and nothing behind it.
func TestInterrupt(t *testing.T) {
	e := newEditor(strings.NewReader("ab\x03hello\r"), io.Discard, "")
	if _, err := e.Read("> ", ". "); !errors.Is(err, ErrInterrupt) {
		t.Fatal(err)
	}
	if got, err := e.Read("> ", ". "); err != nil || got != "hello" {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := e.Read("> ", ". "); !errors.Is(err, io.EOF) {
		t.Fatal(err)
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
	again := newEditor(strings.NewReader("\x1b[A\x1b[A\x1b[A\x1b[A\r"), io.Discard, path)
	if got, err := again.Read("> ", ". "); err != nil || got != "first" {
		t.Errorf("four rows up, through an entry of two: %q, %v", got, err)
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

// TestPasteIsOneEntry pastes 2,000 lines and finds them in the next program as one entry.
func TestPasteIsOneEntry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	lines := strings.Repeat("a line of text\r\n", 2000)
	e := newEditor(strings.NewReader("before\r"+pasteBegins+lines+pasteEnds+"\r"), io.Discard, path)
	for range 2 {
		if _, err := e.Read("> ", ". "); err != nil {
			t.Fatal(err)
		}
	}
	if h := readHistory(path); h.Len() != 2 || strings.Count(h.At(0), "\n") != 2000 {
		t.Errorf("%d entries", h.Len())
	}
}

// TestSearch finds entries by a part of them: the newest, an older one, none, and back to what was typed.
func TestSearch(t *testing.T) {
	for keys, want := range map[string]string{
		"\x12cut\r":             "strings.cut again",
		"\x12cut\x12\r":         "strings.cut",
		"\x12cut\x12\x12\x12\r": "strings.cut",
		"\x12cux\x7ft\r":        "strings.cut again",
		"\x12sort\x05!\r":       "sort.search!",
		"kept\x12cut\x07!\r":    "kept!",
	} {
		e := newEditor(strings.NewReader(keys), io.Discard, "")
		e.history.lines = []string{"strings.cut", "sort.search", "strings.cut again"}
		if got, err := e.Read("> ", ". "); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", keys, got, err, want)
		}
	}
}

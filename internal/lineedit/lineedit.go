// Package lineedit reads messages from a terminal: lines that can be edited, with a history that
// outlives the program, and messages of several lines.
package lineedit

import (
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// ErrInterrupt is what Read returns for ^C.
var ErrInterrupt = errors.New("interrupted")

// Fence begins and ends a message of several lines.
const Fence = `"""`

// Editor reads messages.
type Editor struct {
	term    *term.Terminal
	keys    *keys
	raw     func() (restore func(), err error)
	size    func() (width, height int, err error)
	history *history
}

// New reads from a terminal and echoes on out. keyboard gives what is typed on terminal. The history is kept in
// the file at path, if that is not empty.
func New(terminal *os.File, keyboard io.Reader, out io.Writer, path string) *Editor {
	fd := int(terminal.Fd())
	e := newEditor(keyboard, out, path)
	e.raw = func() (func(), error) {
		old, err := term.MakeRaw(fd)
		return func() { term.Restore(fd, old) }, err
	}
	e.size = func() (int, int, error) { return term.GetSize(fd) }
	return e
}

func newEditor(keyboard io.Reader, out io.Writer, path string) *Editor {
	e := &Editor{keys: &keys{in: keyboard}, history: readHistory(path)}
	e.term = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{e.keys, out}, "")
	e.term.History = e.history
	return e
}

// Read reads a message. It goes on behind a line that ends in \, between two Fences, and over all
// lines of what is pasted. The error is io.EOF at the end of input and ErrInterrupt at ^C.
func (e *Editor) Read(prompt, more string) (string, error) {
	if e.raw != nil {
		restore, err := e.raw()
		if err != nil {
			return "", err
		}
		defer restore()
		if w, h, err := e.size(); err == nil && w > 0 && h > 0 {
			e.term.SetSize(w, h)
		}
	}
	e.term.SetBracketedPasteMode(true)
	defer e.term.SetBracketedPasteMode(false)
	e.term.SetPrompt(prompt)
	var lines []string
	fenced := false
	for {
		line, err := e.term.ReadLine()
		pasted := errors.Is(err, term.ErrPasteIndicator)
		switch {
		case err == nil || pasted:
		case errors.Is(err, io.EOF) && e.keys.last == keyInterrupt:
			e.keys.last = 0
			return "", ErrInterrupt
		default:
			return "", err
		}
		e.term.SetPrompt(more)
		switch text := strings.TrimSpace(line); {
		case fenced:
			body, end := strings.CutSuffix(strings.TrimRight(line, " \t"), Fence)
			if !end {
				lines = append(lines, line)
				continue
			}
			if body != "" {
				lines = append(lines, body)
			}
		case len(lines) == 0 && strings.HasPrefix(text, Fence) && !(len(text) >= 2*len(Fence) && strings.HasSuffix(text, Fence)):
			fenced = true
			if rest := strings.TrimPrefix(text, Fence); rest != "" {
				lines = append(lines, rest)
			}
			continue
		case len(lines) == 0 && strings.HasPrefix(text, Fence):
			lines = append(lines, text[len(Fence):len(text)-len(Fence)])
		case pasted:
			lines = append(lines, line)
			continue
		case strings.HasSuffix(line, `\`):
			lines = append(lines, strings.TrimSuffix(line, `\`))
			continue
		default:
			lines = append(lines, line)
		}
		return strings.Join(lines, "\n"), nil
	}
}

// keyInterrupt is ^C, which package term takes for the end of input.
const keyInterrupt = 3

// keys remembers the last key.
type keys struct {
	in   io.Reader
	last byte
}

func (k *keys) Read(p []byte) (int, error) {
	n, err := k.in.Read(p)
	if n > 0 {
		k.last = p[n-1]
	}
	return n, err
}

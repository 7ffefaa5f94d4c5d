// Package lineedit reads messages from a terminal: texts of one or more lines that can be edited, with a history that
// outlives the program.
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
	in      io.Reader
	out     io.Writer
	raw     func() (restore func(), err error)
	size    func() (width, height int, err error)
	resized func() (changes <-chan os.Signal, stop func())
	history *history
	typed   []byte // and not yet taken
	view    view
	prompts [2]string
	text    text
	back    int // which entry of the history is shown: 0 for none, 1 for the last
	draft   string
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
	e.resized = resizes
	return e
}

func newEditor(keyboard io.Reader, out io.Writer, path string) *Editor {
	return &Editor{
		in: keyboard, out: out, history: readHistory(path),
		raw:     func() (func(), error) { return func() {}, nil },
		size:    func() (int, int, error) { return 80, 24, nil },
		resized: func() (<-chan os.Signal, func()) { return nil, func() {} },
	}
}

// Read reads a message. Enter ends it, but behind a \ and within Fences, where it begins a new line as ^J and Alt-Enter
// do everywhere; pasted lines stay lines. The error is io.EOF at the end of input and ErrInterrupt at ^C. What was
// typed behind the message is kept for the next.
func (e *Editor) Read(prompt, more string) (string, error) {
	restore, err := e.raw()
	if err != nil {
		return "", err
	}
	defer restore()
	changes, stop := e.resized()
	defer stop()
	e.measure()
	e.prompts = [2]string{prompt, more}
	e.text.set("")
	e.back, e.draft = 0, ""
	e.write("\x1b[?2004h" + e.draw()) // marks what is pasted
	s, err := e.edit(changes)
	e.text.at = len(e.text.s)
	e.write(e.draw() + e.view.leave() + "\x1b[?2004l")
	if err != nil {
		return "", err
	}
	s = unfenced(s)
	e.history.Add(s)
	return s, nil
}

func (e *Editor) measure() {
	if w, h, err := e.size(); err == nil && w > 0 && h > 0 {
		e.view.resize(w, h)
	} else if e.view.width == 0 {
		e.view.resize(80, 24)
	}
}

func (e *Editor) write(s string) { io.WriteString(e.out, s) }

func (e *Editor) draw() string { return e.view.draw(e.text.s, e.prompts[0], e.prompts[1], e.text.at) }

// edit takes keys until the message ends.
func (e *Editor) edit(changes <-chan os.Signal) (string, error) {
	for {
		k, err := e.key(changes)
		if err != nil {
			return "", err
		}
		switch k.name {
		case "enter":
			switch s := e.text.s; {
			case open(s):
				e.text.insert("\n")
			case strings.HasSuffix(s, `\`) && !fenced(s):
				e.text.set(strings.TrimSuffix(s, `\`) + "\n")
			default:
				return s, nil
			}
		case "^C":
			return "", ErrInterrupt
		case "^D":
			if e.text.s == "" {
				return "", io.EOF
			}
			e.text.cut(e.text.after(), false)
		case "^L":
			e.view.cursor = 0
			e.write("\x1b[H\x1b[2J")
		case "^R":
			if done, err := e.search(changes); err != nil || done {
				return e.text.s, err
			}
		default:
			e.press(k)
		}
		// What is pasted or typed ahead is drawn once.
		if _, _, more := next(e.typed); !more {
			e.write(e.draw())
		}
	}
}

// press does what a key does within a text.
func (e *Editor) press(k key) {
	t := &e.text
	switch k.name {
	case "":
		t.insert(visible(k.text))
	case "newline":
		t.insert("\n")
	case "left":
		t.at = t.before()
	case "right":
		t.at = t.after()
	case "word left":
		t.at = t.wordBefore()
	case "word right":
		t.at = t.wordAfter()
	case "home":
		t.at = t.lineStart()
	case "end":
		t.at = t.lineEnd()
	case "up":
		if at, ok := e.moved(-1); ok {
			t.at = at
		} else {
			e.recall(e.back + 1)
		}
	case "down":
		if at, ok := e.moved(1); ok {
			t.at = at
		} else {
			e.recall(e.back - 1)
		}
	case "backspace":
		t.cut(t.before(), false)
	case "delete":
		t.cut(t.after(), false)
	case "delete word left":
		t.cut(t.wordBefore(), true)
	case "delete word right":
		t.cut(t.wordAfter(), true)
	case "delete to start":
		t.cut(t.lineStart(), true)
	case "delete to end":
		t.cut(t.lineEnd(), true)
	case "yank":
		t.insert(t.killed)
	}
}

// moved is where the cursor lands that many rows on, in the same column or at the row's end; ok is false behind the
// first and the last row.
func (e *Editor) moved(by int) (at int, ok bool) {
	rows := layout(e.text.s, e.prompts[0], e.prompts[1], e.view.width)
	line, col := place(rows, e.text.s, e.text.at)
	if line+by < 0 || line+by >= len(rows) {
		return 0, false
	}
	return offset(rows[line+by], e.text.s, col), true
}

// recall shows entry n of the history; 0 is what was typed before.
func (e *Editor) recall(n int) {
	if n < 0 || n > e.history.Len() {
		return
	}
	if e.back == 0 {
		e.draft = e.text.s
	}
	if e.back = n; n == 0 {
		e.text.set(e.draft)
		return
	}
	e.text.set(e.history.At(n - 1))
}

// search looks in the history for what is typed. ^R goes on to older entries, Enter takes what was found as the message
// (done), ^G and ^C give it up, and any other key edits it.
func (e *Editor) search(changes <-chan os.Signal) (done bool, err error) {
	before, at, query := e.text, 0, ""
	find := func(from int) {
		if n, ok := e.history.find(query, from); ok {
			at = n
			e.text.set(e.history.At(n))
			if i := strings.Index(e.text.s, query); i >= 0 {
				e.text.at = i
			}
		}
	}
	for {
		e.write(e.view.draw(e.text.s, "search "+query+": ", e.prompts[1], e.text.at))
		k, err := e.key(changes)
		switch {
		case err != nil:
			return false, err
		case k.name == "":
			query += strings.ReplaceAll(visible(k.text), "\n", " ")
			find(at)
		case k.name == "^R":
			find(at + 1)
		case k.name == "backspace":
			q := text{s: query, at: len(query)}
			query = query[:q.before()]
			find(0)
		case k.name == "enter":
			return true, nil
		case k.name == "^G" || k.name == "^C":
			e.text = before
			return false, nil
		default:
			e.press(k)
			return false, nil
		}
	}
}

// key waits for a key. It reads from the keyboard only while it waits, so that nothing that is typed during an answer
// is taken before its time.
func (e *Editor) key(changes <-chan os.Signal) (key, error) {
	type chunk struct {
		data []byte
		err  error
	}
	for {
		if k, rest, ok := next(e.typed); ok {
			e.typed = rest
			return k, nil
		}
		if len(e.typed) > maxPaste {
			e.typed = nil
		}
		got := make(chan chunk, 1)
		go func() {
			b := make([]byte, 64<<10)
			n, err := e.in.Read(b)
			got <- chunk{b[:n], err}
		}()
		for waiting := true; waiting; {
			select {
			case <-changes:
				e.measure()
				e.write(e.draw())
			case c := <-got:
				waiting = false
				e.typed = append(e.typed, c.data...)
				if len(c.data) == 0 && c.err != nil {
					return key{}, c.err
				}
			}
		}
	}
}

// fenced tells whether a message begins with a Fence, open whether that is not closed.
func fenced(s string) bool { return strings.HasPrefix(strings.TrimSpace(s), Fence) }

func open(s string) bool {
	s = strings.TrimSpace(s)
	return fenced(s) && (len(s) < 2*len(Fence) || !strings.HasSuffix(s, Fence))
}

// unfenced takes the Fences off, with the line breaks beside them.
func unfenced(s string) string {
	if !fenced(s) || open(s) {
		return s
	}
	s = strings.TrimSpace(s)
	s = s[len(Fence) : len(s)-len(Fence)]
	return strings.TrimSuffix(strings.TrimPrefix(s, "\n"), "\n")
}

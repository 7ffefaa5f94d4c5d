package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/term"

	"github.com/zincc-dev/zincc/internal/printable"
)

// Stdout is standard output, Stderr standard error. All that commands print goes through them: a terminal gets no
// control characters of a model, a plan or a file. They keep the first error of a write, with which Exit ends a program
// that has no other: commands need not look at every line that they print.
var (
	Stdout = newOutput(os.Stdout, "standard output")
	Stderr = newOutput(os.Stderr, "standard error")
)

// Output is a writer that remembers that it failed.
type Output struct {
	to       io.Writer
	text     io.Writer // the same, for a terminal without control characters
	name     string
	terminal bool
	mu       sync.Mutex
	err      error
}

func newOutput(f *os.File, name string) *Output {
	o := &Output{to: f, text: f, name: name, terminal: term.IsTerminal(int(f.Fd()))}
	if o.terminal {
		o.text = printable.Writer(f)
	}
	return o
}

// Width is how many cells a line may have: those of the terminal, and at most so many.
func (o *Output) Width(most int) int {
	f, ok := o.to.(*os.File)
	if !ok || !o.terminal {
		return most
	}
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return min(most, w)
	}
	return most
}

// Terminal reports whether a terminal shows what is written.
func (o *Output) Terminal() bool { return o.terminal }

// Write fails for good once it has failed. A terminal gets what package printable leaves of text; files and pipes get
// every byte.
func (o *Output) Write(p []byte) (int, error) { return o.write(o.text, p) }

// Screen returns a writer for whoever moves the cursor and colors text. Text of others must be printable before it gets
// there.
func (o *Output) Screen() io.Writer {
	return writerFunc(func(p []byte) (int, error) { return o.write(o.to, p) })
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func (o *Output) write(to io.Writer, p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	send := to.Write
	if o.terminal {
		send = func(p []byte) (int, error) { return below.write(to, p) }
	}
	n, err := send(p)
	if err != nil {
		var named *fs.PathError
		if errors.As(err, &named) {
			err = named.Err
		}
		o.err = fmt.Errorf("%s: %w", o.name, err)
	}
	return n, o.err
}

// Err is the first error of a write.
func (o *Output) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// CheckOutput fails if out, a file or directory that is about to be written, is one of
// the files that are read, under whatever names, or has one of them in it: writing it
// would destroy the input. Empty names are none.
func CheckOutput(out string, inputs ...string) error {
	to, err := os.Stat(out)
	if out == "" || err != nil {
		return nil // what is not there harms nothing, what cannot be written says so itself
	}
	for _, in := range inputs {
		from, err := os.Stat(in)
		if in == "" || err != nil || !from.Mode().IsRegular() {
			continue
		}
		if to.IsDir() {
			if from, err = os.Stat(filepath.Dir(in)); err != nil {
				continue
			}
		}
		if os.SameFile(to, from) {
			return Usagef("%s: is to be written, but %s is read: name another output", out, in)
		}
	}
	return nil
}

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
)

// Stdout is standard output. It keeps the first error of a write, with which Exit ends
// a program that has no other: commands need not look at every line that they print.
var Stdout = &Output{to: os.Stdout, name: "standard output"}

// Output is a writer that remembers that it failed.
type Output struct {
	to   io.Writer
	name string
	mu   sync.Mutex
	err  error
}

// Terminal reports whether a terminal shows what is written.
func (o *Output) Terminal() bool {
	f, ok := o.to.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Write fails for good once it has failed.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.to.Write(p)
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

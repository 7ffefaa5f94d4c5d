// Package compiler runs zincc for the runtime, which imports nothing of it.
package compiler

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/internal/progress"
)

// ErrNone says that there is no zincc.
var ErrNone = errors.New("zincc is neither beside zincrun nor in PATH")

// Find returns the path of zincc: beside this program, else in PATH. The error is ErrNone.
func Find() (string, error) {
	name := "zincc"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(beside); err == nil && !info.IsDir() {
			return beside, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", ErrNone
	}
	return path, nil
}

// Sum is the SHA-256 of the program at path.
func Sum(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return h.Sum(nil), err
}

// Run runs zincc and returns what it writes on standard output. The last line that it writes on standard error is the
// error where it fails, an *Error; said gets the others as they come, and task how far zincc is. It ends with ctx, at
// the latest after ten seconds.
func Run(ctx context.Context, said func(line string), task progress.Task, zincc string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, zincc, args...)
	c.Env = append(os.Environ(), progress.Env+"="+progress.Lines)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	var output bytes.Buffer
	notes := &notes{said: said, task: task}
	c.Stdout, c.Stderr = &output, notes
	err := c.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	last := notes.end(err != nil)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return output.Bytes(), nil
	case !errors.As(err, &exit) || last == "":
		return nil, fmt.Errorf("%s: %w", zincc, err)
	}
	return nil, &Error{last, exit.ExitCode()}
}

// notes takes what zincc writes on standard error apart.
type notes struct {
	said func(line string)
	task progress.Task
	rest []byte // of a line
	last string // the last line, of which it is not known yet whether it is the error
}

func (n *notes) Write(p []byte) (int, error) {
	n.rest = append(n.rest, p...)
	for {
		line, rest, whole := bytes.Cut(n.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		n.take(string(line))
		n.rest = rest
	}
}

func (n *notes) take(line string) {
	if r, ok := progress.Parse(line); ok {
		n.task.At(r)
		return
	}
	n.pass()
	n.last = strings.TrimPrefix(strings.TrimSpace(line), "zincc: ")
}

// pass passes the last line on.
func (n *notes) pass() {
	if n.last != "" {
		n.said(n.last)
	}
	n.last = ""
}

// end returns the last line if zincc failed, and else passes it on.
func (n *notes) end(failed bool) string {
	if len(n.rest) > 0 {
		n.take(string(n.rest))
	}
	if !failed {
		n.pass()
	}
	return n.last
}

// Error is what zincc said when it failed, and its exit code. Code 3 is what
// ir.Unsupported is elsewhere.
type Error struct {
	Said string
	Code int
}

func (e *Error) Error() string { return e.Said }

func (e *Error) Is(target error) bool { return target == errors.ErrUnsupported && e.Code == 3 }

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

// Run runs zincc and returns what it writes on standard output. The last line that it writes on standard error is the error where it fails,
// an *Error; said gets the others. It ends with ctx, at the latest after ten seconds.
func Run(ctx context.Context, said func(line string), zincc string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, zincc, args...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	var output, notes bytes.Buffer
	c.Stdout, c.Stderr = &output, &notes
	err := c.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	lines := strings.Split(strings.TrimSpace(notes.String()), "\n")
	last := ""
	if err != nil {
		lines, last = lines[:len(lines)-1], lines[len(lines)-1]
	}
	for _, line := range lines {
		if line != "" {
			said(strings.TrimPrefix(line, "zincc: "))
		}
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return output.Bytes(), nil
	case !errors.As(err, &exit) || last == "":
		return nil, fmt.Errorf("%s: %w", zincc, err)
	}
	return nil, &Error{strings.TrimPrefix(last, "zincc: "), exit.ExitCode()}
}

// Error is what zincc said when it failed, and its exit code. Code 3 is what
// ir.Unsupported is elsewhere.
type Error struct {
	Said string
	Code int
}

func (e *Error) Error() string { return e.Said }

func (e *Error) Is(target error) bool { return target == errors.ErrUnsupported && e.Code == 3 }

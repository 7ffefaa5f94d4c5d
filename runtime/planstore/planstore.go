// Package planstore keeps the plans that zincrun has zincc make of model files on its own, in the
// user's cache folder: one for each model, device, driver, size and compiler.
package planstore

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

	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/runtime/device"
)

// Store is a folder of plans.
type Store struct{ Dir string }

// Open returns the store of this user: zincc/plans in the cache folder.
func Open() (*Store, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("no folder to keep plans in: %w", err)
	}
	return &Store{Dir: filepath.Join(dir, "zincc", "plans")}, nil
}

// Wish is what a plan is made for.
type Wish struct {
	Model  string // path of a GGUF file
	Device string // auto, cuda, cuda:I, vulkan, vulkan:I, cpu or host
	// Flags are further flags of `zincc compile`, such as --ctx=8k.
	Flags []string
}

// Plan returns the path of the plan for w. If there is none yet, zincc makes it: then made is how
// long that took. said gets the lines that zincc writes on standard error.
func (s *Store) Plan(ctx context.Context, w Wish, said func(line string)) (path string, made time.Duration, err error) {
	zincc, err := compiler()
	if err != nil {
		return "", 0, fmt.Errorf("%s: %w", w.Model, err)
	}
	choice, _, err := device.Select(w.Device)
	if err != nil {
		return "", 0, err
	}
	target := choice.Name()
	if w.Device == "auto" {
		target = "native" // zincc says why it is nothing faster
	}
	f, err := gguf.OpenHeader(w.Model)
	if err != nil {
		return "", 0, err
	}
	fingerprint := f.Fingerprint()
	f.Close()
	compilerSum, err := sumOf(zincc)
	if err != nil {
		return "", 0, err
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%x|%s|%q|%x", fingerprint, choice.Identity(), w.Flags, compilerSum))
	name := strings.TrimSuffix(filepath.Base(w.Model), filepath.Ext(w.Model))
	path = filepath.Join(s.Dir, fmt.Sprintf("%.64s-%x.bin", name, key[:6]))
	if now := time.Now(); os.Chtimes(path, now, now) == nil { // used: Prune goes by that
		choice.Warm()
		return path, 0, nil
	}
	if err := os.MkdirAll(s.Dir, 0o777); err != nil {
		return "", 0, err
	}
	start := time.Now()
	model, err := filepath.Abs(w.Model)
	if err != nil {
		return "", 0, err
	}
	err = compile(ctx, said, zincc, append([]string{"compile", model, "--target=" + target, "--output=" + path}, w.Flags...)...)
	return path, time.Since(start), err
}

// compile runs zincc. The last line that it writes on standard error is the error where it fails; said
// gets the others.
func compile(ctx context.Context, said func(line string), zincc string, args ...string) error {
	c := exec.CommandContext(ctx, zincc, args...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	var output bytes.Buffer
	c.Stderr = &output
	err := c.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	lines := strings.Split(strings.TrimSpace(output.String()), "\n")
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
		return nil
	case !errors.As(err, &exit) || last == "":
		return fmt.Errorf("%s: %w", zincc, err)
	}
	return &CompileError{strings.TrimPrefix(last, "zincc: "), exit.ExitCode()}
}

// CompileError is what zincc said when it failed, and its exit code. Code 3 is what
// ir.Unsupported is elsewhere.
type CompileError struct {
	Said string
	Code int
}

func (e *CompileError) Error() string { return e.Said }

func (e *CompileError) Is(target error) bool { return target == errors.ErrUnsupported && e.Code == 3 }

// compiler finds zincc: beside this program, else in PATH.
func compiler() (string, error) {
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
		return "", fmt.Errorf("a model file must be compiled first, and zincc is neither beside zincrun nor in PATH")
	}
	return path, nil
}

func sumOf(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return h.Sum(nil), err
}

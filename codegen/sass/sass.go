// Package sass shows the machine code of PTX: what NVIDIA's assembler makes of it, by the
// programs ptxas and nvdisasm of the CUDA toolkit. The driver compiles with an assembler of its
// own version, so registers and order may differ on a device.
package sass

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"
)

// ErrNone says that a program is missing.
var ErrNone = errors.New("machine code of PTX is shown by ptxas and nvdisasm of the CUDA toolkit, which are not both installed")

// Tools are the two programs.
type Tools struct{ assembler, disassembler, version string }

var release = regexp.MustCompile(`release ([0-9.]+)`)

// Find finds them in PATH.
func Find(ctx context.Context) (*Tools, error) {
	var t Tools
	for name, path := range map[string]*string{"ptxas": &t.assembler, "nvdisasm": &t.disassembler} {
		found, err := exec.LookPath(name)
		if err != nil {
			return nil, ErrNone
		}
		*path = found
	}
	out, err := run(ctx, t.assembler, "--version")
	if err != nil {
		return nil, err
	}
	t.version = "ptxas"
	if m := release.FindStringSubmatch(out); m != nil {
		t.version += " " + m[1]
	}
	return &t, nil
}

// Version names the assembler, such as "ptxas 12.4".
func (t *Tools) Version() string { return t.version }

var architecture = regexp.MustCompile(`(?m)^\.target (sm_[0-9]+[a-z]?)\b`)

// Assembly returns the instructions of a module of PTX, one a line, with its labels.
func (t *Tools) Assembly(ctx context.Context, ptx string) (string, error) {
	m := architecture.FindStringSubmatch(ptx)
	if m == nil {
		return "", errors.New("PTX names no .target")
	}
	dir, err := os.MkdirTemp("", "zincc-sass-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	text, binary := filepath.Join(dir, "kernel.ptx"), filepath.Join(dir, "kernel.cubin")
	if err := os.WriteFile(text, []byte(ptx), 0o600); err != nil {
		return "", err
	}
	if _, err := run(ctx, t.assembler, "-arch="+m[1], "-o", binary, text); err != nil {
		return "", err
	}
	out, err := run(ctx, t.disassembler, "-c", binary)
	return tidy(out), err
}

// All returns the instructions of each module, as Assembly does; of an empty one none.
func (t *Tools) All(ctx context.Context, modules []string) ([]string, error) {
	texts := make([]string, len(modules))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, ptx := range modules {
		if ptx == "" {
			continue
		}
		group.Go(func() (err error) {
			texts[i], err = t.Assembly(ctx, ptx)
			return err
		})
	}
	return texts, group.Wait()
}

var (
	instruction = regexp.MustCompile(`^\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;$`)
	label       = regexp.MustCompile(`^\.L_x_[0-9]+:$`)
)

// tidy leaves instructions and labels.
func tidy(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if m := instruction.FindStringSubmatch(line); m != nil {
			b.WriteString("  " + m[1] + "\n")
		} else if label.MatchString(line) {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// run returns what a program prints; its error has the first line of what it says.
func run(ctx context.Context, path string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	var out, say bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &say
	if err := cmd.Run(); err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(say.String()), "\n")
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(path), err, first)
	}
	return out.String(), nil
}

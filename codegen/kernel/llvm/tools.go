package llvm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Version is of the LLVM that objects are made with: another one makes other bytes.
const Version = "19"

// ErrNoLLVM says that there is no LLVM of that version.
var ErrNoLLVM = errors.New("needs LLVM " + Version + " (opt-" + Version + " and llc-" + Version + ", in Debian's package llvm-" + Version + ")")

// tool finds a program of LLVM.
func tool(name string) (string, error) {
	path, err := exec.LookPath(name + "-" + Version)
	if err != nil {
		return "", ErrNoLLVM
	}
	return path, nil
}

// Compile makes an object file of a kernel in LLVM's words.
func (m *Machine) Compile(ctx context.Context, text string) (object []byte, err error) {
	bitcode, err := m.run(ctx, "opt", []byte(text), "-passes=default<O2>")
	if err != nil {
		return nil, err
	}
	return m.run(ctx, "llc", bitcode, "-O3", "-relocation-model=pic", "-filetype=obj", "--stack-size-section")
}

// Assembly makes the text of the code, for people.
func (m *Machine) Assembly(ctx context.Context, text string) (string, error) {
	bitcode, err := m.run(ctx, "opt", []byte(text), "-passes=default<O2>")
	if err != nil {
		return "", err
	}
	out, err := m.run(ctx, "llc", bitcode, "-O3", "-relocation-model=pic")
	return string(out), err
}

func (m *Machine) run(ctx context.Context, name string, in []byte, args ...string) ([]byte, error) {
	path, err := tool(name)
	if err != nil {
		return nil, err
	}
	args = append(args, "-mcpu="+m.CPU)
	if m.Attr != "" {
		args = append(args, "-mattr="+m.Attr)
	}
	cmd := exec.CommandContext(ctx, path, append(args, "-o", "-", "-")...)
	var out, say bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &say
	if err := cmd.Run(); err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(say.String()), "\n")
		return nil, fmt.Errorf("%s: %w: %s", name, err, first)
	}
	return out.Bytes(), nil
}

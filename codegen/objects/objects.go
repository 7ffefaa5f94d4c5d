// Package objects holds machine code that LLVM made of kernels, so that a computer without LLVM can
// compile plans for processors. An object is found by the SHA-256 of what it was made of: the version of
// LLVM, the machine and the kernel in LLVM's words. So a kernel that has changed is not found; it
// is made anew where LLVM is installed, and kept in the user's cache folder.
//
// A program holds the objects of its own architecture. internal/tools/makeobjects writes the folders amd64 and arm64,
// by `make objects`.
package objects

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"

	"github.com/zincc-dev/zincc/codegen/kernel/llvm"
)

// Key names the object of a kernel, in LLVM's words, for a machine.
func Key(m *llvm.Machine, text string) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s\n%s %s %s\n%s", llvm.Version, m.Name, m.CPU, m.Attr, text)))
}

// Wanted is a kernel for a machine, by a name that no other kernel has, and its text in LLVM's words, for that machine
// or another.
type Wanted struct {
	Kernel  string
	Machine *llvm.Machine
	Text    func(m *llvm.Machine) (string, error)
}

type listing struct{}

// Listing returns a context in which Of makes nothing: it calls add, from several goroutines, and returns no
// bytes. So compilations say which objects they need.
func Listing(ctx context.Context, add func(Wanted) error) context.Context {
	return context.WithValue(ctx, listing{}, add)
}

// Of returns the object of the kernel of that name: one that is held or was kept, else what LLVM makes.
func Of(ctx context.Context, w Wanted) ([]byte, error) {
	if add, ok := ctx.Value(listing{}).(func(Wanted) error); ok {
		return nil, add(w)
	}
	text, err := w.Text(w.Machine)
	if err != nil {
		return nil, err
	}
	name, m := w.Kernel, w.Machine
	key := Key(m, text)
	code, err := Held(m, key)
	if err != nil {
		return nil, err
	}
	if code == nil {
		code = kept(ctx, key)
	}
	if code == nil {
		if code, err = m.Compile(ctx, text); errors.Is(err, llvm.ErrNoLLVM) {
			return nil, &MissingError{Kernel: name, Machine: m.Name}
		} else if err != nil {
			return nil, fmt.Errorf("kernel %q: %w", name, err)
		}
		keep(key, code)
	}
	return code, nil
}

// MissingError says that a kernel is not held and cannot be made here.
type MissingError struct{ Kernel, Machine string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("kernel %q is not among those that this program holds for %s (a program for %s holds those of %s processors): making it %v",
		e.Kernel, e.Machine, runtime.GOARCH, runtime.GOARCH, llvm.ErrNoLLVM)
}

// Is tells that another computer, with LLVM, could do it.
func (e *MissingError) Is(target error) bool { return target == errors.ErrUnsupported }

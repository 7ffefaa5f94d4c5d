// Package objects holds machine code that LLVM made of kernels, so that a computer without LLVM can
// compile plans for processors. An object is found by the SHA-256 of what it was made of: the version of
// LLVM, the machine and the kernel in LLVM's words. So a kernel that has changed is not found; it
// is made anew where LLVM is installed, and kept in the user's cache folder.
//
// internal/makeobjects writes objects.zip, by `make objects`.
package objects

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/zincc-dev/zincc/codegen/kernel/llvm"
	"github.com/zincc-dev/zincc/internal/outfile"
	"github.com/zincc-dev/zincc/plans/object"
)

// held is a ZIP archive of objects, each by its key.
//
//go:embed objects.zip
var held []byte

// index finds the objects that are held.
var index = sync.OnceValues(func() (map[string]*zip.File, error) {
	r, err := zip.NewReader(bytes.NewReader(held), int64(len(held)))
	if err != nil {
		return nil, fmt.Errorf("objects.zip: %w", err)
	}
	files := map[string]*zip.File{}
	for _, f := range r.File {
		files[f.Name] = f
	}
	return files, nil
})

// Key names the object of a kernel, in LLVM's words, for a machine.
func Key(m *llvm.Machine, text string) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s\n%s %s %s\n%s", llvm.Version, m.Name, m.CPU, m.Attr, text)))
}

// Wanted is a kernel for a machine, in LLVM's words.
type Wanted struct {
	Kernel  string
	Machine *llvm.Machine
	Text    string
}

type listing struct{}

// Listing returns a context in which Of makes nothing: it calls add, from several goroutines, and returns no
// bytes. Plans made so say which objects they need.
func Listing(ctx context.Context, add func(Wanted)) context.Context {
	return context.WithValue(ctx, listing{}, add)
}

// Of returns the object of the kernel of that name: one that is held or was kept, else what LLVM makes.
func Of(ctx context.Context, name string, m *llvm.Machine, text string) ([]byte, error) {
	if add, ok := ctx.Value(listing{}).(func(Wanted)); ok {
		add(Wanted{name, m, text})
		return nil, nil
	}
	key := Key(m, text)
	code, err := find(key)
	if err != nil {
		return nil, err
	}
	if code == nil {
		if code, err = m.Compile(ctx, text); errors.Is(err, llvm.ErrNoLLVM) {
			return nil, &MissingError{Kernel: name, Machine: m.Name}
		} else if err != nil {
			return nil, fmt.Errorf("kernel %q: %w", name, err)
		}
		keep(key, code)
	}
	collect(key, code)
	return code, nil
}

// MissingError says that a kernel is not held and cannot be made here.
type MissingError struct{ Kernel, Machine string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("kernel %q is not among those that this program holds for %s: making it %v", e.Kernel, e.Machine, llvm.ErrNoLLVM)
}

// Is tells that another computer, with LLVM, could do it.
func (e *MissingError) Is(target error) bool { return target == errors.ErrUnsupported }

// find returns an object that is held or was kept, nil if there is none.
func find(key string) ([]byte, error) {
	files, err := index()
	if err != nil {
		return nil, err
	}
	if f := files[key]; f != nil {
		r, err := f.Open()
		if err != nil {
			return nil, fmt.Errorf("objects.zip: %w", err)
		}
		defer r.Close()
		return io.ReadAll(r)
	}
	path, err := kept(key)
	if err != nil {
		return nil, nil // without a cache folder nothing is kept
	}
	code, err := os.ReadFile(path)
	if err != nil {
		return nil, nil
	}
	if _, err := object.Read(code); err != nil {
		return nil, nil // damaged: it is made again
	}
	return code, nil
}

// kept is where an object is kept.
func kept(key string) (string, error) {
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "zincc", "objects", key+".o"), err
}

// keep keeps an object. That it cannot is no error: it is made again then.
func keep(key string, code []byte) {
	path, err := kept(key)
	if err != nil || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	_ = outfile.Write(path, func(w io.Writer) error { _, err := w.Write(code); return err })
}

// collected are the objects that were asked for, if Collect has been called.
var (
	mu        sync.Mutex
	collected map[string][]byte
)

func collect(key string, code []byte) {
	mu.Lock()
	defer mu.Unlock()
	if collected != nil {
		collected[key] = code
	}
}

// Collect makes Of remember all objects from now on, for WriteZip.
func Collect() {
	mu.Lock()
	defer mu.Unlock()
	collected = map[string][]byte{}
}

// WriteZip writes what was collected as objects.zip, and returns how many objects that are. The same objects give
// the same bytes.
func WriteZip(w io.Writer) (int, error) {
	mu.Lock()
	defer mu.Unlock()
	z := zip.NewWriter(w)
	for _, key := range slices.Sorted(maps.Keys(collected)) {
		f, err := z.CreateHeader(&zip.FileHeader{Name: key, Method: zip.Deflate})
		if err != nil {
			return 0, err
		}
		if _, err := f.Write(collected[key]); err != nil {
			return 0, err
		}
	}
	return len(collected), z.Close()
}

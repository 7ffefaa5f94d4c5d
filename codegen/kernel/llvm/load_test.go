//go:build !windows

package llvm

import (
	"testing"

	"github.com/ebitengine/purego"
)

// load returns the address of the kernel in a shared object: one of ELF, which Windows does not load, so the tests here
// are built elsewhere.
func load(t *testing.T, path string) uintptr {
	t.Helper()
	lib, err := purego.Dlopen(path, purego.RTLD_NOW)
	if err != nil {
		t.Fatal(err)
	}
	fn, err := purego.Dlsym(lib, Symbol)
	if err != nil {
		t.Fatal(err)
	}
	return fn
}

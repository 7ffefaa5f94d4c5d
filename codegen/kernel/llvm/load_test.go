//go:build !windows

package llvm

import (
	"testing"

	"github.com/ebitengine/purego"
)

// load returns the address of the kernel in a shared object.
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

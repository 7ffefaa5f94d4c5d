package cuda

import (
	"strings"

	"github.com/zincc-dev/zincc/runtime/internal/dynamic"
)

// openLibrary opens the system's library, else that which Windows's driver brings into WSL2.
func openLibrary() (uintptr, error) {
	return firstLibrary("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1")
}

// firstLibrary opens the first that is there.
func firstLibrary(names ...string) (lib uintptr, err error) {
	var first error
	for _, name := range names {
		if lib, err = dynamic.Open(name); err == nil {
			return lib, nil
		}
		// The linker also says so of a library that this one needs.
		if text := err.Error(); !dynamic.Linked || strings.Contains(text, name) && strings.Contains(text, "No such file") {
			err = absent{err}
		}
		if first == nil {
			first = err
		}
		if !isAbsent(err) {
			return 0, err
		}
	}
	return 0, first
}

func librarySymbol(lib uintptr, name string) (uintptr, error) { return dynamic.Symbol(lib, name) }

package cuda

import (
	"strings"

	"github.com/zincc-dev/zincc/runtime/internal/dynamic"
)

// libraries are the names of the driver's library: that of the system, and where Windows's driver brings it
// into WSL2.
var libraries = []string{"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"}

// openLibrary opens the first that is there.
func openLibrary() (lib uintptr, err error) {
	var first error
	for _, name := range libraries {
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

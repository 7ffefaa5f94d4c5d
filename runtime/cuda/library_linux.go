package cuda

import "github.com/zincc-dev/zincc/runtime/internal/dynamic"

// openLibrary also finds what Windows's driver brings into WSL2.
func openLibrary() (uintptr, error) {
	lib, err := dynamic.Open("libcuda.so.1")
	if err != nil {
		if wsl, e := dynamic.Open("/usr/lib/wsl/lib/libcuda.so.1"); e == nil {
			return wsl, nil
		}
	}
	return lib, err
}

func librarySymbol(lib uintptr, name string) (uintptr, error) { return dynamic.Symbol(lib, name) }

package cuda

import (
	"errors"

	"golang.org/x/sys/windows"

	"github.com/zincc-dev/zincc/runtime/internal/dynamic"
)

func openLibrary() (uintptr, error) {
	lib, err := dynamic.Open("nvcuda.dll")
	if errors.Is(err, windows.ERROR_MOD_NOT_FOUND) || err != nil && !dynamic.Linked {
		err = absent{err}
	}
	return lib, err
}

func librarySymbol(lib uintptr, name string) (uintptr, error) { return dynamic.Symbol(lib, name) }

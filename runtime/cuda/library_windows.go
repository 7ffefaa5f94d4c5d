package cuda

import "github.com/zincc-dev/zincc/runtime/internal/dynamic"

func openLibrary() (uintptr, error) { return dynamic.Open("nvcuda.dll") }

func librarySymbol(lib uintptr, name string) (uintptr, error) { return dynamic.Symbol(lib, name) }

//go:build !linux && !windows

package cuda

import "errors"

func openLibrary() (uintptr, error) {
	return 0, absent{errors.New("NVIDIA has none for this system")}
}

func librarySymbol(uintptr, string) (uintptr, error) { panic("no library") }

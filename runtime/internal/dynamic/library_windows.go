//go:build !static

package dynamic

import "golang.org/x/sys/windows"

// Open opens a library of the system folder: one beside the program is not to be trusted.
func Open(name string) (uintptr, error) {
	lib, err := windows.LoadLibraryEx(name, 0, windows.LOAD_LIBRARY_SEARCH_SYSTEM32)
	return uintptr(lib), err
}

// Symbol is the address of a function.
func Symbol(lib uintptr, name string) (uintptr, error) {
	return windows.GetProcAddress(windows.Handle(lib), name)
}

package vk

import "golang.org/x/sys/windows"

var libraryNames = []string{"vulkan-1.dll"}

func openLibrary(name string) (uintptr, error) {
	// Only the system folder: a library beside the program is not to be trusted.
	lib, err := windows.LoadLibraryEx(name, 0, windows.LOAD_LIBRARY_SEARCH_SYSTEM32)
	return uintptr(lib), err
}

func librarySymbol(lib uintptr, name string) (uintptr, error) {
	return windows.GetProcAddress(windows.Handle(lib), name)
}

package cuda

import "golang.org/x/sys/windows"

func openLibrary() (uintptr, error) {
	// Only the system folder: a library beside the program is not to be trusted.
	lib, err := windows.LoadLibraryEx("nvcuda.dll", 0, windows.LOAD_LIBRARY_SEARCH_SYSTEM32)
	return uintptr(lib), err
}

func librarySymbol(lib uintptr, name string) (uintptr, error) {
	return windows.GetProcAddress(windows.Handle(lib), name)
}

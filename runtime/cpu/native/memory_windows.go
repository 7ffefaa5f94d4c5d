package native

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

func alloc(size int64) ([]byte, error) {
	p, err := windows.VirtualAlloc(0, uintptr(size), windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), size), nil
}

func free(mem []byte) {
	_ = windows.VirtualFree(uintptr(unsafe.Pointer(unsafe.SliceData(mem))), 0, windows.MEM_RELEASE) // of memory that VirtualAlloc returned
}

func protectExec(mem []byte) error { return protect(mem, windows.PAGE_EXECUTE_READ) }

func protectNone(mem []byte) error { return protect(mem, windows.PAGE_NOACCESS) }

func protect(mem []byte, access uint32) error {
	var old uint32
	return windows.VirtualProtect(uintptr(unsafe.Pointer(unsafe.SliceData(mem))), uintptr(len(mem)), access, &old)
}

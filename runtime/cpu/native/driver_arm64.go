package native

import (
	_ "embed"
	"unsafe"
)

//go:embed driver_arm64.o
var driverObject []byte

// flush makes what was written to mem what is executed.
func flush(mem []byte) {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	flushCaches(from, from+uintptr(len(mem)))
}

func flushCaches(from, end uintptr)

package contents

import "unsafe"

// Numbers is b as numbers of four bytes, as this computer and devices write them; b begins at a multiple of four.
func Numbers[T int32 | uint32 | float32](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

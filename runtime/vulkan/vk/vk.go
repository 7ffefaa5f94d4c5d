// Package vk binds the compute part of Vulkan 1.2 without cgo. Constants,
// structs and commands are generated from the Khronos registry by
// runtime/internal/vkgen; names are those of the specification without the
// prefix, VkBufferCreateInfo being BufferCreateInfo, and allocation callbacks
// are always NULL.
//
// What C reads during a call is kept alive when the caller reaches it from the
// arguments through typed pointers and unsafe.Pointer fields; nothing may be
// reachable through a uintptr alone.
package vk

//go:generate go run ../../internal/vkgen --out .

import (
	"fmt"
	"unsafe"

	"github.com/zincc-dev/zincc/runtime/internal/dynamic"
)

// Bool32 is VkBool32: 0 is false.
type Bool32 uint32

// Values of Bool32.
const (
	False Bool32 = 0
	True  Bool32 = 1
)

// WholeSize is VK_WHOLE_SIZE: from the offset to the end of the buffer.
const WholeSize = ^uint64(0)

// Core versions, as MakeVersion writes them.
var (
	Version11 = MakeVersion(1, 1, 0)
	Version12 = MakeVersion(1, 2, 0)
	Version13 = MakeVersion(1, 3, 0)
)

// MakeVersion is VK_MAKE_API_VERSION of variant 0.
func MakeVersion(major, minor, patch uint32) uint32 {
	return major<<22 | minor<<12 | patch
}

// VersionString writes a version of MakeVersion's form as 1.3.239.
func VersionString(v uint32) string {
	return fmt.Sprintf("%d.%d.%d", v>>22&0x7f, v>>12&0x3ff, v&0xfff)
}

// Error is the C name of the result; every Result but Success is an error.
func (r Result) Error() string {
	if name, ok := resultNames[r]; ok {
		return name
	}
	return fmt.Sprintf("VkResult(%d)", int32(r))
}

// Err is nil for Success and the other codes that report no failure, such as
// Timeout and Incomplete.
func (r Result) Err() error {
	if r < 0 {
		return r
	}
	return nil
}

// CString is a NUL-terminated copy of s.
func CString(s string) *byte {
	return unsafe.SliceData(append([]byte(s), 0))
}

// CStrings are NUL-terminated copies of the strings of list; nil when there
// are none.
func CStrings(list []string) **byte {
	if len(list) == 0 {
		return nil
	}
	out := make([]*byte, len(list))
	for i, s := range list {
		out[i] = CString(s)
	}
	return unsafe.SliceData(out)
}

// String is the text of a NUL-terminated character array.
func String(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// StringAt is the NUL-terminated text at p; empty when p is nil.
func StringAt(p *byte) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// call calls a C function. The directive moves what the arguments point to to
// the heap: a callback from C can grow, and so move, the goroutine's stack.
//
//go:uintptrescapes
func call(fn uintptr, args ...uintptr) uintptr {
	return dynamic.Call(fn, args...)
}

//go:build amd64 || arm64

package native

import _ "unsafe" // for go:linkname

// The runtime keeps these names for packages that call foreign code.

//go:linkname entersyscall runtime.entersyscall
func entersyscall()

//go:linkname entersyscallblock runtime.entersyscallblock
func entersyscallblock()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()

// invoke calls the function at fn, of the C calling convention of Linux, with six arguments on
// another stack. To the Go runtime the thread is in a system call: it collects garbage and
// runs other goroutines meanwhile. A call without that would make a collection wait for its end, and if the
// call itself waits for a thread that the collection has stopped, for ever. blocks: the system call is one that blocks.
//
//go:nosplit
func invoke(fn, stack uintptr, args *[6]uintptr, blocks bool) uintptr {
	if blocks {
		entersyscallblock()
	} else {
		entersyscall()
	}
	r := call(fn, stack, args)
	exitsyscall()
	return r
}

// call is invoke within a system call.
//
//go:noescape
func call(fn, stack uintptr, args *[6]uintptr) uintptr

// relaxAddress is that of the function that Control.relax holds.
func relaxAddress() uintptr

// stampAddress is that of the kernel that looks at the clock.
func stampAddress() uintptr

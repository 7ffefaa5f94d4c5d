//go:build amd64 || arm64

package native

import _ "unsafe" // for go:linkname

// The runtime keeps these two names for packages that call foreign code.

//go:linkname entersyscallblock runtime.entersyscallblock
func entersyscallblock()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()

// invoke calls the function at fn, of the C calling convention of Linux, with six arguments on
// another stack. To the Go runtime the thread is in a system call: it collects garbage and
// runs other goroutines meanwhile. A call without that would make a collection wait for its end, and if the
// call itself waits for a thread that the collection has stopped, for ever. The system call is one that blocks, so that
// nothing is left to watch: else the runtime's monitor wakes up every 20 us to see how long it takes, on a
// processor that computes.
//
//go:nosplit
func invoke(fn, stack uintptr, args *[6]uintptr) uintptr {
	entersyscallblock()
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

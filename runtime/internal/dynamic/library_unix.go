//go:build !static && !windows

package dynamic

import (
	"runtime"

	"github.com/ebitengine/purego"
)

// Open opens a library by its name or path. The linker keeps what went wrong for the thread.
func Open(name string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

// Symbol is the address of a function.
func Symbol(lib uintptr, name string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return purego.Dlsym(lib, name)
}

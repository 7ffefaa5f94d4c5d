//go:build !static && !windows

package dynamic

import "github.com/ebitengine/purego"

// Open opens a library by its name or path.
func Open(name string) (uintptr, error) {
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

// Symbol is the address of a function.
func Symbol(lib uintptr, name string) (uintptr, error) { return purego.Dlsym(lib, name) }

//go:build !static

// Package dynamic calls functions of shared libraries without cgo. Programs with it need the system's
// dynamic linker; the build tag static leaves it out, for containers that have nothing but the program.
package dynamic

import "github.com/ebitengine/purego"

// Linked reports whether this program can open libraries at all.
const Linked = true

// Call calls a C function. What the arguments point to is the caller's to keep where it is.
func Call(fn uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, args...)
	return r
}

// NewCallback makes a C function of fn. Callbacks are never freed and their number is limited: make one for the
// process.
func NewCallback(fn any) uintptr { return purego.NewCallback(fn) }

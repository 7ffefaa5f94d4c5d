//go:build static

package dynamic

import "fmt"

// Open fails: there is no dynamic linker.
func Open(name string) (uintptr, error) {
	return 0, fmt.Errorf("this program was built without shared libraries (tag static), so without %s", name)
}

// Symbol fails as Open does.
func Symbol(uintptr, string) (uintptr, error) { panic("no library") }

// Linked reports whether this program can open libraries at all.
const Linked = false

// Call is never reached: there is no function to call.
func Call(uintptr, ...uintptr) uintptr { panic("no library") }

// NewCallback is never reached: nobody would call it.
func NewCallback(any) uintptr { panic("no library") }

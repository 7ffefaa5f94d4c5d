//go:build !windows

package vk

import "github.com/ebitengine/purego"

func openLibrary(name string) (uintptr, error) {
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func librarySymbol(lib uintptr, name string) (uintptr, error) {
	return purego.Dlsym(lib, name)
}

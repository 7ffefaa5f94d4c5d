//go:build !windows && !darwin

package vk

// libraryNames has the versioned name only: libvulkan.so belongs to the
// development package.
var libraryNames = []string{"libvulkan.so.1"}

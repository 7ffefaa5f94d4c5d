package vk

// libraryNames are the Khronos loader and, where that is not installed,
// MoltenVK itself.
var libraryNames = []string{"libvulkan.1.dylib", "libMoltenVK.dylib"}

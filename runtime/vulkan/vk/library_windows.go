package vk

var libraryNames = []string{"vulkan-1.dll"}

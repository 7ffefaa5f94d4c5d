module github.com/zincc-dev/zincc/runtime/vulkan/vk/vkcheck

go 1.26.0

require (
	github.com/vulkan-go/vulkan v0.0.0-20221209234627-c0a353ae26c8
	github.com/zincc-dev/zincc v0.0.0
)

require (
	github.com/ebitengine/purego v0.11.3 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/zincc-dev/zincc => ../../../..

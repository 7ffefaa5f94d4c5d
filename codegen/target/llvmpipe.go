package target

import "github.com/zincc-dev/zincc/plans"

// llvmpipe is Mesa's Vulkan on the CPU (lavapipe). Limits are those that Mesa
// 25.0.7 reports on a processor with 256-bit vectors; a dispatch takes 20-95 us
// there. Operations are what the matmuls of gopher's decode/1 reached by `zincrun
// profile` on two such cores, 3-4 GFLOP/s; nothing was seen to wait for memory.
var llvmpipe = &Target{
	Name:      "llvmpipe",
	Doc:       "Vulkan on the CPU (Mesa lavapipe), for tests",
	Backend:   plans.Vulkan,
	Wave:      8,
	Workgroup: 1024,
	Shared:    32 << 10,
	Units:     2,
	Rows:      512,
	Bandwidth: 10e9,
	FLOPs:     4e9,
	Stage:     50e-6,
}

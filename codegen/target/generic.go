package target

import "github.com/zincc-dev/zincc/plans"

// generic is a GPU of which only Vulkan 1.2 is known. The limits are the smallest
// that drivers of desktop GPUs report; subgroups of 32 are what NVIDIA's and AMD's have and
// Intel's can be asked for. The other figures are round numbers of a small GPU, not
// those of any device.
var generic = &Target{
	Name:      "generic",
	Doc:       "any GPU with Vulkan 1.2 and subgroups of 32",
	Backend:   plans.Vulkan,
	Wave:      32,
	Workgroup: 1024,
	Shared:    32 << 10,
	Units:     16,
	Rows:      512,
	Bandwidth: 200e9,
	Stage:     2.0e-6,
}

package target

import "github.com/zincc-dev/zincc/plans"

// xe2 is Intel's Battlemage. Memory, bandwidth and units are the data sheet's of the
// Arc Pro B70 (32 GB on 256 bits at 608 GB/s, 256 XMX engines of which a core has
// 8). 16 is the subgroup size that its vector engines are as wide as. Workgroup and
// shared memory are what Mesa's ANV reports for Intel GPUs since Gen 12; the stage
// cost is sm_90's. Neither has been seen on the device.
var xe2 = &Target{
	Name:      "xe2",
	Doc:       "Intel Xe2 (Arc Pro B70) through Vulkan",
	Backend:   plans.Vulkan,
	Vendor:    0x8086,
	Wave:      16,
	Workgroup: 1024,
	Shared:    64 << 10,
	Units:     32,
	Rows:      512,
	Memory:    32e9,
	Bandwidth: 608e9,
	Stage:     2.0e-6,
}

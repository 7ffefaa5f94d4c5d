package target

import (
	"github.com/zincc-dev/zincc/codegen/target/hopper"
	"github.com/zincc-dev/zincc/plans"
)

// sm90 is NVIDIA Hopper through Vulkan. Bandwidth and stage cost were measured
// on an H200 with driver 580: 4.6 TB/s read, 1.7-2.5 us for a dispatch and its
// barrier. Limits are those that the driver reports. Float32 operations are the
// data sheet's (67 TFLOP/s, boost clock), those of matrices what a bf16 product
// reached on an H200 (790 of the data sheet's 989 TFLOP/s). Which elements lanes hold
// was read from the device by a kernel (driver 580). Chunks: docs/lab/hybrids.md.
// Fit: docs/estimates.md.
var sm90 = &Target{
	Name:        "sm_90",
	Doc:         "NVIDIA Hopper (H100, H200) through Vulkan",
	Backend:     plans.Vulkan,
	Vendor:      0x10de,
	Wave:        32,
	Workgroup:   1024,
	Shared:      48 << 10,
	Units:       132,
	Rows:        2048,
	Matrix:      MatrixShape{16, 16, 16},
	Fragments:   true,
	Dot:         true,
	Chunks:      true,
	Memory:      80e9,
	Bandwidth:   4.6e12,
	FLOPs:       67e12,
	MatrixFLOPs: 790e12,
	Stage:       2.0e-6,
	Curve:       hopper.Curve,
	Fit:         Fit{Ramp: 2.5e-6, Share: 0.89, Attention: 0.3, Timestamp: 0.66e-6},
}

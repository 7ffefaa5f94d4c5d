// Package hopper has NVIDIA's Hopper: figures of its targets, the curve that was fitted to an H200 of 132 units, and
// what tuning measured. docs/lab has the measurements of the curve: gemm_coop, gemm_fragment and projections of f32 in
// prompts.md, experts in experts.md.
package hopper

import (
	"embed"

	"github.com/zincc-dev/zincc/codegen/target/device"
	"github.com/zincc-dev/zincc/codegen/target/nvidia"
	"github.com/zincc-dev/zincc/plans"
)

// tuned are the tuning files; that of another device than an H200 has its name.
//
//go:embed *.jsonl
var tuned embed.FS

// Vulkan is NVIDIA Hopper through Vulkan. Bandwidth and stage cost were measured
// on an H200 with driver 580: 4.6 TB/s read, 1.7-2.5 us for a dispatch and its
// barrier. Limits are those that the driver reports. Float32 operations are the
// data sheet's (67 TFLOP/s, boost clock), those of matrices what a bf16 product
// reached on an H200 (790 of the data sheet's 989 TFLOP/s). Which elements lanes hold
// was read from the device by a kernel (driver 580). Chunks: docs/lab/hybrids.md.
// Fit: docs/estimates.md.
var Vulkan = &device.Target{
	Name:        "sm_90",
	Doc:         "NVIDIA Hopper (H100, H200) through Vulkan",
	Backend:     plans.Vulkan,
	Vendor:      0x10de,
	Wave:        32,
	Workgroup:   1024,
	Shared:      48 << 10,
	Units:       132,
	Rows:        2048,
	Matrix:      device.MatrixShape{Rows: 16, Cols: 16, Depth: 16},
	Fragments:   true,
	Dot:         true,
	Chunks:      true,
	Memory:      80e9,
	Bandwidth:   4.6e12,
	FLOPs:       67e12,
	MatrixFLOPs: 790e12,
	Stage:       2.0e-6,
	Curve:       curve,
	Thresholds:  vulkanThresholds,
	Tuned:       tuned,
	Fit:         device.Fit{Ramp: 2.5e-6, Share: 0.89, Attention: 0.3, Timestamp: 0.66e-6},
}

// CUDA is the same through CUDA. A stage is that of a graph without overlap.
var CUDA = nvidia.CUDA(90, "NVIDIA Hopper (H100, H200)", device.Target{
	Units:          132,
	Memory:         80e9,
	Bandwidth:      4.6e12,
	FLOPs:          67e12,
	MatrixFLOPs:    790e12,
	Stage:          1.3e-6,
	Groups:         true,
	SharedOptIn:    227 << 10,
	SharedFast:     196 << 10, // 15 to 27 us a dispatch above it: docs/lab/batched-decoding.md
	EightHeadsFrom: 32 << 10,  // docs/lab/cuda.md
	Curve:          curve,
	Thresholds:     cudaThresholds,
	Fit:            fitCUDA,
	Tuned:          tuned,
})

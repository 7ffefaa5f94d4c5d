package rdna

import (
	"github.com/zincc-dev/zincc/codegen/target/device"
	"github.com/zincc-dev/zincc/plans"
)

// GFX1201 is AMD RDNA4. Memory, bandwidth, clock and units are the Radeon AI PRO
// R9700's data sheet (32 GB, 640 GB/s, 64 compute units, 2920 MHz; the operations that
// follow are its 47.8 TFLOP/s); limits are those that RADV of Mesa 25.0 reports; the
// stage cost is what RADV needs on gfx1100 for a dispatch with its barrier, about
// 0.85 us.
var GFX1201 = &device.Target{
	Name:        "gfx1201",
	Doc:         "AMD RDNA4 (Radeon AI PRO R9700, RX 9070 XT) through Vulkan with cooperative matrices",
	Backend:     plans.Vulkan,
	Vendor:      0x1002,
	Wave:        32,
	Waves:       Waves,
	Workgroup:   1024,
	Shared:      64 << 10,
	Units:       64,
	Rows:        2048,
	Matrix:      device.MatrixShape{Rows: 16, Cols: 16, Depth: 16},
	Dot:         true,
	Memory:      32e9,
	Bandwidth:   640e9,
	FLOPs:       rdnaFLOPs(64, 2.92e9),
	MatrixFLOPs: 64 * rdna4Matrix * 2.92e9,
	Stage:       0.85e-6,
	AMD:         rdna4("GFX1201", 2.92e9),
	Thresholds:  thresholds,
	Tuned:       tuned,
}

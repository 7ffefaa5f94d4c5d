package rdna

import (
	"github.com/zincc-dev/zincc/codegen/target/device"
	"github.com/zincc-dev/zincc/plans"
)

// GFX1151 is AMD RDNA3.5 in one package with the processor. Bandwidth, clock and
// units are the data sheet's of the Ryzen AI Max+ 395 with its Radeon 8060S (256
// bits of LPDDR5X-8000, 40 compute units, 2900 MHz); memory is the host's. Limits
// are those that RADV of Mesa 25.0 reports; the stage cost is gfx1100's, for want
// of a measurement.
var GFX1151 = &device.Target{
	Name:        "gfx1151",
	Doc:         "AMD RDNA3.5 (Radeon 8060S of Ryzen AI Max) through Vulkan with cooperative matrices",
	Backend:     plans.Vulkan,
	Wave:        32,
	Waves:       Waves,
	Workgroup:   1024,
	Shared:      64 << 10,
	Units:       40,
	Rows:        2048,
	Matrix:      device.MatrixShape{Rows: 16, Cols: 16, Depth: 16},
	Dot:         true,
	Bandwidth:   256e9,
	FLOPs:       rdnaFLOPs(40, 2.9e9),
	MatrixFLOPs: 40 * rdna3Matrix * 2.9e9,
	Stage:       0.85e-6,
	AMD:         rdna("GFX1151", 2.9e9),
	Thresholds:  thresholds,
	Tuned:       tuned,
}

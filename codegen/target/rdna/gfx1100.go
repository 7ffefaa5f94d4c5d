package rdna

import (
	"github.com/zincc-dev/zincc/codegen/target/device"
	"github.com/zincc-dev/zincc/plans"
)

// GFX1100 is AMD RDNA3. Memory, bandwidth, clock and units are the data sheet's of
// the Radeon RX 7900 XTX (24 GB, 960 GB/s, 96 compute units, 2500 MHz). Limits are
// those that RADV of Mesa 25.0 reports; the stage cost is what others measured with
// RADV on a W7900: 941 dispatches of 0.82 to 0.88 us each.
var GFX1100 = &device.Target{
	Name:        "gfx1100",
	Doc:         "AMD RDNA3 (RX 7900 XTX, PRO W7900) through Vulkan with cooperative matrices",
	Backend:     plans.Vulkan,
	Wave:        32,
	Waves:       Waves,
	Workgroup:   1024,
	Shared:      64 << 10,
	Units:       96,
	Rows:        2048,
	Matrix:      device.MatrixShape{Rows: 16, Cols: 16, Depth: 16},
	Dot:         true,
	Memory:      24e9,
	Bandwidth:   960e9,
	FLOPs:       rdnaFLOPs(96, 2.5e9),
	MatrixFLOPs: 96 * rdna3Matrix * 2.5e9,
	Stage:       0.85e-6,
	AMD:         rdna("NAVI31", 2.5e9),
	Thresholds:  thresholds,
	Tuned:       tuned,
}

package rdna

import (
	"github.com/zincc-dev/zincc/codegen/target/device"
	"github.com/zincc-dev/zincc/plans"
)

// GFX1200 is AMD RDNA4's smaller chip. Memory, bandwidth, clock and units are the
// data sheet's of the Radeon RX 9060 XT (16 GB on 128 bits at 20 Gbit/s, 32 compute
// units, 3130 MHz). Limits are those that RADV of Mesa 25.0 reports; the stage cost
// is gfx1201's.
var GFX1200 = &device.Target{
	Name:        "gfx1200",
	Doc:         "AMD RDNA4 (RX 9060 XT) through Vulkan with cooperative matrices",
	Backend:     plans.Vulkan,
	Wave:        32,
	Waves:       Waves,
	Workgroup:   1024,
	Shared:      64 << 10,
	Units:       32,
	Rows:        2048,
	Matrix:      device.MatrixShape{Rows: 16, Cols: 16, Depth: 16},
	Dot:         true,
	Memory:      16e9,
	Bandwidth:   320e9,
	FLOPs:       rdnaFLOPs(32, 3.13e9),
	MatrixFLOPs: 32 * rdna4Matrix * 3.13e9,
	Stage:       0.85e-6,
	AMD:         rdna4("GFX1200", 3.13e9),
	Thresholds:  thresholds,
	Tuned:       tuned,
}

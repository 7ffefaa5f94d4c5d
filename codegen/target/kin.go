package target

import (
	"strings"

	"github.com/zincc-dev/zincc/codegen/target/rdna"
	"github.com/zincc-dev/zincc/gpu"
)

// kin are what compilers can take for granted of devices without a target of their own: all
// else comes from the probe. The first row that fits counts.
var kin = []struct {
	vendor uint32
	arch   string // how the architecture's name begins; "": any
	base   *Target
}{
	{gpu.NVIDIA, "", &Target{Name: "NVIDIA", Wave: 32, Units: 16, Rows: 2048, Matrix: MatrixShape{Rows: 16, Cols: 16, Depth: 16}, Chunks: true}},
	{gpu.AMD, "gfx11", &Target{Name: "RDNA3", Wave: 32, Waves: rdna.Waves, Units: 16, Rows: 2048, Matrix: MatrixShape{Rows: 16, Cols: 16, Depth: 16}}},
	{gpu.AMD, "gfx12", &Target{Name: "RDNA4", Wave: 32, Waves: rdna.Waves, Units: 16, Rows: 2048, Matrix: MatrixShape{Rows: 16, Cols: 16, Depth: 16}}},
	{gpu.AMD, "gfx10", &Target{Name: "RDNA", Wave: 32, Waves: rdna.Waves, Units: 16, Rows: 512}},
	{gpu.AMD, "gfx9", &Target{Name: "GCN or CDNA", Wave: 64, Units: 16, Rows: 512}},
	{gpu.Intel, "", &Target{Name: "Intel", Wave: 16, Units: 16, Rows: 512}},
}

// kinOf returns what is known of a device by its vendor and architecture alone.
func kinOf(vendor uint32, arch string) *Target {
	for _, k := range kin {
		if k.vendor == vendor && strings.HasPrefix(arch, k.arch) {
			return k.base
		}
	}
	return generic
}

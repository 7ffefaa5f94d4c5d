// Package rdna has AMD's RDNA 3 and 4: figures of their targets, and for the shapes of published models what AMD's
// compiler and the cost model say is best.
package rdna

import (
	"embed"

	"github.com/zincc-dev/zincc/codegen/target/device"
)

// tuned are the tuning files, of targets without matrices, too.
//
//go:embed *.jsonl
var tuned embed.FS

// Targets has them in the order in which people should read them. All have dot products of bytes: RADV of Mesa 25.0
// reports them as accelerated for all of their families, and makes one v_dot4_i32_iu8, with its addition, of SPIR-V's
// dot product and the addition to it.
var Targets = []*device.Target{GFX1201, GFX1200, GFX1100, GFX1151}

// Waves are the subgroup sizes of RDNA: a wave64 takes the vector units twice for each
// instruction, and has fewer instructions on scalars and addresses for its lanes.
var Waves = []int{32, 64}

// thresholds: the rows of the tuning files hold what AMD's compiler makes of kernels with this barrier. No device has
// decided it.
var thresholds = device.Thresholds{BarrierSubgroups: 2}

// rdna returns the figures that all GPUs here share: LLVM's AMDGPU back end for
// gfx11 and gfx12 with 1536 registers ("1_5xVGPRs", granule 24), 16 subgroups a
// SIMD and 128 KiB of LDS a WGP.
func rdna(family string, clock float64) *device.AMD {
	return &device.AMD{Family: family, Registers: 1536, Granule: 24, Waves: 16, LDS: 128 << 10, Clock: clock}
}

// rdna4 is rdna with a stand-in: Mesa 25.0 has no cooperative matrices for gfx12, which
// later versions have. On gfx11 they take more registers and twice the cycles.
func rdna4(family string, clock float64) *device.AMD {
	a := rdna(family, clock)
	a.StandIn = "NAVI31"
	return a
}

// Operations that a compute unit does in a cycle on matrices of float16, without
// sparsity, by the data sheets.
const (
	rdna3Matrix = 512
	rdna4Matrix = 1024
)

// rdnaFLOPs is the data sheets' peak of float32: each compute unit has 128 lanes,
// counted with dual issue, that multiply and add in a cycle.
func rdnaFLOPs(units int, clock float64) float64 { return float64(units) * 128 * 2 * clock }

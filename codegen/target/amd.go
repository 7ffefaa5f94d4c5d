package target

// AMD holds the figures from which occupancy and issue time on RDNA follow. A workgroup runs on
// one workgroup processor (WGP): two compute units, four SIMDs.
type AMD struct {
	Family    string  // RADV's name, for the compiler without hardware
	StandIn   string  // family to compile for what that compiler cannot for Family
	Registers int     // vector registers of a SIMD's lane at wave32; wave64 has half as many
	Granule   int     // in which they are given out at wave32; wave64: half
	Waves     int     // subgroups that a SIMD holds, at most
	LDS       int     // bytes of shared memory of a WGP
	Clock     float64 // boost clock in Hz
}

// The targets here have dot products of bytes: RADV of Mesa 25.0 reports them as
// accelerated for all of their families, and makes one v_dot4_i32_iu8, with its
// addition, of SPIR-V's dot product and the addition to it.

// rdnaWaves are the subgroup sizes of RDNA: a wave64 takes the vector units twice for each
// instruction, and has fewer instructions on scalars and addresses for its lanes.
var rdnaWaves = []int{32, 64}

// rdna returns the figures that all GPUs here share: LLVM's AMDGPU back end for
// gfx11 and gfx12 with 1536 registers ("1_5xVGPRs", granule 24), 16 subgroups a
// SIMD and 128 KiB of LDS a WGP.
func rdna(family string, clock float64) *AMD {
	return &AMD{Family: family, Registers: 1536, Granule: 24, Waves: 16, LDS: 128 << 10, Clock: clock}
}

// rdna4 is rdna with a stand-in: Mesa 25.0 has no cooperative matrices for gfx12, which
// later versions have. On gfx11 they take more registers and twice the cycles.
func rdna4(family string, clock float64) *AMD {
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

// SIMDs of a WGP, and compute units.
const (
	simdsOfWGP = 4
	unitsOfWGP = 2
)

// Occupancy returns how many subgroups of a kernel a SIMD holds at once. Registers bound it, and so do the whole
// workgroups whose shared memory fits a WGP. vgprs is the registers of a lane, shared the bytes of a workgroup. If only
// one workgroup fits a WGP, it is that workgroup's share of a SIMD, rounded up.
func (a *AMD) Occupancy(wave, vgprs, workgroup, shared int) int {
	registers, granule := a.Registers, a.Granule
	if wave == 64 {
		registers, granule = registers/2, granule/2
	}
	alloc := max(granule, (vgprs+granule-1)/granule*granule)
	waves := min(a.Waves, registers/alloc)
	ofGroup := max(1, (workgroup+wave-1)/wave)
	groups := simdsOfWGP * waves / ofGroup
	if shared > 0 {
		groups = min(groups, a.LDS/shared)
	}
	return (groups*ofGroup + simdsOfWGP - 1) / simdsOfWGP
}

// SIMDs is the number of SIMDs of a GPU with that many compute units.
func (a *AMD) SIMDs(units int) int { return units * simdsOfWGP / unitsOfWGP }

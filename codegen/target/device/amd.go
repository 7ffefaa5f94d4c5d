package device

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

package device

// Curve is what was fitted to times of one device, for tiled matrix products. It ranks and predicts candidates of the
// targets of that device. Others are ranked by their rooflines.
type Curve struct {
	Device string // that was measured
	// Seconds has functions, by family, that return the seconds of a step of so many rows on so many units; infinity
	// for tiles that were not measured.
	Seconds map[string]func(t *Tiling, rows, units int) float64 `json:"-"`
	// FragmentAlways is the number of rows up to which gemm_fragment is faster than gemm_coop, whatever Seconds has.
	FragmentAlways int
	// FragmentParts is the factor by which gemm_fragment may be slower than gemm_coop in a full step of one tile of
	// many rows, since it has code for fewer rows and most steps are not full.
	FragmentParts float64
	// FloatRows is the number of rows up to which gemm_lanes is faster than gemm_float.
	FloatRows int
	// LanesRows is the number of rows beyond which gemm_lanes is faster with its larger tile.
	LanesRows int
	// KeptRounds is the best number of rounds of workgroups of expert_fragment where lanes keep x, of which a unit
	// holds KeptSubgroups subgroups.
	KeptRounds    float64
	KeptSubgroups int
}

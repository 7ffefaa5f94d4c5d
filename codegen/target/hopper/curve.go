package hopper

import (
	"math"

	"github.com/zincc-dev/zincc/codegen/target/device"
)

// measured is the device that curve and thresholds are of.
const measured = "NVIDIA H200"

// curve is the H200's.
var curve = &device.Curve{
	Device:         measured,
	FragmentAlways: fragmentAlways,
	// A larger factor would move projections of q8_0 from gemm_coop, for which that was not measured. Tuning uses full
	// steps and would not see that most are not.
	FragmentParts: 1.05,
	FloatRows:     128,
	LanesRows:     256,
	KeptRounds:    2.5, // with fewer, some units end early; with more, each workgroup loads x for few outputs
	KeptSubgroups: 16,
	Seconds: map[string]func(t *device.Tiling, rows, units int) float64{
		"gemm_coop":       coopSeconds,
		"gemm_fragment":   fragmentSeconds,
		"gemm_wgmma":      wgmmaSeconds,
		"gemm_wide":       wideSeconds,
		"gemm_float":      floatSeconds,
		"gemm_lanes":      lanesSeconds,
		"delta_tf32x3":    deltaSeconds,
		"expert_coop":     expertCoopSeconds,
		"expert_fragment": expertFragmentSeconds,
		"expert_wide":     expertWideSeconds,
	},
}

const (
	// fragmentAlways is the rows up to which tiles of gemm_fragment were measured that take as long for any rows.
	fragmentAlways = 48
	// matrixFixed is the time that all kernels with matrices take besides their iterations, in microseconds.
	matrixFixed = 4
	// wgmmaLeast is the elements of the shortest rows of which gemm_wgmma was measured.
	wgmmaLeast = 2048
)

// coopSteps has the microseconds of a step by tile: alone for one workgroup on a unit, busy for each
// of several; for projections of one and of two matrices.
var coopIterations = map[string]struct{ alone, busy [2]float64 }{
	"tile=128x192 subgroup=64x32 groups=1 ahead=1,1": {[2]float64{1.5, 1.55}, [2]float64{1.5, 1.55}},
	"tile=128x128 subgroup=64x32 groups=1 ahead=1,1": {[2]float64{1.1, 1.15}, [2]float64{1.1, 1.15}},
	"tile=128x128 subgroup=64x32 groups=1 ahead=2,1": {[2]float64{1.16, 1.2}, [2]float64{1.17, 1.2}},
	"tile=128x96 subgroup=64x32 groups=1 ahead=2,1":  {[2]float64{0.97, 1.03}, [2]float64{1.01, 1.03}},
	"tile=64x64 subgroup=32x32 groups=1 ahead=2,1":   {[2]float64{0.6, 0.7}, [2]float64{0.41, 0.5}},
	"tile=32x64 subgroup=16x32 groups=1 ahead=1,1":   {[2]float64{0.6, 0.6}, [2]float64{0.47, 0.47}},
	"tile=48x64 subgroup=48x16 groups=1 ahead=4,1":   {[2]float64{0.56, 0.6}, [2]float64{0.38, 0.39}},
	"tile=48x32 subgroup=48x16 groups=2 ahead=4,2":   {[2]float64{0.65, 0.7}, [2]float64{0.53, 0.53}},
	"tile=48x32 subgroup=48x16 groups=4 ahead=4,1":   {[2]float64{1.15, 1.2}, [2]float64{1.2, 1.2}},
}

func coopSeconds(t *device.Tiling, rows, units int) float64 {
	iteration, ok := coopIterations[t.Name]
	if !ok {
		return math.Inf(1) // a tile that was not measured comes last
	}
	i := t.Matrices - 1
	workgroups := device.Rounds(t.Tiles(rows)*t.Across, units)
	return 1e-6 * (matrixFixed + float64(t.Iterations)*max(iteration.alone[i], iteration.busy[i]*float64(workgroups)))
}

// fragmentSeconds was measured with 36 rows of q4_k where rows are pooled.
func fragmentSeconds(t *device.Tiling, rows, units int) float64 {
	switch t.Name {
	case "kept":
		return 1e-6 * (6 + float64(t.Series)*(1+float64(t.K)/6000))
	case "staged":
		return 1e-6 * (5 + float64(t.K)/700)
	}
	tiles, multiplied := t.Tiles(rows), t.Multiplied(rows)
	rounds := device.Rounds(tiles*t.Across*t.Splits, units)
	block := 0.7 + 0.15*float64(t.Subgroups) + 0.4*float64(t.Groups-1)
	many := t.Rows > fragmentAlways
	if many {
		block *= 0.36 + 0.0166*float64(multiplied)
	}
	if t.Wide > 16 {
		block *= 1.36
	}
	us := 2 + float64(rounds)*(3+float64(t.Iterations)*block)
	if t.Splits > 1 {
		sums := 0
		if many {
			sums = t.Splits * multiplied * tiles * t.Across * t.Outputs
		}
		us += lastBlock(t.Splits, sums)
	}
	return 1e-6 * us
}

// lastBlock is the microseconds of a last-block reduction of so many sums.
func lastBlock(splits, sums int) float64 { return 2 + 0.3*float64(splits) + float64(sums)/4e5 }

// wgmmaBlocks has the microseconds of a block of 256 elements by subgroups of a workgroup and rows of its tile, and the
// further microseconds of a tile. They were measured with q4_k, q6_k and q8_0 (docs/lab/prompts.md).
var wgmmaBlocks = map[[2]int]struct{ block, besides float64 }{
	{16, 128}: {3.2, 4},
	{8, 128}:  {2, 4},
	{8, 256}:  {3.1, 4},
}

func wgmmaSeconds(t *device.Tiling, rows, units int) float64 {
	tile := func(rows int) float64 {
		times, ok := wgmmaBlocks[[2]int{t.Subgroups, rows}]
		if !ok || t.K < wgmmaLeast {
			return math.Inf(1)
		}
		return times.besides + float64(t.Iterations)*times.block
	}
	tiles := t.Tiles(rows) * t.Across
	us := matrixFixed + float64(device.Rounds(tiles*t.Splits, units))*tile(t.Rows)
	if t.Late > 0 { // halves of tiles begin when all others have begun
		whole := t.Tiles(rows) * (t.Across - t.Late)
		halves := 2*t.Tiles(rows)*t.Late + whole%units - units
		us = matrixFixed + float64(device.Rounds(whole, units))*tile(t.Rows) + float64(device.Rounds(max(0, halves), units))*tile(t.Rows/2)
	}
	if t.Splits > 1 {
		us += lastBlock(t.Splits, t.Splits*t.Rows*tiles*t.Outputs)
	}
	return 1e-6 * us
}

// wideTurns has, by shape of a workgroup of gemm_wide, the microseconds of a turn whose blocks have 8 products, those
// of 8 more, and what comes besides the turns. They were measured with q4_k and q6_k where others add up parts, else
// with q8_0 and output heads of q6_k (docs/lab/batched-decoding.md).
var wideTurns = map[string]struct{ turn, finer, besides float64 }{
	"parts columns=64 groups=8":  {6.8, 3.2, 3.6},
	"parts columns=32 groups=16": {8.2, 4, 3.4},
	"parts columns=32 groups=8":  {6, 1.5, 2.4},
	"parts columns=16 groups=16": {6.6, 3, 2.2},
	"parts columns=16 groups=8":  {5.4, 1.3, 1.8},

	"columns=64 groups=8":  {7.8, 3.2, 9.5},
	"columns=32 groups=16": {10.2, 3.5, 9.3},
	"columns=32 groups=12": {7.5, 3.5, 9.5},
	"columns=32 groups=8":  {7.1, 1.5, 5},
	"columns=16 groups=16": {8.4, 3, 6.2},
	"columns=16 groups=12": {7, 3, 8},
	"columns=16 groups=8":  {6, 1.3, 4.5},
}

func wideSeconds(t *device.Tiling, rows, units int) float64 {
	times, ok := wideTurns[t.Name]
	if !ok {
		return math.Inf(1)
	}
	const products = 8 // of a block
	turns := float64(t.Series)
	rounds := device.Rounds(t.Across*t.Splits*t.Tiles(rows), units)
	share := min(1, float64(t.K)/(4*256)) // of a chunk, that there is
	return 1e-6 * float64(rounds) * (times.besides + share*(times.turn*turns+times.finer*(float64(t.Iterations)/products-turns)))
}

// floatTimes says by tile how long a workgroup takes that a unit has to itself, with rows of 2048
// elements, and how much longer two take, in seconds.
var floatTimes = map[string]struct{ alone, second float64 }{
	"8x8 subgroups=4": {50e-6, 21e-6},
	"8x4 subgroups=8": {25e-6, 25e-6},

	"8x4 subgroups=16 tf32": {12.5e-6, 10e-6},
	"16x4 subgroups=8 tf32": {16.8e-6, 22.3e-6},
}

// floatSeconds: each unit goes through its workgroups by twos.
func floatSeconds(t *device.Tiling, rows, units int) float64 {
	times, ok := floatTimes[t.Name]
	if !ok {
		return math.Inf(1)
	}
	each := device.Rounds(t.Tiles(rows)*t.Across, units)
	return 5e-6 + (times.alone*float64((each+1)/2)+times.second*float64(each/2))*float64(t.K)/2048
}

func lanesSeconds(t *device.Tiling, rows, _ int) float64 {
	return 11e-6 + 2e-13*float64(rows)*float64(t.Width)*float64(t.K)
}

// expertCoopSeconds: a workgroup takes so much, and so much for each of its iterations.
func expertCoopSeconds(t *device.Tiling, rows, units int) float64 {
	share := float64(t.Rows*t.Outputs) / (32 * 128)
	workgroup := 0.4 + 1.5*share + float64(t.Iterations)*(0.14+0.36*share)
	return 1e-6 * (matrixFixed + t.ExpertTiles(rows)*float64(t.Across)/float64(units)*workgroup)
}

// expertFragmentSeconds was measured with q4_k and q5_k, where rows are pooled.
func expertFragmentSeconds(t *device.Tiling, rows, units int) float64 {
	if t.Name == "kept" {
		return math.Inf(1)
	}
	mean, blocks := float64(rows*t.Slots)/float64(t.Experts), float64(t.Iterations)
	us := 0.5 + blocks*(0.83+0.03*min(float64(t.Rows), mean)) // for 128 outputs
	if t.Wide > 16 {
		us = 5.7 + blocks*2.67*(0.36+0.0166*min(float64(t.Rows), 1.25*mean)) // for 256
	}
	tiles := t.ExpertTiles(rows) * float64(t.Across)
	return 1e-6 * (matrixFixed + tiles/float64(units)*us)
}

// expertWideSeconds was measured with q4_k and q5_k, of 16 to 128 rows: a unit takes 50 weights in a nanosecond.
func expertWideSeconds(t *device.Tiling, rows, units int) float64 {
	return 10e-6 + 1e-9*t.Chosen(rows)*float64(t.Matrices*t.Width*t.K)/(50*float64(units))
}

// deltaSeconds: chunks wait for each other, of 512 rows as of 2,048.
func deltaSeconds(t *device.Tiling, rows, _ int) float64 {
	return 1e-6 * (2 + 0.9*float64(t.Tiles(rows)))
}

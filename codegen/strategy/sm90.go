package strategy

import (
	"math"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/matmul"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// What was fitted to an H200 of 132 units. docs/lab has the measurements: gemm_coop, gemm_fragment and projections of
// f32 in prompts.md, experts in experts.md.

// nvidia is the PCI vendor of the device that was measured.
const nvidia = 0x10de

const (
	// fragmentAlways is the number of rows up to which gemm_fragment is faster than gemm_coop, whatever the
	// predictions.
	fragmentAlways = 48
	// fragmentParts is the factor by which gemm_fragment may be slower than gemm_coop in a full step of one
	// tile of many rows, since it has code for fewer rows and most steps are not full. Tuning uses
	// full steps and would not see that. A larger factor would move projections of q8_0 from gemm_coop, for which that
	// was not measured.
	fragmentParts = 1.05
	// floatRows is the number of rows up to which gemm_lanes is faster than gemm_float.
	floatRows = 128
	// lanesRows is the number of rows beyond which gemm_lanes is faster with its larger tile.
	lanesRows = 256
	// keptRounds is the best number of rounds of workgroups of expert_fragment where lanes keep x: with fewer, some
	// units end early; with more, each workgroup loads x for few outputs.
	keptRounds = 2.5
	// keptSubgroups is the number of subgroups of such workgroups that a unit holds.
	keptSubgroups = 16
	// matrixFixed is the time that all kernels with matrices take besides their steps, in microseconds.
	matrixFixed = 4
)

// sm90 has functions, by family, that return the seconds of a step of so many rows on so many units.
var sm90 = map[string]func(t *site.Tiling, rows, units int) float64{
	"gemm_coop":       coopSeconds,
	"gemm_fragment":   fragmentSeconds,
	"gemm_wgmma":      wgmmaSeconds,
	"gemm_wide":       wideSeconds,
	"gemm_float":      floatSeconds,
	"gemm_lanes":      lanesSeconds,
	"expert_coop":     expertCoopSeconds,
	"expert_fragment": expertFragmentSeconds,
}

// coopSteps has the microseconds of a step by tile: alone for one workgroup on a unit, busy for each
// of several; for projections of one and of two matrices.
var coopSteps = map[string]struct{ alone, busy [2]float64 }{
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

func coopSeconds(t *site.Tiling, rows, units int) float64 {
	step, ok := coopSteps[t.Name]
	if !ok {
		return math.Inf(1) // a tile that was not measured comes last
	}
	i := t.Matrices - 1
	workgroups := site.CeilDiv(site.CeilDiv(rows, t.Rows)*t.Across, units)
	return 1e-6 * (matrixFixed + float64(t.Steps)*max(step.alone[i], step.busy[i]*float64(workgroups)))
}

// fragmentSeconds was measured with 36 rows of q4_k where rows are pooled.
func fragmentSeconds(t *site.Tiling, rows, units int) float64 {
	switch t.Name {
	case "kept":
		return 1e-6 * (6 + float64(t.Series)*(1+float64(t.K)/6000))
	case "staged":
		return 1e-6 * (5 + float64(t.K)/700)
	}
	tiles, multiplied := site.CeilDiv(rows, t.Rows), t.Rows
	if rows <= multiplied {
		multiplied = t.Cases[slices.IndexFunc(t.Cases, func(n int) bool { return n >= rows })]
	}
	rounds := site.CeilDiv(tiles*t.Across*t.Splits, units)
	block := 0.7 + 0.15*float64(t.Subgroups) + 0.4*float64(t.Groups-1)
	many := t.Rows > fragmentAlways
	if many {
		block *= 0.36 + 0.0166*float64(multiplied)
	}
	if t.Wide > 16 {
		block *= 1.36
	}
	us := 2 + float64(rounds)*(3+float64(t.Steps)*block)
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

// wgmmaBlocks has the microseconds of a block of 256 elements by subgroups of a workgroup, and the further microseconds
// of a tile. They were measured with q4_k, q6_k and q8_0 (docs/lab/prompts.md).
var wgmmaBlocks = map[int]struct{ block, besides float64 }{
	16: {3.65, 4},
	8:  {2.3, 4},
}

// wgmmaRows is the least number of rows for which attention_wgmma is chosen. For 128 and 16 rows behind nothing,
// attention_coop takes 13 and 10 us, attention_wgmma 19 and 18 (docs/lab/prompts.md).
const wgmmaRows = 512

func wgmmaSeconds(t *site.Tiling, rows, units int) float64 {
	times, ok := wgmmaBlocks[t.Subgroups]
	if !ok || t.K < matmul.WgmmaLeast {
		return math.Inf(1)
	}
	tiles := site.CeilDiv(rows, t.Rows) * t.Across
	us := matrixFixed + float64(site.CeilDiv(tiles*t.Splits, units))*(times.besides+float64(t.Steps)*times.block)
	if t.Splits > 1 {
		us += lastBlock(t.Splits, t.Splits*t.Rows*tiles*t.Outputs)
	}
	return 1e-6 * us
}

// wideTurns has, by shape of a workgroup of gemm_wide, the microseconds of a turn whose blocks have 8 products, those
// of 8 more, and what comes besides the turns. They were measured with q4_k and q6_k (docs/lab/batched-decoding.md).
var wideTurns = map[string]struct{ turn, finer, besides float64 }{
	"columns=64 groups=8":  {10, 4, 11.2},
	"columns=32 groups=16": {12, 4.3, 8.2},
	"columns=32 groups=8":  {6.8, 2.8, 8.2},
	"columns=16 groups=16": {9.7, 2.9, 6.2},
	"columns=16 groups=8":  {6.3, 1.3, 4.7},
}

func wideSeconds(t *site.Tiling, rows, units int) float64 {
	times, ok := wideTurns[t.Name]
	if !ok {
		return math.Inf(1)
	}
	const products = 8 // of a block
	turns := float64(t.Series)
	rounds := site.CeilDiv(t.Across*t.Splits*site.CeilDiv(rows, t.Rows), units)
	share := min(1, float64(t.K)/(4*256)) // of a chunk, that there is
	return 1e-6 * float64(rounds) * (times.besides + share*(times.turn*turns+times.finer*(float64(t.Steps)/products-turns)))
}

// floatSteps says by tile how long a workgroup takes that a unit has to itself, with rows of 2048
// elements, and how much longer two take, in seconds.
var floatSteps = map[string]struct{ alone, beside float64 }{
	"8x8 subgroups=4": {50e-6, 21e-6},
	"8x4 subgroups=8": {25e-6, 25e-6},

	"8x4 subgroups=16 tf32": {12.5e-6, 10e-6},
	"16x4 subgroups=8 tf32": {16.8e-6, 22.3e-6},
}

// floatSeconds: each unit goes through its workgroups by twos.
func floatSeconds(t *site.Tiling, rows, units int) float64 {
	step, ok := floatSteps[t.Name]
	if !ok {
		return math.Inf(1)
	}
	each := site.CeilDiv(site.CeilDiv(rows, t.Rows)*t.Across, units)
	return 5e-6 + (step.alone*float64(site.CeilDiv(each, 2))+step.beside*float64(each/2))*float64(t.K)/2048
}

func lanesSeconds(t *site.Tiling, rows, _ int) float64 {
	return 11e-6 + 2e-13*float64(rows)*float64(t.Width)*float64(t.K)
}

// expertTiles is how many tiles experts' rows fill: all experts that get a row have one, if they
// get few.
func expertTiles(t *site.Tiling, rows int) float64 {
	slots, experts := float64(rows*t.Slots), float64(t.Experts)
	return max(experts*(1-math.Exp(-slots/experts)), slots/float64(t.Rows))
}

// expertCoopSeconds: a workgroup takes so much, and so much for each of its steps.
func expertCoopSeconds(t *site.Tiling, rows, units int) float64 {
	share := float64(t.Rows*t.Outputs) / (32 * 128)
	workgroup := 0.4 + 1.5*share + float64(t.Steps)*(0.14+0.36*share)
	return 1e-6 * (matrixFixed + expertTiles(t, rows)*float64(t.Across)/float64(units)*workgroup)
}

// keptSeries is the number of tiles of outputs, a power of two, that a workgroup of expert_fragment should go through
// if its lanes keep x.
func keptSeries(t *site.Tiling, rows, units int) int {
	slots, experts := float64(rows*t.Slots), float64(t.Experts)
	chosen := experts * (1 - math.Exp(-slots/experts))
	atOnce := float64(units * (keptSubgroups / t.Groups))
	n := 1
	for n < t.Across && chosen*float64(t.Across) > math.Sqrt2*float64(n)*keptRounds*atOnce {
		n *= 2
	}
	return n
}

// expertFragmentSeconds was measured with q4_k and q5_k, where rows are pooled.
func expertFragmentSeconds(t *site.Tiling, rows, units int) float64 {
	if t.Name == "kept" {
		return math.Inf(1)
	}
	mean, blocks := float64(rows*t.Slots)/float64(t.Experts), float64(t.Steps)
	us := 0.5 + blocks*(0.83+0.03*min(float64(t.Rows), mean)) // for 128 outputs
	if t.Wide > 16 {
		us = 5.7 + blocks*2.67*(0.36+0.0166*min(float64(t.Rows), 1.25*mean)) // for 256
	}
	tiles := expertTiles(t, rows) * float64(t.Across)
	return 1e-6 * (matrixFixed + tiles/float64(units)*us)
}

// fixedFrom is the least number of rows of x for which gemm_fixed is considered: fewer leave most of a matrix empty
// (docs/lab/batched-decoding.md).
const fixedFrom = 3

// convolvedColumns is the most columns for which a projection takes in the gated convolution behind it: from fixedFrom
// on, gemm_fixed may be faster.
const convolvedColumns = fixedFrom - 1

const (
	// ringMost is the most tiles of weights in a ring of gemm_fixed. Only rings of 2 to 4 were measured
	// (docs/lab/batched-decoding.md).
	ringMost = 4
	// ringSubgroups is the number of subgroups of such workgroups for which a unit has registers.
	ringSubgroups = 16
	// driverShared is the bytes of shared memory that CUDA takes for each workgroup.
	driverShared = 1 << 10
)

// downFrom is the least number of units of a row in a lane for which expert_down gets x in fixed point, except through
// CUDA, where rows of one unit are loaded at once. For the 35B's rows of 512 elements it makes no difference through
// Vulkan (docs/lab/experts.md).
const downFrom = 2

// timedFrom is the first architecture whose projections of one row were timed with more lanes and with more rows at a
// time: on an H200 1 to 4 % more tokens a second (docs/lab/tuning.md).
const timedFrom = 90

// attentionRoom is the lanes of a unit that attention of three rows and more leaves registers for, of heads of up to
// attentionHead elements: without, a unit has one workgroup. It was measured with heads of 128, 4 and 8 rows: 10.4 us
// where 13.0 were, and 14.8 of 17.8. With one and two rows each unit has no more than one anyway.
const attentionRoom, attentionFrom, attentionHead = 512, 3, 128

// roomFirst puts the form of attention of several rows first that leaves room.
func roomFirst(s *kernels.Site, offers []kernels.Candidate) []kernels.Candidate {
	if s.Func.Rows < attentionFrom || !slices.ContainsFunc(s.Group.Ops, func(op *ir.Op) bool {
		return op.Kind.Name == "attention_split" && op.Attrs.Int("head_dim") <= attentionHead
	}) {
		return offers
	}
	slices.SortStableFunc(offers, func(a, b kernels.Candidate) int {
		is := func(c kernels.Candidate) int {
			if c.Room == attentionRoom {
				return 0
			}
			return 1
		}
		return is(a) - is(b)
	})
	return offers
}

// Besides reports whether a delta rule of one row, of so many heads, has the projection of its gate beside it. That was
// measured through CUDA only, of 32 heads on 132 units (docs/lab/hybrids.md), and not where the rule leaves
// fewer than half of the units.
func Besides(t *target.Target, heads int) bool { return t.Overlaps() && 2*heads <= t.Units }

package matmul

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
)

// coopTile says what a workgroup and its subgroups compute. Outputs are counted
// over all matrices of a projection: a tile of gate and up has half of each.
type coopTile struct {
	rows, outputs       int // of a workgroup
	subRows, subOutputs int // of a subgroup
	// groups is how many groups of subgroups share the steps of the tile. Each has
	// sums of its own, which are added in the order of the groups at the end.
	groups int
	// ahead and aheadX are how many steps lie between the loads of weights and of x
	// and their use.
	ahead, aheadX int
	// alone is what a step takes on an SM of an H200 in microseconds, busy what each
	// workgroup's takes where an SM has several; of projections of one and two matrices.
	alone, busy [2]float64
}

const (
	coopOctets = weight.CoopDepth / 8
	// coopStride is the octets from row to row in shared memory: one more than
	// needed, so that 8 rows begin in different banks.
	coopStride = coopOctets + 1
)

// outStride is the octets' worth of f32 from row to row of the sums that a subgroup
// puts into shared memory at the end, 16 rows at a time.
func (t coopTile) outStride() int { return t.subOutputs/4 + 1 }

// subgroups is those of a group.
func (t coopTile) subgroups() int { return t.rows / t.subRows * (t.outputs / t.subOutputs) }

// region is the octets of shared memory of a group: rows of x, then of weights.
func (t coopTile) region() int { return (t.rows + t.outputs) * coopStride }

// shared is the octets of shared memory: the groups' regions; at the end, sums.
func (t coopTile) shared() int {
	return t.groups * max(t.region(), t.subgroups()*fragment.Square*t.outStride())
}

// name is the tile in keys of kernels.
func (t coopTile) name() string {
	return fmt.Sprintf("tile=%dx%d subgroup=%dx%d groups=%d ahead=%d,%d", t.rows, t.outputs, t.subRows, t.subOutputs, t.groups, t.ahead, t.aheadX)
}

// coopShapes are the tiles. Those of few registers fill an SM with subgroups, which
// weights that arrive late need; those of many outputs for their rows load less of shared
// memory for a product, which is what many rows wait for.
var coopShapes = []coopTile{
	{rows: 128, outputs: 192, subRows: 64, subOutputs: 32, groups: 1, ahead: 1, aheadX: 1, alone: [2]float64{1.5, 1.55}, busy: [2]float64{1.5, 1.55}},
	{rows: 128, outputs: 128, subRows: 64, subOutputs: 32, groups: 1, ahead: 1, aheadX: 1, alone: [2]float64{1.1, 1.15}, busy: [2]float64{1.1, 1.15}},
	{rows: 128, outputs: 128, subRows: 64, subOutputs: 32, groups: 1, ahead: 2, aheadX: 1, alone: [2]float64{1.16, 1.2}, busy: [2]float64{1.17, 1.2}},
	{rows: 128, outputs: 96, subRows: 64, subOutputs: 32, groups: 1, ahead: 2, aheadX: 1, alone: [2]float64{0.97, 1.03}, busy: [2]float64{1.01, 1.03}},
	{rows: 64, outputs: 64, subRows: 32, subOutputs: 32, groups: 1, ahead: 2, aheadX: 1, alone: [2]float64{0.6, 0.7}, busy: [2]float64{0.41, 0.5}},
	{rows: 32, outputs: 64, subRows: 16, subOutputs: 32, groups: 1, ahead: 1, aheadX: 1, alone: [2]float64{0.6, 0.6}, busy: [2]float64{0.47, 0.47}},
	{rows: 48, outputs: 64, subRows: 48, subOutputs: 16, groups: 1, ahead: 4, aheadX: 1, alone: [2]float64{0.56, 0.6}, busy: [2]float64{0.38, 0.39}},
	{rows: 48, outputs: 32, subRows: 48, subOutputs: 16, groups: 2, ahead: 4, aheadX: 2, alone: [2]float64{0.65, 0.7}, busy: [2]float64{0.53, 0.53}},
	{rows: 48, outputs: 32, subRows: 48, subOutputs: 16, groups: 4, ahead: 4, aheadX: 1, alone: [2]float64{1.15, 1.2}, busy: [2]float64{1.2, 1.2}},
}

// coopCandidates bounds the tiles that are offered: on AMD each is compiled to be ranked.
const coopCandidates = 4

// coopTiles returns the best tiles for the group, first the best.
func coopTiles(g *linearGroup, t *target.Target) []coopTile {
	var list []coopTile
	for _, s := range coopShapes {
		fits := 16*s.shared() <= t.Shared && s.groups*s.subgroups()*t.Wave <= t.Workgroup
		// AMD's compiler spills registers of the deeper ones, and makes slower code of those of
		// other widths than powers of two.
		if fits && (t.AMD == nil || s.ahead < 4 && s.outputs&(s.outputs-1) == 0) && (s.groups == 1 || g.k%(s.groups*4*weight.CoopDepth) == 0) {
			list = append(list, s)
		}
	}
	cost := func(s coopTile) float64 { return gemmCoop{linearGroup: g, coopTile: s}.seconds(g.rows, t.Units) }
	slices.SortStableFunc(list, func(a, b coopTile) int { return cmp.Compare(cost(a), cost(b)) })
	return list[:min(coopCandidates, len(list))]
}

// nvidia is the PCI vendor of the device that seconds were measured on.
const nvidia = 0x10de

// coopFixed is what all kernels with matrices take besides their steps, in microseconds.
const coopFixed = 4

// seconds is what a step of so many rows takes on an H200 with so many units.
func (k gemmCoop) seconds(rows, units int) float64 {
	i := len(k.projects[0].matrices) - 1
	workgroups := site.CeilDiv(site.CeilDiv(rows, k.coopTile.rows)*k.tiles(k.each()), units)
	return 1e-6 * (coopFixed + float64(site.CeilDiv(k.k, weight.CoopDepth*k.groups))*max(k.alone[i], k.busy[i]*float64(workgroups)))
}

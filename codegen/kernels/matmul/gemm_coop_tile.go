package matmul

import (
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
	// groups is how many groups of subgroups share the iterations of the tile. Each has
	// sums of its own, which are added in the order of the groups at the end.
	groups int
	// ahead and aheadX are how many iterations lie between the loads of weights and of x
	// and their use.
	ahead, aheadX int
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

// subgroups is the number of subgroups of a group.
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

// coopShapes are the tiles. Tiles of few registers fill an SM with subgroups, which hides
// weights that arrive late. Tiles with many outputs for their rows load less of shared
// memory for a product, and many rows wait for these loads.
var coopShapes = []coopTile{
	{rows: 128, outputs: 192, subRows: 64, subOutputs: 32, groups: 1, ahead: 1, aheadX: 1},
	{rows: 128, outputs: 128, subRows: 64, subOutputs: 32, groups: 1, ahead: 1, aheadX: 1},
	{rows: 128, outputs: 128, subRows: 64, subOutputs: 32, groups: 1, ahead: 2, aheadX: 1},
	{rows: 128, outputs: 96, subRows: 64, subOutputs: 32, groups: 1, ahead: 2, aheadX: 1},
	{rows: 64, outputs: 64, subRows: 32, subOutputs: 32, groups: 1, ahead: 2, aheadX: 1},
	{rows: 32, outputs: 64, subRows: 16, subOutputs: 32, groups: 1, ahead: 1, aheadX: 1},
	{rows: 48, outputs: 64, subRows: 48, subOutputs: 16, groups: 1, ahead: 4, aheadX: 1},
	{rows: 48, outputs: 32, subRows: 48, subOutputs: 16, groups: 2, ahead: 4, aheadX: 2},
	{rows: 48, outputs: 32, subRows: 48, subOutputs: 16, groups: 4, ahead: 4, aheadX: 1},
}

// coopTiles returns the tiles that the group and the target allow.
func coopTiles(g *linearGroup, t *target.Target) []coopTile {
	return slices.DeleteFunc(slices.Clone(coopShapes), func(s coopTile) bool {
		return 16*s.shared()+g.tables() > t.Shared || s.groups*s.subgroups()*t.Wave > t.Workgroup || s.groups > 1 && g.k%(s.groups*4*weight.CoopDepth) != 0
	})
}

// tiling is what the kernel does with the tile.
func (k gemmCoop) tiling() *site.Tiling {
	return &site.Tiling{Name: k.coopTile.name(), K: k.k, Matrices: len(k.projects[0].matrices), Rows: k.coopTile.rows, Across: k.tiles(k.each()),
		Outputs: k.outputs, Groups: k.groups, Ahead: k.ahead, Iterations: site.CeilDiv(k.k, weight.CoopDepth*k.groups)}
}

package matmul

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
)

// expertShapes are the tiles, from few rows to many. Their weights are dequantized once
// for all their rows, which takes longer than the products of few.
var expertShapes = []coopTile{
	{rows: 16, outputs: 64, subRows: 16, subOutputs: 32, groups: 1, ahead: 4, aheadX: 2},
	{rows: 16, outputs: 64, subRows: 16, subOutputs: 16, groups: 1, ahead: 4, aheadX: 1},
	{rows: 32, outputs: 128, subRows: 32, subOutputs: 32, groups: 1, ahead: 2, aheadX: 1},
	{rows: 32, outputs: 128, subRows: 32, subOutputs: 16, groups: 1, ahead: 2, aheadX: 1},
	{rows: 64, outputs: 64, subRows: 32, subOutputs: 32, groups: 1, ahead: 2, aheadX: 1},
	{rows: 64, outputs: 128, subRows: 64, subOutputs: 32, groups: 1, ahead: 1, aheadX: 1},
	{rows: 128, outputs: 128, subRows: 64, subOutputs: 32, groups: 1, ahead: 1, aheadX: 1},
}

// ExpertCoopCandidates returns gemm_coop over the tiles of a sortedGroup.
func ExpertCoopCandidates(s *site.Site, of *Group) []site.Candidate {
	g := of.sorted(s)
	if !g.inMatrices(s.Target) {
		return nil
	}
	var list []site.Candidate
	for _, t := range expertTiles(g) {
		k := gemmCoop{g.linearGroup, t, g, g.wave, s.Target.Fences()}
		list = append(list, k.product("expert_coop", g.tiling(k.tiling())).candidate())
	}
	return list
}

// expertTiles returns tiles for the group, best guess first: one that holds most
// experts' slots whole.
func expertTiles(g *sortedGroup) []coopTile {
	rows := fragment.Square
	for 2*rows < 3*g.perExpert() && rows < expertShapes[len(expertShapes)-1].rows {
		rows *= 2
	}
	var list []coopTile
	for _, t := range expertShapes {
		if t.rows == rows {
			list = append(list, t)
		}
	}
	if rows == fragment.Square && len(g.projects[0].matrices) == 1 {
		slices.Reverse(list)
	}
	for _, t := range expertShapes {
		if t.rows == 2*rows || 2*t.rows == rows {
			list = append(list, t)
		}
	}
	return list
}

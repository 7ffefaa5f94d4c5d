package kernels

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

// expertCoop is gemm_coop over the tiles of a sortedGroup.
type expertCoop struct {
	*sortedGroup
	coop gemmCoop
}

// expertShapes are the tiles. Their weights are dequantized once for all their rows,
// which takes longer than the products of few.
var expertShapes = []coopTile{
	{rows: 16, outputs: 64, subRows: 16, subOutputs: 32},
	{rows: 16, outputs: 128, subRows: 16, subOutputs: 32},
	{rows: 32, outputs: 128, subRows: 32, subOutputs: 32},
	{rows: 32, outputs: 128, subRows: 16, subOutputs: 64},
	{rows: 64, outputs: 64, subRows: 32, subOutputs: 32},
	{rows: 64, outputs: 128, subRows: 32, subOutputs: 64},
	{rows: 128, outputs: 128, subRows: 64, subOutputs: 32},
	{rows: 128, outputs: 128, subRows: 64, subOutputs: 64},
}

func expertCoopCandidates(s *Site) []Candidate {
	g := matchExpertCoop(s)
	if g == nil || !g.half {
		return nil
	}
	var list []Candidate
	for _, t := range expertTiles(g.perExpert()) {
		k := expertCoop{g, gemmCoop{g.linearGroup, t, g.extent, g.wave}}
		c := g.candidate(t.rows, k.coop.each())
		c.Kernel, c.Build = fmt.Sprintf("expert_coop %s tile=%dx%d subgroup=%dx%d", k.key(), t.rows, t.outputs, t.subRows, t.subOutputs), k.build
		list = append(list, c)
	}
	return list
}

// matchExpertCoop returns the site's group if expert_coop computes it but for the
// type of x.
func matchExpertCoop(s *Site) *sortedGroup {
	g := matchSorted(s)
	if g == nil || !g.inMatrices(s.Target) {
		return nil
	}
	return g
}

// expertTiles returns two tiles for experts of so many slots, first the better: one
// that holds most experts' slots whole.
func expertTiles(perExpert int) []coopTile {
	rows := coopSide
	for 2*rows < 3*perExpert && rows < expertShapes[len(expertShapes)-1].rows {
		rows *= 2
	}
	var list []coopTile
	for _, t := range expertShapes {
		if t.rows == rows {
			list = append(list, t)
		}
	}
	return list
}

func (k expertCoop) build() (*kernel.Func, error) {
	return kernel.Build("expert_coop", func(b *kernel.Builder) {
		a := k.declare(b, false)
		tile := k.findTile(b, a, k.coop.coopTile.rows, func() { b.Workgroup(k.coop.threads()) })
		k.coop.emit(b, a, coopKernel{sorted: tile.rows, row: tile.row, rows: tile.end})
	})
}

package matmul

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/ir"
)

const (
	// fragmentPerExpert is the slots of an expert, if all have as many, up to which lanes keep their rows,
	// expertLow those up to which tiles are for few rows.
	fragmentPerExpert, expertLow = 4, 24
)

// The tiles of pooled rows. Few rows wait for weights, and need many bytes in flight. Many rows
// wait for products, with registers for one workgroup a unit. Where rows are short, workgroups go through several
// tiles of outputs, so that they begin less often.
var (
	expertLowTiles = []fragmentTile{
		{outputs: 16, across: 8, rows: 32, apart: 8, abreast: 3, early: true, series: 2},
		{outputs: 16, across: 8, rows: 32, apart: 8, abreast: 3, series: 8},
		{outputs: 16, across: 4, rows: 32, apart: 8, abreast: 5, early: true, series: 4},
		{outputs: 16, across: 4, rows: 32, apart: 8, abreast: 5, early: true, series: 1},
		{outputs: 16, across: 8, rows: 32, apart: 8, abreast: 1, early: true, series: 1, room: 512},
		{outputs: 16, across: 8, rows: 32, apart: 8, abreast: 1, early: true, series: 4, room: 512},
	}
	expertTallTiles = []fragmentTile{
		{outputs: 32, across: 8, rows: 96, apart: 32, abreast: 1, series: 1},
		{outputs: 32, across: 8, rows: 96, apart: 32, abreast: 1, series: 4},
		{outputs: 32, across: 8, rows: 96, apart: 32, abreast: 1, series: 2},
	}
)

// shortRow is the blocks of a row up to which it is short.
const shortRow = 4

// ExpertFragmentCandidates returns gemm_fragment over the tiles of a sortedGroup. In steps of few rows most experts
// have one tile of 8, which lanes keep. More go through shared memory, in tiles that hold most experts' rows whole,
// with code for fewer.
func ExpertFragmentCandidates(s *site.Site, of *Group) []site.Candidate {
	g := of.sorted(s)
	if !g.inMatrices(s.Target) || g.k%weight.FragmentBlock != 0 {
		return nil
	}
	var list []site.Candidate
	for _, t := range expertFragmentTiles(g, s.Func.Class == ir.AlikeStep) {
		tile := *g.linearGroup
		tile.rows = t.rows
		if tile.fitsFragment(s.Target) {
			k := tile.fragment(t)
			k.from, k.wave = g, g.wave
			list = append(list, k.expertCandidate(g))
		}
	}
	return list
}

// expertFragmentTiles returns tiles for the group, best guess first. In functions that are alike lanes keep no rows: in
// wider ones they do not.
func expertFragmentTiles(g *sortedGroup, alike bool) []fragmentTile {
	blocks := g.k / weight.FragmentBlock
	if g.perExpert() > fragmentPerExpert || alike {
		list := slices.Clone(expertLowTiles)
		if g.perExpert() > expertLow {
			list = slices.Clone(expertTallTiles)
		}
		for i := range list {
			list[i].groups, list[i].splits, list[i].pipe = 1, 1, pooled
		}
		if blocks <= shortRow {
			list[0], list[1] = list[1], list[0]
		}
		return list
	}
	if blocks > fragmentGroups {
		return nil
	}
	var list []fragmentTile
	k := fragmentTile{outputs: fragment.Side, across: 1, rows: fragment.Columns, splits: 1, groups: blocks, pipe: kept}
	tiles := g.tiles(g.fragment(k).each())
	for k.series = 1; k.series < 4*tiles; k.series *= 2 {
		list = append(list, k)
	}
	return list
}

// expertCandidate returns that of the rows of a tile, which g has.
func (k gemmFragment) expertCandidate(g *sortedGroup) site.Candidate {
	name := k.name()
	if k.pipe != kept {
		name = fmt.Sprintf("rows=%d/%d %s abreast=%d", k.fragmentTile.rows, k.apart, name, k.abreast)
	}
	if k.early {
		name += " early"
	}
	t := g.tiling(k.tiling())
	t.Across, t.Iterations = k.tiles(k.tile()), k.k/weight.FragmentBlock
	code := name
	if k.room > 0 {
		code += fmt.Sprintf(" room=%d", k.room)
	}
	c := k.product("expert_fragment", code, fmt.Sprintf("%s of %d", name, k.series), t).candidate()
	c.Room = k.room
	return c
}

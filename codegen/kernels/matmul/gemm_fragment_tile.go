package matmul

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// fragmentTile says what a workgroup computes. Outputs are counted over all matrices of a
// projection, as in coopTile.
type fragmentTile struct {
	outputs int // of a subgroup, a multiple of 16
	across  int // subgroups side by side
	rows    int // of x, of a workgroup
	groups  int // groups of them, which share the blocks of a row
	pipe    *pipeline
	series  int // tiles of a workgroup, one after the other
	splits  int // workgroups that share the blocks of a row (split-K)
	late    int // projections from this one on have tiles of half the rows, so that all end together; 0: none

	// For pooled rows sorted by expert:

	apart   int  // rows between those that a workgroup has code of its own for
	abreast int  // workgroups that the shared memory of a unit is to do for
	early   bool // weights are loaded a block ahead
	room    int  // lanes of a unit that registers are to suffice for; 0: the driver's compiler chooses
}

// direct reports whether lanes store the sums that they hold without going through shared memory.
func (t fragmentTile) direct() bool { return t.apart > 0 }

func (t fragmentTile) name() string {
	name := fmt.Sprintf("outputs=%dx%d groups=%d x %s turns=%d", t.across, t.outputs, t.groups, t.pipe.name, t.turns())
	if t.rows > FragmentTall {
		name += fmt.Sprintf(" rows=%d", t.rows)
	}
	if t.late > 0 {
		name += fmt.Sprintf(" late=%d", t.late)
	}
	if t.splits > 1 {
		name += fmt.Sprintf(" splits=%d", t.splits)
	}
	return name
}

// turns is how many regions for sums tiles take turns in.
func (t fragmentTile) turns() int { return min(2, t.series) }

const (
	// fragmentGroups bounds the groups of a workgroup whose lanes keep x, stagedGroups those
	// of others.
	fragmentGroups, stagedGroups = 16, 8
	// fragmentLow is the rows up to which tiles are for few of them, and lanes have registers for any weights.
	fragmentLow = 48
)

// fragmentTiles returns the tiles for a group. With few rows, if a lane's part of a row is one
// block, the lane keeps its x and goes through many tiles, such that all workgroups run at once.
// That is fastest. Longer rows go through shared memory.
func fragmentTiles(s *site.Site, g *linearGroup) []fragmentTile {
	if g.rows > FragmentFew {
		return pooledTiles(s, g)
	}
	return []fragmentTile{keptTile(g, s.Target)}
}

func keptTile(g *linearGroup, t *target.Target) fragmentTile {
	blocks := g.k / weight.FragmentBlock
	s := fragmentTile{outputs: fragment.Side, across: 1, rows: g.rows, groups: blocks, pipe: kept, series: 1, splits: 1}
	if blocks <= fragmentGroups {
		most := t.Units * (fragmentGroups / blocks) // workgroups at once
		for g.tiles(g.fragment(s).outputsOf()) > most {
			s.series++
		}
		if 16*g.fragment(s).shared()+g.tables() > t.Shared {
			s.series = 1 // with memory for the sums of one tile
		}
		return s
	}
	s.outputs, s.pipe = 2*fragment.Side, staged
	rows := g.fragment(s).tileRows()
	for s.groups = stagedGroups * fragment.Columns / rows; blocks%s.groups != 0; s.groups-- {
	}
	return s
}

// pooledShape is a tile of which all subgroups share x.
type pooledShape struct{ outputs, across, groups int }

// pooledShapesOf returns those for so many rows. More subgroups hide what each waits for; registers
// bound them. With 32 outputs a subgroup loads half as much of shared memory for a product, but
// workgroups are few if there is one tile of rows.
func pooledShapesOf(rows int) []pooledShape {
	switch {
	case rows <= fragmentLow:
		return []pooledShape{{16, 12, 1}, {16, 8, 1}, {16, 6, 2}, {16, 6, 1}, {16, 4, 2}, {16, 4, 1}, {16, 2, 4}, {16, 2, 2}, {16, 2, 1}}
	case rows <= FragmentTall:
		return []pooledShape{{16, 12, 1}, {16, 8, 1}}
	}
	return []pooledShape{{32, 8, 1}}
}

// pooledSplits are how many workgroups may share the elements of a row.
var pooledSplits = []int{1, 2, 3, 4, 6, 8}

// pooledTiles returns the tiles for many rows.
func pooledTiles(s *site.Site, g *linearGroup) []fragmentTile {
	var list []fragmentTile
	for _, shape := range pooledShapesOf(g.rows) {
		for _, splits := range pooledSplits {
			t := fragmentTile{outputs: shape.outputs, across: shape.across, groups: shape.groups, rows: min(g.rows, FragmentTall), pipe: pooled, series: 1, splits: splits}
			if g.canSplit(s, t) {
				list = append(list, t)
			}
		}
	}
	return list
}

// canSplit reports whether the workgroups of a tile can share the elements of a row as it says, in all functions that
// are alike.
func (g *linearGroup) canSplit(s *site.Site, t fragmentTile) bool {
	k := g.fragment(t)
	two := len(g.projects[0].matrices) > 1 // whose product needs whole sums
	return g.k/weight.FragmentBlock%(t.groups*t.splits) == 0 && (t.splits == 1 || !two && site.Arrivals(s, site.CeilDiv(widestAlike(s), t.rows)*k.tiles(k.outputsOf())) != nil)
}

// widestAlike is the rows of the widest function that is alike the site's, if it is of that class; else its own.
func widestAlike(s *site.Site) int {
	rows := s.Func.Rows
	for _, f := range s.Program.Funcs {
		if s.Func.Class == ir.AlikeStep && f.Class == ir.AlikeStep {
			rows = max(rows, f.Rows)
		}
	}
	return rows
}

// cases returns for which numbers of rows a kernel has code of its own: each matrix of rows
// takes time, but each piece of code takes time to compile. Steps of fewer rows have entries of
// their own, and only the last of several tiles is not full.
func (k gemmFragment) cases() []int {
	list := []int{24, 40}
	switch top := k.fragmentTile.rows; {
	case k.pipe.grouped:
		list = []int{ir.TileRows}
	case k.apart > 0:
		list = nil
		for n := k.apart; n < top; n += k.apart {
			list = append(list, n)
		}
	case k.rowTiles() > 1:
		return []int{top}
	case top > fragmentLow:
		list = []int{64, 96}
	}
	return append(slices.DeleteFunc(list, func(n int) bool { return n >= k.fragmentTile.rows }), k.fragmentTile.rows)
}

// space is the vec4 of shared memory for x, and later for sums.
func (k gemmFragment) space() int {
	tables := site.CeilDiv(k.tables(), 16)
	if k.splits > 1 {
		return sharedVec4 - tables - 1 // what the last-block reduction takes
	}
	if k.abreast > 1 {
		return sharedVec4/k.abreast - tables
	}
	return sharedVec4 - tables
}

// tiling is what the kernel does with the tile.
func (k gemmFragment) tiling() *site.Tiling {
	late := 0
	if k.late > 0 {
		late = k.tiles(k.outputsOf()) - k.firsts(k.outputsOf())[k.late]
	}
	return &site.Tiling{Late: late, Name: k.pipe.name, K: k.k, Rows: k.fragmentTile.rows, Cases: k.cases(), Across: k.tiles(k.outputsOf()), Outputs: k.outputsOf(),
		Wide: k.outputs, Subgroups: k.across * k.groups, Groups: k.groups, Iterations: k.k / (weight.FragmentBlock * k.groups * k.splits), Series: k.series, Splits: k.splits}
}

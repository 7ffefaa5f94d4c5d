package kernels

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/target"
)

// dealtTile says what a workgroup computes. Outputs are counted over all matrices of a
// projection, as in coopTile.
type dealtTile struct {
	outputs int // of a subgroup, a multiple of 16
	across  int // subgroups side by side
	groups  int // groups of them, which share the blocks of a row
	where   dealtPlace
	series  int // tiles of a workgroup, one after the other
	splits  int // workgroups that share the blocks of a row, and meet
}

// dealtPlace is where x is while it is multiplied.
type dealtPlace int

const (
	// kept: in the registers of the lanes, which have one block of every row.
	kept dealtPlace = iota
	// staged: in shared memory, a block of each subgroup's own at a time.
	staged
	// pooled: in shared memory, for all subgroups of the workgroup.
	pooled
)

var placeNames = [...]string{kept: "kept", staged: "staged", pooled: "pooled"}

func (t dealtTile) name() string {
	name := fmt.Sprintf("outputs=%dx%d groups=%d x %s turns=%d", t.across, t.outputs, t.groups, placeNames[t.where], t.turns())
	if t.splits > 1 {
		name += fmt.Sprintf(" splits=%d", t.splits)
	}
	return name
}

// turns is how many regions for sums tiles take turns in.
func (t dealtTile) turns() int { return min(2, t.series) }

const (
	// dealtGroups bounds the groups of a workgroup whose lanes keep x, stagedGroups those
	// of others.
	dealtGroups, stagedGroups = 16, 8
)

// dealtTileOf returns the tile for a group. Of few rows, where a lane's part of one is one block,
// it keeps its x and goes through many tiles, such that all workgroups run at once. That is
// fastest. Longer rows go through shared memory.
func dealtTileOf(s *Site, g *linearGroup) dealtTile {
	if g.rows > DealtFew {
		return pooledTile(s, g)
	}
	return keptTile(g, s.Target)
}

func keptTile(g *linearGroup, t *target.Target) dealtTile {
	blocks := g.k / dealtBlock
	s := dealtTile{outputs: dealtSide, across: 1, groups: blocks, series: 1, splits: 1}
	if blocks <= dealtGroups {
		most := t.Units * (dealtGroups / blocks) // workgroups at once
		for g.tiles(gemmDealt{linearGroup: g, dealtTile: s}.outputsOf()) > most {
			s.series++
		}
		return s
	}
	s.outputs, s.where = 2*dealtSide, staged
	rows := gemmDealt{linearGroup: g, most: g.rows}.tileRows()
	for s.groups = stagedGroups * dealtRows / rows; blocks%s.groups != 0; s.groups-- {
	}
	return s
}

// pooledShapes are subgroups side by side, and groups of them, of tiles of which all
// subgroups share x. More subgroups hide what each waits for; registers bound them.
var pooledShapes = [][2]int{{12, 1}, {8, 1}, {6, 2}, {6, 1}, {4, 2}, {4, 1}, {2, 4}, {2, 2}, {2, 1}}

// pooledSplits are how many workgroups may share the elements of a row.
var pooledSplits = []int{1, 2, 3, 4, 6, 8}

// pooledTile returns the tile for many rows that takes the least time: one whose
// workgroups all run at once and fill the device.
func pooledTile(s *Site, g *linearGroup) dealtTile {
	var best dealtTile
	least := 0.0
	blocks := g.k / dealtBlock
	for _, shape := range pooledShapes {
		for _, splits := range pooledSplits {
			k := gemmDealt{linearGroup: g, most: g.rows, dealtTile: dealtTile{outputs: dealtSide, across: shape[0], groups: shape[1], where: pooled, series: 1, splits: splits}}
			two := len(g.projects[0].matrices) > 1 // whose product needs whole sums
			if blocks%(k.groups*splits) != 0 || splits > 1 && (two || arrivals(s, k.tiles(k.outputsOf())) == nil) {
				continue
			}
			if t := k.seconds(s.Target.Units); least == 0 || t < least {
				best, least = k.dealtTile, t
			}
		}
	}
	return best
}

// pooledCases returns for which numbers of rows a kernel of so many, at most, has code of its
// own: each matrix of rows takes time, but each piece of code takes time to compile.
func pooledCases(rows int) []int {
	list := slices.DeleteFunc([]int{24, 40}, func(n int) bool { return n >= rows })
	return append(list, rows)
}

// space is the vec4 of shared memory that there are for x, and later sums.
func (k gemmDealt) space() int {
	if k.splits > 1 {
		return sharedVec4 - 1 // where workgroups meet
	}
	return sharedVec4
}

// seconds is what the group takes on an H200 with so many units, where it was measured.
func (k gemmDealt) seconds(units int) float64 {
	switch k.where {
	case pooled: // of 36 rows of q4_k
		rounds := ceilDiv(k.tiles(k.outputsOf())*k.splits, units)
		blocks := k.k / (dealtBlock * k.groups * k.splits)
		us := 2 + float64(rounds)*(3+float64(blocks)*(0.7+0.15*float64(k.across*k.groups)+0.4*float64(k.groups-1)))
		if k.splits > 1 {
			us += 2 + 0.3*float64(k.splits) // to meet
		}
		return 1e-6 * us
	case staged:
		return 1e-6 * (5 + float64(k.k)/700)
	}
	return 1e-6 * (6 + float64(k.series)*(1+float64(k.k)/6000))
}

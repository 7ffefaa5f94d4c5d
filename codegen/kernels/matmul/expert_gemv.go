package matmul

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/plans"
)

// expertGemv computes an expert group row by row, as gemv with one column: a
// workgroup computes a tile of the weights' rows, of the expert in one slot of one
// row or of a shared expert. Grid axis 0 has the slots' tiles of every projection,
// axis 1 the rows. If the group chooses the experts, every workgroup does so for
// itself, as far as its slot, and one more, the first, writes ids.
//
// In fixed point teams share x as gemv's do. Then all workgroups have a part of each shared
// expert, so that they have the same to do, and one subgroup chooses for the workgroup.
type expertGemv struct {
	*expertGroup
	gemv      gemv // of one column
	writesIDs bool
}

func ExpertGemvCandidates(s *site.Site, of *Group) []site.Candidate {
	g := of.routed()
	writesIDs := g.top != nil && slices.Contains(s.Outputs, g.ids)
	var list []site.Candidate
	shapes := g.gemvShapes
	if g.fixed != nil {
		shapes = g.teamShapes
	}
	for _, shape := range shapes(s.Target) {
		k := expertGemv{g, shape, writesIDs}
		if c := k.candidate(); c.Grid[0] <= site.MaxGrid {
			list = append(list, c)
		}
	}
	return list
}

// gemvShapes returns shapes as those of gemv, best guess first. No tile may reach
// into the next slot.
func (g *expertGroup) gemvShapes(t *target.Target) []gemv {
	column := *g.linearGroup
	column.rows = 1
	rows, matrices := 0, 1 // of the weights, for one row of x; of a projection
	for _, p := range g.projects {
		rows += max(1, p.slots) * p.width
		matrices = max(matrices, len(p.matrices))
	}
	k := gemv{linearGroup: &column, wave: t.Wave, columns: 1, most: residentElements}
	k.share(t)
	var list []gemv
	for i, n := range append([]int{k.subgroups}, k.otherSubgroups(t)...) {
		k.subgroups = n
		k.resident = k.fits(1)
		most := min(gemvRows, gemvParts/(matrices*k.subgroups))
		tile := min(most, site.CeilDiv(rows, t.Units*site.CeilDiv(gemvLanes, k.subgroups*t.Wave)))
		add := func(batch, tile int) {
			k.batch, k.tile = batch, batch
			for n := 2 * batch; n <= tile && g.tiled(n); n *= 2 {
				k.tile = n
			}
			same := func(o gemv) bool { return o.subgroups == k.subgroups && o.batch == k.batch && o.tile == k.tile }
			if g.tiled(k.tile) && !slices.ContainsFunc(list, same) {
				list = append(list, k)
			}
		}
		add(1, tile)
		if i == 0 {
			add(2, tile)
			add(4, tile)
			add(1, tile/2)
			add(1, min(most, 2*tile))
			add(2, min(most, 2*tile))
		}
	}
	return list
}

// teamTile is the most rows of an expert that a workgroup has by the best guess.
const teamTile = 32

// teamShapes returns shapes whose teams share x in fixed point, best guess first: with one or
// two workgroups for each unit, or more.
func (g *expertGroup) teamShapes(t *target.Target) []gemv {
	column := *g.linearGroup
	column.rows = 1
	k := gemv{linearGroup: &column, wave: t.Wave, columns: 1, most: residentElements, resident: true}
	k.share(t)
	k.teams = min(gemvLanes, t.Workgroup) / (k.subgroups * k.wave)
	if k.teams == 0 || !k.fits(1) || k.sharedBytes()+4*sharedParts+k.tables() > t.Shared {
		return nil
	}
	rows := 0 // of the experts, in all rows of the step
	for _, p := range g.projects {
		rows += g.extent.Max * p.slots * p.width
	}
	most := sharedParts / k.parts()
	tile := 2
	for g.tiled(2*tile) && 2*tile <= min(most, teamTile) && rows > 2*tile*t.Units {
		tile *= 2
	}
	tiles := []int{tile, tile / 2, 2 * tile}
	if once := g.onceOver(2*t.Units, rows); once <= min(most, 2*teamTile-1) && !slices.Contains(tiles, once) {
		at := 0
		if t.FewShapes() { // whose compiler has not been asked about it
			at = len(tiles)
		}
		tiles = slices.Insert(tiles, at, once)
	}
	var list []gemv
	for _, k.tile = range tiles {
		for _, k.batch = range []int{1, 2} {
			if k.tile%k.batch == 0 && k.tile <= most && g.tiled(k.tile) {
				list = append(list, k)
			}
		}
	}
	return list
}

// onceOver is the smallest tile with which the experts' rows are no more than so many workgroups', which all run at
// once.
func (g *expertGroup) onceOver(workgroups, rows int) int {
	tile := site.CeilDiv(rows, workgroups)
	for !g.tiled(tile) && tile < rows {
		tile++
	}
	return tile
}

// tiled reports whether the experts' rows are whole tiles.
func (g *expertGroup) tiled(tile int) bool {
	return !slices.ContainsFunc(g.projects, func(p *projection) bool { return p.slots > 0 && p.width%tile != 0 })
}

func (k expertGemv) key() string {
	key := fmt.Sprintf("expert_%s%s", k.gemv.name(), k.extent.Key())
	if k.perSlot {
		key += " slotwise"
	}
	if k.cut != nil {
		key += " cut"
	}
	if k.top != nil {
		key += fmt.Sprintf(" top of %d", k.top.Args[0].Type.Last())
		key += weighedKey(k.top)
	}
	if k.writesIDs {
		key += " ids"
	}
	return key
}

// tiles returns the workgroups of projection p for one row, counted apart from others'.
func (k expertGemv) tiles(p *projection) int {
	if p.slots == 0 && k.gemv.teams > 0 {
		return 0 // a part of each of the others'
	}
	return max(1, p.slots) * site.CeilDiv(p.width, k.gemv.tile)
}

// workgroups returns the first workgroup of every projection for a row, and how many there are,
// without that which writes ids.
func (k expertGemv) workgroups() (firsts []int, n int) {
	for _, p := range k.projects {
		firsts = append(firsts, n)
		n += k.tiles(p)
	}
	return firsts, n
}

// part is what each of so many workgroups has of a projection without tiles of its own.
func (k expertGemv) part(p *projection, workgroups int) int {
	return site.CeilDiv(site.CeilDiv(p.width, workgroups), k.gemv.batch) * k.gemv.batch
}

func (k expertGemv) candidate() site.Candidate {
	c := site.Candidate{
		Kernel: k.key(),
		Order:  "expert_" + k.gemv.order(),
		Shape:  k.gemv.shape(),
		Lanes:  k.gemv.lanes(),
	}
	rows, ids := k.extent.Max, 0
	firsts, end := k.workgroups()
	if k.writesIDs {
		c.Cover = []plans.Cover{{Arg: "ids", Dims: []int{rows, k.slots}, Tile: []int{1, k.slots}, Axis: []int{1, 0}}}
		ids = 1
	}
	for i, p := range k.projects {
		tile, first := k.gemv.tile, firsts[i]
		if k.tiles(p) == 0 {
			tile, first = k.part(p, end), 0
		}
		c.Cover = append(c.Cover, plans.Cover{Arg: fmt.Sprint("y", i),
			Dims: []int{rows, max(1, p.slots) * p.width}, Tile: []int{1, tile}, Axis: []int{1, 0}, First: []int{0, ids + first}})
	}
	c.Grid = [3]int{ids + end, rows, 1}
	return site.Implement(c, "expert_gemv", k.kernel)
}

package matmul

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
)

// sortedGroup is an expert group over slots sorted by expert, computed in tiles of
// slots of one expert. A workgroup finds its tile by counting those of the experts
// before. Grid axis 0 covers the most tiles that a step can have; workgroups without a
// tile do nothing.
type sortedGroup struct {
	*expertGroup
	experts int
	wave    int
}

// sorted returns a group whose rows are sorted by expert as a sortedGroup.
func (g *linearGroup) sorted(s *site.Site) *sortedGroup {
	return &sortedGroup{g.routed(), int(g.routing.offsets.Type.Shape[0]) - 1, s.Target.Wave}
}

// perExpert is the slots of an expert, if all have as many and the step is full.
func (k *sortedGroup) perExpert() int { return k.rows * k.slots / k.experts }

func (k *sortedGroup) offer(tileRows int, outputs func(i int) int) site.Candidate {
	slots := k.rows * k.slots
	_, tiles := k.workgroupsBy(outputs)
	return site.Candidate{
		Grid:  [3]int{slots/tileRows + min(k.experts, slots), tiles, 1},
		Cover: k.covers(slots, 0, 0, outputs),
	}
}

// tiling completes that of a tile: its rows are those of all experts.
func (k *sortedGroup) tiling(t *site.Tiling) *site.Tiling {
	t.Slots, t.Experts = k.slots, k.experts
	return t
}

func (k *sortedGroup) key() string {
	key := fmt.Sprintf("%s of %d w=%d", k.expertGroup.key(), k.experts, k.wave)
	if k.perSlot {
		key += " slotwise"
	}
	return key
}

// sortedRows says where the rows of a tile are, which are places in a list of
// slots. The results have a row for each slot.
type sortedRows struct {
	b     *kernel.Builder
	order *kernel.Buffer
	slots *kernel.Value // of a row of x; nil if x has a row for each slot, too

	sources []kernel.Value // rows of x that the lane loads
}

// source returns the row of x of place r; places from end on are as the last.
func (s *sortedRows) source(r, end kernel.Value) kernel.Value {
	slot := s.target(s.b.Min(r, s.b.Sub(end, 1)))
	if s.slots != nil {
		slot = s.b.Div(slot, *s.slots)
	}
	return slot
}

// target returns the row of the results of place r.
func (s *sortedRows) target(r kernel.Value) kernel.Value { return s.order.Load(kernel.U32, r) }

// declareSlots declares how many experts a row has.
func declareSlots(s *site.Signature, slots int) kernel.Value {
	return s.U32("slots", slots, 8, "experts of a row")
}

// declareRows finds a tile in every subgroup: a lane counts the tiles of a few experts. The projections get the tile's
// expert, and workgroups without a tile end.
func (k *sortedGroup) declareRows(s *site.Signature) rowFinder {
	order, offsets, slots := s.Read("order", k.order), s.Read("offsets", k.offsets), declareSlots(s, k.slots)
	return func(b *kernel.Builder, a *linearArgs) func(tileRows int) rowTile {
		a.countRows(b)
		sorted := &sortedRows{b: b, order: order}
		if !k.perSlot {
			sorted.slots = &slots
		}
		return func(tileRows int) rowTile {
			t := rowTile{b: b, sorted: sorted}
			var expert kernel.Value
			expert, t.row, t.rows = k.findTile(b, offsets, tileRows)
			for i := range a.projects {
				a.projects[i].expert = &expert
			}
			return t
		}
	}
}

// findTile returns the expert of the workgroup's tile, the tile's first place, and the end of its expert's places.
func (k *sortedGroup) findTile(b *kernel.Builder, offsets *kernel.Buffer, tileRows int) (expert, row, end kernel.Value) {
	perLane := site.CeilDiv(k.experts, k.wave)
	first := b.Mul(b.SubgroupLane(), perLane)
	var at []kernel.Value // where experts begin, and where the last ends
	for i := range perLane + 1 {
		at = append(at, offsets.Load(kernel.U32, b.Min(b.Add(first, i), k.experts)))
	}
	sum := b.U32(0)
	var before, tiles []kernel.Value
	for i := range perLane {
		before = append(before, sum)
		tiles = append(tiles, b.Div(b.Add(b.Sub(at[i+1], at[i]), tileRows-1), tileRows))
		sum = b.Add(sum, tiles[i])
	}
	lanes := b.SubgroupExclusiveAdd(sum)
	expert, row, end = b.U32(0), b.U32(0), b.U32(0)
	for i := range perLane {
		mine := b.Sub(b.WorkgroupID(0), b.Add(lanes, before[i])) // wraps in tiles before
		hit := b.Lt(mine, tiles[i])
		expert = b.Select(hit, b.Add(first, i), expert)
		row = b.Select(hit, b.Add(at[i], b.Mul(mine, tileRows)), row)
		end = b.Select(hit, at[i+1], end)
	}
	row, end = b.SubgroupMax(row), b.SubgroupMax(end)
	b.ReturnIf(b.Ge(row, end))
	return b.SubgroupMax(expert), row, end
}

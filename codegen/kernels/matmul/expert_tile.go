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

// candidate returns the grid and cover of the candidate with tiles of so many rows and outputs of
// each matrix.
func (k *sortedGroup) candidate(tileRows, outputs int) site.Candidate {
	slots := k.rows * k.slots
	return site.Candidate{
		Grid:  [3]int{slots/tileRows + min(k.experts, slots), k.tiles(outputs), 1},
		Cover: k.covers(slots, 0, 0, func(int) int { return outputs }),
	}
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

// sortedTile is a tile of rows of one expert.
type sortedTile struct {
	rows     *sortedRows
	row, end kernel.Value // its first place, and the end of its expert's places
}

// sortedArgs are what the order of the rows takes.
type sortedArgs struct {
	order, offsets *kernel.Buffer
	slots          kernel.Value
}

func (k *sortedGroup) declareOrder(s *site.Signature) sortedArgs {
	return sortedArgs{s.Read("order", k.order), s.Read("offsets", k.offsets), declareSlots(s, k.slots)}
}

// declareSlots declares how many experts a row has.
func declareSlots(s *site.Signature, slots int) kernel.Value {
	return s.U32("slots", slots, 8, "experts of a row")
}

// findTile sets the workgroup's lanes and returns its tile of so many rows; the projections get its
// expert. It ends workgroups without a tile. Every subgroup does all of it: a lane counts the
// tiles of a few experts.
func (k *sortedGroup) findTile(b *kernel.Builder, a *linearArgs, order sortedArgs, tileRows, threads int) sortedTile {
	a.countRows(b)
	sorted, offsets := &sortedRows{b: b, order: order.order}, order.offsets
	if !k.perSlot {
		sorted.slots = &order.slots
	}
	b.Workgroup(threads)
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
	expert, row, end := b.U32(0), b.U32(0), b.U32(0)
	for i := range perLane {
		mine := b.Sub(b.WorkgroupID(0), b.Add(lanes, before[i])) // wraps in tiles before
		hit := b.Lt(mine, tiles[i])
		expert = b.Select(hit, b.Add(first, i), expert)
		row = b.Select(hit, b.Add(at[i], b.Mul(mine, tileRows)), row)
		end = b.Select(hit, at[i+1], end)
	}
	t := sortedTile{sorted, b.SubgroupMax(row), b.SubgroupMax(end)}
	b.ReturnIf(b.Ge(t.row, t.end))
	expert = b.SubgroupMax(expert)
	for i := range a.projects {
		a.projects[i].expert = &expert
	}
	return t
}

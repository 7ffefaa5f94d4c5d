package kernels

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// expertGemm computes an expert group for many rows, whose slots come sorted by
// expert: gemm, with tiles of slots of one expert. A workgroup finds its tile by
// counting those of the experts before. Grid axis 0 has room for all tiles there
// can be; workgroups beyond those there are do nothing.
type expertGemm struct {
	*expertGroup
	gemm    gemm
	experts int
	wave    int
}

func expertGemmCandidates(s *Site) []Candidate {
	g := matchExperts(s)
	if g == nil || g.order == nil || g.top != nil || !g.alike() {
		return nil
	}
	for _, p := range g.projects {
		if p.slots == 0 {
			return nil
		}
	}
	experts := int(g.offsets.Type.Shape[0]) - 1
	var list []Candidate
	for _, n := range expertRows(g.rows*g.slots/experts, s.Target) {
		k := expertGemm{g, gemm{g.linearGroup, g.extent, n}, experts, s.Target.Wave}
		list = append(list, k.candidate())
	}
	return list
}

// expertRows returns how many rows a lane may compute, best guess first, given the
// slots of an expert if all had as many. A tile that is too small dequantizes
// weights again, one that is too large multiplies nothing.
func expertRows(perExpert int, t *target.Target) []int {
	if t.Wave < 16 {
		return []int{4} // see gemmRows
	}
	n := 2
	for n < 8 && gemmRowStep*n*2 < 3*perExpert {
		n *= 2
	}
	if n == 8 {
		return []int{8, 4}
	}
	return []int{n, 2 * n}
}

func (k expertGemm) candidate() Candidate {
	slots := k.rows * k.slots
	tiles := slots/k.gemm.tileRows() + min(k.experts, slots)
	c := Candidate{
		Kernel:   fmt.Sprintf("expert_gemm %s tile=%dx%d of %d w=%d", k.key(), k.gemm.tileRows(), gemmOutputs, k.experts, k.wave),
		Build:    k.build,
		Operands: append(k.operands(false), Operand{"order", k.order, kernel.Read}, Operand{"offsets", k.offsets, kernel.Read}),
		Grid:     [3]int{tiles, k.tiles(gemmOutputs), 1},
		Consts:   append(k.consts(k.firsts(gemmOutputs)), ir.Const{Name: "slots", Value: uint32(k.slots)}),
	}
	if k.perSlot {
		c.Kernel += " slotwise"
	}
	for i, p := range k.projects {
		c.Cover = append(c.Cover, plans.Cover{
			Arg:  fmt.Sprint("y", i),
			Dims: []int{slots, p.width}, Tile: []int{0, gemmOutputs},
			Axis: []int{0, 1}, First: []int{0, k.firsts(gemmOutputs)[i]},
		})
	}
	return c
}

// sortedRows says where the rows of a tile are: in a list of slots.
type sortedRows struct {
	b       *kernel.Builder
	order   *kernel.Buffer
	sources []kernel.Value // rows of x that the lane loads
}

// target returns the row of the results, which have one for each slot, of place r
// of the list.
func (s *sortedRows) target(r kernel.Value) kernel.Value { return s.order.Load(kernel.U32, r) }

func (k expertGemm) build() (*kernel.Func, error) {
	return kernel.Build("expert_gemm", func(b *kernel.Builder) {
		t := &gemmTile{gemm: k.gemm, b: b, a: k.declare(b, false)}
		t.sorted = &sortedRows{b: b, order: b.Arg("order", kernel.Read)}
		offsets := b.Arg("offsets", kernel.Read)
		slots := b.SpecU32("slots", 8)
		b.Workgroup(gemmLanes)
		t.lane = b.LocalID()
		expert := k.findTile(t, offsets)
		for i := range t.a.projects {
			t.a.projects[i].expert = &expert
		}
		for j := range k.gemm.tileRows() / gemmColStep {
			r := b.Add(t.row, b.Shr(t.lane, 3), gemmColStep*j)
			slot := t.sorted.target(b.Min(r, b.Sub(t.rows, 1)))
			if !k.perSlot {
				slot = b.Div(slot, slots)
			}
			t.sorted.sources = append(t.sorted.sources, slot)
		}
		t.run()
	})
}

// findTile sets t.row and t.rows to the first place of the workgroup's tile and the
// end of its expert's places, and returns the expert. It ends workgroups without a
// tile. Every subgroup does all of it: a lane counts the tiles of a few experts.
func (k expertGemm) findTile(t *gemmTile, offsets *kernel.Buffer) kernel.Value {
	b := t.b
	perLane := ceilDiv(k.experts, k.wave)
	first := b.Mul(b.SubgroupLane(), perLane)
	var at []kernel.Value // where experts begin, and where the last ends
	for i := range perLane + 1 {
		at = append(at, offsets.Load(kernel.U32, b.Min(b.Add(first, i), k.experts)))
	}
	sum := b.U32(0)
	var before, tiles []kernel.Value
	for i := range perLane {
		before = append(before, sum)
		tiles = append(tiles, b.Div(b.Add(b.Sub(at[i+1], at[i]), k.gemm.tileRows()-1), k.gemm.tileRows()))
		sum = b.Add(sum, tiles[i])
	}
	lanes := b.SubgroupExclusiveAdd(sum)
	expert, row, end := b.U32(0), b.U32(0), b.U32(0)
	for i := range perLane {
		mine := b.Sub(b.WorkgroupID(0), b.Add(lanes, before[i])) // wraps in tiles before
		hit := b.Lt(mine, tiles[i])
		expert = b.Select(hit, b.Add(first, i), expert)
		row = b.Select(hit, b.Add(at[i], b.Mul(mine, k.gemm.tileRows())), row)
		end = b.Select(hit, at[i+1], end)
	}
	t.row, t.rows = b.SubgroupMax(row), b.SubgroupMax(end)
	b.ReturnIf(b.Ge(t.row, t.rows))
	return b.SubgroupMax(expert)
}

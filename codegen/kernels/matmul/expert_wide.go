package matmul

import (
	"fmt"
	"math"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/plans"
)

// expertWide computes what expertGemv does for many rows of an exact step, with the same bits: an expert's weights are
// read once for all rows that chose it. A workgroup has a part of an expert's outputs. It looks for the expert's rows,
// and rounds 8 of them at a time into shared memory, from where its subgroups multiply them as gemm_fixed does, each
// with tiles of 16 outputs and all elements of a row. So nobody waits for others between tiles. Grid axis 0 has the
// tiles of rows of the shared expert, then the experts, axis 1 the parts.
type expertWide struct {
	*expertGroup
	routed, shared *projection // shared is nil if there is none
	experts        int
	writesIDs      bool
	turns          int // tiles of a subgroup, one after the other
}

const (
	// wideFrom is the least number of rows for which expert_wide is considered: of 8 rows with 8 experts each, nearly
	// all chose others.
	wideFrom = 16
	// wideGroups is the subgroups of a workgroup, and wideRoom the lanes of a unit that registers suffice for.
	wideGroups, wideRoom = 8, 512
	// foundAtOnce is the rows whose scores a subgroup loads at once.
	foundAtOnce = 4
)

func ExpertWideCandidates(s *site.Site, g *Group) []site.Candidate {
	k := expertWideAt(s, g.routed())
	if k == nil {
		return nil
	}
	var list []site.Candidate
	for _, k.turns = range wideTurns {
		if len(list) == 0 || k.parts() > 1 {
			list = append(list, k.candidate())
		}
	}
	return list
}

// wideTurns are the tiles that a subgroup may have, best guess first. More make workgroups whose expert has many rows
// the last ones; with fewer, more look for the same rows and round them (docs/lab/experts.md).
var wideTurns = []int{2, 1, 4}

// expertWideAt returns what expert_wide makes of the group, nil if it does not compute it.
func expertWideAt(s *site.Site, g *expertGroup) *expertWide {
	if g.rows < wideFrom || !g.alike() ||
		!s.Target.Fragments || s.Target.Wave != fragment.Lanes || !s.Target.BoundsRegisters() || g.k%fixedBlock != 0 {
		return nil
	}
	k := &expertWide{expertGroup: g, writesIDs: g.top != nil && slices.Contains(s.Outputs, g.ids)}
	for _, p := range g.projects {
		of := &k.shared
		if p.slots > 0 {
			of = &k.routed
		}
		if *of != nil || !p.fixed {
			return nil
		}
		*of = p
		for _, w := range p.matrices {
			if f := w.format.Fixed; f == nil || f != p.matrices[0].format.Fixed {
				return nil
			}
		}
	}
	if k.routed == nil {
		return nil
	}
	k.experts = int(k.routed.matrices[0].value.Type.Shape[0])
	if k.bytes() > max(s.Target.Shared, s.Target.SharedOptIn) {
		return nil
	}
	return k
}

// each is the outputs of each matrix of a tile, and outputs those of a workgroup.
func (k *expertWide) each() int { return fixedSide / len(k.routed.matrices) }

func (k *expertWide) outputs() int { return wideGroups * k.turns * k.each() }

func (k *expertWide) blocks() int { return k.k / fixedBlock }

// parts is how many workgroups share the outputs of an expert.
func (k *expertWide) parts() (n int) {
	for _, p := range k.projects {
		n = max(n, site.CeilDiv(p.width, k.outputs()))
	}
	return n
}

// sharedTiles is the tiles of rows of the shared expert.
func (k *expertWide) sharedTiles() int {
	if k.shared == nil {
		return 0
	}
	return site.CeilDiv(k.rows, fixedColumns)
}

// sizes are the elements of arrays in shared memory: see expertWideShared.
func (k *expertWide) sizes() (n fixedSizes) {
	for _, p := range k.projects {
		f := p.matrices[0].format.Fixed
		if f.Super {
			continue
		}
		n.totals, n.terms = k.blocks()*weight.FixedRuns*4, max(n.terms, wideGroups*weight.FixedRuns*f.Vectors()*8)
		if f.Fine {
			n.scales = n.totals
		}
	}
	if k.gain != nil {
		n.squares = fixedColumns * k.k / 128
	}
	return n
}

// bytes is the size of shared memory.
func (k *expertWide) bytes() int {
	return k.sizes().bytes() + 16*fragment.Lanes*(weight.FixedRuns+1)*k.blocks() + 4*fixedColumns*k.blocks() + 4*(2*k.rows+1)
}

func (k *expertWide) candidate() site.Candidate {
	key := fmt.Sprintf("expert_wide %s k=%d rows=%d of %d turns=%d room=%d%s", k.key(), k.k, k.rows, k.experts, k.turns, wideRoom, k.extent.Key())
	if k.perSlot {
		key += " slotwise"
	}
	if k.top != nil {
		key += " top" + weighedKey(k.top)
	}
	if k.writesIDs {
		key += " ids"
	}
	c := site.Candidate{
		Kernel: key,
		Order:  "expert_" + fixedOrder(fragment.Lanes),
		Shape:  fmt.Sprintf("wide, %d turns", k.turns),
		Room:   wideRoom,
		Grid:   [3]int{k.sharedTiles() + k.experts, k.parts(), 1},
	}
	if k.writesIDs {
		// Of the workgroups that share an expert the first one writes.
		c.Cover = []plans.Cover{{Arg: "ids", Dims: []int{k.rows * k.slots, 1}, Tile: []int{0, 1}, Axis: []int{0, 1}, First: []int{k.sharedTiles(), 0}}}
	}
	for i, p := range k.projects {
		y := plans.Cover{Arg: fmt.Sprint("y", i), Dims: []int{k.rows, p.width}, Tile: []int{fixedColumns, k.outputs()}, Axis: []int{0, 1}}
		if p == k.routed {
			y.Dims[0], y.Tile[0], y.First = k.rows*k.slots, 0, []int{k.sharedTiles(), 0}
		}
		c.Cover = append(c.Cover, y)
	}
	return site.Implement(c, "expert_wide", k.kernel)
}

func (k expertWide) kernel(s *site.Signature) func(b *kernel.Builder) {
	a, extent := k.declare(s, false, make([]int, len(k.projects))), k.extent.Declare(s)
	f := &expertFinder{expertWide: &k}
	f.declare(s)
	return func(b *kernel.Builder) {
		a.countRows(b)
		b.Workgroup(wideGroups * fragment.Lanes)
		rows := extent.Load(b)
		shared := newExpertWideShared(b, &k)
		task := func(p *projection) *expertWideTask {
			i := slices.Index(k.projects, p)
			r := &expertWideTask{fixedTask: &fixedTask{
				gemmFixed: gemmFixed{linearGroup: k.linearGroup, fixedTile: fixedTile{groups: wideGroups, splits: 1}, direct: true},
				b:         b, a: a, p: &a.projects[i], fixedShared: shared.fixed, format: p.matrices[0].format.Fixed,
			}, expertWideShared: shared, kernel: &k}
			r.lane, r.group = b.SubgroupLane(), b.SubgroupID()
			r.place, r.quad = b.Shr(r.lane, 2), b.And(r.lane, 3)
			r.real = b.Bool(true)
			return r
		}
		routed := func() {
			r := task(k.routed)
			expert := b.Sub(b.WorkgroupID(0), k.sharedTiles())
			r.p.expert = &expert
			count := f.find(b, expert, rows)
			b.ForRolled(0, count, fixedColumns, func(first kernel.Value) {
				r.columns = b.Min(b.Sub(count, first), fixedColumns)
				r.result = func(column kernel.Value) kernel.Value { return f.order.Load(b.Add(first, column)) }
				r.rowAt = r.result
				if !k.perSlot {
					r.rowAt = func(column kernel.Value) kernel.Value { return b.Div(r.result(column), f.slots) }
				}
				r.compute()
				b.Barrier()
			})
		}
		if k.shared == nil {
			routed()
			return
		}
		b.IfElse(b.Lt(b.WorkgroupID(0), k.sharedTiles()), func() {
			r := task(k.shared)
			first := b.Mul(b.WorkgroupID(0), fixedColumns)
			r.columns = b.Min(b.Sub(b.Max(rows, first), first), fixedColumns)
			r.rowAt = func(column kernel.Value) kernel.Value { return b.Add(first, column) }
			r.result = r.rowAt
			b.If(b.Gt(r.columns, 0), r.compute)
		}, routed)
	}
}

// expertFinder finds the rows that chose an expert.
type expertFinder struct {
	*expertWide
	from, bias, ids *kernel.Buffer // scores or ids; of the scores; where ids are written
	slots           kernel.Value
	order           *kernel.Array // rows of the result of the expert, in order
}

func (f *expertFinder) declare(s *site.Signature) {
	if f.top == nil {
		f.from = s.Read("ids", f.expertGroup.ids)
	} else {
		f.from = s.Read("scores", f.top.Args[0])
		if len(f.top.Args) > 1 {
			f.bias = s.Read("choice", f.top.Args[1])
		}
	}
	if f.writesIDs {
		f.ids = s.Write("ids", f.expertGroup.ids)
	}
	f.slots = declareSlots(s, f.expertGroup.slots)
}

// find leaves in order which slots of rows have the expert, and returns how many.
func (f *expertFinder) find(b *kernel.Builder, expert, rows kernel.Value) kernel.Value {
	f.order = b.Shared(kernel.U32, f.rows)
	found := b.Shared(kernel.U32, 1)
	rank := func(row kernel.Value) kernel.Value { return f.chosenAs(b, row, expert) }
	if f.top != nil {
		ranks := b.Shared(kernel.U32, f.rows)
		f.rankRows(b, ranks, expert)
		b.Barrier()
		rank = func(row kernel.Value) kernel.Value { return ranks.Load(row) }
	}
	b.If(b.Eq(b.SubgroupID(), 0), func() {
		total := b.U32(0)
		for from := 0; from < f.rows; from += fragment.Lanes {
			row := b.Add(b.SubgroupLane(), from)
			at := b.Min(row, f.rows-1)
			slot := rank(at)
			hit := b.And(b.Lt(row, rows), b.Lt(slot, f.slots))
			one := b.Select(hit, b.U32(1), 0)
			place := b.Add(total, b.SubgroupExclusiveAdd(one))
			total = b.Add(total, b.SubgroupAdd(one))
			result := b.Add(b.Mul(at, f.slots), slot)
			b.If(hit, func() { f.order.Store(place, result) })
			if f.ids != nil {
				b.If(b.And(hit, b.Eq(b.WorkgroupID(1), 0)), func() { f.ids.Store(result, expert) })
			}
		}
		b.If(b.SubgroupElect(), func() { found.Store(0, total) })
	})
	b.Barrier()
	return found.Load(0)
}

// chosenAs returns the slot of a row that has the expert, from ids; else a number that no slot has.
func (f *expertFinder) chosenAs(b *kernel.Builder, row, expert kernel.Value) kernel.Value {
	slot, first := b.U32(math.MaxUint32), b.Mul(row, f.slots)
	for i := range f.expertGroup.slots {
		slot = b.Select(b.Eq(f.from.Load(kernel.U32, b.Add(first, i)), expert), i, slot)
	}
	return slot
}

// rankRows leaves in ranks, by row, how many experts come before this one in the order that op topk has: those of a
// larger score, and of the same one, those before it.
func (f *expertFinder) rankRows(b *kernel.Builder, ranks *kernel.Array, expert kernel.Value) {
	each := site.CeilDiv(f.rows, wideGroups)
	atOnce := min(each, foundAtOnce)
	b.ForRolled(0, each, atOnce, func(from kernel.Value) {
		var rows []kernel.Value
		var scores []*scoreRow
		for i := range atOnce {
			row := b.Min(b.Add(b.Mul(b.Add(from, i), wideGroups), b.SubgroupID()), f.rows-1)
			rows = append(rows, row)
			scores = append(scores, loadScores(b, f.from, row, int(f.top.Args[0].Type.Last()), fragment.Lanes))
		}
		for i, s := range scores {
			if byWeight(f.top) {
				s = s.weighed(f.top, f.bias)
			}
			rank := s.rank(expert)
			b.If(b.SubgroupElect(), func() { ranks.Store(rows[i], rank) })
		}
	})
}

package matmul

import (
	"fmt"
	"math"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/plans"
)

// expertWide computes what expertGemv does for many rows of an exact step, with the same bits: an expert's weights are
// read once for all rows that chose it. A workgroup has a part of an expert's outputs. It looks for the expert's rows,
// and takes 8 of them at a time: each of its subgroups rounds a block of them, and multiplies that with the block's
// weights of tile after tile of 16 outputs, as gemm_fixed does. The sums of some tiles wait in shared memory until all
// blocks have come. Where rows have few blocks, several subgroups have the same block, of different tiles. Grid axis 0
// has the tiles of rows of the shared expert, then the experts, axis 1 the parts. The shared expert's projection may
// read another x than those of the experts, as long.
type expertWide struct {
	*expertGroup
	routed, shared *projection // shared is nil if there is none
	experts        int
	writesIDs      bool
	turns          int    // tiles of a subgroup, one after the other
	batch          int    // tiles of a subgroup whose sums wait in shared memory
	stages         int    // blocks in a subgroup's staging buffer, 0 if weights come to registers
	bytes          bool   // products are of bytes: see workers
	bulk           bool   // weights come by whole rows: see byteRing
	workers        [2]int // workgroups on axes 0 and 1, if products are of bytes
}

const (
	// wideFrom is the least number of rows for which expert_wide is considered: of 8 rows with 8 experts each, nearly
	// all chose others.
	wideFrom = 16
	// wideGroups is the subgroups that a workgroup has if blocks are few, and wideMost those that it may have.
	wideGroups, wideMost = 8, 32
	// wideRoom is the lanes of a unit that registers suffice for.
	wideRoom = 512
	// wideBatch is the tiles of a subgroup whose sums wait in shared memory, where x is in f16.
	wideBatch = 4
	// wideStages is the blocks in a subgroup's staging buffer: with more, no tile comes earlier (docs/lab/experts.md).
	wideStages = 2
	// foundAtOnce is the rows whose scores a subgroup loads at once.
	foundAtOnce = 4
)

func ExpertWideCandidates(s *site.Site, g *Group) []site.Candidate {
	k := expertWideAt(s, g.routed())
	if k == nil {
		return nil
	}
	if k.bytes {
		return []site.Candidate{k.candidate()}
	}
	var list []site.Candidate
	for _, k.turns = range wideTurns {
		if len(list) == 0 || k.parts() > 1 {
			list = append(list, k.candidate())
		}
	}
	return list
}

// wideTurns are the tiles that a subgroup may have, best guess first: multiples of wideBatch. More make workgroups
// whose expert has many rows the last ones; with fewer, more look for the same rows and round them.
var wideTurns = []int{8, 16, 32}

// expertWideAt returns what expert_wide makes of the group, nil if it does not compute it.
func expertWideAt(s *site.Site, g *expertGroup) *expertWide {
	if g.rows < wideFrom || !g.alike() ||
		!s.Target.Fragments || s.Target.Wave != fragment.Lanes || !s.Target.BoundsRegisters() || g.k%fixedBlock != 0 {
		return nil
	}
	k := &expertWide{expertGroup: g, batch: wideBatch, writesIDs: g.top != nil && slices.Contains(s.Outputs, g.ids)}
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
	if k.blocks() > wideMost {
		return nil
	}
	if k.chooseBytes(s.Target) {
		return k
	}
	room := max(s.Target.Shared, s.Target.SharedOptIn)
	if k.copies(s.Target) {
		k.stages = wideStages
	}
	if k.sharedBytes() > room { // of long rows
		k.stages = 0
	}
	if k.sharedBytes() > room {
		return nil
	}
	return k
}

// copies reports whether an expert's weights may be copied to shared memory.
func (k *expertWide) copies(t *target.Target) bool {
	return k.routed.matrices[0].format.Fixed.Spans != nil && t.Copies()
}

// each is the outputs of each matrix of a tile, and outputs those of a workgroup.
func (k *expertWide) each() int { return fixedSide / len(k.routed.matrices) }

// sharers is how many subgroups have the same block.
func (k *expertWide) sharers() int {
	if k.gain != nil { // whose squares one of them sums
		return 1
	}
	return max(1, wideGroups/k.blocks())
}

func (k *expertWide) groups() int { return k.blocks() * k.sharers() }

func (k *expertWide) outputs() int { return k.turns * k.sharers() * k.each() }

func (k *expertWide) blocks() int { return k.k / fixedBlock }

// fixed is what expert_wide has of gemm_fixed.
func (k *expertWide) fixed() gemmFixed {
	return gemmFixed{linearGroup: k.linearGroup, direct: k.bytes, fixedTile: fixedTile{groups: k.groups(), splits: 1, series: []int{1}, stages: k.stages}}
}

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

// tileSums is the pairs of sums of all blocks of a tile, and some besides, so that lanes of neighbouring tiles read
// different banks.
func (k *expertWide) tileSums() int { return k.blocks()*fixedSums + fixedSums/8 }

// sumsSize is the pairs of sums that wait.
func (k *expertWide) sumsSize() int { return 2 * k.batch * k.sharers() * k.tileSums() }

// sizes are the elements of arrays in shared memory.
func (k *expertWide) sizes() fixedSizes {
	n := k.fixed().sharedSizes()
	n.sums, n.rstd = k.sumsSize(), 0
	if k.ownX() {
		n.terms = 0 // the ring needs the room
	}
	if k.bytes && k.gain != nil {
		n.rstd = fixedColumns
	}
	return n
}

// ownX reports whether the shared expert's projection reads another x than the others.
func (k *expertWide) ownX() bool { return k.shared != nil && k.shared.own != nil }

// stagingSize is the bytes of the staging buffer.
func (k *expertWide) stagingSize() int {
	return k.stages * k.groups() * fixedSide * k.fixed().stagedRow()
}

// sharedBytes is the size of shared memory.
func (k *expertWide) sharedBytes() int {
	n := k.sizes().bytes()
	if k.bytes {
		return n + k.ringBytes() + k.panelBytes()
	}
	return n + k.stagingSize() + 4*(2*k.rows+1)
}

func (k *expertWide) candidate() site.Candidate {
	key := fmt.Sprintf("expert_wide %s k=%d rows=%d of %d turns=%d room=%d%s", k.key(), k.k, k.rows, k.experts, k.turns, wideRoom, k.extent.Key())
	if k.perSlot {
		key += " slotwise"
	}
	if k.stages > 0 {
		key += fmt.Sprintf(" stages=%d", k.stages)
	}
	if k.bytes {
		key += fmt.Sprintf(" bytes=%d workers=%d,%d%s", k.columns(), k.workers[0], k.workers[1], k.ringKey())
	}
	if k.top != nil {
		key += " top" + weighedKey(k.top)
	}
	if k.writesIDs {
		key += " ids"
	}
	c := site.Candidate{
		Kernel:  key,
		Order:   "expert_" + fixedOrder(fragment.Lanes),
		Shape:   fmt.Sprintf("wide, %d turns", k.turns),
		Room:    wideRoom,
		Early:   k.bytes,
		EarlyOf: "ids",
		Grid:    [3]int{k.sharedTiles() + k.experts, k.parts(), 1},
	}
	if k.bytes {
		c.Grid = [3]int{k.workers[0], k.workers[1], 1}
		c.Tiling = &site.Tiling{Name: "workers", K: k.k, Width: k.routed.width, Matrices: len(k.routed.matrices), Slots: k.slots, Experts: k.experts}
	}
	if k.writesIDs {
		// Of the workgroups that share an expert the first one writes.
		c.Cover = []plans.Cover{{Arg: "ids", Dims: []int{k.rows * k.slots, 1}, Tile: []int{0, 1}, Axis: []int{0, 1}, First: []int{k.sharedTiles(), 0}}}
	}
	for i, p := range k.projects {
		y := plans.Cover{Arg: fmt.Sprint("y", i), Dims: []int{k.rows, p.width}, Tile: []int{fixedColumns, k.outputs()}, Axis: []int{0, 1}}
		if p == k.routed {
			y.Dims[0], y.Tile[0], y.First = k.rows*k.slots, 0, []int{k.sharedTiles(), 0}
			if k.bytes {
				y.Tile[1], y.First = 0, nil
			}
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
		b.Workgroup(k.groups() * fragment.Lanes)
		if k.bytes && k.shared != nil {
			k.askForShared(b, &a.projects[slices.Index(k.projects, k.shared)]) // while the dispatch before ends
		}
		shared, ring := k.newShared(b), k.newRing(b)
		rows := extent.Load(b)
		var staging *fixedStaging
		if !k.bulk {
			staging = newFixedStaging(b, k.fixed())
		}
		task := func(p *projection) *expertWideTask {
			i := slices.Index(k.projects, p)
			r := &expertWideTask{fixedTask: &fixedTask{
				gemmFixed: k.fixed(), b: b, a: a, p: &a.projects[i], fixedShared: shared, format: p.matrices[0].format.Fixed,
			}, kernel: &k}
			if own := r.p.own; own != nil {
				args := *a
				args.x, r.a = own, &args
			}
			if p == k.routed {
				r.staging, r.ring, r.whole, r.along = staging, ring, k.whole(), k.bytes
			}
			r.lane, r.group = b.SubgroupLane(), b.SubgroupID()
			r.place, r.quad = b.Shr(r.lane, 2), b.And(r.lane, 3)
			r.real, r.held = b.Bool(true), r.group
			r.own, r.member = r.group, b.U32(0)
			if k.sharers() > 1 {
				r.own, r.member = b.Mod(r.group, k.blocks()), b.Div(r.group, k.blocks())
			}
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
		alone := func() {
			r := task(k.shared)
			first := b.Mul(b.WorkgroupID(0), fixedColumns)
			r.columns = b.Min(b.Sub(b.Max(rows, first), first), fixedColumns)
			r.rowAt = func(column kernel.Value) kernel.Value { return b.Add(first, column) }
			r.result = r.rowAt
			b.If(b.Gt(r.columns, 0), r.compute)
		}
		switch {
		case k.bytes:
			k.work(b, f, rows, alone, task)
		case k.shared == nil:
			routed()
		default:
			b.IfElse(b.Lt(b.WorkgroupID(0), k.sharedTiles()), alone, routed)
		}
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
	n := f.expertGroup.slots
	vec := site.Widest(n)
	for n%vec != 0 {
		vec /= 2
	}
	slot, first := b.U32(math.MaxUint32), b.Mul(row, n/vec)
	for i := 0; i < n; i += vec {
		for j, id := range lane.Elements(b, f.from.Load(kernel.U32.Vec(vec), b.Add(first, i/vec))) {
			slot = b.Select(b.Eq(id, expert), i+j, slot)
		}
	}
	return slot
}

// rankRows leaves in ranks, by row, how many experts come before this one in the order that op topk has: those of a
// larger score, and of the same one, those before it.
func (f *expertFinder) rankRows(b *kernel.Builder, ranks *kernel.Array, expert kernel.Value) {
	each := site.CeilDiv(f.rows, f.groups())
	atOnce := min(each, foundAtOnce)
	b.ForRolled(0, each, atOnce, func(from kernel.Value) {
		var rows []kernel.Value
		var scores []*scoreRow
		for i := range atOnce {
			row := b.Add(b.Mul(b.Add(from, i), f.groups()), b.SubgroupID())
			rows = append(rows, row)
			scores = append(scores, loadScores(b, f.from, b.Min(row, f.rows-1), int(f.top.Args[0].Type.Last()), fragment.Lanes))
		}
		for i, s := range scores {
			if byWeight(f.top) {
				s = s.weighed(f.top, f.bias)
			}
			rank := s.rank(expert)
			b.If(b.And(b.SubgroupElect(), b.Lt(rows[i], f.rows)), func() { ranks.Store(rows[i], rank) })
		}
	})
}

package attention

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// Tiles of a step are seldom as many as workgroups that the device has room for. Where the positions of a tile are
// split, and the splits merged in the same dispatch, all workgroups of a head share the splits of all its tiles: each
// has equally many, of one tile or of neighbours. A tile's splits follow from its positions alone, and each is summed
// up from zero whoever does it. So bits do not depend on how many rows the step has. A workgroup sums up the splits of
// a tile one behind the other, leaves all of them in the workspace if the tile has several, and the last one of the
// tile to end adds them up.

// mergeOf returns the op of the group that merges the splits of op; nil if there is none.
func mergeOf(g *ir.Group, op *ir.Op) *ir.Op {
	for _, o := range g.Ops {
		if o.Kind.Name == "attention_merge" && o.Args[0] == op.Result {
			return o
		}
	}
	return nil
}

// takeMerge takes the merge of the splits, if there is one, and reports whether the kernel can. Splits have more than
// one tile of positions.
func (k *wgmmaAttention) takeMerge(s *site.Site) bool {
	if k.merge == nil {
		return true
	}
	a, rows, unit := k.op.Attrs, k.queryRows(), k.merges(s)
	tiles := k.tilesOf(rows) * k.heads / k.fold
	k.counts, k.times = site.Arrivals(s, tiles), max(1, s.Target.Units/tiles)
	return unit > 0 && a.Int("rows") == rows && a.Int("block")%unit == 0 && a.Int("least") > k.tileKV
}

// merges returns what positions of a split are a multiple of if the kernel can merge splits, else 0: all tiles are
// whole and have a counter each, rows see all positions, and a loop that goes by twos ends a split behind the first of
// two.
func (k *wgmmaAttention) merges(s *site.Site) int {
	rows, positions := k.queryRows(), k.tileKV
	if k.byTwos() {
		positions *= 2
	}
	if site.Arrivals(s, k.tilesOf(rows)*k.heads/k.fold) == nil || k.window > 0 || k.rows.Max%rows > 0 || positions > ir.PagesUnit {
		return 0
	}
	return positions
}

// shared has workgroups of c share tiles of so many rows of q, if splits are merged: there are as many as tiles, or a
// multiple, as far as they have units of their own.
func (k *promptAttention) shared(c site.Candidate, rows int) site.Candidate {
	if k.merge == nil {
		return c
	}
	c.Kernel += fmt.Sprintf(" merge=%d", k.splits)
	tiles := k.tilesOf(rows)
	c.Grid = [3]int{k.heads / k.fold, tiles * k.times, 1}
	y := plans.Cover{Arg: "y", Dims: []int{k.rows.Max, k.heads * k.headDim}, Tile: []int{0, k.fold * k.headDim}, Axis: []int{1, 0}, Joined: []int{1}}
	n := rows * k.fold * k.splits * (k.headDim + 2)
	partial := plans.Cover{Arg: "partial", Dims: []int{tiles, k.heads / k.fold, n}, Tile: []int{0, 1, n}, Axis: []int{1, 0, -1}}
	c.Cover = []plans.Cover{y, partial}
	return c
}

// tileShare is a workgroup's share of a tile, in a kernel. What is wanted at the ends of splits alone lies in shared
// memory, since registers are short: how many splits are there, the index of the tile, the workgroup's splits of it,
// all that have positions, and the positions of a split.
type tileShare struct {
	partial, arrivals *kernel.Buffer
	room              kernel.Value // rows of the entry, a constant: one kernel serves entries of all widths
	least             kernel.Value // positions of a split, at least
	kept              *kernel.Array
	begin             kernel.Value // of the workgroup's positions of the tile
	ends              *kernel.Var  // of those of the split that is summed up
}

const (
	_ = iota
	keptTile
	keptOwn
	keptActive
	keptStep
	keptWords
)

// shareBytes is what sharing takes of shared memory.
const shareBytes = 4 * keptWords

func (r *promptRun) declareShare(s *site.Signature) {
	k := r.of
	if k.merge == nil {
		return
	}
	r.share.partial, r.share.arrivals = s.Update("partial", k.op.Result), s.Update("arrivals", k.counts)
	r.share.room = s.U32("room", k.rows.Max, 1, "rows that a step may have")
	r.share.least = s.U32("split_least", k.op.Attrs.Int("least"), k.op.Attrs.Int("block"), "positions of a split, at least")
	r.block = s.U32("split_block", k.op.Attrs.Int("block"), 32, "positions that a split has or has not")
}

// eachShare calls body for each tile of so many rows of q that the workgroup has splits of, with the position of the
// tile's first row. The workgroups of a head, which workgroup counts, share all tiles of the step: a tile has as many
// pieces as it may have splits, and each workgroup as many pieces in a row.
func (r *promptRun) eachShare(workgroup kernel.Value, queryRows int, body func(first kernel.Value)) {
	b, s, splits := r.b, &r.share, r.of.splits
	s.kept = b.Shared(kernel.U32, keptWords)
	s.ends = b.Var(kernel.U32, 0)
	live := b.Max(b.Div(b.Add(r.rows, queryRows-1), queryRows), 1)
	work, all := b.Mul(live, splits), b.Mul(b.NumWorkgroups(1), b.NumWorkgroups(2))
	from, to := b.Div(b.Mul(workgroup, work), all), b.Div(b.Mul(b.Add(workgroup, 1), work), all)
	b.ForRolled(b.Div(from, splits), b.Div(b.Add(to, splits-1), splits), 1, func(tile kernel.Value) {
		r.row = b.Mul(tile, queryRows)
		first := r.findEnd(queryRows)
		round := b.Mul(r.block, splits)
		step := b.Max(b.Mul(b.Div(b.Add(r.end, b.Sub(round, 1)), round), r.block), s.least)
		active := b.Div(b.Add(r.end, b.Sub(step, 1)), step)
		unit := b.Mul(tile, splits)
		split := func(at kernel.Value) kernel.Value { return b.Div(b.Mul(at, active), splits) }
		own, next := split(b.Sub(b.Max(from, unit), unit)), split(b.Min(b.Sub(to, unit), splits))
		none := b.Or(r.orDead(b.Ge(own, next)), b.Gt(r.end, r.ctx))
		b.Barrier() // all have done with the tile before
		b.If(b.Not(none), func() {
			b.If(b.Eq(b.LocalID(), 0), func() {
				for i, v := range []kernel.Value{b.Add(b.Mul(tile, b.NumWorkgroups(0)), b.WorkgroupID(0)), b.Sub(next, own), active, step} {
					s.kept.Store(b.U32(uint32(keptTile+i)), v)
				}
			})
			s.begin = b.Mul(own, step)
			s.ends.Set(b.Add(s.begin, step))
			r.findHead()
			r.end = b.Min(r.end, b.Mul(next, step))
			body(first)
		})
	})
}

// inTiles is what is so of the workgroup's tile, if the entry has such rows.
func (r *promptRun) inTiles(so kernel.Value) kernel.Value {
	if r.of.merge == nil {
		return so
	}
	return r.b.And(so, r.b.Lt(r.row, r.share.room))
}

// cross ends a split where the tile from `from` on, which is in this buffer, is its last and the workgroup has more.
func (r *wgmmaAttentionRun) cross(from, this kernel.Value) {
	if r.merge == nil {
		return
	}
	b, next := r.b, r.b.Add(from, r.tileKV)
	ends := b.Eq(next, r.share.ends.Get())
	b.If(b.And(ends, b.Lt(next, r.end)), func() {
		r.share.ends.Set(b.Add(next, r.share.kept.Load(keptStep)))
		r.arrive()
		r.add(this)
		b.MatGroupWait(0)
		r.foldWeights()
		r.put(next)
		for _, sum := range r.sums {
			sum.Set(b.MatFill(wgmmaSum, 0))
		}
		for _, w := range r.weights { // those of the tile count no more
			w.Set(b.MatPairs(wgmmaWeight, 0, 0, 0, 0))
		}
		for _, row := range r.ofRow {
			row.top.Set(emptyScore)
			row.weight.Set(0)
		}
	})
}

// foldWeights gives all lanes that have a row the sum of their weights.
func (r *wgmmaAttentionRun) foldWeights() {
	for _, row := range r.ofRow {
		row.weight.Set(r.overRow(sumOf, row.weight.Get()))
	}
}

// A split in the workspace has the sums of all lanes, four at a time as a lane has them, then a pair for each row of
// the tile: what the weights are relative to, in powers of two, and their sum.

// leftAt returns where in the workspace a split of the tile begins, in units of four.
func (r *wgmmaAttentionRun) leftAt(split kernel.Value) kernel.Value {
	b := r.b
	return b.Mul(b.Add(b.Mul(r.share.kept.Load(keptTile), r.splits), split), r.tileRows()*(r.headDim+2)/4)
}

// pairAt returns where in a split that begins there the pair of the lane's i-th row is, in units of two.
func (r *wgmmaAttentionRun) pairAt(left kernel.Value, i int) kernel.Value {
	b := r.b
	return b.Add(b.Mul(left, 2), r.own, r.tileRows()*r.headDim/2+8*i)
}

// put leaves the split that has the positions before `end` in the workspace.
func (r *wgmmaAttentionRun) put(end kernel.Value) {
	b, partial := r.b, r.share.partial
	left := r.leftAt(b.Div(b.Sub(end, 1), r.share.kept.Load(keptStep)))
	for d, sum := range r.sums {
		partial.Store(b.Add(left, b.LocalID(), d*r.lanes()), b.Vec(sum.Elem(0), sum.Elem(1), sum.Elem(2), sum.Elem(3)))
	}
	b.If(b.Eq(r.pair, 0), func() {
		for i, row := range r.ofRow {
			partial.Store(r.pairAt(left, i), b.Vec(row.top.Get(), row.weight.Get()))
		}
	})
}

// meet ends the last split of the workgroup. If the tile has several the last workgroup that shares it adds them up.
// It calls write in the workgroup that has the tile's sums.
func (r *wgmmaAttentionRun) meet(write func()) {
	if r.merge == nil {
		write()
		return
	}
	b, s := r.b, r.share
	r.foldWeights()
	active := s.kept.Load(keptActive)
	several := b.Gt(active, 1)
	b.If(several, func() { r.put(r.end) })
	b.If(site.LastOf(b, s.kept, s.arrivals, s.kept.Load(keptTile), s.kept.Load(keptOwn), active), func() {
		b.If(several, func() { r.addUp(active) })
		write()
	})
}

// addUp adds up the tile's splits that have positions, in their order.
func (r *wgmmaAttentionRun) addUp(active kernel.Value) {
	b, partial := r.b, r.share.partial
	for _, row := range r.ofRow {
		row.top.Set(emptyScore)
		row.weight.Set(0)
	}
	b.ForRolled(0, active, 1, func(split kernel.Value) {
		left := r.leftAt(split)
		for i, row := range r.ofRow {
			row.top.Set(b.Max(row.top.Get(), b.Elem(partial.Load(lane.F32x2, r.pairAt(left, i)), 0)))
		}
	})
	for _, sum := range r.sums {
		sum.Set(b.MatFill(wgmmaSum, 0))
	}
	b.ForRolled(0, active, 1, func(split kernel.Value) {
		left := r.leftAt(split)
		var fades [2]kernel.Value
		for i, row := range r.ofRow {
			pair := partial.Load(lane.F32x2, r.pairAt(left, i))
			fades[i] = b.Exp2(b.Sub(b.Elem(pair, 0), row.top.Get()))
			row.weight.Set(b.FMA(fades[i], b.Elem(pair, 1), row.weight.Get()))
		}
		for d, sum := range r.sums {
			of := partial.Load(lane.F32x4, b.Add(left, b.LocalID(), d*r.lanes()))
			for e := range 4 {
				sum.SetElem(e, b.FMA(fades[e/2], b.Elem(of, e), sum.Elem(e)))
			}
		}
	})
}

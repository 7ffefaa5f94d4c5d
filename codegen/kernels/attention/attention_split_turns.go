package attention

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// Rows of many sequences fill the units without splits. So a workgroup goes through several splits of a row there, one
// after the other, and makes q once. A row of many positions has more workgroups, as far as the grid has them. What the
// splits are, and the order in which they are added, stays.

const (
	// turnRounds is the workgroups that a unit has in a dispatch in turns, at most. Most have nothing to do.
	turnRounds = 16
	// turnPositions is the positions that a workgroup goes through, if the grid has enough workgroups.
	turnPositions = 1024
)

// inTurns reports whether a workgroup may have several splits.
func (k *splitKernel) inTurns() bool { return k.apart() < k.splits() }

// double gives workgroups twice the heads where rows have more pairs than there are units, so that units read the cache
// once and in half of the rounds. Parts of the sums that half of the heads have in one matrix are in two then. A target
// must say how much shared memory a workgroup can have.
func (k *splitKernel) double(t *target.Target) {
	if k.merge == nil || !k.matrices || k.wide || !k.rows.Tiled() || k.headDim != eightsHead || k.kv != ir.F16 || k.share != matrixHeads ||
		k.group%(2*matrixHeads) != 0 || !t.Copies() || t.SharedOptIn < t.Shared || k.rows.Max*k.heads/k.share <= t.Units {
		return
	}
	k.doubled, k.share = true, 2*matrixHeads
}

// apart is the workgroups that may share the splits of a row and KV head.
func (k *splitKernel) apart() int {
	n := k.splits()
	if k.merge == nil || !k.matrices || k.wide || !k.rows.Tiled() {
		return n
	}
	return min(n, max(1, turnRounds*k.units/k.pairs()), k.sharersAt(k.ctx))
}

// sharersAt is how many workgroups share the splits of a row that sees so many positions, if the grid has them: one for
// each turnPositions, and where rows leave units without work as many as have one each.
func (k *splitKernel) sharersAt(positions int) int {
	return max(site.CeilDiv(positions, turnPositions), k.roomFor())
}

// roomFor is the units by row and heads; 0 if there are less.
func (k *splitKernel) roomFor() int { return k.units / k.pairs() }

// pairs is the pairs of a row and a workgroup's heads.
func (k *splitKernel) pairs() int { return k.rows.Max * k.heads / k.share }

// sharersOf returns how many workgroups share the splits of a row that sees so many positions: every so many-th split
// is in the same one.
func (k *splitKernel) sharersOf(b *kernel.Builder, length kernel.Value) kernel.Value {
	n := b.Div(b.Add(length, turnPositions-1), turnPositions)
	return b.Min(b.Max(n, k.roomFor()), k.apart())
}

// attendInTurns adds up the workgroup's splits, if q, and k and v of the step's rows, have been made. The last
// workgroup of a row and KV head adds up all of its splits.
func (r *splitRun) attendInTurns() {
	b, sums, end := r.b, r.sums.(*matrixSums), r.hi
	if r.from == (kernel.Value{}) {
		r.from = b.U32(0)
	}
	active, sharers := b.Div(b.Sub(b.Add(r.length, r.step), 1), r.step), r.sharersOf(b, r.length)
	alone := b.Eq(active, 1)
	r.stride, sums.cachedEnd = sharers, end
	if r.fresh() {
		sums.cachedEnd = b.Min(end, r.at)
	}
	b.ForRolled(r.split, active, sharers, func(split kernel.Value) {
		r.split = split
		r.lo = b.Add(r.from, b.Mul(split, r.step))
		r.hi = b.Min(end, b.Add(r.lo, r.step))
		sums.bound()
		sums.takeOthers()
		sums.start()
		sums.attend()
		sums.finish(alone)
		b.Barrier() // all have read what the next turn overwrites
	})
	b.ReturnIf(alone)
	index := b.Add(b.Mul(r.row, b.NumWorkgroups(0)), b.WorkgroupID(0))
	b.If(site.LastBlock(b, r.arrivals, index, b.Min(active, sharers)), func() { sums.mergeSplits(active) })
}

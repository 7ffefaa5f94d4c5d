package attention

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// Many rows of many positions ask for more bytes at a time than registers hold. So where splits are in turns, lanes copy
// the keys and values of their next 16 positions to shared memory while they use these. Each lane copies what it will
// use itself: nobody waits for others.

// stages reports whether keys and values are copied ahead: a unit has room for turnResident workgroups that do.
func (k *splitKernel) stages(t *target.Target) bool {
	return t.Copies() && k.inTurns() && k.kv == ir.F16 && k.headDim <= aheadHead && turnResident*(stagedRest+k.stagedBytes()) <= t.SharedOptIn
}

// stagedRest is what a workgroup has of shared memory besides, at most, in heads up to aheadHead.
const stagedRest = 32 << 10

// stagedBytes is the size of the next keys and values of a workgroup.
func (k *splitKernel) stagedBytes() int {
	return k.subgroups * fragment.Side * 2 * int(k.kv.Bytes(int64(k.headDim)))
}

// stagedTiles are the copies of a workgroup in shared memory, by access and lane: the keys' and then the values'.
type stagedTiles struct {
	words  *kernel.Array
	keys   int // accesses of a lane
	values int
}

// stage declares the copies, and begins the first of a split's.
func (r *matrixSums) stage() {
	b := r.b
	keys, values := 2*r.headDim/keyUnitElements/4, 4*r.headDim/r.valueUnitElements()/8
	r.staged = &stagedTiles{words: b.Shared(lane.U32x4, (keys+values)*r.subgroups*r.wave), keys: keys, values: values}
	first := nextSums{matrixSums: *r, from: r.firstOf()}
	end := b.Min(r.end, b.Add(r.lo, r.step))
	first.last = b.Sub(b.Max(end, 1), 1)
	is := b.Lt(first.from, end)
	first.copyKeys(first.from, is)
	first.copyValues(first.from, is)
}

// copyKeys begins to copy the keys of the 16 positions from `from` on, if there are any, as a group.
func (r *matrixSums) copyKeys(from, when kernel.Value) {
	b := r.b
	b.If(when, func() {
		tile, slot := r.headAt(from), 0
		for i := range 2 {
			slot = r.copyUnits(r.k, tile, r.keyAt(from, i), slot, 4, r.keyUnit)
		}
	})
	b.CopyGroup()
}

// copyValues is copyKeys of values.
func (r *matrixSums) copyValues(from, when kernel.Value) {
	b := r.b
	b.If(when, func() {
		tile, slot := r.headAt(from), r.staged.keys
		for i := range 4 {
			slot = r.copyUnits(r.v, tile, r.valueAt(from, i), slot, 8, r.valueUnit)
		}
	})
	b.CopyGroup()
}

// copyUnits begins to copy what loadUnits would load, to the lane's accesses from slot on. It returns the next one.
func (r *matrixSums) copyUnits(cache *kernel.Buffer, tile cachedHead, at kernel.Value, slot, lanes int, unit func(i int) kernel.Value) int {
	b := r.b
	first := r.attentionArgs.at(b, tile, at).chunks
	for i := range r.headDim / chunk / lanes {
		cache.Ahead().Copy(lane.U32x4, r.staged.words, r.stagedAt(slot), b.Add(first, unit(i)))
		slot++
	}
	return slot
}

// stagedAt is where the lane's access is.
func (r *matrixSums) stagedAt(slot int) kernel.Value {
	return r.b.Add(r.b.LocalID(), slot*r.subgroups*r.wave)
}

// stagedRows returns the rows of what was copied, as many as said, of the lane's accesses from slot on.
func (r *matrixSums) stagedRows(slot, rows, each int) (list [][]kernel.Value) {
	for i := range rows {
		var row []kernel.Value
		for j := range each {
			row = append(row, r.staged.words.Load(r.stagedAt(slot+i*each+j)))
		}
		list = append(list, row)
	}
	return list
}

// attendStaged finds the keys and values of a turn copied, and begins to copy those of the next right behind their use.
func (r *matrixSums) attendStaged(from kernel.Value) {
	b, s := r.b, r.staged
	next, more := r.nextTile(from)
	b.CopyWait(1)
	keys := tileWords{words: r.stagedRows(0, 2, s.keys/2)}
	scores := r.scores(from, r.refreshed(from, keys, r.freshK, keyUnitElements, r.keyAt, r.keyUnit))
	next.copyKeys(next.from, more)
	b.CopyWait(1)
	values := tileWords{words: r.stagedRows(s.keys, 4, s.values/4)}
	r.addValues(r.refreshed(from, values, r.freshV, r.valueUnitElements(), r.valueAt, r.valueUnit), r.weigh(scores))
	next.copyValues(next.from, more)
}

// nextTile is the sums at the subgroup's next 16 positions, which may be of another split, and whether there are any.
// Who has none of a split has none of those behind it.
func (r *matrixSums) nextTile(from kernel.Value) (next *nextSums, more kernel.Value) {
	b := r.b
	further := b.Add(from, r.subgroups*fragment.Side)
	same := b.Lt(further, r.end)
	lo := b.Add(r.lo, b.Mul(r.stride, r.step))
	end := b.Min(r.cachedEnd, b.Add(lo, r.step))
	first := b.Add(lo, b.Mul(b.SubgroupID(), fragment.Side))
	n := &nextSums{matrixSums: *r, from: b.Select(same, further, first)}
	n.last = b.Sub(b.Max(b.Select(same, r.end, end), 1), 1)
	return n, b.Or(same, b.Lt(first, end))
}

// nextSums are those at other positions.
type nextSums struct {
	matrixSums
	from kernel.Value
}

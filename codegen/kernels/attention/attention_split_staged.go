package attention

import (
	"cmp"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// Many rows of many positions ask for more bytes at a time than registers hold. So where splits are in turns, subgroups
// copy the keys and values of their next 16 positions to shared memory while they use these. What lanes copy together
// lies side by side in the caches, which is not what a lane has in matrices: a subgroup waits for all of its lanes, and
// no subgroup for others.

// stages reports whether keys and values are copied ahead: a unit has room for two workgroups that do, or of wider
// heads for one, and a subgroup copies whole positions at a time.
func (k *splitKernel) stages(t *target.Target) bool {
	bytes := k.sharedBytes(k.subgroups) + k.stagedBytes()
	if k.headDim <= aheadHead {
		bytes *= 2
	}
	whole := k.wave%(k.headDim/chunk) == 0
	return t.Copies() && k.inTurns() && k.kv == ir.F16 && whole && bytes <= cmp.Or(t.SharedFast, t.SharedOptIn)
}

// stagedBytes is the size of the next keys and values of a workgroup.
func (k *splitKernel) stagedBytes() int {
	return k.subgroups * fragment.Side * 2 * int(k.kv.Bytes(int64(k.headDim)))
}

// stagedTile is the keys or the values of the subgroup's next 16 positions in shared memory, by position and chunk.
// Eight lanes that load together have four chunks of two neighbours of keys, and of values two chunks of every fourth
// position. So that they use all banks, chunk c of position p of the 16 lies at c xor 4 (p mod 2) xor 2 (p div 4).
type stagedTile struct {
	cache *kernel.Buffer
	words *kernel.Array // by subgroup, too
}

// stage declares what is copied ahead, and begins to copy the subgroup's first positions.
func (r *matrixSums) stage() {
	b := r.b
	n := r.subgroups * fragment.Side * r.headDim / chunk
	r.stagedKeys, r.stagedValues = &stagedTile{r.k, b.Shared(lane.U32x4, n)}, &stagedTile{r.v, b.Shared(lane.U32x4, n)}
	first := nextTile{from: r.firstOf(), end: b.Min(r.end, b.Add(r.lo, r.step))}
	first.is = b.Lt(first.from, first.end)
	r.copyTile(r.stagedKeys, first)
	r.copyTile(r.stagedValues, first)
}

// nextTile are 16 positions, as far as they are before an end; `is` says whether there are any.
type nextTile struct{ from, end, is kernel.Value }

// copyTile begins to copy a tile, as a group. Past the end it copies the last position.
func (r *matrixSums) copyTile(to *stagedTile, next nextTile) {
	b := r.b
	chunks := r.headDim / chunk // of a position
	b.If(next.is, func() {
		last := b.Sub(next.end, 1)
		tile := r.base
		if r.splitKernel.inPages() {
			tile = r.near(b, r.base, next.from)
		}
		c, first, rows := b.Mod(b.SubgroupLane(), chunks), b.Div(b.SubgroupLane(), chunks), r.wave/chunks // 1, 2 or 4 at a time
		at := r.stagedAt(first, b.Xor(c, b.Mul(b.And(first, 1), 4)))
		for i := 0; i < fragment.Side; i += rows {
			from := b.Add(r.attentionArgs.at(b, tile, b.Min(b.Add(next.from, first, i), last)).chunks, c)
			to.cache.Ahead().Copy(lane.U32x4, to.words, b.Add(b.Xor(at, (i%2*4)^(i/4*2)), i*chunks), from)
		}
	})
	b.CopyGroup()
}

// stagedAt is where chunk c of a position of the subgroup's tile lies.
func (r *matrixSums) stagedAt(row, c kernel.Value) kernel.Value {
	return r.b.Add(r.b.Mul(r.b.Add(r.b.Mul(r.b.SubgroupID(), fragment.Side), row), r.headDim/chunk), c)
}

// arrivedKeys and arrivedValues are what the lane has of the subgroup's tiles.
func (r *matrixSums) arrivedKeys() (w tileWords) {
	b := r.b
	far, odd := b.Shr(r.place, 1), b.And(r.place, 1)
	at := r.stagedAt(b.Add(b.Mul(far, 4), odd), b.Xor(r.quad, b.Xor(b.Mul(odd, 4), b.Mul(far, 2))))
	for tile := range 2 {
		w.words = append(w.words, nil)
		for i := range r.headDim / keyUnitElements / 4 {
			at := b.Add(b.Xor(at, 4*i), 2*tile*r.headDim/chunk)
			w.words[tile] = append(w.words[tile], r.stagedKeys.words.Load(at))
		}
	}
	return w
}

func (r *matrixSums) arrivedValues() (w tileWords) {
	b := r.b
	at := r.stagedAt(b.Mul(r.quad, 4), b.Xor(r.place, b.Mul(r.quad, 2)))
	for row := range 4 {
		w.words = append(w.words, nil)
		for i := range r.headDim / r.valueUnitElements() / 8 {
			at := b.Add(b.Xor(at, 4*(row%2)), row*r.headDim/chunk+8*i)
			w.words[row] = append(w.words[row], r.stagedValues.words.Load(at))
		}
	}
	return w
}

// attendStaged finds the keys and values of a turn copied, and begins to copy those of the next right behind their use.
func (r *matrixSums) attendStaged(from kernel.Value) {
	b := r.b
	next := r.nextTile(from)
	r.arrive()
	scores := r.scores(from, r.refreshed(from, r.arrivedKeys(), r.freshK, keyUnitElements, r.keyAt, r.keyUnit))
	b.SubgroupBarrier() // all lanes have their keys
	r.copyTile(r.stagedKeys, next)
	r.arrive()
	values := r.refreshed(from, r.arrivedValues(), r.freshV, r.valueUnitElements(), r.valueAt, r.valueUnit)
	r.addValues(values, r.weigh(scores))
	b.SubgroupBarrier()
	r.copyTile(r.stagedValues, next)
}

// arrive waits for the older of two copies under way.
func (r *matrixSums) arrive() {
	r.b.CopyWait(1)
	r.b.SubgroupBarrier()
}

// nextTile is the subgroup's next one, which may be of another split. Who has none of a split has none of those behind
// it.
func (r *matrixSums) nextTile(from kernel.Value) nextTile {
	b := r.b
	further := b.Add(from, r.subgroups*fragment.Side)
	same := b.Lt(further, r.end)
	lo := b.Add(r.lo, b.Mul(r.stride, r.step))
	end := b.Min(r.cachedEnd, b.Add(lo, r.step))
	first := b.Add(lo, b.Mul(b.SubgroupID(), fragment.Side))
	return nextTile{from: b.Select(same, further, first), end: b.Select(same, r.end, end), is: b.Or(same, b.Lt(first, end))}
}

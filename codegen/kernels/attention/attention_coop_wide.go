package attention

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
)

// inPlace runs over the positions of wide heads. In each tile the values take the keys' place, or are the keys.
func (r *coopAttentionRun) inPlace(begin, first kernel.Value) {
	b := r.b
	buffer := b.Var(kernel.U32, 0)
	r.fill(r.k, begin, b.U32(0))
	b.ForRolled(begin, r.end, r.tileKV, func(from kernel.Value) {
		this, next := buffer.Get(), b.Add(from, r.tileKV)
		b.CopyWait(0)
		b.Barrier()
		if r.buffers == 2 {
			other := b.Sub(r.bufferSize(), this)
			r.fill(r.k, next, other)
			buffer.Set(other)
		}
		masked := r.masked(from, next, first)
		r.setScores(r.score(this))
		vote := r.vote(masked)
		b.Barrier()
		if !r.same() {
			r.fill(r.v, from, this)
		}
		r.change(from, masked, vote())
		r.weigh()
		if !r.same() {
			b.CopyWait(0)
		}
		b.Barrier()
		r.add(this)
		if r.buffers == 1 {
			b.Barrier()
			r.fill(r.k, next, this)
		}
	})
	b.CopyWait(0)
}

// fill puts the positions from `from` on into a buffer, of f16 by copies that lanes wait for later. Those from end on
// repeat the last.
func (r *coopAttentionRun) fill(cache *kernel.Buffer, from, to kernel.Value) {
	b, octets := r.b, r.octets()
	units := r.headDim / 8 / octets
	tile := r.headAt(from, r.tileKV)
	b.For(b.LocalID(), r.tileKV*units, r.lanes(), func(item kernel.Value) {
		p, u := b.Div(item, units), b.Mod(item, units)
		first := b.Add(to, b.Mul(p, r.stride()), b.Mul(u, octets))
		r.fillUnit(cache, tile, from, p, u, func(octet int) kernel.Value { return b.Add(first, octet) })
	})
	r.fillDone()
}

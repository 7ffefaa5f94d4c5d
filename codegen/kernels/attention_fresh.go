package kernels

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/ir"
)

// makeHeads computes q of the workgroup's heads, and k and v of the rows of the step
// that the split attends to, or, in the writer, those that it puts into the caches.
func (r *splitRun) makeHeads(writer kernel.Value) {
	b, m := r.b, &r.maker
	accesses := r.headDim / m.vec
	r.queries = b.Shared(kernel.F32.Vec(m.vec), r.share*accesses)
	scale := b.Splat(r.scale, m.vec)
	b.For(b.SubgroupID(), r.share, r.subgroups, func(h kernel.Value) {
		m.at = r.at
		m.make(r.chains[0], b.Add(b.Mul(r.row, r.heads), r.head, h), func(j, v kernel.Value) {
			r.queries.Store(b.Add(b.Mul(h, accesses), j), b.Mul(v, scale))
		})
	})
	if !r.fresh() {
		return
	}
	rows := r.attentionShape.rows.max
	elem := kernel.F32.Vec(m.vec)
	if r.kv == ir.F16 {
		elem = map[int]kernel.Type{2: kernel.U32, 4: u32x2}[m.vec]
	}
	r.freshK, r.freshV = b.Shared(elem, rows*accesses), b.Shared(elem, rows*accesses)
	kvHeads := b.Div(r.heads, r.group)
	kvHead := b.Select(writer, b.WorkgroupID(0), b.Div(r.head, r.group))
	makeRow := func(i, pos, visible kernel.Value) {
		attended := b.And(visible, b.And(b.Ge(pos, r.lo), b.Lt(pos, r.hi)))
		own := b.And(b.Eq(i, r.row), b.Lt(kvHead, kvHeads))
		b.If(b.Or(b.And(writer, own), b.And(b.Not(writer), attended)), func() {
			m.at = pos
			head := b.Add(b.Mul(i, kvHeads), kvHead)
			cachedHead := b.Add(b.Mul(b.Add(b.Mul(r.slot, r.ctx), pos), kvHeads), kvHead)
			put := func(chain *chainArgs, cache *kernel.Buffer, fresh *kernel.Array) {
				m.make(chain, head, func(j, v kernel.Value) {
					if r.kv == ir.F16 {
						v = packHalves(b, v)
					}
					b.IfElse(writer, func() { cache.Store(b.Add(b.Mul(cachedHead, accesses), j), v) },
						func() { fresh.Store(b.Add(b.Mul(i, accesses), j), v) })
				})
			}
			put(r.chains[2], r.v, r.freshV)
			put(r.chains[1], r.k, r.freshK)
		})
	}
	if rows == 1 {
		b.If(b.Eq(b.SubgroupID(), r.share%r.subgroups), func() { makeRow(b.U32(0), r.at, b.Bool(true)) })
		return
	}
	first := b.Mod(b.Add(b.SubgroupID(), r.subgroups-r.share%r.subgroups), r.subgroups) // other subgroups than those of q
	b.For(first, rows, r.subgroups, func(i kernel.Value) {
		pos, slot := r.pos.Load(kernel.U32, i), r.attentionArgs.slot.Load(kernel.U32, i)
		makeRow(i, pos, b.And(b.Lt(i, r.attentionArgs.rows), b.Eq(slot, r.slot)))
	})
}

// eachFresh emits body for the rows of the step that are of this row's sequence.
func (r *splitRun) eachFresh(body func(i, pos kernel.Value)) {
	b := r.b
	if r.attentionShape.rows.max == 1 { // without a loop, which would wait for all loads
		body(b.U32(0), r.at)
		return
	}
	b.For(0, r.attentionArgs.rows, 1, func(i kernel.Value) {
		pos, slot := r.pos.Load(kernel.U32, i), r.attentionArgs.slot.Load(kernel.U32, i)
		b.If(b.Eq(slot, r.slot), func() { body(i, pos) })
	})
}

// findFresh finds out from which position on rows of the step may be attended to.
func (r *splitRun) findFresh() {
	first := r.b.Var(kernel.U32, r.at)
	r.eachFresh(func(_, pos kernel.Value) { first.Set(r.b.Min(first.Get(), pos)) })
	r.firstFresh = first.Get()
}

// takeFresh puts k and v of the step's rows in place of what the caches had there.
func (r *splitRun) takeFresh(from kernel.Value) {
	b, vec := r.b, r.maker.vec
	words := vec // of an element of the arrays
	if r.kv == ir.F16 {
		words /= 2
	}
	r.eachFresh(func(row, pos kernel.Value) {
		for j := range r.keys {
			is := b.Eq(b.Min(r.position(from, j), b.Sub(r.hi, 1)), pos)
			for part := range r.parts {
				c, _ := r.part(part)
				i := b.Add(b.Mul(row, r.headDim/vec), b.Mul(c, chunk/vec))
				for m, held := range [][]*kernel.Var{r.keys[j][part], r.values[j][part]} {
					list := sharedWords(b, []*kernel.Array{r.freshK, r.freshV}[m], i, words, len(held)*4)
					for w, v := range held {
						v.Set(b.Select(is, list[w], v.Get()))
					}
				}
			}
		}
	})
}

// sharedWords returns n words from element i on of an array whose elements have that
// many words, as vectors of 4.
func sharedWords(b *kernel.Builder, a *kernel.Array, i kernel.Value, words, n int) []kernel.Value {
	var all []kernel.Operand
	for j := range n / words {
		for _, e := range elements(b, a.Load(b.Add(i, j))) {
			all = append(all, e)
		}
	}
	var list []kernel.Value
	for ; len(all) > 0; all = all[4:] {
		list = append(list, b.Vec(all[:4]...))
	}
	return list
}

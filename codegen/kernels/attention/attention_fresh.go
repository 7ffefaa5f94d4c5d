package attention

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/ir"
)

// makeHeads computes q of the workgroup's heads, and k and v of the rows of the step
// that the split attends to, or, in the writer, those that it puts into the caches.
func (r *splitRun) makeHeads(writer kernel.Value) {
	if lanes, ok := r.sums.(*laneSums); ok && (r.fresh() || r.chains[0].plain()) {
		if r.fresh() {
			lanes.makeHeads()
		} else {
			lanes.queryAsItIs()
		}
		return
	}
	r.makeQueries()
	if r.fresh() {
		r.makeFresh(writer)
	}
}

// each shares n items from first on among subgroups: without a loop if one turn does, which is less code.
func (r *splitRun) each(first kernel.Value, n int, body func(i kernel.Value)) {
	if n <= r.subgroups {
		r.b.If(r.b.Lt(first, n), func() { body(first) })
		return
	}
	r.b.For(first, n, r.subgroups, body)
}

// makeQueries computes q of the workgroup's heads.
func (r *splitRun) makeQueries() {
	b, m := r.b, &r.maker
	r.each(b.SubgroupID(), r.share, func(h kernel.Value) {
		m.at = r.at
		make := func() {
			m.make(r.chains[0], b.Add(b.Mul(r.row, r.heads), r.head, h), func(j, v kernel.Value) { r.sums.query(h, j, v) })
		}
		if !r.halves() {
			make()
			return
		}
		b.IfElse(r.has(h), make, func() { r.sums.(*matrixSums).noQuery(h) })
	})
}

// freshMaker makes k and v of rows of the step.
type freshMaker struct {
	*splitRun
	writer          kernel.Value // the workgroup puts them into the caches
	kvHeads, kvHead kernel.Value // of a row, and the workgroup's
}

// makeFresh computes k and v of the step's rows.
func (r *splitRun) makeFresh(writer kernel.Value) {
	b, rows := r.b, r.attentionShape.rows.Run
	r.freshK, r.freshV = r.newFresh(rows), r.newFresh(rows)
	f := freshMaker{splitRun: r, writer: writer}
	f.kvHeads = b.Div(r.heads, r.group)
	f.kvHead = b.Div(r.head, r.group)
	if r.writer() {
		f.kvHead = b.Select(writer, b.WorkgroupID(0), f.kvHead)
	}
	if rows == 1 {
		if !r.wide {
			b.If(r.makes(1), func() { f.row(b.U32(0), r.at, b.Bool(true), 2, 1) })
			return
		}
		for chain := 2; chain > 0; chain-- {
			b.If(r.makes(chain), func() { f.row(b.U32(0), r.at, b.Bool(true), chain) })
		}
		return
	}
	if m, ok := r.sums.(*matrixSums); ok {
		f.rowsOfRun(m, rows)
		return
	}
	r.each(r.behindQueries(0), rows, func(i kernel.Value) {
		i = r.ofRun(i)
		pos, slot := r.pos.Load(kernel.U32, i), r.attentionArgs.slot.Load(kernel.U32, i)
		f.row(i, pos, b.And(b.Lt(i, r.attentionArgs.rows), b.Eq(slot, r.slot)), 2, 1)
	})
}

// behindQueries counts subgroups from one that makes no q on, if there is one, or the n-th behind that.
func (r *splitRun) behindQueries(n int) kernel.Value {
	b := r.b
	return b.Mod(b.Add(b.SubgroupID(), r.subgroups-(r.share+n)%r.subgroups), r.subgroups)
}

// rowsOfRun makes k and v of the rows that may be of the row's run, whose positions lanes have. The row itself comes
// first: where there is no draft, a subgroup has its k, and another its v.
func (f *freshMaker) rowsOfRun(m *matrixSums, rows int) {
	b, r := f.b, f.splitRun
	for n, chain := range []int{1, 2} {
		r.each(r.behindQueries(n), rows, func(i kernel.Value) {
			i = b.Mod(b.Add(r.inRun(r.row), i), rows)
			is := b.SubgroupShuffle(b.Select(m.other, b.U32(1), b.U32(0)), i)
			f.row(r.ofRun(i), b.SubgroupShuffle(m.otherPos, i), b.Ne(is, 0), chain)
		})
	}
}

// row makes chains of row i, whose position is pos, if the split attends to it or the writer puts it away.
func (f *freshMaker) row(i, pos, visible kernel.Value, chains ...int) {
	b := f.b
	attended := b.And(visible, b.And(b.Ge(pos, f.lo), b.Lt(pos, f.hi)))
	own := b.And(b.Eq(i, f.splitRun.row), b.Lt(f.kvHead, f.kvHeads))
	if f.splitRun.writer() {
		attended = b.And(b.Not(f.writer), attended)
	}
	b.If(b.Or(b.And(f.writer, own), attended), func() {
		f.maker.at = pos
		r := freshHead{freshMaker: f, i: i, own: own}
		r.head = b.Add(b.Mul(i, f.kvHeads), f.kvHead)
		r.part = f.caches.part(b, f.slot, pos)
		r.within = func() kernel.Value { return f.caches.within(b, pos) }
		r.cached = b.Add(b.Mul(f.caches.place(b, r.part, pos), f.kvHeads), f.kvHead)
		for _, chain := range chains {
			r.put(chain, []*kernel.Buffer{f.k, f.v}[chain-1], []freshRows{f.freshK, f.freshV}[chain-1])
		}
	})
}

// freshHead is a head of a row of the step, of k or of v.
type freshHead struct {
	*freshMaker
	i, own kernel.Value        // the row, and whether it is the workgroup's
	head   kernel.Value        // among those of all rows
	part   kernel.Value        // of the caches
	within func() kernel.Value // of its rows, the row's
	cached kernel.Value        // the head in the caches
}

// put makes the head of a chain, for the cache and for the split.
func (r *freshHead) put(chain int, cache *kernel.Buffer, fresh freshRows) {
	b, m, format := r.b, &r.maker, r.scaled()
	accesses := r.headDim / m.vec
	var scales kernel.Value
	if format != nil {
		scales = b.Add(r.scalesOf(b, r.part, r.kvHead), r.within())
	}
	m.make(r.chains[chain], r.head, func(j, v kernel.Value) {
		var scale kernel.Value
		switch {
		case r.kv == ir.F16:
			v = packHalves(b, v)
		case format != nil:
			v, scale = format.round(b, v)
		}
		store := func() {
			i := b.Mul(r.cached, accesses)
			if format != nil {
				i = r.caches.behind(b, r.part, r.kvHeads, r.headWidth, i, m.vec*r.format.bits)
			}
			format.store(cache, b.Add(i, j), v)
			if format != nil {
				storeScale(b, cache, scales, r.caches.rows(), j, scale)
			}
		}
		keep := func() {
			i := r.inRun(r.i)
			fresh.elems.Store(b.Add(b.Mul(i, accesses), j), v)
			if format != nil {
				ofBlock(b, j, func(block kernel.Value) { fresh.scales.Store(b.Add(b.Mul(i, r.headDim/scaled), block), scale) })
			}
		}
		if r.splitRun.writer() {
			b.IfElse(r.writer, store, keep)
			return
		}
		part := b.Eq(b.Div(j, accesses/r.sharers()), b.Mod(b.WorkgroupID(0), r.sharers()))
		b.If(b.And(b.And(r.writer, r.own), part), store)
		keep()
	})
}

// findRun finds where the rows begin that may be of the row's run, if the step has more.
func (r *splitRun) findRun() {
	if r.attentionShape.rows.Tiled() {
		b, before := r.b, r.attentionShape.rows.Run-1
		r.runFrom = b.Sub(b.Max(r.row, before), before)
	}
}

// ofRun returns which row of the step the i-th of these is, and inRun is its inverse.
func (r *splitRun) ofRun(i kernel.Value) kernel.Value {
	if r.attentionShape.rows.Tiled() {
		return r.b.Add(r.runFrom, i)
	}
	return i
}

func (r *splitRun) inRun(row kernel.Value) kernel.Value {
	if r.attentionShape.rows.Tiled() {
		return r.b.Sub(row, r.runFrom)
	}
	return row
}

// makes reports whether the subgroup makes k, the first chain behind q, or v, the second, of the only row: where there
// are, one that makes no q; else one each, in the first two workgroups one that makes none if they have half of the
// heads.
func (r *splitRun) makes(chain int) kernel.Value {
	b := r.b
	if !r.wide {
		return b.Eq(b.SubgroupID(), r.share%r.subgroups)
	}
	return b.Eq(b.SubgroupID(), b.Select(b.Eq(r.split, 1), chain-1, b.U32(uint32(r.together()+chain-1))))
}

// has reports whether the workgroup has one of its heads, see halves.
func (r *splitRun) has(h kernel.Value) kernel.Value {
	b := r.b
	return b.Or(b.Not(r.inHalves), b.Eq(b.Div(h, r.together()), r.split))
}

// eachEarly calls load for the heads that are loaded before q is made, with the subgroup that makes them.
func (r *splitRun) eachEarly(load func(c *chainArgs, head, when kernel.Value)) {
	b := r.b
	q := b.Lt(b.SubgroupID(), r.share)
	load(r.chains[0], b.Add(b.Mul(r.row, r.heads), r.head, b.SubgroupID()), q)
	for i, c := range r.chains[1:] {
		load(c, b.Add(b.Mul(r.row, b.Div(r.heads, r.group)), b.Div(r.head, r.group)), r.makes(i+1))
	}
}

// freshRows is k or v of the step's rows in shared memory, as the cache holds them.
type freshRows struct {
	elems  *kernel.Array // an access of the heads' maker each
	scales *kernel.Array // a word each; nil if there are none
	words  int           // of an element of elems
	halves bool          // of each word of elems the upper half is none
}

func (r *splitRun) newFresh(rows int) freshRows {
	b, vec := r.b, r.maker.vec
	f := freshRows{words: vec}
	elem := kernel.F32.Vec(vec)
	switch {
	case r.kv == ir.F16:
		f.words = vec / 2
		elem = kernel.U32.Vec(f.words)
	case r.scaled() != nil:
		f.words, elem, f.halves = vec/4, kernel.U32, r.scaled().fourBytes() == 2
		f.scales = b.Shared(kernel.U32, rows*r.headDim/scaled)
	}
	f.elems = b.Shared(elem, rows*r.headDim/vec)
	return f
}

// chunk returns chunk c of a row as loadWords returns that of a cache.
func (f freshRows) chunk(r *splitRun, row, c kernel.Value) []kernel.Value {
	b, vec := r.b, r.maker.vec
	i := b.Add(b.Mul(row, r.headDim/vec), b.Mul(c, chunk/vec))
	if f.scales == nil {
		return sharedWords(b, f.elems, i, f.words, chunk*f.words/vec, 4)
	}
	scale := f.scales.Load(b.Add(b.Mul(row, r.headDim/scaled), b.Div(c, scaled/chunk)))
	if f.halves {
		return []kernel.Value{f.joined(b, i), scale}
	}
	return append(sharedWords(b, f.elems, i, f.words, chunk*f.words/vec, 2), scale)
}

// joined returns the word that elements i and i+1 have a half of.
func (f freshRows) joined(b *kernel.Builder, i kernel.Value) kernel.Value {
	return b.Or(f.elems.Load(i), b.Shl(f.elems.Load(b.Add(i, 1)), 16))
}

// sharedWords returns n words from element i on of an array whose elements have that
// many words, as vectors.
func sharedWords(b *kernel.Builder, a *kernel.Array, i kernel.Value, words, n, vector int) []kernel.Value {
	var all []kernel.Operand
	for j := range n / words {
		for _, e := range lane.Elements(b, a.Load(b.Add(i, j))) {
			all = append(all, e)
		}
	}
	var list []kernel.Value
	for ; len(all) > 0; all = all[vector:] {
		list = append(list, b.Vec(all[:vector]...))
	}
	return list
}

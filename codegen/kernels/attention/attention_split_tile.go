package attention

import (
	"math"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// What lanes have of the caches in matrixSums.

// tileWords is what a lane has of the keys or values of 16 positions, of keys by tile and 32
// dims, of values by position (4*quad and on) and 64 dims, of codes by 32. A tile has positions
// 4i, 4i+1 and on, the other 4i+2 and 4i+3. scales are those of codes, by 32 dims: of the lane's four
// positions.
type tileWords struct {
	words  [][]kernel.Value
	scales []kernel.Value
}

// rows are the words and, last, the scales.
func (w tileWords) rows() [][]kernel.Value { return append(slices.Clone(w.words), w.scales) }

// tileOf returns what variables hold of rows.
func (r *matrixSums) tileOf(held [][]*kernel.Var) tileWords {
	rows := lane.GetVars(held)
	words := rows[:len(rows)-1]
	if r.scaled() != nil {
		return tileWords{words, rows[len(words)]}
	}
	return tileWords{words: words}
}

// scale returns that of the i-th position.
func (w tileWords) scale(b *kernel.Builder, block, i int) kernel.Value {
	return b.Elem(b.UnpackHalf(b.Elem(w.scales[block], i/2)), i%2)
}

// keyAt and valueAt are the positions whose words the lane has; past the end it is the last.
func (r *matrixSums) keyAt(from kernel.Value, tile int) kernel.Value {
	b := r.b
	return b.Min(b.Add(from, b.Add(b.Mul(b.Shr(r.place, 1), 4), b.And(r.place, 1)), 2*tile), r.last)
}

func (r *matrixSums) valueAt(from kernel.Value, i int) kernel.Value {
	return r.b.Min(r.b.Add(from, r.b.Mul(r.quad, 4), i), r.last)
}

// keyUnit and valueUnit are the places in a head of a lane's words, in units of as many.
func (r *matrixSums) keyUnit(i int) kernel.Value { return r.b.Add(r.quad, 4*i) }

func (r *matrixSums) valueUnit(i int) kernel.Value { return r.b.Add(r.place, 8*i) }

// keyUnitElements and valueUnitElements are the elements of such a unit.
const keyUnitElements = 8

func (r *matrixSums) valueUnitElements() int {
	if r.scaled() != nil {
		return 4
	}
	return 8
}

// quadOf returns which four of 64 dims a lane keeps of sums.
func (r *matrixSums) quadOf(lower kernel.Value) kernel.Value {
	b := r.b
	if r.scaled() != nil {
		return b.Add(r.place, b.Mul(lower, 8))
	}
	return b.Add(b.Mul(r.place, 2), lower)
}

// inPages reports whether the positions that a subgroup has at once lie in one page: splits begin where such tiles do.
func (k *splitKernel) inPages() bool {
	return k.kept.inPages(fragment.Side) && (k.merge == nil || k.op.Attrs.Int("block")%fragment.Side == 0)
}

// headAt returns where the head is for the positions from `from` on that the subgroup has at once.
func (r *matrixSums) headAt(from kernel.Value) cachedHead {
	if !r.splitKernel.inPages() {
		return r.base
	}
	return r.near(r.b, r.base, r.b.Min(from, r.last))
}

func (r *matrixSums) keys(from kernel.Value) tileWords {
	var w tileWords
	tile := r.headAt(from)
	for i := range 2 {
		w.words = append(w.words, r.loadUnits(r.k, tile, r.keyAt(from, i), keyUnitElements, 4, r.keyUnit))
	}
	w.scales = r.loadScales(r.k, tile, from)
	return r.refreshed(from, w, r.freshK, keyUnitElements, r.keyAt, r.keyUnit)
}

func (r *matrixSums) values(from kernel.Value) tileWords {
	var w tileWords
	tile := r.headAt(from)
	for i := range 4 {
		w.words = append(w.words, r.loadUnits(r.v, tile, r.valueAt(from, i), r.valueUnitElements(), 8, r.valueUnit))
	}
	w.scales = r.loadScales(r.v, tile, from)
	return r.refreshed(from, w, r.freshV, r.valueUnitElements(), r.valueAt, r.valueUnit)
}

// Rows of the step may be being written where keys and values are loaded: what is loaded of
// those, refreshed replaces, and past the end weights are 0.

// loadUnits loads the units of a position of a tile, of that many elements, that the lane has of those of
// `lanes`.
func (r *matrixSums) loadUnits(cache *kernel.Buffer, tile cachedHead, at kernel.Value, elements, lanes int, unit func(i int) kernel.Value) (list []kernel.Value) {
	b := r.b
	first := b.Mul(r.attentionArgs.at(b, tile, at).chunks, chunk/elements)
	bytes := 2 * elements
	if f := r.scaled(); f != nil {
		bytes = f.fourBytes() * elements / 4
	}
	for i := range r.headDim / elements / lanes {
		at := b.Add(first, unit(i))
		if bytes == 2 {
			list = append(list, cache.Ahead().Load16(at))
			continue
		}
		list = append(list, cache.Ahead().Load(kernel.U32.Vec(bytes/4), at))
	}
	return list
}

// loadScales loads the scales of the lane's positions. The four lie together, at a multiple of 8 bytes.
func (r *matrixSums) loadScales(cache *kernel.Buffer, tile cachedHead, from kernel.Value) (list []kernel.Value) {
	if r.scaled() == nil {
		return nil
	}
	b := r.b
	first := b.Min(b.Add(from, b.Mul(r.quad, 4)), b.And(r.last, ^uint32(3)))
	at := b.Shr(b.Add(r.near(b, tile, first).scales, r.caches.within(b, first)), 2)
	for i := range r.headDim / scaled {
		list = append(list, cache.Ahead().Load(lane.U32x2, b.Add(at, b.Mul(b.Shr(r.caches.rows(), 2), i))))
	}
	return list
}

// keyPairs and valuePair return the lane's dims in the m-th matrix: four of a key, two of a
// value.
func (r *matrixSums) keyPairs(words []kernel.Value, m int) (x, y kernel.Value) {
	b, w := r.b, words[m/2]
	if f := r.scaled(); f != nil {
		pairs := f.pairs(b, f.four(b, w, m%2))
		return pairs[0], pairs[1]
	}
	return b.Elem(w, m%2*2), b.Elem(w, m%2*2+1)
}

func (r *matrixSums) valuePair(words []kernel.Value, m int) kernel.Value {
	if f := r.scaled(); f != nil {
		return f.pairs(r.b, words[m/2])[m%2]
	}
	return r.b.Elem(words[m/4], m%4)
}

// refreshed puts k or v of the other rows of the step, in units of so many elements, in place of what the caches had
// there.
func (r *matrixSums) refreshed(from kernel.Value, w tileWords, fresh freshRows, elements int, at func(from kernel.Value, i int) kernel.Value, unit func(i int) kernel.Value) tileWords {
	if !r.others() {
		return w
	}
	b := r.b
	words := lane.Vars(b, append(w.words, w.scales))
	b.If(b.Ne(b.Or(r.tileRows[0], r.tileRows[1]), 0), func() {
		for i := range w.words {
			row, is := r.rowAt(b.Sub(at(from, i), from))
			for j, v := range words[i] {
				v.Set(b.Select(is, r.freshUnit(fresh, row, unit(j), elements/4, v.Get().Type().Lanes()), v.Get()))
			}
		}
		for block, v := range words[len(w.words)] {
			var both [2]kernel.Operand
			for i := range both {
				old := b.Elem(v.Get(), i)
				for half := range 2 {
					row, is := r.rowAt(b.Sub(r.valueAt(from, 2*i+half), from))
					scale := fresh.scales.Load(b.Add(b.Mul(row, r.headDim/scaled), block))
					old = b.Select(is, b.Or(b.And(old, uint32(0xffff0000)>>(16*half)), b.Shl(scale, 16*half)), old)
				}
				both[i] = old
			}
			v.Set(b.Vec(both[:]...))
		}
	})
	list := lane.GetVars(words)
	return tileWords{list[:len(w.words)], list[len(w.words)]}
}

// others reports whether other rows of the step may be among the positions.
func (r *matrixSums) others() bool { return r.fresh() && r.attentionShape.rows.Max > 1 }

// findOthers takes a row of the step into each lane.
func (r *matrixSums) findOthers(laneID kernel.Value) {
	if !r.others() {
		return
	}
	b := r.b
	run := r.attentionShape.rows.Run
	row := r.ofRun(b.Min(laneID, run-1))
	pos, slot := r.pos.Load(kernel.U32, row), r.attentionArgs.slot.Load(kernel.U32, row)
	live := b.Lt(laneID, r.attentionArgs.rows)
	if r.attentionShape.rows.Tiled() {
		live = b.And(b.Lt(laneID, run), b.Lt(row, r.attentionArgs.rows))
	}
	r.other, r.otherPos = b.And(live, b.Eq(slot, r.slot)), pos
}

// takeOthers keeps those of the rows whose positions are the split's.
func (r *matrixSums) takeOthers() {
	if !r.others() {
		return
	}
	b, pos := r.b, r.otherPos
	among := b.And(r.other, b.And(b.Ge(pos, r.lo), b.Lt(pos, r.end)))
	r.rowPos = b.Select(among, pos, b.U32(1<<31))
}

// findRows finds out which of the 16 positions from `from` on are rows of the step.
func (r *matrixSums) findRows(from kernel.Value) {
	if !r.others() {
		return
	}
	b := r.b
	at := b.Sub(r.rowPos, from)
	number := b.Shl(b.Add(b.SubgroupLane(), 1), b.Mul(b.And(at, 7), 4))
	for i := range r.tileRows {
		r.tileRows[i] = b.SubgroupAdd(b.Select(b.Eq(b.Shr(at, 3), i), number, b.U32(0)))
	}
}

// rowAt returns which row of the step is at one of the 16 positions, if one is.
func (r *matrixSums) rowAt(at kernel.Value) (row, is kernel.Value) {
	b := r.b
	number := b.And(b.Shr(b.Select(b.Lt(at, 8), r.tileRows[0], r.tileRows[1]), b.Mul(b.And(at, 7), 4)), 15)
	return b.Sub(b.Max(number, 1), 1), b.Ne(number, 0)
}

// freshUnit returns a unit of that many accesses and words of a row of the step.
func (r *matrixSums) freshUnit(f freshRows, row, unit kernel.Value, accesses, words int) kernel.Value {
	b := r.b
	i := b.Add(b.Mul(row, r.headDim/4), b.Mul(unit, accesses))
	if f.halves && accesses == 2 {
		return f.joined(b, i)
	}
	if words == 1 {
		return f.elems.Load(i)
	}
	return sharedWords(b, f.elems, i, f.words, words, words)[0]
}

// ownQuad returns elements 4j and on of k or v of the row itself.
func (r *matrixSums) ownQuad(f freshRows, j kernel.Value) kernel.Value {
	b, row := r.b, kernel.Value{}
	at := func(n int, i kernel.Value) kernel.Value { return i }
	if r.attentionShape.rows.Max > 1 {
		row = r.inRun(r.row)
		at = func(n int, i kernel.Value) kernel.Value { return b.Add(b.Mul(row, n), i) }
	}
	w := f.elems.Load(at(r.headDim/4, j))
	if r.scaled() != nil {
		scale := f.scales.Load(at(r.headDim/scaled, b.Div(j, scaled/4)))
		return b.Mul(r.scaled().floats(b, w), b.Splat(weight.LowHalf(b, scale), 4))
	}
	x, y := b.UnpackHalf(b.Elem(w, 0)), b.UnpackHalf(b.Elem(w, 1))
	return b.Vec(b.Elem(x, 0), b.Elem(x, 1), b.Elem(y, 0), b.Elem(y, 1))
}

// scoreOwn finds the score of the row's own position for the head of the subgroup.
func (r *matrixSums) scoreOwn() {
	b, n := r.b, r.headDim/4
	sum := b.F32(0)
	for i, q := range r.own {
		j := b.Min(b.Add(b.SubgroupLane(), i*r.wave), n-1) // lanes without it have q of 0
		k := r.ownQuad(r.freshK, j)
		for e := range 4 {
			sum = b.FMA(b.Elem(q.Get(), e), b.Elem(k, e), sum)
		}
	}
	sum = b.SubgroupAdd(sum)
	b.If(b.SubgroupElect(), func() {
		r.ownTops.Store(b.SubgroupID(), b.Select(r.attends, b.Mul(sum, math.Ln2), emptyScore))
	})
}

func (r *matrixSums) finish(alone kernel.Value) { r.mergeSubgroups(r, alone) }

func (r *matrixSums) apart(h, quad kernel.Value) (score, v kernel.Value) {
	if !r.fresh() {
		return
	}
	b := r.b
	return r.ownTops.Load(h), b.Select(r.attends, r.ownQuad(r.freshV, quad), b.Splat(b.F32(0), 4))
}

package matmul

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// The weights of a worker's share come to a ring in shared memory, lines ahead. On Hopper one lane has whole rows
// copied (cp.async.bulk), which takes no instructions of others, so memory is never without work; elsewhere each
// subgroup copies its block of its tile.

// share is the lines that a worker multiplies, counted through all panels.
type share struct {
	panels
	from, to kernel.Value
}

// lineRows is the rows of weights of a line, of all matrices.
func (k *expertWide) lineRows() int { return k.sharers() * fixedSide }

// rowVecs is the vec4 of a row of weights.
func (k *expertWide) rowVecs() int { return k.blocks() * k.routed.matrices[0].format.Fixed.Spans[0] }

// turned reports whether rows begin at the same bank, so that lanes of odd rows begin with other pairs of words. Rows
// that lie apart instead, not as in memory, take longer to come.
func (k *expertWide) turned() bool { return k.rowVecs()%8 == 0 }

// bulkRow is the vec4 of a row in the ring of whole rows: lanes of neighbouring rows read different banks.
func (k *expertWide) bulkRow() int {
	n := k.rowVecs()
	for !k.turned() && n%8 != 2 && n%8 != 6 {
		n++
	}
	return n
}

// ringBytes is the size of the ring.
func (k *expertWide) ringBytes() int {
	if k.bulk {
		return k.stages * (k.lineRows()*16*k.bulkRow() + 16)
	}
	return k.stagingSize()
}

// byteRing is the ring of whole rows.
type byteRing struct {
	pairs      *kernel.Array // of words, by slot and row
	arrivals   *kernel.Arrivals
	slot, turn *kernel.Var  // the place of the line that is multiplied
	own        kernel.Value // where the lane's first row of its block begins in a slot
	odd        kernel.Value // words that it loads later because its rows are odd
}

// ringRow is the row of a line that is the first of half h of the first tile.
func (k *expertWide) ringRow(h int) int {
	n := h * fixedSide / 2
	return n/k.each()*k.sharers()*k.each() + n%k.each()
}

// beginRing begins at the first line. What lanes add to places is computed before all lines.
func (r *expertWideTask) beginRing() {
	if r.ring == nil {
		return
	}
	b, k := r.b, r.kernel
	r.ring.slot, r.ring.turn = b.Var(kernel.U32, 0), b.Var(kernel.U32, 0)
	row := b.Add(b.Mul(r.member, k.each()), r.place)
	r.ring.own = b.Add(b.Mul(row, 2*k.bulkRow()), b.Mul(r.own, 2*k.rowVecs()/k.blocks()))
	r.ring.odd = b.Mul(b.And(r.place, 1), turnedWords/2*turnedWords)
}

func (k *expertWide) newRing(b *kernel.Builder) *byteRing {
	if !k.bulk {
		return nil
	}
	return &byteRing{pairs: b.Shared(lane.U32x2, k.stages*k.lineRows()*2*k.bulkRow()), arrivals: b.Arrivals(k.stages)}
}

// tileOf is the subgroup's tile of the expert in a line.
func (r *expertWideTask) tileOf(line kernel.Value) kernel.Value {
	b, k := r.b, r.kernel
	return b.Add(b.Mul(b.Mod(line, k.lines()), k.sharers()), r.member)
}

// place is where a line of whole rows comes in the ring: the slot, and the parity of its turns.
type place struct{ slot, turn kernel.Value }

// begin begins to copy a line, if the share has it.
func (r *expertWideTask) begin(s share, line kernel.Value, at place) {
	b, k := r.b, r.kernel
	expert := r.p.expert
	of := func() {
		e := b.And(s.list.Load(b.Div(line, k.lines())), 0xffff)
		r.p.expert = &e
	}
	live := b.Lt(line, s.to)
	if k.bulk {
		// subgroups take turns
		mine := b.Eq(b.LocalID(), b.Mul(b.Mod(line, k.groups()), fragment.Lanes))
		b.If(b.And(live, mine), func() {
			of()
			r.ring.arrivals.Free(at.slot, at.turn)
			r.copyRows(at.slot, b.Mul(b.Mod(line, k.lines()), k.sharers()*k.each()))
		})
	} else {
		b.If(live, func() {
			of()
			r.copyBlock(b.Mul(r.tileOf(line), k.each()), r.own, b.Sub(line, s.from))
		})
		b.CopyGroup()
	}
	r.p.expert = expert
}

// copyRows begins to copy the rows of a line, whose first output of each matrix is col.
func (r *expertWideTask) copyRows(slot, col kernel.Value) {
	b, k := r.b, r.kernel
	n, rows := k.rowVecs(), k.sharers()*k.each() // of a matrix
	var pieces []kernel.Piece
	for j, m := range r.p.matrices {
		first, _ := r.format.Open(b, m, r.p.row(b, j, col), r.quad).Spans(b.U32(0))
		to := b.Mul(b.Add(b.Mul(slot, k.lineRows()), j*rows), 2*k.bulkRow())
		if k.bulkRow() == n {
			pieces = append(pieces, kernel.Piece{Buffer: m.Buf, From: first[0], To: to, N: rows * n})
			continue
		}
		for i := range rows {
			pieces = append(pieces, kernel.Piece{Buffer: m.Buf, From: b.Add(first[0], i*n), To: b.Add(to, i*2*k.bulkRow()), N: n})
		}
	}
	r.ring.arrivals.Copy(slot, r.ring.pairs, pieces...)
}

// multiplyLine waits for a line, begins to copy another one, and returns the lane's sums of the subgroup's block of its
// tile, by byteColumns columns.
func (r *expertWideTask) multiplyLine(s share, line kernel.Value, xs []byteX) [][2]kernel.Value {
	b, k := r.b, r.kernel
	rows := r.rowsAt(b.Mul(r.tileOf(line), k.each()), nil)
	ahead := b.Add(line, r.stages-1)
	if !k.bulk {
		b.CopyWait(r.stages - 2)
		b.SubgroupBarrier() // the block is there, and all have read the one before it, in whose place another comes
		r.begin(s, ahead, place{})
		return r.byteBlock(rows, r.copied(rows, r.own, b.Sub(line, s.from)), xs)
	}
	slot, turn := r.ring.slot.Get(), r.ring.turn.Get()
	r.ring.arrivals.Wait(slot, turn)
	first, last := b.Eq(slot, 0), b.Eq(slot, r.stages-1)
	// In the place of the line before, with which most are done.
	r.begin(s, ahead, place{b.Select(first, r.stages-1, b.Sub(slot, 1)), b.Select(first, turn, b.Xor(turn, 1))})
	r.ring.slot.Set(b.Select(last, 0, b.Add(slot, 1)))
	r.ring.turn.Set(b.Select(last, b.Xor(turn, 1), turn))
	own := b.Add(b.Mul(slot, k.lineRows()*2*k.bulkRow()), r.ring.own)
	at := [2]kernel.Value{own, b.Add(own, k.ringRow(1)*2*k.bulkRow())}
	words := r.wordsIn(r.ring.pairs, at, r.turnedRows(rows), r.own, nil)
	if k.turned() {
		for _, list := range words {
			r.turnBack(list[len(list)-turnedWords:])
		}
	}
	sums := r.byteBlock(rows, words, xs)
	r.ring.arrivals.Done(slot)
	return sums
}

// turnedWords is the pairs of words of nibbles, the last of a block, of which lanes of odd rows begin with the third.
const turnedWords = 4

// turnedRows are rows whose last pairs odd ones load in another order.
func (r *expertWideTask) turnedRows(rows fixedRows) fixedRows {
	if !r.kernel.turned() {
		return rows
	}
	b := r.b
	for h, row := range rows {
		rows[h].Load = func(block kernel.Value) []weight.FixedWord {
			words := row.Load(block)
			list := words[len(words)-turnedWords:]
			first := list[0].At
			for t := range list {
				list[t].At = func() kernel.Value {
					if t < turnedWords/2 {
						return b.Add(first(), r.ring.odd, t*turnedWords)
					}
					return b.Add(b.Sub(first(), r.ring.odd), t*turnedWords)
				}
			}
			return words
		}
	}
	return rows
}

// turnBack brings the words of a lane into order.
func (r *expertWideTask) turnBack(words []kernel.Value) {
	b, was := r.b, slices.Clone(words)
	odd := b.Ne(b.And(r.place, 1), 0)
	for i := range words {
		words[i] = b.Select(odd, was[i^turnedWords/2], was[i])
	}
}

// keepLine puts the lane's sums of a block of a tile into shared memory, as the i-th line's.
func (r *expertWideTask) keepLine(i kernel.Value, sums [][2]kernel.Value) {
	b := r.b
	first := b.Add(b.Mul(i, r.kernel.sharers()*r.kernel.tileSums()), r.sumsOwn)
	for set, own := range sums {
		r.sums.Store(b.Add(first, set*byteColumns/2*fixedSide/2), b.Vec(own[0], own[1]))
	}
}

// finishLines adds up the sums of lines, from the first one on, which begin at the sums-th, and stores the results.
func (r *expertWideTask) finishLines(sums, first, to kernel.Value) {
	b, k := r.b, r.kernel
	tiles := k.batch * k.sharers() // a power of two
	const places = fixedSide / 2
	b.For(b.LocalID(), b.Mul(r.columns, tiles*places), k.groups()*fragment.Lanes, func(item kernel.Value) {
		place, i, column := b.And(item, places-1), b.And(b.Shr(item, 3), tiles-1), b.Div(item, tiles*places)
		line := b.Add(first, b.Div(i, k.sharers()))
		b.If(b.Lt(line, to), func() {
			var scale *kernel.Value
			if r.gain != nil {
				v := r.rstd.Load(column)
				scale = &v
			}
			tile := b.Add(b.Mul(b.Mod(line, k.lines()), k.sharers()), b.Mod(i, k.sharers()))
			r.finishTile(b.Add(b.Mul(sums, k.sharers()), i), tile, place, column, r.result(column), scale)
		})
	})
}

// lines is how many lines the outputs of an expert are: in a line each subgroup has its block of a tile.
func (k *expertWide) lines() int { return site.CeilDiv(k.routed.width, k.sharers()*k.each()) }

// whole reports whether no tile goes beyond the last output.
func (k *expertWide) whole() bool { return k.bytes && k.routed.width%(k.sharers()*k.each()) == 0 }

// rowsInBulk reports whether whole rows may be copied.
func (k *expertWide) rowsInBulk() bool {
	f := k.routed.matrices[0].format.Fixed
	return k.whole() && len(f.Spans) == 1 && f.Rest == 0
}

func (k *expertWide) ringKey() string {
	key := fmt.Sprintf(" batch=%d", k.batch)
	if k.whole() {
		key += " whole"
	}
	if k.bulk {
		key += " bulk"
	}
	if k.bulk && k.turned() {
		key += " turned"
	}
	return key
}

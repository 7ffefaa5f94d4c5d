package matmul

import (
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/ir"
)

// groupedX is x in shared memory as four subgroups multiply it: a chunk of the elements of all rows at a time, which
// lies together in the tile of each 128 rows, in some buffers. While a chunk is multiplied, maybe still the one before,
// too, the others are on their way.
type groupedX struct {
	*fragmentRun
	from []kernel.Value // first chunk by 128 rows
}

const (
	// groupedBuffers is a power of two; the chunks of groupedAhead buffers are in flight. With six buffers and four
	// chunks in flight tiles of 256 rows are slower (docs/lab/prompts.md).
	groupedBuffers, groupedAhead = 4, 2
	// groupedChunk is the vec4 of a chunk: an iteration of 128 rows, or half of one of 256.
	groupedChunk = ir.TileBlock / ir.PieceElements / weight.FragmentIterations * ir.TileRows
	// groupedRows is the most rows of a tile.
	groupedRows = 2 * ir.TileRows
)

// halves is how many tiles of x the rows of a workgroup are.
func (k gemmFragment) halves() int { return max(1, k.most/ir.TileRows) }

// chunks is how many a block has.
func (k gemmFragment) chunks() int { return weight.FragmentIterations * k.halves() }

// declareArrivals declares what says that x has come, where copies bring it.
func (k gemmFragment) declareArrivals(b *kernel.Builder) *kernel.Arrivals {
	if !k.pipe.grouped {
		return nil
	}
	return b.Arrivals(groupedBuffers)
}

// groupedVec4 is the vec4 of all buffers.
func (k gemmFragment) groupedVec4() int { return groupedBuffers * groupedChunk }

// groupedSpace bounds what the sums take when all is multiplied.
func (k gemmFragment) groupedSpace() int { return 200 << 10 / 16 }

// groupX finds the first chunk.
func (t *fragmentRun) groupX() *groupedX {
	b := t.b
	x := &groupedX{fragmentRun: t}
	orders := strings.Split(t.tiled.Attrs.Str("lanes"), " ")
	for h := range t.halves() {
		row := b.Add(b.Mul(b.Add(b.Div(t.row, ir.TileRows), h), len(orders)), slices.Index(orders, t.p.spec.tileOrder()))
		from := b.Mul(row, b.Mul(b.Div(t.a.k, weight.FragmentBlock), t.chunks()))
		if t.split != nil {
			from = b.Add(from, b.Mul(t.firstBlock(), t.chunks()))
		}
		x.from = append(x.from, from)
	}
	return x
}

// slot returns the buffer of chunk c of block i, counted from the workgroup's first, and the parity of its turns. A
// block of 256 rows has a chunk for each buffer.
func (x *groupedX) slot(i kernel.Value, c int) (slot, turn kernel.Value) {
	b := x.b
	if x.chunks() == groupedBuffers {
		return b.U32(uint32(c)), b.And(i, 1)
	}
	n := b.Add(b.Mul(i, x.chunks()), c)
	return b.And(n, groupedBuffers-1), b.And(b.Div(n, groupedBuffers), 1)
}

// copy begins to copy chunk c of block i, if there is one, when all subgroups are done with what was there.
func (x *groupedX) copy(i kernel.Value, c int) {
	b := x.b
	if c >= x.chunks() {
		i, c = b.Add(i, c/x.chunks()), c%x.chunks()
	}
	b.If(b.And(b.Eq(b.LocalID(), 0), b.Lt(i, x.blocksOf())), func() {
		slot, turn := x.slot(i, c)
		size := groupedChunk / len(x.from)
		var pieces []kernel.Piece
		for half, from := range x.from {
			pieces = append(pieces, kernel.Piece{Buffer: x.a.x, From: b.Mul(b.Add(from, b.Mul(i, x.chunks()), c), size),
				To: b.Add(b.Mul(slot, groupedChunk), half*size), N: size})
		}
		x.arrivals.Free(slot, turn)
		x.arrivals.Copy(slot, x.shared, pieces...)
	})
}

// arrive waits for chunk c of block i, and begins to copy another one where that before the last was: few subgroups are
// not done with it.
func (x *groupedX) arrive(i kernel.Value, c int) {
	x.copy(i, c+groupedAhead)
	x.arrivals.Wait(x.slot(i, c))
}

// done says that the subgroup is done with the chunk before chunk c of block i, if there is one.
func (x *groupedX) done(i kernel.Value, c int) {
	before := func(i kernel.Value, c int) {
		slot, _ := x.slot(i, c)
		x.arrivals.Done(slot)
	}
	if c > 0 {
		before(i, c-1)
		return
	}
	x.b.If(x.b.Gt(i, 0), func() { before(x.b.Sub(i, 1), x.chunks()-1) })
}

// runGrouped goes through the blocks, with x as four subgroups multiply it. While one octet is multiplied, the weights
// of the next are made.
func (t *fragmentRun) runGrouped(series kernel.Value) {
	b := t.b
	w := newGroupedWords(t)
	x := t.groupX()
	for c := range groupedAhead {
		x.copy(b.U32(0), c)
	}
	w.start()
	octets := 4 * weight.FragmentIterations / t.chunks() // of a chunk
	t.blocks(series, func(at fragmentAt) {
		for p := range weight.FragmentIterations {
			scales, words := w.take(at, p)
			for o := range 4 {
				c, octet := (4*p+o)/octets, (4*p+o)%octets
				matrices := t.weights(w.items, scales, words, o)
				if octet == 0 {
					x.arrive(at.i, c)
				}
				x.multiply(matrices, at.i, c, octet)
				w.follow(at, p, o)
				b.MatGroupWait(len(w.items) * t.halves())
				if octet == 0 { // what was multiplied of the chunk before
					x.done(at.i, c)
				}
			}
		}
	})
}

// multiply has the products of an octet of chunk c of block i made.
func (x *groupedX) multiply(matrices [2][]kernel.Value, i kernel.Value, c, octet int) {
	b := x.b
	const columns = ir.TileRows / fragment.Columns
	slot, _ := x.slot(i, c)
	for h := range x.from {
		at := b.Add(b.Mul(slot, groupedChunk), h*groupedChunk/len(x.from)+octet*4*ir.TileRows)
		for m := range matrices[0] {
			var list []kernel.GroupProduct
			for e, a := range matrices {
				list = append(list, kernel.GroupProduct{A: a[m], At: b.Add(at, 2*e*ir.TileRows)})
			}
			b.MatGroupAdd(x.sums[m][h*columns:min((h+1)*columns, len(x.sums[m]))], x.shared, ir.TileRows, list...)
		}
	}
}

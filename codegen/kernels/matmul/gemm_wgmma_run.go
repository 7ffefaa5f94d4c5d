package matmul

import (
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/ir"
)

// groupedX is x in shared memory as four subgroups multiply it: an iteration of a block of all rows at a time, which is
// a chunk and lies together in its tile, in some buffers. While one is multiplied, maybe still the one before, too, the
// others are on their way.
type groupedX struct {
	*fragmentRun
	from kernel.Value // first chunk
}

const (
	// groupedBuffers is a power of two; the chunks of groupedAhead buffers are in flight.
	groupedBuffers, groupedAhead = 4, 2
	// chunkPieces are the pieces of a chunk, groupedChunk its vec4.
	chunkPieces  = ir.TileBlock / ir.PieceElements / weight.FragmentIterations
	groupedChunk = chunkPieces * ir.TileRows
)

// groupedVec4 is the vec4 of all buffers.
func (k gemmFragment) groupedVec4() int { return groupedBuffers * groupedChunk }

// groupedSpace bounds what the sums take when all is multiplied.
func (k gemmFragment) groupedSpace() int { return 200 << 10 / 16 }

// groupX finds the first chunk.
func (t *fragmentRun) groupX() *groupedX {
	b := t.b
	orders := strings.Split(t.tiled.Attrs.Str("lanes"), " ")
	row := b.Add(b.Mul(b.WorkgroupID(0), len(orders)), slices.Index(orders, t.p.spec.tileOrder()))
	from := b.Mul(row, b.Div(t.a.k, ir.PieceElements*chunkPieces))
	if t.split != nil {
		from = b.Add(from, b.Mul(t.firstBlock(), weight.FragmentIterations))
	}
	return &groupedX{fragmentRun: t, from: from}
}

// slot returns the buffer of chunk n, and the parity of its turns.
func (x *groupedX) slot(n kernel.Value) (slot, turn kernel.Value) {
	b := x.b
	return b.And(n, groupedBuffers-1), b.And(b.Div(n, groupedBuffers), 1)
}

// copy begins to copy chunk n, if there is one, when all subgroups are done with what was there.
func (x *groupedX) copy(n kernel.Value) {
	b := x.b
	b.If(b.And(b.Eq(b.LocalID(), 0), b.Lt(n, b.Mul(x.blocksOf(), weight.FragmentIterations))), func() {
		slot, turn := x.slot(n)
		x.arrivals.Free(slot, turn)
		x.arrivals.Copy(slot, x.shared, kernel.Piece{Buffer: x.a.x, From: b.Mul(b.Add(x.from, n), groupedChunk), To: b.Mul(slot, groupedChunk), N: groupedChunk})
	})
}

// arrive waits for chunk n, and begins to copy another one where that before the last was: few subgroups are not done
// with it.
func (x *groupedX) arrive(n kernel.Value) {
	x.copy(x.b.Add(n, groupedAhead))
	x.arrivals.Wait(x.slot(n))
}

// runGrouped goes through the blocks, with x as four subgroups multiply it. While one octet is multiplied, the weights
// of the next are made.
func (t *fragmentRun) runGrouped(series kernel.Value) {
	b := t.b
	w := &groupedWords{fragmentRun: t, items: t.items(t.col, nil)}
	x := t.groupX()
	for n := range groupedAhead {
		x.copy(b.U32(uint32(n)))
	}
	w.start()
	t.blocks(series, func(at fragmentAt) {
		for p := range weight.FragmentIterations {
			chunk := b.Add(b.Mul(at.i, weight.FragmentIterations), p)
			scales, words := w.take(at, p)
			for o := range 4 {
				matrices := t.weights(w.items, scales, words, o)
				if o == 0 {
					x.arrive(chunk)
				}
				x.multiply(matrices, chunk, o)
				if o == 3 {
					w.follow(at, p)
				}
				b.MatGroupWait(len(w.items))
				if o == 0 {
					b.If(b.Gt(chunk, 0), func() { // what was multiplied of the chunk before
						before, _ := x.slot(b.Sub(chunk, 1))
						x.arrivals.Done(before)
					})
				}
			}
		}
	})
}

// multiply has the products of octet o of a chunk made.
func (x *groupedX) multiply(matrices [2][]kernel.Value, chunk kernel.Value, o int) {
	b := x.b
	slot, _ := x.slot(chunk)
	at := b.Add(b.Mul(slot, groupedChunk), o*4*ir.TileRows)
	for i := range matrices[0] {
		var list []kernel.GroupProduct
		for e, a := range matrices {
			list = append(list, kernel.GroupProduct{A: a[i], At: b.Add(at, 2*e*ir.TileRows)})
		}
		b.MatGroupAdd(x.sums[i], x.shared, ir.TileRows, list...)
	}
}

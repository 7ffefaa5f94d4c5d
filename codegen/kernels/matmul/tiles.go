package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// tilesRun is how family rows multiplies with many columns where there are tiles of bf16. It takes some elements of 32
// rows of the weights apart, once for all columns of the tile, and multiplies them with 32 columns at a time. Those
// rows are two strips of 16: neighbours of one matrix, or the same rows of both.
//
// A register has 16 columns by 32 elements of x, or as many elements of 16 rows of the weights, pair by pair, whose
// elements lie 32 apart. In shared memory registers lie one behind the other in the order in which they are read: x by
// as many elements as are taken apart at a time, 16 columns and 32 elements.
type tilesRun struct {
	*rowsRun
	depth   kernel.Value  // elements that are taken apart at a time
	x       *kernel.Array // by element, 16 columns, 32 elements, column and pair
	weights *kernel.Array // twice, in turn: by strip, 32 elements, pair and row
}

const (
	tileStrips = 2
	tileCols   = tileStrips * kernel.TileSide // columns at a time
	tileTurns  = 2                            // of the products with 32 columns
	// tileDepth is the elements that are taken apart at a time: twice as many of the weights, and those of x that are
	// multiplied with them, stay in the first cache.
	tileDepth = 256
	// tileMost is the most columns of a workgroup: products with them take longer than taking the weights apart.
	tileMost = 192
	// tileShared is the most shared memory with which x stays in the second cache.
	tileShared = 1600 << 10
	tileWords  = kernel.TileSide * kernel.TileSide
)

// The registers: sums by 16 columns and strip, x by 16 columns, weights by strip.
func tileSum(columns, strip int) int { return tileStrips*columns + strip }
func tileX(columns int) int          { return 4 + columns }
func tileWeights(strip int) int      { return 6 + strip }

// tileBytes is the shared memory of so many columns.
func (k rowsKernel) tileBytes(columns int) int {
	return 4 * (3 + (3+k.k/2+tileStrips*laneRows)*columns + 2*tileStrips*tileDepth/2*laneRows)
}

func newTilesRun(r *rowsRun) *tilesRun {
	b := r.b
	t := &tilesRun{rowsRun: r, depth: r.depth}
	t.x = b.Shared(kernel.U32, b.Mul(b.Div(r.cols, 2), r.size))
	t.weights = b.Shared(kernel.U32, b.Mul(r.depth, tileStrips*laneRows))
	r.products = b.Shared(kernel.F32, b.Mul(r.size, tileStrips*laneRows))
	return t
}

// iterations is the registers of x of 16 columns, of the elements that are taken apart from one on.
func (r *tilesRun) iterations(from kernel.Value) kernel.Value {
	b := r.b
	return b.Div(b.Min(b.Sub(r.cols, from), r.depth), 2*kernel.TileSide)
}

// register is where that of x is of 16 columns, the at-th of those taken apart from element from on.
func (r *tilesRun) register(from, columns, at kernel.Value) kernel.Value {
	b := r.b
	return b.Add(b.Mul(b.Div(from, 2), r.size), b.Mul(b.Add(b.Mul(columns, r.iterations(from)), at), tileWords))
}

// round puts a column of x into shared memory. A lane takes four of 64 elements, which are two pairs.
func (r *tilesRun) round(c, source kernel.Value) {
	b := r.b
	row, squares := b.Mul(source, r.cols), b.Var(kernel.F32, 0.0)
	b.For(0, r.cols, 64, func(from kernel.Value) {
		var parts []*kernel.Var
		for i := range 4 {
			parts = append(parts, b.Var(kernel.F32, r.rowsRun.x.Load(kernel.F32, b.Add(row, from, i*laneRows, b.LocalID()))))
		}
		b.If(r.is(r.norm), func() {
			for i, p := range parts {
				squares.Set(b.FMA(p.Get(), p.Get(), squares.Get()))
				p.Set(b.Mul(p.Get(), r.gain.Load(kernel.F32, b.Add(from, i*laneRows, b.LocalID()))))
			}
		})
		within := b.Mod(from, r.depth)
		at := r.register(b.Sub(from, within), b.Div(c, kernel.TileSide), b.Div(within, 2*kernel.TileSide))
		at = b.Add(at, b.Mul(b.Mod(c, kernel.TileSide), kernel.TileSide), b.LocalID())
		for i := range 2 {
			r.x.Store(b.Add(at, i*tileWords), weight.PairBF16(b, parts[i].Get(), parts[i+2].Get()))
		}
	})
	r.normed(c, squares)
}

// project computes the at-th 32 rows of the weights, or 16 of both matrices, for the columns of the tile. While it
// multiplies with some elements, it takes those behind apart, a part before half of the products with 32 columns:
// products wait for nobody.
func (r *tilesRun) project(at, columns kernel.Value) {
	b := r.b
	b.For(0, r.parts(b.U32(0)), 1, func(part kernel.Value) { r.unpack(at, b.U32(0), part) })
	b.Barrier()
	b.For(0, r.cols, r.depth, func(from kernel.Value) {
		next := b.Add(from, r.depth)
		parts := b.Select(b.Lt(next, r.cols), r.parts(next), 0)
		blocks := b.Div(b.Add(columns, tileCols-1), tileCols)
		b.For(0, blocks, 1, func(block kernel.Value) {
			b.For(0, tileTurns, 1, func(turn kernel.Value) {
				share := func(more int) kernel.Value {
					return b.Div(b.Mul(parts, b.Add(b.Mul(block, tileTurns), turn, more)), b.Max(b.Mul(blocks, tileTurns), 1))
				}
				b.For(share(0), share(1), 1, func(part kernel.Value) { r.unpack(at, next, part) })
				c := b.Mul(block, tileCols)
				b.IfElse(b.Lt(b.Add(c, kernel.TileSide), columns), func() { r.multiply(c, from, turn, 2) }, func() { r.multiply(c, from, turn, 1) })
			})
		})
		b.Barrier()
	})
	r.storeStrips(at, columns)
}

// parts is how many there are of the elements that are taken apart from one on, of both strips.
func (r *tilesRun) parts(from kernel.Value) kernel.Value {
	return r.b.Mul(r.b.Div(r.iterations(from), weight.PanelPart/(2*kernel.TileSide)), tileStrips)
}

// buffer is where the registers of the weights of a strip begin, of those that are taken apart from an element on.
func (r *tilesRun) buffer(from, strip kernel.Value) kernel.Value {
	b := r.b
	return b.Mul(b.Add(b.Mul(b.Mod(b.Div(from, r.depth), 2), tileStrips), strip), b.Mul(b.Div(r.depth, 2), laneRows))
}

// unpack takes a part of the elements from one on apart, of the at-th 16 rows of both matrices, or of two times 16
// rows.
func (r *tilesRun) unpack(at, from, part kernel.Value) {
	b, f := r.b, r.p.matrices[0].rows
	strip := b.Mod(part, tileStrips)
	part = b.Div(part, tileStrips)
	buf, group := r.matrices[0].Buf, kernel.Value{}
	if len(r.matrices) == tileStrips {
		buf = b.Among([]*kernel.Buffer{buf, r.matrices[1].Buf}, strip)
		group = b.Select(b.Eq(strip, 0), r.group16(0, at), r.group16(1, at))
	} else {
		last := b.Sub(b.Div(b.Add(r.width, laneRows-1), laneRows), 1)
		group = r.group16(0, b.Min(b.Add(b.Mul(at, tileStrips), strip), last))
	}
	element := b.Add(from, b.Mul(part, weight.PanelPart))
	image := b.Add(b.Mul(b.Add(b.Mul(group, b.Div(r.cols, f.Cols)), b.Div(element, f.Cols)), f.Words*laneRows), b.LocalID())
	to := b.Add(r.buffer(from, strip), b.Mul(b.Div(b.Sub(element, from), f.Cols), f.Cols/2*laneRows), b.LocalID())
	f.Panel.UnpackPairs(b, weight.RowsImage{
		Word: func(k kernel.Value) kernel.Value { return buf.Load(kernel.U32, b.Add(image, b.Mul(k, laneRows))) },
	}, b.Div(b.Mod(element, f.Cols), weight.PanelPart), func(n, pair kernel.Value) { r.weights.Store(b.Add(to, b.Mul(n, laneRows)), pair) })
}

// multiply adds the products of a turn's share of what is taken apart and of some times 16 columns, from c on.
func (r *tilesRun) multiply(c, from, turn kernel.Value, columns int) {
	b := r.b
	sums := func(do func(tile int, at kernel.Value)) {
		for i := range columns {
			for s := range tileStrips {
				do(tileSum(i, s), b.Mul(b.Add(b.Mul(b.Add(c, i*kernel.TileSide), tileStrips), s), laneRows))
			}
		}
	}
	b.If(b.Eq(turn, 0), func() {
		b.IfElse(b.Eq(from, 0), func() {
			sums(func(tile int, _ kernel.Value) { b.TileZero(tile) })
		}, func() {
			sums(func(tile int, at kernel.Value) { b.TileLoad(tile, r.products, at, tileStrips*laneRows) })
		})
	})
	iterations := b.Div(r.iterations(from), tileTurns)
	b.For(b.Mul(turn, iterations), b.Mul(b.Add(turn, 1), iterations), 1, func(iteration kernel.Value) {
		for s := range tileStrips {
			at := b.Add(r.buffer(from, b.U32(uint32(s))), b.Mul(iteration, tileWords))
			b.TileLoad(tileWeights(s), r.weights, at, laneRows)
		}
		for i := range columns {
			b.TileLoad(tileX(i), r.x, r.register(from, b.Add(b.Div(c, kernel.TileSide), i), iteration), kernel.TileSide)
			for s := range tileStrips {
				b.TileMulAdd(tileSum(i, s), tileX(i), tileWeights(s))
			}
		}
	})
	b.If(b.Eq(turn, tileTurns-1), func() {
		sums(func(tile int, at kernel.Value) { b.TileStore(r.products, at, tileStrips*laneRows, tile) })
	})
}

// storeStrips writes the result of a workgroup.
func (r *tilesRun) storeStrips(at, columns kernel.Value) {
	b := r.b
	if len(r.matrices) == tileStrips {
		r.storeAll(at, b.U32(0), columns)
		return
	}
	b.For(0, tileStrips, 1, func(strip kernel.Value) {
		col := b.Add(b.Mul(b.Add(b.Mul(at, tileStrips), strip), laneRows), b.LocalID())
		b.For(0, columns, 1, func(c kernel.Value) {
			b.If(b.Lt(col, r.width), func() {
				sum := r.products.Load(b.Add(b.Mul(b.Add(b.Mul(c, tileStrips), strip), laneRows), b.LocalID()))
				r.store([]*kernel.Var{b.Var(kernel.F32, sum)}, c, col)
			})
		})
	})
}

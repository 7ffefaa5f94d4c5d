package matmul

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// gemm_wgmma can write products of gate and up in tiles. A subgroup then has an octet of the result. A workgroup has
// those at places that follow each other in the first order, so that it has whole pieces.

// canTile reports whether workgroups of a tile have whole pieces of all results that are to lie in tiles.
func (g *linearGroup) canTile(t fragmentTile) bool {
	k := g.fragment(t)
	return !slices.ContainsFunc(g.projects, func(p *projection) bool {
		return p.tile != nil && (k.each() != ir.PieceElements || k.part() < ir.TileRows || !sameElements(p.orders, k.pieces()))
	})
}

// pieces are those of a workgroup, of each order.
func (k gemmFragment) pieces() int { return k.tile() / ir.PieceElements }

// sameElements reports whether the first n pieces have the same elements in all orders.
func sameElements(orders [][2]int, n int) bool {
	have := map[int]bool{}
	for _, lanes := range orders {
		for i := range n * ir.PieceElements {
			have[ir.TileElement(lanes, i/ir.PieceElements, i%ir.PieceElements)] = true
		}
	}
	return len(have) == n*ir.PieceElements
}

// tileCover says what workgroups write of the i-th result, which lies in tiles.
func (k gemmFragment) tileCover(i int) plans.Cover {
	p, orders := k.projects[i], len(k.projects[i].orders)
	return plans.Cover{Arg: matrixName("y", i, 0), Dims: []int{k.rowTiles() * k.halves(), orders, p.width / ir.PieceElements, ir.TileRows, ir.PieceElements},
		Tile: []int{k.halves(), orders, k.pieces(), ir.TileRows, ir.PieceElements}, Axis: []int{0, -1, 1, -1, -1}, First: []int{0, 0, k.firsts(k.outputsOf())[i], 0, 0}}
}

// tiler writes a projection's result into the workgroup's tile.
func (p *projectArgs) tiler(b *kernel.Builder, tile kernel.Value) weight.Tiler {
	return weight.Tiler{Builder: b, Y: p.out, Orders: p.spec.orders, Width: p.width, Tile: tile}
}

// tileOf is the half-th tile of x of the workgroup.
func (k gemmFragment) tileOf(b *kernel.Builder, half int) kernel.Value {
	return b.Add(b.Mul(b.WorkgroupID(0), k.fragmentTile.rows/ir.TileRows), half)
}

// clearTiles has workgroups without any row write zeros where results lie in tiles.
func (k gemmFragment) clearTiles(b *kernel.Builder, a *linearArgs, none kernel.Value) {
	if !slices.ContainsFunc(k.projects, func(p *projection) bool { return p.tile != nil }) {
		return
	}
	b.If(none, func() {
		a.each(b, b.WorkgroupID(1), func(p *projectArgs, at kernel.Value) {
			if p.spec.tile != nil {
				for h := range k.halves() {
					p.tiler(b, k.tileOf(b, h)).Clear(b.U32(0), ir.TileRows, b.Mul(at, k.pieces()), k.pieces(), k.threads())
				}
			}
		})
	})
}

// outputOf returns which output of each matrix the n-th is: another one only where the result lies in tiles.
func (t *fragmentRun) outputOf(n kernel.Value) kernel.Value {
	if t.p.spec.tile == nil {
		return n
	}
	b := t.b
	octet := t.p.tiler(b, b.U32(0)).Octet(b.Div(b.Mod(n, ir.TileBlock), ir.PieceElements))
	return b.Add(b.Mul(b.Div(n, ir.TileBlock), ir.TileBlock), b.Mul(octet, ir.PieceElements))
}

// writeTiles finishes and writes the outputs of the workgroup, which begin at place col/8, and whose sums begin at
// base: a lane four pieces of a row. Neighbouring lanes have neighbouring rows.
func (t *fragmentRun) writeTiles(base, col kernel.Value) {
	for h := range t.halves() {
		t.writeTile(h, base, col)
	}
	if most := t.fragmentTile.rows / ir.TileRows; t.halves() < most {
		t.p.tiler(t.b, t.tileOf(t.b, most-1)).Clear(t.b.U32(0), ir.TileRows, t.b.Div(col, ir.PieceElements), t.pieces(), t.threads())
	}
}

func (t *fragmentRun) writeTile(h int, base, col kernel.Value) {
	b, p := t.b, t.p
	tiler, width := p.tiler(b, t.tileOf(b, h)), b.Div(p.width, 4)
	r, q := b.Mod(b.LocalID(), ir.TileRows), b.Add(b.Div(col, 4*ir.PieceElements), b.Div(b.LocalID(), ir.TileRows))
	r = b.Add(r, h*ir.TileRows)
	row, block := b.Add(t.row, r), b.Div(q, weight.BlockPieces/4)
	there := b.Lt(row, t.rows)
	tiler.Store(b.Sub(r, h*ir.TileRows), block, b.Mod(q, weight.BlockPieces/4), func(first kernel.Value, more int) kernel.Value {
		sub := b.Mod(b.Add(tiler.Place(first), tiler.Place(b.U32(uint32(more)))), t.pieces())
		octet := b.Add(b.Mul(block, weight.BlockPieces), first, more)
		var words []kernel.Operand
		for i := range 2 {
			x := b.Add(b.Mul(octet, 2), i)
			y := t.result(t.products(base, r, b.Add(b.Mul(sub, 2), i)), b.Add(b.Mul(row, width), x), x, width, there)()
			half := lane.RoundHalf(b, y)
			words = append(words, b.Select(there, b.Elem(half, 0), 0), b.Select(there, b.Elem(half, 1), 0))
		}
		return b.Vec(words...)
	})
}

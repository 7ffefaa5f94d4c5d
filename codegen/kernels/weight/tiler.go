package weight

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/ir"
)

// BlockPieces are the pieces of a block of a row: see ir.TileElement.
const BlockPieces = ir.TileBlock / ir.PieceElements

// Tiler writes rows of f16 into a tile, in all orders.
type Tiler struct {
	*kernel.Builder
	Y      *kernel.Buffer // tiles
	Orders [][2]int
	Width  kernel.Value // elements of a row
	Tile   kernel.Value
}

// Store writes the q-th four pieces of a block of row r. octet returns octet first+more of the block, as it is in the
// row.
func (t Tiler) Store(r, block, q kernel.Value, octet func(first kernel.Value, more int) kernel.Value) {
	for i, lanes := range t.Orders {
		var octets []kernel.Value
		first := t.spread(lanes, q)
		for quad := range 4 {
			octets = append(octets, OctetOf(t.Builder, octet(first, quad&1<<lanes[0]|quad>>1<<lanes[1])))
		}
		piece := t.Add(t.piece(i), t.Mul(block, BlockPieces), t.Mul(q, 4))
		for j := range 4 {
			var words []kernel.Operand
			for _, v := range octets {
				words = append(words, t.Elem(v, j))
			}
			t.Y.Store(t.Add(t.Mul(t.Add(piece, j), ir.TileRows), r), t.Vec(words...))
		}
	}
}

// Clear has the lanes of a workgroup write zeros to so many rows, from row r on, of n pieces of the tile from piece on.
func (t Tiler) Clear(r kernel.Value, rows int, piece kernel.Value, n, lanes int) {
	for i := range t.Orders {
		from := t.Add(t.Mul(t.Add(t.piece(i), piece), ir.TileRows), r)
		t.ForRolled(t.LocalID(), n*rows, lanes, func(j kernel.Value) {
			t.Y.Store(t.Add(from, t.Mul(t.Div(j, rows), ir.TileRows), t.Mod(j, rows)), t.Splat(t.U32(0), 4))
		})
	}
}

// Octet returns the number in its block of the octet at a place of the first order. Places 4q to 4q+3 have the octets
// that make pieces 4q to 4q+3.
func (t Tiler) Octet(place kernel.Value) kernel.Value {
	lanes := t.Orders[0]
	return t.Or(t.spread(lanes, t.Div(place, 4)), t.Shl(t.And(place, 1), lanes[0]), t.Shl(t.And(t.Div(place, 2), 1), lanes[1]))
}

// Place is the inverse of Octet.
func (t Tiler) Place(octet kernel.Value) kernel.Value {
	lanes, at, to := t.Orders[0], t.U32(0), 2
	for bit := range 5 {
		is := t.And(t.Shr(octet, bit), 1)
		switch bit {
		case lanes[0]:
			at = t.Or(at, is)
		case lanes[1]:
			at = t.Or(at, t.Shl(is, 1))
		default:
			at = t.Or(at, t.Shl(is, to))
			to++
		}
	}
	return at
}

// piece returns the first piece of the tile in its i-th order.
func (t Tiler) piece(i int) kernel.Value {
	return t.Mul(t.Add(t.Mul(t.Tile, len(t.Orders)), i), t.Div(t.Width, ir.PieceElements))
}

// spread puts the bits of i where a number has no bits of lanes.
func (t Tiler) spread(lanes [2]int, i kernel.Value) kernel.Value {
	at := t.U32(0)
	for bit := range 5 {
		if bit != lanes[0] && bit != lanes[1] {
			at = t.Or(at, t.Shl(t.And(i, 1), bit))
			i = t.Shr(i, 1)
		}
	}
	return at
}

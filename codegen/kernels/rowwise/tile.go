package rowwise

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

const (
	// tileBlockPieces are the pieces of a block of a row, a subgroup of tileSubgroups has four of them, of tileLanes rows.
	tileBlockPieces          = ir.TileBlock / ir.PieceElements
	tileSubgroups, tileLanes = tileBlockPieces / 4, 32
)

// TileCandidates put rows into tiles: a workgroup takes a block of 32 rows, a lane four octets of one, which make four pieces.
func TileCandidates(s *site.Site) []site.Candidate {
	op := site.Only(s, "tile")
	if op == nil || s.Target.Wave != tileLanes {
		return nil
	}
	rows, ok := site.ExtentOf(s, op.Args[0])
	orders, err := ir.TileOrders(op.Attrs.Str("lanes"))
	if !ok || err != nil || op.Attrs.Int("rows") != s.Func.Rows {
		return nil
	}
	k, tiles := int(op.Args[0].Type.Last()), int(op.Attrs.Int("rows"))/ir.TileRows
	return []site.Candidate{site.Implement(site.Candidate{
		Kernel: "tile " + op.Attrs.Str("lanes") + rows.Key(),
		Grid:   [3]int{k / ir.TileBlock, ir.TileRows / tileLanes, tiles},
		Cover: []plans.Cover{{Arg: "y", Dims: []int{tiles, len(orders), k / ir.PieceElements, ir.TileRows, ir.PieceElements},
			Tile: []int{1, len(orders), tileBlockPieces, tileLanes, ir.PieceElements}, Axis: []int{2, -1, 0, 1, -1}}},
	}, "tile", func(s *site.Signature) func(b *kernel.Builder) {
		extent, x, y := rows.Declare(s), s.Read("x", op.Args[0]), s.Write("y", op.Result)
		width := s.U32("width", k, 4096, "elements of a row")
		return func(b *kernel.Builder) {
			bound := extent.Load(b)
			b.Workgroup(tileSubgroups * tileLanes)
			block, tile := b.WorkgroupID(0), b.WorkgroupID(2)
			r := b.Add(b.Mul(b.WorkgroupID(1), tileLanes), b.SubgroupLane())
			row := b.Add(b.Mul(tile, ir.TileRows), r)
			there := b.Lt(row, bound)
			from := b.Add(b.Mul(b.Select(there, row, 0), b.Div(width, 8)), b.Mul(block, ir.TileBlock/8))
			t := tiler{b: b, y: y, orders: orders, width: width, tile: tile}
			t.store(r, block, b.SubgroupID(), func(first kernel.Value, more int) kernel.Value {
				return b.Select(b.Splat(there, 4), x.Load(lane.U32x4, b.Add(from, first, more)), b.Splat(b.U32(0), 4))
			})
		}
	})}
}

// tiler writes rows into a tile, in all orders.
type tiler struct {
	b      *kernel.Builder
	y      *kernel.Buffer
	orders [][2]int
	width  kernel.Value // elements of a row
	tile   kernel.Value
}

// store writes the q-th four pieces of a block of row r. octet returns octet first+more of the block, as it is in the row.
func (t tiler) store(r, block, q kernel.Value, octet func(first kernel.Value, more int) kernel.Value) {
	b := t.b
	for i, lanes := range t.orders {
		var octets []kernel.Value
		first := spread(b, lanes, q)
		for quad := range 4 {
			octets = append(octets, weight.OctetOf(b, octet(first, quad&1<<lanes[0]|quad>>1<<lanes[1])))
		}
		piece := b.Add(b.Mul(b.Add(b.Mul(t.tile, len(t.orders)), i), b.Div(t.width, ir.PieceElements)), b.Mul(block, tileBlockPieces), b.Mul(q, 4))
		for j := range 4 {
			var words []kernel.Operand
			for _, v := range octets {
				words = append(words, b.Elem(v, j))
			}
			t.y.Store(b.Add(b.Mul(b.Add(piece, j), ir.TileRows), r), b.Vec(words...))
		}
	}
}

// spread puts the bits of i where a number has no bits of lanes.
func spread(b *kernel.Builder, lanes [2]int, i kernel.Value) kernel.Value {
	at := b.U32(0)
	for bit := range 5 {
		if bit != lanes[0] && bit != lanes[1] {
			at = b.Or(at, b.Shl(b.And(i, 1), bit))
			i = b.Shr(i, 1)
		}
	}
	return at
}

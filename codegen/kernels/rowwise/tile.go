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
	// A subgroup of tileSubgroups has four pieces of a block, of tileLanes rows.
	tileSubgroups, tileLanes = weight.BlockPieces / 4, 32
)

// TileCandidates put rows into tiles: a workgroup takes a block of 32 rows, a lane four octets of one, which make four
// pieces.
func TileCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	if s.Target.Wave != tileLanes {
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
			Tile: []int{1, len(orders), weight.BlockPieces, tileLanes, ir.PieceElements}, Axis: []int{2, -1, 0, 1, -1}}},
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
			t := weight.Tiler{Builder: b, Y: y, Orders: orders, Width: width, Tile: tile}
			t.Store(r, block, b.SubgroupID(), func(first kernel.Value, more int) kernel.Value {
				return b.Select(b.Splat(there, 4), x.Load(lane.U32x4, b.Add(from, first, more)), b.Splat(b.U32(0), 4))
			})
		}
	})}
}

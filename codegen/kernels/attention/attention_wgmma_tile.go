package attention

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// attention_wgmma can write its result in tiles, as the next product reads it. A workgroup has whole pieces of its
// rows. It puts what is in them, rounded, into shared memory, where q was, and from there writes pieces of neighbouring
// rows.

// beforeTile returns the site without the op tile that its group ends in, and that op; nil if it ends in another.
func beforeTile(s *site.Site) (*site.Site, *ir.Op) {
	n := len(s.Group.Ops) - 1
	if n < 1 || s.Group.Ops[n].Kind.Name != "tile" || !slices.Equal(s.Outputs, []*ir.Value{s.Group.Ops[n].Result}) {
		return s, nil
	}
	before, op := *s, s.Group.Ops[n]
	before.Group, before.Outputs = &ir.Group{Name: s.Group.Name, Ops: s.Group.Ops[:n]}, op.Args[:1]
	return &before, op
}

// takeTile takes the op tile behind the result, if there is one, and reports whether the kernel can.
func (k *wgmmaAttention) takeTile(op *ir.Op) bool {
	if op == nil {
		return true
	}
	orders, err := ir.TileOrders(op.Attrs.Str("lanes"))
	if err != nil || k.partial || !k.gate.half || op.Attrs.Int("rows") != k.rows.Max || !k.hasPieces(orders) {
		return false
	}
	k.tile, k.orders, k.result = op, orders, op.Result
	return true
}

// tiled has c write tiles, if there are some: a workgroup writes all pieces of its heads, of a part of the rows of a
// tile.
func (k *wgmmaAttention) tiled(c site.Candidate) site.Candidate {
	if k.tile == nil {
		return c
	}
	c.Kernel += " tile " + k.tile.Attrs.Str("lanes")
	tiles := k.rows.Max / ir.TileRows
	c.Grid[1], c.Grid[2] = ir.TileRows/k.queryRows(), c.Grid[1]*k.queryRows()/ir.TileRows
	y := plans.Cover{Arg: "y", Dims: []int{tiles, len(k.orders), k.heads * k.headDim / ir.PieceElements, ir.TileRows, ir.PieceElements},
		Tile: []int{1, len(k.orders), k.pieces(), k.queryRows(), ir.PieceElements}, Axis: []int{2, -1, 0, 1, -1}}
	c.Cover[0] = y
	if k.merge != nil {
		y.Tile[0], y.Tile[3], c.Cover[0].Joined = 0, 0, []int{1, 2}
		partial := &c.Cover[1]
		partial.Dims, partial.Tile, partial.Axis = append([]int{tiles}, partial.Dims...), append([]int{0}, partial.Tile...), append([]int{2}, partial.Axis...)
		partial.Dims[1] /= tiles
	}
	return c
}

// hasPieces reports whether a workgroup has whole pieces: its octets are whole blocks, or so many in a row of one that
// they differ in all bits of a lane's number.
func (k *wgmmaAttention) hasPieces(orders [][2]int) bool {
	n := k.pieces()
	return n%weight.BlockPieces == 0 || weight.BlockPieces%n == 0 && !slices.ContainsFunc(orders, func(lanes [2]int) bool { return 1<<lanes[1] >= n })
}

// pieces are those of a workgroup's heads, of each order; they have as many octets.
func (k *promptAttention) pieces() int { return k.fold * k.headDim / ir.PieceElements }

// tiler writes into the tile that has the workgroup's rows.
func (r *promptRun) tiler() weight.Tiler {
	b := r.b
	return weight.Tiler{Builder: b, Y: r.y, Orders: r.of.orders, Width: b.Mul(r.heads, r.of.headDim), Tile: b.Div(r.row, ir.TileRows)}
}

// clearTiles writes zeros where a workgroup of so many lanes has so many rows of its tile.
func (r *promptRun) clearTiles(lanes, rows int) {
	b := r.b
	r.tiler().Clear(b.Mod(r.row, ir.TileRows), rows, b.Mul(b.WorkgroupID(0), r.of.pieces()), r.of.pieces(), lanes)
}

// stageAt returns where octet u of a row of the tile, or octet more of those from there on, lies in shared memory. The
// two have no bits in common. It is where q had it, but such that neighbouring rows of q have those of the same head in
// different banks.
func (r *wgmmaAttentionRun) stageAt(inTile, u kernel.Value, more int) kernel.Value {
	b := r.b
	turn := b.Mod(b.Xor(b.Div(inTile, r.fold), b.Mul(inTile, 2)), lineUnits)
	line := b.Add(b.Mul(b.Div(u, lineUnits), r.tileRows()), inTile)
	return b.Add(b.Mul(line, lineUnits), b.Xor(b.Xor(b.Mod(u, lineUnits), turn), more%lineUnits), r.queryAt()+more/lineUnits*lineUnits*r.tileRows())
}

// stage puts a quad of those of two octets of a row of the tile, from octet `from` on, into shared memory: four dims,
// times a number. Those of rows that the step does not have nobody reads.
func (r *wgmmaAttentionRun) stage(inTile, quad kernel.Value, from int, v, number kernel.Value) {
	b := r.b
	head := b.Add(b.Mul(b.Min(r.rowOf(inTile), r.lastRow), r.heads), r.head, b.Mod(inTile, r.fold))
	halves := r.quotients(head, b.Add(quad, 2*from), v, number)
	at := r.stageAt(inTile, b.Div(quad, 2), from)
	for e := range 2 {
		r.shared.StoreElem(at, b.Add(b.Mul(b.Mod(quad, 2), 2), e), b.Elem(halves, e))
	}
}

// writeTiles writes the pieces. Neighbouring lanes have neighbouring rows.
func (r *wgmmaAttentionRun) writeTiles() {
	b, tiler, rows := r.b, r.tiler(), r.queryRows()
	begin := b.Mul(b.WorkgroupID(0), r.pieces())
	b.Barrier()
	b.For(b.LocalID(), rows*r.pieces()/4, r.lanes(), func(i kernel.Value) {
		line, q := b.Mod(i, rows), b.Add(b.Div(begin, 4), b.Div(i, rows))
		there := b.Le(b.Add(r.row, line), r.lastRow)
		block := b.Div(q, weight.BlockPieces/4)
		tiler.Store(b.Add(b.Mod(r.row, ir.TileRows), line), block, b.Mod(q, weight.BlockPieces/4), func(first kernel.Value, more int) kernel.Value {
			u := b.Add(b.Sub(b.Add(b.Mul(block, weight.BlockPieces), first), begin), more)
			inTile := b.Add(b.Mul(line, r.fold), b.Div(u, r.octets()))
			return b.Select(b.Splat(there, 4), r.shared.Load(r.stageAt(inTile, b.Mod(u, r.octets()), 0)), b.Splat(b.U32(0), 4))
		})
	})
}

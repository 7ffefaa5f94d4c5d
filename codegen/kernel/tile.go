package kernel

// Tiles are registers of a workgroup, as AMX has them: 16 rows of 16 words. All lanes of the workgroup come to what is
// done with them; their content is undefined at first.

// Tiles is the number of tiles.
const Tiles = 8

// TileSide is the rows of a tile, and the words of a row.
const TileSide = 16

// TileZero makes the words of a tile 0.
func (b *Builder) TileZero(tile int) { b.tile(OpTileZero, tile) }

// TileLoad loads a tile from an array of scalars: row r begins at element i + r*stride.
func (b *Builder) TileLoad(tile int, a *Array, i, stride Operand) {
	b.tileAccess(OpTileLoad, tile, a, i, stride)
}

// TileStore is the inverse of TileLoad.
func (b *Builder) TileStore(a *Array, i, stride Operand, tile int) {
	b.tileAccess(OpTileStore, tile, a, i, stride)
}

// TileMulAdd adds the product of x and y to sums, which are f32. A word of x and y is a pair of bf16. Element (i, j) of
// the product is the sum over k of the products of both elements of word (i, k) of x and word (k, j) of y. The device
// decides the order of rounding; denormals count as 0.
func (b *Builder) TileMulAdd(sums, x, y int) { b.tile(OpTileMulAdd, sums, x, y) }

// tile adds an operation whose operands are numbers of tiles.
func (b *Builder) tile(o Op, tiles ...int) {
	n := &Node{op: o}
	for i, t := range tiles {
		if t < 0 || t >= Tiles {
			b.fail("%s: tile %d of %d", ops[o].name, t, Tiles)
			return
		}
		n.imm |= uint32(t) << (4 * i)
	}
	b.f.Tiles = true
	b.add(n)
}

func (b *Builder) tileAccess(o Op, tile int, a *Array, i, stride Operand) {
	if tile < 0 || tile >= Tiles || a.elem.Lanes() != 1 {
		b.fail("%s: tile %d of %d, array of %v", ops[o].name, tile, Tiles, a.elem)
		return
	}
	b.f.Tiles = true
	a.access(o, Void, b.typed(o, i, U32), b.typed(o, stride, U32)).n.align = tile
}

// Tile returns tile i of an OpTileZero or OpTileMulAdd, or the tile that another operation accesses.
func (n *Node) Tile(i int) int {
	if n.op == OpTileLoad || n.op == OpTileStore {
		return n.align
	}
	return int(n.imm >> (4 * i) & 15)
}

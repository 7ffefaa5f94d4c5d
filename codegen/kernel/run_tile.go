package kernel

import "math"

// tile is one in Run: words by row.
type tile [TileSide][TileSide]uint32

// tileOp does what all lanes of a workgroup come to.
func (m *machine) tileOp(n *Node, active []bool) {
	if m.together(n, active, m.lanes); m.err != nil {
		return
	}
	t := &m.tiles[n.Tile(0)]
	switch n.op {
	case OpTileZero:
		*t = tile{}
	case OpTileLoad, OpTileStore:
		m.tileAccess(n, t)
	case OpTileMulAdd:
		t.addProduct(&m.tiles[n.Tile(1)], &m.tiles[n.Tile(2)])
	}
}

func (m *machine) tileAccess(n *Node, t *tile) {
	words, at, stride := m.shared[n.imm], m.value(n.args[0]), m.value(n.args[1])
	for l := range at {
		if at[l] != at[0] || stride[l] != stride[0] {
			m.fail(n, "lane 0: element %d, stride %d; lane %d: element %d, stride %d", at[0], stride[0], l, at[l], stride[l])
			return
		}
	}
	for r := range t {
		first := int(at[0]) + r*int(stride[0])
		if first+TileSide > len(words) {
			m.fail(n, "row %d: element %d of an array of %d", r, first, len(words))
			return
		}
		if m.inShared(n, int(n.imm), first, TileSide, m.lanes); m.err != nil {
			return
		}
		if n.op == OpTileLoad {
			copy(t[r][:], words[first:])
		} else {
			copy(words[first:], t[r][:])
		}
	}
}

// addProduct adds in float64, and rounds once.
func (t *tile) addProduct(x, y *tile) {
	half := func(w uint32, upper int) float64 {
		return float64(math.Float32frombits(w >> (16 * upper) << 16))
	}
	for i := range t {
		for j := range t[i] {
			sum := float64(math.Float32frombits(t[i][j]))
			for k := range x[i] {
				for h := range 2 {
					sum += half(x[i][k], h) * half(y[k][j], h)
				}
			}
			t[i][j] = math.Float32bits(float32(sum))
		}
	}
}

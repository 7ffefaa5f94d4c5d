package kernel

import (
	"math"

	"github.com/zincc-dev/zincc/ir/gguf"
)

// Matrices in Run: the lanes of a subgroup of 32 hold what mma.m16n8k16 of NVIDIA's PTX says.
// Of each 8 rows of A and of an accumulator, or columns of B, four neighbouring lanes have one,
// and in it pairs of elements.

// words is how many words a lane's value of type t has.
func (t Type) words() int {
	if !t.isMatrix() {
		return t.Lanes()
	}
	rows, cols, _ := t.shape()
	if t.Elem() == F16 {
		return rows * cols / 64
	}
	return rows * cols / 32
}

// dealtPlace returns the row and column of element i of those that a lane holds.
func dealtPlace(use Use, lane, i int) (row, col int) {
	place, pair := lane/4, lane%4*2+i%2
	switch use {
	case MatrixA: // two pairs of a row, then those of the row 8 below
		return place + i/4*8, pair + i/2%2*8
	case MatrixB:
		return pair + i/2*8, place
	}
	return place + i/2*8, pair
}

// dealtElement returns element i of those that a lane holds of a matrix of type t.
func (m *machine) dealtElement(t Type, words []uint32, lane, i int) float32 {
	words = words[lane*t.words():]
	if t.Elem() == F32 {
		return math.Float32frombits(words[i])
	}
	return gguf.F16ToF32(uint16(words[i/2] >> (16 * (i % 2))))
}

func (m *machine) matrix(n *node, active []bool) {
	switch n.op {
	case opMatFill:
		x, to := m.value(n.args[0]), m.storage(n, n.typ.words())
		for i := range to {
			to[i] = x[i/n.typ.words()]
		}
	case opMatPairs:
		width := n.typ.words()
		to := m.storage(n, width)
		for i, a := range n.args {
			for l, w := range m.value(a) {
				to[l*width+i] = w
			}
		}
	case opMatMulAdd:
		m.matMulAdd(n, active)
	case opMatStore:
		m.matStore(n, active)
	case opVarElem:
		x, i, to, width := m.storage(n.args[0], n.args[0].typ.words()), m.value(n.args[1]), m.storage(n, 1), n.args[0].typ.words()
		for l := range to {
			if active[l] {
				to[l] = x[l*width+int(i[l])%width]
			}
		}
	case opVarSetElem:
		to, i, x, width := m.storage(n.args[0], n.args[0].typ.words()), m.value(n.args[1]), m.value(n.args[2]), n.args[0].typ.words()
		for l := range x {
			if active[l] {
				to[l*width+int(i[l])%width] = x[l]
			}
		}
	default:
		m.fail(n, "not here")
	}
}

// matStore writes the matrices of words of the lanes that are here.
func (m *machine) matStore(n *node, active []bool) {
	t := n.args[2].typ
	if t.Elem() == F16 {
		m.fail(n, "of %v", t)
		return
	}
	to, width := m.shared[n.imm], uint32(m.f.arrays[n.imm].elem.Lanes())
	at, stride, x := m.value(n.args[0]), m.value(n.args[1]), m.value(n.args[2])
	for l := range m.lanes {
		for i := 0; i < t.words() && active[l]; i++ {
			_, _, use := t.shape()
			row, col := dealtPlace(use, l%m.wave, i)
			if Layout(n.align) == ColumnMajor {
				row, col = col, row
			}
			place := (at[l]+uint32(row)*stride[l])*width + uint32(col)
			if int(place) >= len(to) {
				m.fail(n, "lane %d: word %d of an array of %d", l, place, len(to))
				return
			}
			to[place] = x[l*t.words()+i]
		}
	}
}

// matMulAdd multiplies in the subgroups that are here as a whole.
func (m *machine) matMulAdd(n *node, active []bool) {
	const dealtLanes, rows, cols, depth = 32, 16, 8, 16
	x, y, z := n.args[0], n.args[1], n.args[2]
	if m.wave != dealtLanes || m.lanes%m.wave != 0 || x.typ != F16.Matrix(rows, depth, MatrixA) || y.typ != F16.Matrix(depth, cols, MatrixB) {
		m.fail(n, "%v by %v in subgroups of %d", x.typ, y.typ, m.wave)
		return
	}
	xs, ys, zs, to := m.value(x), m.value(y), m.value(z), m.storage(n, n.typ.words())
	for first := 0; first < m.lanes; first += m.wave {
		var a, b [16][16]float64
		for l := range m.wave {
			if active[first+l] != active[first] {
				m.fail(n, "lane %d does not come to it", first+l)
				return
			}
			for i := range 8 {
				row, col := dealtPlace(MatrixA, l, i)
				a[row][col] = float64(m.dealtElement(x.typ, xs, first+l, i))
			}
			for i := range 4 {
				row, col := dealtPlace(MatrixB, l, i)
				b[row][col] = float64(m.dealtElement(y.typ, ys, first+l, i))
			}
		}
		for l := first; l < first+m.wave && active[l]; l++ {
			for i := range 4 {
				row, col := dealtPlace(Accumulator, l-first, i)
				sum := float64(m.dealtElement(z.typ, zs, l, i))
				for k := range depth {
					sum += a[row][k] * b[k][col]
				}
				to[l*n.typ.words()+i] = math.Float32bits(float32(sum))
			}
		}
	}
}

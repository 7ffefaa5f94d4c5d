package kernel

import (
	"math"

	"github.com/zincc-dev/zincc/ir/gguf"
)

// Matrices in Run: the lanes of a subgroup of 32 hold what mma.m16n8k16 of NVIDIA's PTX says,
// of bytes what mma.m16n8k32 does. Of each 8 rows of A and of an accumulator, or columns of B,
// four neighbouring lanes have one, and in it elements that lie together: as many as a word has,
// or of an accumulator two.

// words is how many words a lane's value of type t has.
func (t Type) words() int {
	if !t.isMatrix() {
		return t.Lanes()
	}
	rows, cols, _ := t.shape()
	return rows * cols / (32 * max(1, t.perWord()))
}

// dealtPlace returns the row and column of element i of those that a lane holds.
func dealtPlace(t Type, lane, i int) (row, col int) {
	each := max(2, t.perWord())
	place, near, word := lane/4, lane%4*each+i%each, i/each
	switch _, _, use := t.shape(); use {
	case MatrixA: // two words of a row, then those of the row 8 below; they are 4 lanes apart
		return place + word/2*8, near + word%2*4*each
	case MatrixB:
		return near + word*4*each, place
	}
	return place + word*8, near
}

// dealtElement returns element i of those that a lane holds of a matrix of type t.
func (m *machine) dealtElement(t Type, words []uint32, lane, i int) float64 {
	words = words[lane*t.words():]
	switch t.Elem() {
	case F32:
		return float64(math.Float32frombits(words[i]))
	case I32:
		return float64(int32(words[i]))
	case I8:
		return float64(int8(words[i/4] >> (8 * (i % 4))))
	}
	return float64(gguf.F16ToF32(uint16(words[i/2] >> (16 * (i % 2)))))
}

func (m *machine) matrix(n *node, active []bool) {
	switch n.op {
	case opMatFill:
		x, to := m.value(n.args[0]), m.storage(n, n.typ.words())
		for i := range to {
			to[i] = x[i/n.typ.words()]
		}
	case opMatWords:
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
	if t.perWord() > 1 {
		m.fail(n, "of %v", t)
		return
	}
	to, width := m.shared[n.imm], uint32(m.f.arrays[n.imm].elem.Lanes())
	at, stride, x := m.value(n.args[0]), m.value(n.args[1]), m.value(n.args[2])
	for l := range m.lanes {
		for i := 0; i < t.words() && active[l]; i++ {
			row, col := dealtPlace(t, l%m.wave, i)
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
	const dealtLanes, rows, cols = 32, 16, 8
	x, y, z := n.args[0].typ, n.args[1].typ, n.typ
	depth := 8 * x.perWord()
	if m.wave != dealtLanes || m.lanes%m.wave != 0 || x != x.Elem().Matrix(rows, depth, MatrixA) || y != x.Elem().Matrix(depth, cols, MatrixB) {
		m.fail(n, "%v by %v in subgroups of %d", x, y, m.wave)
		return
	}
	xs, ys, zs, to := m.value(n.args[0]), m.value(n.args[1]), m.value(n.args[2]), m.storage(n, z.words())
	var a, b [16][32]float64 // rows of the one, columns of the other
	for first := 0; first < m.lanes; first += m.wave {
		for l := range m.wave {
			if active[first+l] != active[first] {
				m.fail(n, "lane %d does not come to it", first+l)
				return
			}
			for i := range rows * depth / dealtLanes {
				row, col := dealtPlace(x, l, i)
				a[row][col] = m.dealtElement(x, xs, first+l, i)
			}
			for i := range depth * cols / dealtLanes {
				row, col := dealtPlace(y, l, i)
				b[col][row] = m.dealtElement(y, ys, first+l, i)
			}
		}
		for l := first; l < first+m.wave && active[l]; l++ {
			for i := range rows * cols / dealtLanes {
				row, col := dealtPlace(z, l-first, i)
				sum := m.dealtElement(z, zs, l, i)
				for k := range depth {
					sum += a[row][k] * b[col][k]
				}
				if z.Elem() == I32 {
					to[l*z.words()+i] = uint32(int32(sum))
				} else {
					to[l*z.words()+i] = math.Float32bits(float32(sum))
				}
			}
		}
	}
}

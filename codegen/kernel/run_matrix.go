package kernel

import (
	"math"

	"github.com/zincc-dev/zincc/ir/gguf"
)

// Matrices in Run. Each lane holds as many elements as the others, each in a word. Which ones,
// only kernels with Func.Fragments may know: those get what mma.m16n8k16 of NVIDIA's PTX says for
// subgroups of 32. For all others neighbouring elements of a row are of neighbouring lanes.

// words is how many words a lane's value of type t has.
func (m *machine) words(t Type) int {
	if !t.IsMatrix() {
		return t.Lanes()
	}
	rows, cols, _ := t.Shape()
	return rows * cols / m.wave
}

// element returns the row and column of element i of those that a lane of a subgroup holds.
func (m *machine) element(t Type, lane, i int) (row, col int) {
	_, cols, use := t.Shape()
	if !m.f.Fragments {
		at := i*m.wave + lane
		return at / cols, at % cols
	}
	// Of each 8 rows of A and of an accumulator, or columns of B, four neighbouring lanes
	// have one, and in it pairs of elements; B and half of A are 8 wide.
	place, pair := lane/4, lane%4*2+i%2
	switch {
	case use == MatrixA && t.Elem() == F32: // an element of a row, that of the row 8 below, then those 4 further
		return place + i%2*8, lane%4 + i/2*4
	case use == MatrixB && t.Elem() == F32:
		return lane%4 + i*4, place
	}
	switch use {
	case MatrixA: // two pairs of a row, then those of the row 8 below
		return place + i/4*8, pair + i/2%2*8
	case MatrixB:
		return pair + i/2*8, place
	}
	return place + i/2*8, pair
}

// held checks that a matrix of type t can be held, and that all lanes of its subgroup are here.
// It returns the first lanes of the subgroups.
func (m *machine) held(n *Node, active []bool, types ...Type) (first []int) {
	for _, t := range types {
		rows, cols, use := t.Shape()
		ptx := cols == 8 && t.Elem() == F32 && (rows == 16 && use == MatrixA || rows == 8 && use == MatrixB) || rows == 16 && (cols == 8 && use != MatrixA || cols == 16 && use == MatrixA) && m.wave == 32
		if rows*cols%m.wave != 0 || m.lanes%m.wave != 0 || m.f.Fragments && !ptx {
			m.fail(n, "%v in subgroups of %d, of workgroups of %d", t, m.wave, m.lanes)
			return nil
		}
	}
	for _, s := range m.together(n, active, m.wave) {
		first = append(first, s*m.wave)
	}
	return first
}

// placesOf returns where in a matrix, row by row, the elements are that the lanes of a subgroup hold, in order.
func (m *machine) placesOf(t Type) []int {
	list := m.places[t]
	if list == nil {
		_, cols, _ := t.Shape()
		for l := range m.wave {
			for i := range m.words(t) {
				row, col := m.element(t, l, i)
				list = append(list, row*cols+col)
			}
		}
		if m.places == nil {
			m.places = map[Type][]int{}
		}
		m.places[t] = list
	}
	return list
}

// gather returns the matrix that the subgroup of lane first holds, row by row, in the i-th of the machine's buffers for
// that.
func (m *machine) gather(t Type, words []uint32, first, i int) []float64 {
	places := m.placesOf(t)
	if len(m.gathered[i]) < len(places) {
		m.gathered[i] = make([]float64, len(places))
	}
	x := m.gathered[i][:len(places)]
	words = words[first*m.words(t):][:len(places)]
	if t.Elem() == F16 {
		for j, at := range places {
			x[at] = float64(gguf.F16ToF32(uint16(words[j])))
		}
		return x
	}
	for j, at := range places {
		x[at] = float64(math.Float32frombits(words[j]))
	}
	return x
}

// scatter is the inverse of gather.
func (m *machine) scatter(t Type, x []float64, words []uint32, first int) {
	words = words[first*m.words(t):]
	for j, at := range m.placesOf(t) {
		words[j] = matrixBits(t, float32(x[at]))
	}
}

func matrixFloat(t Type, w uint32) float32 {
	if t.Elem() == F16 {
		return gguf.F16ToF32(uint16(w))
	}
	return math.Float32frombits(w)
}

func matrixBits(t Type, x float32) uint32 {
	if t.Elem() == F16 {
		return uint32(gguf.F32ToF16(x))
	}
	return math.Float32bits(x)
}

func (m *machine) matrix(n *Node, active []bool) {
	switch n.op {
	case OpMatFill, OpMatPairs, OpMatElems:
		m.matMake(n, active)
	case OpMatLoad, OpMatStore:
		m.matAccess(n, active)
	case OpMatMulAdd:
		m.matMulAdd(n, active)
	case OpMatBytes:
		m.matBytes(n, active)
	case OpMatTimes, OpMatConvert:
		m.matEach(n, active)
	case OpMatLength:
		to := m.storage(n, 1)
		for l := range to {
			to[l] = uint32(m.words(Type(n.imm)))
		}
	case OpVarElem, OpVarSetElem:
		m.matElement(n, active)
	case OpMatGroupAdd:
		m.groupAdd(n, active)
	case OpMatGroupWait:
		m.groupWait(n, active)
	default:
		m.fail(n, "not here")
	}
}

func (m *machine) matMake(n *Node, active []bool) {
	if m.held(n, active, n.typ) == nil {
		return
	}
	count := m.words(n.typ)
	to := m.storage(n, count)
	for i := range count {
		word, shift := 0, 0
		if n.op == OpMatPairs {
			word, shift = i/2, 16*(i%2)
		}
		if n.op == OpMatElems {
			word = i
		}
		for l, x := range m.value(n.args[word]) {
			if n.op == OpMatPairs {
				x = x >> shift & 0xffff
			}
			if active[l] {
				if n.op == OpMatElems && x&^TF32Bits != 0 {
					m.fail(n, "lane %d: element %d, %#x, has more bits than TF32", l, i, x)
					return
				}
				to[l*count+i] = x
			}
		}
	}
}

// matEach computes element by element.
func (m *machine) matEach(n *Node, active []bool) {
	if m.held(n, active, n.typ) == nil {
		return
	}
	from := n.args[0].typ
	x, count := m.value(n.args[0]), m.words(n.typ)
	y, to := m.value(n.args[len(n.args)-1]), m.storage(n, count)
	for i := range to {
		if !active[i/count] {
			continue
		}
		v := matrixFloat(from, x[i])
		if n.op == OpMatTimes {
			v *= matrixFloat(from, y[i])
		}
		to[i] = matrixBits(n.typ, v)
	}
}

func (m *machine) matElement(n *Node, active []bool) {
	count := m.words(n.args[0].typ)
	held, at := m.storage(n.args[0], count), m.value(n.args[1])
	var to []uint32
	if n.op == OpVarElem {
		to = m.storage(n, 1)
	}
	for l := range m.lanes {
		if !active[l] {
			continue
		}
		if int(at[l]) >= count {
			m.fail(n, "lane %d: element %d of %d", l, at[l], count)
			return
		}
		i := l*count + int(at[l])
		if n.op == OpVarElem {
			to[l] = held[i]
		} else {
			held[i] = m.value(n.args[2])[l]
		}
	}
}

// matAccess loads and stores, in shared memory.
func (m *machine) matAccess(n *Node, active []bool) {
	t := n.typ
	if n.op == OpMatStore {
		t = n.args[2].typ
	}
	at, stride, count := m.value(n.args[0]), m.value(n.args[1]), m.words(t)
	var held []uint32
	if n.op == OpMatStore {
		held = m.value(n.args[2])
	} else {
		held = m.storage(n, count)
	}
	words, width, size := m.shared[n.imm], m.f.arrays[n.imm].elem.Lanes(), 4
	if t.Elem() == F16 {
		size = 2
	}
	places, stores := m.placesOf(t), false
	var by access
	_, cols, _ := t.Shape()
	for _, first := range m.held(n, active, t) {
		for l := first; l < first+m.wave; l++ {
			if at[l] != at[first] || stride[l] != stride[first] {
				m.fail(n, "lane %d: element %d, stride %d; lane %d: element %d, stride %d", first, at[first], stride[first], l, at[l], stride[l])
				return
			}
		}
		if by.time == 0 {
			by, stores = m.shares(n)
		}
		mine := held[first*count:][:len(places)]
		for i, p := range places {
			row, col := p/cols, p%cols
			if Layout(n.align) == ColumnMajor {
				row, col = col, row
			}
			place := 4*width*(int(at[first])+row*int(stride[first])) + size*col
			if place/4 >= len(words) {
				m.fail(n, "subgroup %d: word %d of an array of %d", first/m.wave, place/4, len(words))
				return
			}
			if m.touch(&by, stores, int(n.imm), place/4, 1, -1-first/m.wave); m.err != nil {
				return
			}
			w, x := &words[place/4], &mine[i]
			switch {
			case size == 4 && n.op == OpMatLoad:
				*x = *w
			case size == 4:
				*w = *x
			case n.op == OpMatLoad:
				*x = *w >> (place % 4 * 8) & 0xffff
			default:
				*w = *w&^(0xffff<<(place%4*8)) | *x<<(place%4*8)
			}
		}
	}
}

// matMulAdd adds products in float64, in order.
func (m *machine) matMulAdd(n *Node, active []bool) {
	x, y, z := n.args[0], n.args[1], n.args[2]
	xs, ys, zs, to := m.value(x), m.value(y), m.value(z), m.storage(n, m.words(n.typ))
	_, inner, _ := x.typ.Shape()
	_, cols, _ := n.typ.Shape()
	for _, first := range m.held(n, active, x.typ, y.typ, z.typ) {
		a, b, sum := m.gather(x.typ, xs, first, 0), m.gather(y.typ, ys, first, 1), m.gather(z.typ, zs, first, 2)
		for ; len(sum) > 0; a, sum = a[inner:], sum[cols:] {
			row := sum[:cols]
			for k, v := range a[:inner] {
				for j, w := range b[k*cols:][:len(row)] {
					row[j] += v * w
				}
			}
		}
		m.scatter(n.typ, m.gathered[2], to, first)
	}
}

// matBytes multiplies bytes.
func (m *machine) matBytes(n *Node, active []bool) {
	if m.wave != 32 {
		m.fail(n, "subgroups of %d", m.wave)
		return
	}
	halves := n.args[1].typ.Lanes()
	a, x, to := m.value(n.args[0]), m.value(n.args[1]), m.storage(n, 4)
	for _, s := range m.together(n, active, m.wave) {
		for l := range m.wave {
			for e := range 4 {
				row, column := l/4, l%4*2+e%2
				sum := int32(0)
				for k := range 16 * halves {
					half, place, shift := k/16, k%16/4, k%4*8
					of := a[(s*m.wave+row*4+place)*2*halves+e/2*halves+half] >> shift
					by := x[(s*m.wave+column*4+place)*halves+half] >> shift
					sum += int32(uint8(of)) * int32(int8(by))
				}
				to[(s*m.wave+l)*4+e] = uint32(sum)
			}
		}
	}
}

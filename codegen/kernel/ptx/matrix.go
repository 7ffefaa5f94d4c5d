package ptx

import (
	"fmt"
	"maps"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

// Matrices are fragments of mma.m16n8k16, whose elements PTX gives to lanes (PTX ISA, "Matrix
// Fragments for mma.m16n8k16"). With g = lane/4 and t = lane%4, pairs of neighbours:
//
//	A, 16x16:           (g, 2t) (g+8, 2t) (g, 2t+8) (g+8, 2t+8)
//	B, 16x8:            (2t, g) (2t+8, g)
//	accumulator, 16x8:  (g, 2t) (g+8, 2t)
//
// Of f32, whose products take the bits of TF32, matrices are those of mma.m16n8k8 ("Matrix Fragments for mma.m16n8k8"),
// by elements:
//
//	A, 16x8:  (g, t) (g+8, t) (g, t+4) (g+8, t+4)
//	B, 8x8:   (t, g) (t+4, g)
//
// Matrices with 16 columns of B or of an accumulator are two of these, left and right.

// columns is the width of B and of accumulators of one instruction.
const columns = 8

func init() {
	maps.Copy(special, map[kernel.Op]func(l *lowering, n *kernel.Node){
		kernel.OpMatFill:      (*lowering).matFill,
		kernel.OpMatPairs:     (*lowering).matPairs,
		kernel.OpMatElems:     (*lowering).matElems,
		kernel.OpMatLoad:      (*lowering).matLoad,
		kernel.OpMatStore:     (*lowering).matStore,
		kernel.OpMatMulAdd:    (*lowering).matMulAdd,
		kernel.OpMatBytes:     (*lowering).matBytes,
		kernel.OpMatTimes:     (*lowering).matTimes,
		kernel.OpMatConvert:   (*lowering).matConvert,
		kernel.OpMatLength:    (*lowering).matLength,
		kernel.OpVarElem:      (*lowering).varElem,
		kernel.OpMatGroupAdd:  (*lowering).matGroupAdd,
		kernel.OpMatGroupWait: (*lowering).matGroupWait,
		kernel.OpVarSetElem:   (*lowering).varSetElem,
	})
}

// shaped checks that PTX has matrices of the type.
func (l *lowering) shaped(n *kernel.Node, t kernel.Type) bool {
	rows, cols, use := t.Shape()
	thin := t.Elem() == kernel.F32 && use != kernel.Accumulator
	if thin && cols == 8 && (rows == 16 && use == kernel.MatrixA || rows == 8 && use == kernel.MatrixB) && l.o.Arch >= 80 {
		return true
	}
	if !thin && rows == 16 && (cols == 16 || cols == 8 && use != kernel.MatrixA) {
		return true
	}
	l.fail(n, "no matrix %v", t)
	return false
}

func (l *lowering) matFill(n *kernel.Node) {
	if !l.shaped(n, n.Type()) {
		return
	}
	v := make([]operand, wordsOf(n.Type()))
	for i := range v {
		v[i] = l.scalar(n.Args()[0])
	}
	l.values[n] = v
}

// matPairs takes the pairs of A in the order of rows: those of a row, then those 8 below.
func (l *lowering) matPairs(n *kernel.Node) {
	if !l.shaped(n, n.Type()) {
		return
	}
	var v []operand
	for _, a := range n.Args() {
		v = append(v, l.scalar(a))
	}
	if _, _, use := n.Type().Shape(); use == kernel.MatrixA {
		v[1], v[2] = v[2], v[1]
	}
	l.values[n] = v
}

func (l *lowering) matElems(n *kernel.Node) {
	if !l.shaped(n, n.Type()) {
		return
	}
	var v []operand
	for _, a := range n.Args() {
		v = append(v, l.scalar(a))
	}
	l.values[n] = v
}

// start returns a register with the address of the first element of a matrix in a shared array,
// and the bytes from one row (column) to the next.
func (l *lowering) start(n *kernel.Node) (at string, stride operand) {
	array := l.f.Arrays()[n.Imm()]
	at = l.word("mov.u32", "%s", l.shared(int(n.Imm()), l.scalar(n.Args()[0]))).reg
	stride = l.scalar(n.Args()[1])
	if stride.lit {
		return at, number(stride.bits * uint32(array.Elem().Size()))
	}
	return at, l.word("mul.lo.u32", "%s, %d", stride.reg, array.Elem().Size())
}

// matLoad has lanes 8i to 8i+7 name the rows of the i-th 8x8 part. In memory a row of it is of A
// by rows and of B by columns; else the parts are turned over on the way.
func (l *lowering) matLoad(n *kernel.Node) {
	t := n.Type()
	if !l.shaped(n, t) {
		return
	}
	rows, cols, use := t.Shape()
	if use == kernel.Accumulator {
		l.matAccess(n, t, nil)
		return
	}
	byRow := n.Layout() == kernel.RowMajor
	lane := l.builtins[kernel.SubgroupLane].reg
	at, stride := l.start(n)
	// Of A, part 1 is below part 0, and 2 and 3 are to their right; of B likewise.
	below := l.word("bfe.u32", "%s, 3, 1", lane)
	right := l.word("bfe.u32", "%s, 4, 1", lane)
	place := l.word("and.b32", "%s, 7", lane)
	line, along := below, right // in memory: which line, and how far along it, in eights
	if !byRow {
		line, along = right, below
	}
	line = l.word("mad.lo.u32", "%s, 8, %s", line.reg, place.reg)
	at = l.word("mad.lo.u32", "%s, %s, %s", line.reg, stride.as(kernel.U32), at).reg
	at = l.word("mad.lo.u32", "%s, 16, %s", along.reg, at).reg
	turned := ""
	if byRow != (use == kernel.MatrixA) {
		turned = ".trans"
	}
	v := l.registers(t)
	l.do("ldmatrix.sync.aligned.m8n8.x%d%s.shared.b16 %s, [%s]", rows*cols/64, turned, list(v), at)
	l.values[n] = v
}

func (l *lowering) matStore(n *kernel.Node) {
	t := n.Args()[2].Type()
	if !l.shaped(n, t) {
		return
	}
	if _, _, use := t.Shape(); use != kernel.Accumulator {
		l.fail(n, "of %v", t)
		return
	}
	l.matAccess(n, t, l.value(n.Args()[2]))
}

// matAccess loads an accumulator, or stores what is given of it.
func (l *lowering) matAccess(n *kernel.Node, t kernel.Type, v []operand) {
	_, cols, _ := t.Shape()
	size := 4
	if t.Elem() == kernel.F16 {
		size = 2
	}
	lane := l.builtins[kernel.SubgroupLane].reg
	first, stride := l.start(n)
	row, pair := l.word("shr.u32", "%s, 2", lane), l.word("and.b32", "%s, 3", lane)
	load := v == nil
	if load {
		v = l.registers(t)
	}
	by := stride.as(kernel.U32)
	along := func(base string, i operand, k int, step string) string { // base + (i + k)*step
		if k > 0 {
			i = l.word("add.u32", "%s, %d", i.reg, k)
		}
		return l.word("mad.lo.u32", "%s, %s, %s", i.reg, step, base).reg
	}
	word := 0
	for half := range cols / columns {
		for down := range 2 {
			if n.Layout() == kernel.RowMajor {
				at := along(first, row, 8*down, by)
				at = along(at, pair, 0, fmt.Sprint(2*size))
				l.movePair(load, v, &word, size, at, columns*half*size)
				continue
			}
			at := along(first, l.word("shl.b32", "%s, 1", pair.reg), columns*half, by)
			at = along(at, row, 0, fmt.Sprint(size))
			l.moveColumn(load, v, &word, size, at, l.word("add.u32", "%s, %s", at, by).reg, 8*down*size)
		}
	}
	if load {
		l.values[n] = v
	}
}

// movePair moves two neighbours of a row.
func (l *lowering) movePair(load bool, v []operand, word *int, size int, at string, offset int) {
	count := size / 2
	part := v[*word : *word+count]
	*word += count
	typ := "b32"
	if count == 2 {
		typ = "v2.b32"
	}
	if load {
		l.do("ld.shared.%s %s, [%s+%d]", typ, list(part), at, offset)
	} else {
		l.do("st.shared.%s [%s+%d], %s", typ, at, offset, list(l.heldAll(part, kernel.U32)))
	}
}

// moveColumn moves two neighbours of a row that lie in two columns.
func (l *lowering) moveColumn(load bool, v []operand, word *int, size int, left, right string, offset int) {
	if size == 4 {
		for i, at := range []string{left, right} {
			if load {
				l.do("ld.shared.b32 %s, [%s+%d]", v[*word+i].reg, at, offset)
			} else {
				l.do("st.shared.b32 [%s+%d], %s", at, offset, l.held(v[*word+i], kernel.U32))
			}
		}
		*word += 2
		return
	}
	lo, hi := l.reg(halves), l.reg(halves)
	if load {
		l.do("ld.shared.b16 %s, [%s+%d]", lo, left, offset)
		l.do("ld.shared.b16 %s, [%s+%d]", hi, right, offset)
		l.do("mov.b32 %s, {%s, %s}", v[*word].reg, lo, hi)
	} else {
		l.do("mov.b32 {%s, %s}, %s", lo, hi, l.held(v[*word], kernel.U32))
		l.do("st.shared.b16 [%s+%d], %s", left, offset, lo)
		l.do("st.shared.b16 [%s+%d], %s", right, offset, hi)
	}
	*word++
}

func (l *lowering) matMulAdd(n *kernel.Node) {
	for _, a := range n.Args() {
		if !l.shaped(n, a.Type()) {
			return
		}
	}
	a0 := n.Args()[0].Type().Elem()
	if n.Type().Elem() != kernel.F32 || a0 != kernel.F16 && a0 != kernel.F32 {
		l.fail(n, "of %v into %v", n.Args()[0].Type(), n.Type())
		return
	}
	a := l.heldAll(l.value(n.Args()[0]), kernel.U32)
	b := l.heldAll(l.value(n.Args()[1]), kernel.U32)
	c := l.heldAll(l.value(n.Args()[2]), kernel.U32)
	v := l.registers(n.Type())
	if a0 == kernel.F32 {
		l.do("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 %s, %s, %s, %s", list(v), list(a), list(b), list(c))
		l.values[n] = v
		return
	}
	for half := range len(b) / 2 {
		x, y, to := b[2*half:2*half+2], c[4*half:4*half+4], v[4*half:4*half+4]
		if l.o.Arch >= 80 {
			l.do("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 %s, %s, %s, %s", list(to), list(a), list(x), list(y))
			continue
		}
		for k := range 2 { // sm_75 has half the depth
			l.do("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 %s, %s, {%s}, %s", list(to), list(a[2*k:2*k+2]), x[k].reg, list(y))
			y = to
		}
	}
	l.values[n] = v
}

// matBytes takes the words of A by row, as matPairs does.
func (l *lowering) matBytes(n *kernel.Node) {
	if l.o.Arch < 80 {
		l.fail(n, "no matrix of bytes")
		return
	}
	a, x := l.heldAll(l.value(n.Args()[0]), kernel.U32), l.heldAll(l.value(n.Args()[1]), kernel.U32)
	if len(a) == 4 {
		a[1], a[2] = a[2], a[1]
	}
	column := list(x)
	if len(x) == 1 {
		column = "{" + column + "}"
	}
	v, zero := l.registers(n.Type()), l.held(number(0), kernel.U32)
	l.do("mma.sync.aligned.m16n8k%d.row.col.s32.u8.s8.s32 %s, %s, %s, {%[5]s, %[5]s, %[5]s, %[5]s}", 16*len(x), list(v), list(a), column, zero)
	l.values[n] = v
}

func (l *lowering) matTimes(n *kernel.Node) {
	x, y := l.value(n.Args()[0]), l.value(n.Args()[1])
	if n.Type().Elem() != kernel.F32 {
		l.fail(n, "of %v", n.Type())
		return
	}
	v := make([]operand, len(x))
	for i := range v {
		v[i] = l.word("mul.rn.f32", "%s, %s", x[i].as(kernel.F32), y[i].as(kernel.F32))
	}
	l.values[n] = v
}

func (l *lowering) matConvert(n *kernel.Node) {
	x := l.value(n.Args()[0])
	var v []operand
	if n.Type().Elem() == kernel.F16 {
		for i := 0; i < len(x); i += 2 {
			v = append(v, l.packed(x[i], x[i+1]))
		}
	} else {
		for _, w := range x {
			v = append(v, l.unpacked(w)...)
		}
	}
	l.values[n] = v
}

func (l *lowering) matLength(n *kernel.Node) {
	rows, cols, _ := kernel.Type(n.Imm()).Shape()
	l.values[n] = []operand{number(uint32(rows * cols / Wave))}
}

func (l *lowering) varElem(n *kernel.Node) {
	held := l.value(n.Args()[0])
	x := l.among(held, l.scalar(n.Args()[1]), kernel.F32)
	l.values[n] = []operand{l.word("mov.b32", "%s", x.reg)} // what is set later must not change it
}

func (l *lowering) varSetElem(n *kernel.Node) {
	held, i, x := l.value(n.Args()[0]), l.scalar(n.Args()[1]), l.scalar(n.Args()[2])
	if i.lit {
		l.do("mov.b32 %s, %s", held[i.bits].reg, x.as(kernel.U32))
		return
	}
	for e, to := range held {
		c := l.condition("setp.eq.u32", "%s, %d", i.reg, e)
		l.do("@%s mov.b32 %s, %s", c.reg, to.reg, x.as(kernel.U32))
	}
}

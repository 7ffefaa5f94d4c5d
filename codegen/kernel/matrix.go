package kernel

// Cooperative matrices (VK_KHR_cooperative_matrix): the lanes of a subgroup hold
// the elements of a matrix together, in an order that is the device's. All
// operations on them must be come to by all lanes of a subgroup at once. A Var may
// hold one.

// Layout is the order of a matrix in memory.
type Layout int

// The layouts: consecutive elements are those of a row, or of a column.
const (
	RowMajor Layout = iota
	ColumnMajor
)

var layoutNames = [...]string{RowMajor: "row_major", ColumnMajor: "column_major"}

// MatFill returns the accumulator of type t, whose elements are F32, with all
// elements x.
func (b *Builder) MatFill(t Type, x Operand) Value {
	b.matrix(OpMatFill, t, Accumulator)
	if t.Elem() != F32 {
		b.fail("%s of %v", ops[OpMatFill].name, t)
	}
	return b.add(&Node{op: OpMatFill, typ: t, args: []*Node{b.typed(OpMatFill, x, F32)}})
}

// MatPairs returns the matrix of type t, of F16, whose fragment in this lane is the pairs of
// f16 in the U32 words: word i has elements 2i and 2i+1 of the fragment.
// The device decides which rows and columns these are. A kernel that uses MatPairs relies on
// a device where that is known, and says so in Func.Fragments.
func (b *Builder) MatPairs(t Type, words ...Operand) Value {
	rows, cols, use := b.matrix(OpMatPairs, t, 0)
	b.f.Fragments = true
	if t.Elem() != F16 || use == Accumulator || rows*cols != 64*len(words) {
		b.fail("%s of %d words for %v", ops[OpMatPairs].name, len(words), t)
		return b.poison(t)
	}
	var args []*Node
	for _, w := range words {
		args = append(args, b.typed(OpMatPairs, w, U32))
	}
	return b.add(&Node{op: OpMatPairs, typ: t, args: args})
}

// MatElems returns the matrix A of 16x8 or B of 8x8, of F32, whose fragment in this lane is elems. Their lower 13 bits
// are 0, since products of such matrices use 11 bits of mantissa (TF32). The device decides which rows and columns they
// are, as in MatPairs.
func (b *Builder) MatElems(t Type, elems ...Operand) Value {
	rows, cols, use := b.matrix(OpMatElems, t, 0)
	b.f.Fragments, b.f.TF32 = true, true
	if t.Elem() != F32 || use == Accumulator || rows*cols != 32*len(elems) {
		b.fail("%s of %d elements for %v", ops[OpMatElems].name, len(elems), t)
		return b.poison(t)
	}
	var args []*Node
	for _, x := range elems {
		args = append(args, b.typed(OpMatElems, x, F32))
	}
	return b.add(&Node{op: OpMatElems, typ: t, args: args})
}

// TF32Bits masks the bits that elements of MatElems may have.
const TF32Bits = 0xffffe000

// SplitTF32 returns two numbers for MatElems whose sum is x, up to its last bit, 2^-23 of x. The low one is at most
// 2^-11 of x. A number that rounds to 2^128 becomes NaN.
func (b *Builder) SplitTF32(x Value) (high, low Value) {
	high = b.Bitcast(F32, b.And(b.Add(b.Bitcast(U32, x), ^uint32(TF32Bits)/2+1), uint32(TF32Bits)))
	return high, b.Bitcast(F32, b.And(b.Bitcast(U32, b.Sub(x, high)), uint32(TF32Bits)))
}

// MatMulAdd returns x*y + z for matrices MxK, KxN and MxN of uses A, B and
// Accumulator. The device decides the order in which an element's products are added.
func (b *Builder) MatMulAdd(x, y, z Value) Value {
	m, k, _ := b.matrix(OpMatMulAdd, x.Type(), MatrixA)
	k2, n, _ := b.matrix(OpMatMulAdd, y.Type(), MatrixB)
	m2, n2, _ := b.matrix(OpMatMulAdd, z.Type(), Accumulator)
	if m != m2 || k != k2 || n != n2 || x.Type().Elem() != y.Type().Elem() {
		b.fail("%s of %v, %v and %v", ops[OpMatMulAdd].name, x.Type(), y.Type(), z.Type())
	}
	return b.add(&Node{op: OpMatMulAdd, typ: z.Type(), args: []*Node{b.visible(x).n, b.visible(y).n, b.visible(z).n}})
}

// MatBytes returns the lane's part of the product, in integers, of a matrix of 16 rows of unsigned bytes and one of 8
// columns of signed bytes. Of 32 elements of a row a lane has two words in each of rows g and g+8, four words a, and
// two words x of column g, where g is lane/4 of its subgroup of 32: the first words are elements 4t to 4t+3, t being
// lane%4, the second ones those 16 further. Of 16 elements it has the first words alone. The U32x4 are columns 2t and
// 2t+1 of row g, then of row g+8.
func (b *Builder) MatBytes(a, x Value) Value {
	b.f.Fragments, b.f.Bytes = true, true
	if t := a.Type(); t != U32.Vec(4) && t != U32.Vec(2) || x.Type() != U32.Vec(t.Lanes()/2) {
		b.fail("%s of %v and %v", ops[OpMatBytes].name, t, x.Type())
	}
	return b.add(&Node{op: OpMatBytes, typ: U32.Vec(4), args: []*Node{b.visible(a).n, b.visible(x).n}})
}

// MatTimes returns the elementwise product of two accumulators of one type.
func (b *Builder) MatTimes(x, y Value) Value {
	b.matrix(OpMatTimes, x.Type(), Accumulator)
	if x.Type() != y.Type() {
		b.fail("%s of %v and %v", ops[OpMatTimes].name, x.Type(), y.Type())
	}
	return b.add(&Node{op: OpMatTimes, typ: x.Type(), args: []*Node{b.visible(x).n, b.visible(y).n}})
}

// MatConvert returns the accumulator x with elements of type t, F16 or F32, rounded to
// nearest.
func (b *Builder) MatConvert(t Type, x Value) Value {
	rows, cols, use := b.matrix(OpMatConvert, x.Type(), Accumulator)
	to := t.Matrix(rows, cols, use)
	if t != F16 && t != F32 || t == x.Type().Elem() {
		b.fail("%s of %v to %v", ops[OpMatConvert].name, x.Type(), t)
		return x
	}
	b.matrix(OpMatConvert, to, Accumulator)
	if t == F16 {
		b.need(RoundsHalf)
	}
	return b.add(&Node{op: OpMatConvert, typ: to, args: []*Node{b.visible(x).n}})
}

// MatLength returns how many elements of a matrix of type t each lane holds.
func (b *Builder) MatLength(t Type) Value {
	b.matrix(OpMatLength, t, 0)
	return b.add(&Node{op: OpMatLength, typ: U32, imm: uint32(t)})
}

// Elem returns element i of the lane's fragment of the matrix in v, whose
// elements are F32; i is less than MatLength. The device decides its row and column;
// they are the same in all matrices of one type.
func (v *Var) Elem(i Operand) Value {
	v.elements(OpVarElem)
	return v.b.add(&Node{op: OpVarElem, typ: F32, args: []*Node{v.b.visible(Value{v.n}).n, v.b.typed(OpVarElem, i, U32)}})
}

// SetElem replaces an element that Elem returns.
func (v *Var) SetElem(i, x Operand) {
	v.elements(OpVarSetElem)
	v.b.add(&Node{op: OpVarSetElem, args: []*Node{v.b.visible(Value{v.n}).n, v.b.typed(OpVarSetElem, i, U32), v.b.typed(OpVarSetElem, x, F32)}})
}

func (v *Var) elements(o Op) {
	v.b.matrix(o, v.n.typ, 0)
	if v.n.typ.Elem() != F32 {
		v.b.fail("%s of %v", ops[o].name, v.n.typ)
	}
}

// LoadMatrix returns the matrix of type t whose first element begins at element i of
// the array. The array may have any type: its bytes are reinterpreted. stride is the
// distance from one row (in ColumnMajor: column) to the next, in elements of
// the array; with 0 all rows are the same. i and stride are the same in all lanes of the subgroup. Each row (column)
// must be aligned to 16 bytes, or to its size if that is less.
func (a *Array) LoadMatrix(t Type, i, stride Operand, layout Layout) Value {
	a.b.matrix(OpMatLoad, t, 0)
	n := a.matrixAccess(OpMatLoad, i, stride, layout)
	n.typ = t
	return a.b.add(n)
}

// StoreMatrix writes a matrix where LoadMatrix reads it.
func (a *Array) StoreMatrix(i, stride Operand, layout Layout, v Value) {
	a.b.matrix(OpMatStore, v.Type(), 0)
	n := a.matrixAccess(OpMatStore, i, stride, layout)
	n.args = append(n.args, a.b.visible(v).n)
	a.b.add(n)
}

func (a *Array) matrixAccess(o Op, i, stride Operand, layout Layout) *Node {
	if layout != RowMajor && layout != ColumnMajor {
		a.b.fail("%s: layout %d", ops[o].name, layout)
		layout = RowMajor
	}
	return &Node{op: o, imm: uint32(a.index), align: int(layout), args: []*Node{a.b.typed(o, i, U32), a.b.typed(o, stride, U32)}}
}

// matrix checks that t is a matrix of that use, 0 for any, notes what it needs,
// and returns its shape.
func (b *Builder) matrix(o Op, t Type, use Use) (rows, cols int, of Use) {
	rows, cols, of = t.Shape()
	if !t.IsMatrix() || use != 0 && of != use {
		b.fail("%s of %v", ops[o].name, t)
		return
	}
	b.need("cooperativeMatrix")
	b.extensions["VK_KHR_cooperative_matrix"] = true
	if t.Elem() == F16 {
		b.need("shaderFloat16")
	}
	return
}

package kernel

import "github.com/zincc-dev/zincc/spirv"

var matrixUses = [...]uint32{
	MatrixA:     spirv.CooperativeMatrixUseMatrixAKHR,
	MatrixB:     spirv.CooperativeMatrixUseMatrixBKHR,
	Accumulator: spirv.CooperativeMatrixUseMatrixAccumulatorKHR,
}

var matrixLayouts = [...]uint32{
	RowMajor:    spirv.CooperativeMatrixLayoutRowMajorKHR,
	ColumnMajor: spirv.CooperativeMatrixLayoutColumnMajorKHR,
}

func (l *lowering) matrixType(t Type) spirv.ID {
	l.m.Capability(spirv.CapabilityCooperativeMatrixKHR)
	l.m.Extension("SPV_KHR_cooperative_matrix")
	rows, cols, use := t.shape()
	return l.m.Type(spirv.OpTypeCooperativeMatrixKHR, l.typ(t.Elem()), l.uint(spirv.ScopeSubgroup),
		l.uint(uint32(rows)), l.uint(uint32(cols)), l.uint(matrixUses[use]))
}

func (l *lowering) matFill(n *node) {
	l.values[n] = l.m.Emit(spirv.OpCompositeConstruct, l.typ(n.typ), l.value(n.args[0]))
}

func (l *lowering) matPairs(n *node) {
	half := l.typ(F16)
	pair := l.m.Type(spirv.OpTypeVector, half, 2)
	m := l.m.Emit(spirv.OpUndef, l.typ(n.typ))
	for i, w := range l.ids(n.args) {
		p := l.m.Emit(spirv.OpBitcast, pair, w)
		for j := range uint32(2) {
			m = l.m.Emit(spirv.OpCompositeInsert, l.typ(n.typ), l.m.Emit(spirv.OpCompositeExtract, half, p, j), m, 2*uint32(i)+j)
		}
	}
	l.values[n] = m
}

func (l *lowering) matLoad(n *node) {
	l.values[n] = l.m.Emit(spirv.OpCooperativeMatrixLoadKHR, l.typ(n.typ), l.element(n, 1),
		l.uint(matrixLayouts[n.align]), l.value(n.args[1]), spirv.MemoryAccessNonPrivatePointer)
}

func (l *lowering) matStore(n *node) {
	l.m.Do(spirv.OpCooperativeMatrixStoreKHR, l.element(n, 1), l.value(n.args[2]),
		l.uint(matrixLayouts[n.align]), l.value(n.args[1]), spirv.MemoryAccessNonPrivatePointer)
}

func (l *lowering) matMulAdd(n *node) {
	l.values[n] = l.m.Emit(spirv.OpCooperativeMatrixMulAddKHR, l.typ(n.typ), l.ids(n.args)...)
}

func (l *lowering) matTimes(n *node) {
	l.values[n] = l.m.Emit(spirv.OpFMul, l.typ(n.typ), l.ids(n.args)...)
}

func (l *lowering) matConvert(n *node) {
	l.values[n] = l.m.Emit(spirv.OpFConvert, l.typ(n.typ), l.value(n.args[0]))
}

func (l *lowering) matLength(n *node) {
	l.values[n] = l.m.Emit(spirv.OpCooperativeMatrixLengthKHR, l.typ(U32), l.typ(Type(n.imm)))
}

// matElement returns a pointer to an element of a matrix in a variable.
func (l *lowering) matElement(n *node) spirv.ID {
	pointer := l.pointer(spirv.StorageClassFunction, l.typ(n.args[0].typ.Elem()))
	return l.m.Emit(spirv.OpAccessChain, pointer, l.value(n.args[0]), l.value(n.args[1]))
}

func (l *lowering) varElem(n *node) {
	l.values[n] = l.m.Emit(spirv.OpLoad, l.typ(n.typ), l.matElement(n))
}

func (l *lowering) varSetElem(n *node) {
	l.m.Do(spirv.OpStore, l.matElement(n), l.value(n.args[2]))
}

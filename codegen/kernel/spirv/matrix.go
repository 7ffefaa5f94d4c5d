package spirv

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/spirv"
)

var matrixUses = [...]uint32{
	kernel.MatrixA:     spirv.CooperativeMatrixUseMatrixAKHR,
	kernel.MatrixB:     spirv.CooperativeMatrixUseMatrixBKHR,
	kernel.Accumulator: spirv.CooperativeMatrixUseMatrixAccumulatorKHR,
}

var matrixLayouts = [...]uint32{
	kernel.RowMajor:    spirv.CooperativeMatrixLayoutRowMajorKHR,
	kernel.ColumnMajor: spirv.CooperativeMatrixLayoutColumnMajorKHR,
}

func (l *lowering) matrixType(t kernel.Type) spirv.ID {
	l.m.Capability(spirv.CapabilityCooperativeMatrixKHR)
	l.m.Extension("SPV_KHR_cooperative_matrix")
	rows, cols, use := t.Shape()
	return l.m.Type(spirv.OpTypeCooperativeMatrixKHR, l.typ(t.Elem()), l.uint(spirv.ScopeSubgroup),
		l.uint(uint32(rows)), l.uint(uint32(cols)), l.uint(matrixUses[use]))
}

func (l *lowering) matFill(n *kernel.Node) {
	l.values[n] = l.m.Emit(spirv.OpCompositeConstruct, l.typ(n.Type()), l.value(n.Args()[0]))
}

func (l *lowering) matPairs(n *kernel.Node) {
	half := l.typ(kernel.F16)
	pair := l.m.Type(spirv.OpTypeVector, half, 2)
	m := l.m.Emit(spirv.OpUndef, l.typ(n.Type()))
	for i, w := range l.ids(n.Args()) {
		p := l.m.Emit(spirv.OpBitcast, pair, w)
		for j := range uint32(2) {
			m = l.m.Emit(spirv.OpCompositeInsert, l.typ(n.Type()), l.m.Emit(spirv.OpCompositeExtract, half, p, j), m, 2*uint32(i)+j)
		}
	}
	l.values[n] = m
}

func (l *lowering) matLoad(n *kernel.Node) {
	l.values[n] = l.m.Emit(spirv.OpCooperativeMatrixLoadKHR, l.typ(n.Type()), l.element(n, 1),
		l.uint(matrixLayouts[n.Layout()]), l.value(n.Args()[1]), spirv.MemoryAccessNonPrivatePointer)
}

func (l *lowering) matStore(n *kernel.Node) {
	l.m.Do(spirv.OpCooperativeMatrixStoreKHR, l.element(n, 1), l.value(n.Args()[2]),
		l.uint(matrixLayouts[n.Layout()]), l.value(n.Args()[1]), spirv.MemoryAccessNonPrivatePointer)
}

func (l *lowering) matMulAdd(n *kernel.Node) {
	l.values[n] = l.m.Emit(spirv.OpCooperativeMatrixMulAddKHR, l.typ(n.Type()), l.ids(n.Args())...)
}

func (l *lowering) matTimes(n *kernel.Node) {
	l.values[n] = l.m.Emit(spirv.OpFMul, l.typ(n.Type()), l.ids(n.Args())...)
}

func (l *lowering) matConvert(n *kernel.Node) {
	l.values[n] = l.m.Emit(spirv.OpFConvert, l.typ(n.Type()), l.value(n.Args()[0]))
}

func (l *lowering) matLength(n *kernel.Node) {
	l.values[n] = l.m.Emit(spirv.OpCooperativeMatrixLengthKHR, l.typ(kernel.U32), l.typ(kernel.Type(n.Imm())))
}

// matElement returns a pointer to an element of a matrix in a variable.
func (l *lowering) matElement(n *kernel.Node) spirv.ID {
	pointer := l.pointer(spirv.StorageClassFunction, l.typ(n.Args()[0].Type().Elem()))
	return l.m.Emit(spirv.OpAccessChain, pointer, l.value(n.Args()[0]), l.value(n.Args()[1]))
}

func (l *lowering) varElem(n *kernel.Node) {
	l.values[n] = l.m.Emit(spirv.OpLoad, l.typ(n.Type()), l.matElement(n))
}

func (l *lowering) varSetElem(n *kernel.Node) {
	l.m.Do(spirv.OpStore, l.matElement(n), l.value(n.Args()[2]))
}

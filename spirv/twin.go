package spirv

import "slices"

// twin returns a module for a spirv-val that is older than
// SPV_KHR_cooperative_matrix: the same with the instructions of
// SPV_NV_cooperative_matrix, whose types do not say the use of a matrix and whose
// loads and stores take the layout as a truth value. It has no products of elements,
// for which sums stand. A module without cooperative matrices is its own twin.
func twin(words []uint32) ([]uint32, error) {
	m, err := Parse(words)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(m.Insts, func(in Inst) bool { return in.Op == OpTypeCooperativeMatrixKHR }) {
		return words, nil
	}
	t := twinWriter{m: m, bound: m.Bound, values: map[ID]uint32{}, matrices: map[ID]bool{}}
	for i := range m.Insts {
		t.inst(&m.Insts[i])
	}
	return append([]uint32{magic, m.Version, m.Generator, t.bound, 0}, t.words...), nil
}

type twinWriter struct {
	m        *Module
	words    []uint32
	bound    ID
	values   map[ID]uint32 // of the constants
	matrices map[ID]bool   // types
	boolean  ID
	layouts  [2]ID // false and true: the constants for row-major and column-major
}

func (t *twinWriter) put(o Op, operands ...uint32) {
	t.words = append(append(t.words, uint32(len(operands)+1)<<16|uint32(o)), operands...)
}

func (t *twinWriter) newID() ID {
	t.bound++
	return t.bound - 1
}

func (t *twinWriter) inst(in *Inst) {
	w := in.Words
	switch in.Op {
	case OpCapability:
		if w[0] == CapabilityCooperativeMatrixKHR {
			w = []uint32{CapabilityCooperativeMatrixNV}
		}
	case OpExtension:
		if stringOf(w) == "SPV_KHR_cooperative_matrix" {
			w = text("SPV_NV_cooperative_matrix")
		}
	case OpTypeBool:
		t.boolean = in.Result
	case OpConstant:
		t.values[in.Result] = w[2]
	case OpFunction:
		t.constants()
	case OpTypeCooperativeMatrixKHR:
		// Matrices that differ in their use only would be one type declared twice:
		// each gets its own constant for the scope.
		t.matrices[in.Result] = true
		scope := t.newID()
		t.put(OpConstant, t.m.typeOf[w[2]], scope, t.values[w[2]])
		t.put(OpTypeCooperativeMatrixNV, w[0], w[1], scope, w[3], w[4])
		return
	case OpFMul:
		if t.matrices[w[0]] {
			t.put(OpFAdd, w...)
			return
		}
	case OpCooperativeMatrixLoadKHR:
		t.put(OpCooperativeMatrixLoadNV, t.access(w, 3)...)
		return
	case OpCooperativeMatrixStoreKHR:
		t.put(OpCooperativeMatrixStoreNV, t.access(w, 2)...)
		return
	case OpCooperativeMatrixLengthKHR:
		t.put(OpCooperativeMatrixLengthNV, w...)
		return
	case OpCooperativeMatrixMulAddKHR:
		t.put(OpCooperativeMatrixMulAddNV, w[:5]...)
		return
	}
	t.put(in.Op, w...)
}

// constants defines the layouts, before the first function.
func (t *twinWriter) constants() {
	if t.layouts[0] != 0 {
		return
	}
	if t.boolean == 0 {
		t.boolean = t.newID()
		t.put(OpTypeBool, t.boolean)
	}
	for i, o := range []Op{OpConstantFalse, OpConstantTrue} {
		t.layouts[i] = t.newID()
		t.put(o, t.boolean, t.layouts[i])
	}
}

// access returns the operands of a load or store: w, in which the layout stands at
// i and the stride behind it.
func (t *twinWriter) access(w []uint32, i int) []uint32 {
	if len(w) < i+2 {
		return w // without a stride: for spirv-val to refuse
	}
	list := append(slices.Clone(w[:i]), w[i+1], t.layouts[t.values[w[i]]&1])
	return append(list, w[i+2:]...)
}

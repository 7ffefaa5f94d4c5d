package spirv

import (
	"fmt"
	"math"
	"sort"
)

// SpecConstant is a specialization constant of a module.
type SpecConstant struct {
	SpecID  uint32
	Name    string // from OpName, or ""
	Default uint32 // the bits; 0 or 1 for a truth value
}

// SpecConstants returns the specialization constants of a module, by SpecID.
// Those of more than 32 bits are an error.
func SpecConstants(words []uint32) ([]SpecConstant, error) {
	m, err := Parse(words)
	if err != nil {
		return nil, err
	}
	ids := m.specIDs()
	names := map[ID]string{}
	var list []SpecConstant
	for i := range m.Insts {
		in := &m.Insts[i]
		if in.Op == OpName {
			names[in.Words[0]] = stringOf(in.Words[1:])
		}
		specID, ok := ids[in.Result]
		if !ok {
			continue
		}
		c := SpecConstant{SpecID: specID, Name: names[in.Result]}
		switch {
		case in.Op == OpSpecConstantTrue:
			c.Default = 1
		case in.Op == OpSpecConstant && len(in.Words) == 3:
			c.Default = in.Words[2]
		case in.Op != OpSpecConstantFalse:
			return nil, fmt.Errorf("spirv: specialization constant %d: %v of %d words", specID, in.Op, len(in.Words))
		}
		list = append(list, c)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].SpecID < list[j].SpecID })
	return list, nil
}

// specIDs returns the SpecIds by the ID that they decorate.
func (m *Module) specIDs() map[ID]uint32 {
	ids := map[ID]uint32{}
	for i := range m.Insts {
		if in := &m.Insts[i]; in.isSpecID() {
			ids[in.Words[0]] = in.Words[2]
		}
	}
	return ids
}

func (in *Inst) isSpecID() bool {
	return in.Op == OpDecorate && in.Words[1] == DecorationSpecId
}

// Specialize returns the module with all specialization constants fixed: to
// the value that spec has for their SpecId, else to their default. What is
// computed from them is computed; of the operations, those on integers of 32
// bits and on truth values are known. A SpecId that the module does not have is
// an error.
func Specialize(words []uint32, spec map[uint32]uint32) ([]uint32, error) {
	m, err := Parse(words)
	if err != nil {
		return nil, err
	}
	f := freezer{m: m, spec: spec, ids: m.specIDs(), value: map[ID]uint32{}, bools: map[ID]bool{}, word: map[ID]bool{}}
	if err := f.checkSpec(); err != nil {
		return nil, fmt.Errorf("spirv: %w", err)
	}
	out := append(make([]uint32, 0, len(words)), words[:headerWords]...)
	for i := range m.Insts {
		in := &m.Insts[i]
		if in.isSpecID() {
			continue
		}
		op, operands, err := f.freeze(in)
		if err != nil {
			return nil, fmt.Errorf("spirv: %%%d: %w", in.Result, err)
		}
		out = append(out, uint32(len(operands)+1)<<16|uint32(op))
		out = append(out, operands...)
	}
	return out, nil
}

// freezer replaces specialization constants, and follows the values of
// constants of 32 bits.
type freezer struct {
	m     *Module
	spec  map[uint32]uint32
	ids   map[ID]uint32
	value map[ID]uint32
	bools map[ID]bool // the types that are OpTypeBool
	word  map[ID]bool // the number types of one word, so far
}

func (f *freezer) checkSpec() error {
	has := map[uint32]bool{}
	for _, specID := range f.ids {
		has[specID] = true
	}
	missing := []uint32{}
	for specID := range f.spec {
		if !has[specID] {
			missing = append(missing, specID)
		}
	}
	if len(missing) > 0 {
		sort.Slice(missing, func(i, j int) bool { return missing[i] < missing[j] })
		return fmt.Errorf("the module has no specialization constants %d", missing)
	}
	return nil
}

// freeze returns what stands for in.
func (f *freezer) freeze(in *Inst) (Op, []uint32, error) {
	specID, decorated := f.ids[in.Result]
	v, given := f.spec[specID]
	given = given && decorated
	switch in.Op {
	case OpTypeBool:
		f.bools[in.Result] = true
	case OpTypeInt, OpTypeFloat:
		f.word[in.Result] = f.m.scalars[in.Result].words() == 1
	case OpConstantTrue, OpConstantFalse, OpConstant:
		f.note(in)
	case OpSpecConstantTrue, OpSpecConstantFalse:
		if !given {
			v = truth(in.Op == OpSpecConstantTrue)
		}
		return f.constant(in, v)
	case OpSpecConstant:
		if len(in.Words) != 3 {
			if given {
				return 0, nil, fmt.Errorf("specialization constant %d has %d words", specID, len(in.Words)-2)
			}
			return OpConstant, in.Words, nil
		}
		if !given {
			v = in.Words[2]
		}
		return f.constant(in, v)
	case OpSpecConstantComposite:
		return OpConstantComposite, in.Words, nil
	case OpSpecConstantOp:
		v, err := f.operation(in)
		if err != nil {
			return 0, nil, err
		}
		return f.constant(in, v)
	}
	return in.Op, in.Words, nil
}

// note keeps the value of a constant.
func (f *freezer) note(in *Inst) {
	switch {
	case in.Op == OpConstantTrue:
		f.value[in.Result] = 1
	case in.Op == OpConstantFalse:
		f.value[in.Result] = 0
	case len(in.Words) == 3:
		f.value[in.Result] = in.Words[2]
	}
}

// constant defines the result of in as v.
func (f *freezer) constant(in *Inst, v uint32) (Op, []uint32, error) {
	f.value[in.Result] = v
	switch {
	case f.word[in.Type]:
		return OpConstant, []uint32{in.Type, in.Result, v}, nil
	case !f.bools[in.Type]:
		return 0, nil, fmt.Errorf("%v of type %%%d", in.Op, in.Type)
	case v != 0:
		return OpConstantTrue, []uint32{in.Type, in.Result}, nil
	}
	return OpConstantFalse, []uint32{in.Type, in.Result}, nil
}

// operation computes an OpSpecConstantOp.
func (f *freezer) operation(in *Inst) (uint32, error) {
	op := Op(in.Words[2])
	rule, ok := foldTable[op]
	s := f.m.scalars[in.Type]
	if !ok || !f.bools[in.Type] && (s.float || s.width != 32) {
		return 0, fmt.Errorf("%v is not computed here on its type", op)
	}
	ids := in.Words[3:]
	if len(ids) != rule.operands {
		return 0, fmt.Errorf("%v of %d operands", op, len(ids))
	}
	var args [3]uint32
	for i, id := range ids {
		v, ok := f.value[id]
		if !ok {
			return 0, fmt.Errorf("%v: %%%d is no constant of 32 bits", op, id)
		}
		args[i] = v
	}
	if rule.defined != nil && !rule.defined(args[0], args[1]) {
		return 0, fmt.Errorf("%v of %d and %d is undefined", op, args[0], args[1])
	}
	return rule.compute(args[0], args[1], args[2]), nil
}

// foldRule computes an operation of OpSpecConstantOp.
type foldRule struct {
	operands int
	compute  func(a, b, c uint32) uint32
	defined  func(a, b uint32) bool // nil: always
}

func truth(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func nonZero(_, b uint32) bool  { return b != 0 }
func inWord(_, b uint32) bool   { return b < 32 }
func quotient(a, b uint32) bool { return b != 0 && (int32(a) != math.MinInt32 || int32(b) != -1) }

// foldTable has the operations that kernels use, on 32 bits and truth values.
var foldTable = map[Op]foldRule{
	OpIAdd:                 {2, func(a, b, _ uint32) uint32 { return a + b }, nil},
	OpISub:                 {2, func(a, b, _ uint32) uint32 { return a - b }, nil},
	OpIMul:                 {2, func(a, b, _ uint32) uint32 { return a * b }, nil},
	OpUDiv:                 {2, func(a, b, _ uint32) uint32 { return a / b }, nonZero},
	OpUMod:                 {2, func(a, b, _ uint32) uint32 { return a % b }, nonZero},
	OpSDiv:                 {2, func(a, b, _ uint32) uint32 { return uint32(int32(a) / int32(b)) }, quotient},
	OpSRem:                 {2, func(a, b, _ uint32) uint32 { return uint32(int32(a) % int32(b)) }, quotient},
	OpShiftLeftLogical:     {2, func(a, b, _ uint32) uint32 { return a << b }, inWord},
	OpShiftRightLogical:    {2, func(a, b, _ uint32) uint32 { return a >> b }, inWord},
	OpShiftRightArithmetic: {2, func(a, b, _ uint32) uint32 { return uint32(int32(a) >> b) }, inWord},
	OpBitwiseAnd:           {2, func(a, b, _ uint32) uint32 { return a & b }, nil},
	OpBitwiseOr:            {2, func(a, b, _ uint32) uint32 { return a | b }, nil},
	OpBitwiseXor:           {2, func(a, b, _ uint32) uint32 { return a ^ b }, nil},
	OpLogicalAnd:           {2, func(a, b, _ uint32) uint32 { return a & b }, nil},
	OpLogicalOr:            {2, func(a, b, _ uint32) uint32 { return a | b }, nil},
	OpLogicalEqual:         {2, func(a, b, _ uint32) uint32 { return truth(a == b) }, nil},
	OpLogicalNotEqual:      {2, func(a, b, _ uint32) uint32 { return truth(a != b) }, nil},
	OpIEqual:               {2, func(a, b, _ uint32) uint32 { return truth(a == b) }, nil},
	OpINotEqual:            {2, func(a, b, _ uint32) uint32 { return truth(a != b) }, nil},
	OpULessThan:            {2, func(a, b, _ uint32) uint32 { return truth(a < b) }, nil},
	OpULessThanEqual:       {2, func(a, b, _ uint32) uint32 { return truth(a <= b) }, nil},
	OpUGreaterThan:         {2, func(a, b, _ uint32) uint32 { return truth(a > b) }, nil},
	OpUGreaterThanEqual:    {2, func(a, b, _ uint32) uint32 { return truth(a >= b) }, nil},
	OpSLessThan:            {2, func(a, b, _ uint32) uint32 { return truth(int32(a) < int32(b)) }, nil},
	OpSLessThanEqual:       {2, func(a, b, _ uint32) uint32 { return truth(int32(a) <= int32(b)) }, nil},
	OpSGreaterThan:         {2, func(a, b, _ uint32) uint32 { return truth(int32(a) > int32(b)) }, nil},
	OpSGreaterThanEqual:    {2, func(a, b, _ uint32) uint32 { return truth(int32(a) >= int32(b)) }, nil},
	OpSNegate:              {1, func(a, _, _ uint32) uint32 { return -a }, nil},
	OpNot:                  {1, func(a, _, _ uint32) uint32 { return ^a }, nil},
	OpLogicalNot:           {1, func(a, _, _ uint32) uint32 { return a ^ 1 }, nil},
	OpSelect: {3, func(a, b, c uint32) uint32 {
		if a != 0 {
			return b
		}
		return c
	}, nil},
}

package spirv

import "fmt"

// Module is a module that has been read.
type Module struct {
	Version   uint32 // 0x00010500 is 1.5
	Generator uint32
	Bound     ID // greater than all IDs
	Insts     []Inst

	scalars map[ID]scalar // the number types
	typeOf  map[ID]ID     // results, by their type
}

// Inst is one instruction.
type Inst struct {
	Op     Op
	Type   ID       // of the result, or 0
	Result ID       // or 0
	Words  []uint32 // the operands, type and result included

	operands []word
}

// word is a decoded operand, or a part of one.
type word struct {
	kind  operandKind
	words []uint32
}

// scalar is a number type.
type scalar struct {
	float, signed bool
	width         uint32
}

func (s scalar) words() int { return int(s.width+31) / 32 }

// Parse reads a module and checks that every instruction has the operands that
// the grammar gives it and that IDs are in bounds and defined once. It does not
// check more than that: Validate does. The module keeps the words.
func Parse(words []uint32) (*Module, error) {
	if len(words) < headerWords || words[0] != magic {
		return nil, fmt.Errorf("spirv: not a SPIR-V module")
	}
	m := &Module{
		Version: words[1], Generator: words[2], Bound: words[3],
		scalars: map[ID]scalar{}, typeOf: map[ID]ID{},
	}
	for at := headerWords; at < len(words); {
		n := int(words[at] >> 16)
		if n == 0 || n > len(words)-at {
			return nil, fmt.Errorf("spirv: word %d: instruction of %d words, %d are left", at, n, len(words)-at)
		}
		in := Inst{Op: Op(words[at] & 0xffff), Words: words[at+1 : at+n : at+n]}
		if err := m.decode(&in); err != nil {
			return nil, fmt.Errorf("spirv: word %d: %v: %w", at, in.Op, err)
		}
		m.Insts = append(m.Insts, in)
		at += n
	}
	return m, nil
}

// decode splits the operands of in and notes what later ones depend on.
func (m *Module) decode(in *Inst) error {
	desc := in.Op.desc()
	if desc == nil {
		return fmt.Errorf("unknown opcode")
	}
	d := decoder{m: m, in: in, rest: in.Words}
	if err := d.list(desc.operands); err != nil {
		return err
	}
	if len(d.rest) > 0 {
		return fmt.Errorf("%d words too many", len(d.rest))
	}
	if in.Result != 0 {
		if _, ok := m.typeOf[in.Result]; ok {
			return fmt.Errorf("%%%d is defined twice", in.Result)
		}
		m.typeOf[in.Result] = in.Type
	}
	switch in.Op {
	case OpTypeInt:
		m.scalars[in.Result] = scalar{width: in.Words[1], signed: in.Words[2] != 0}
	case OpTypeFloat:
		m.scalars[in.Result] = scalar{width: in.Words[1], float: true}
	}
	return nil
}

// decoder reads the operands of one instruction.
type decoder struct {
	m    *Module
	in   *Inst
	rest []uint32
}

func (d *decoder) list(operands []operandDesc) error {
	for _, o := range operands {
		switch {
		case o.quant == one:
			if err := d.operand(o.kind); err != nil {
				return err
			}
		case o.quant == optional && len(d.rest) > 0:
			if err := d.operand(o.kind); err != nil {
				return err
			}
		case o.quant == many:
			for len(d.rest) > 0 {
				if err := d.operand(o.kind); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (d *decoder) operand(k operandKind) error {
	desc := &kindTable[k]
	switch desc.category {
	case compositeOperand:
		for i, base := range desc.bases {
			if i == 0 && k == kindPairLiteralIntegerIdRef {
				base = kindLiteralContextDependentNumber // a case of OpSwitch
			}
			if err := d.operand(base); err != nil {
				return err
			}
		}
		return nil
	case bitEnum, valueEnum:
		return d.enum(k, desc)
	case idOperand:
		return d.id(k)
	}
	return d.literal(k)
}

// take consumes n words as an operand.
func (d *decoder) take(k operandKind, n int) ([]uint32, error) {
	if n > len(d.rest) {
		return nil, fmt.Errorf("an operand is missing")
	}
	w := d.rest[:n]
	d.rest = d.rest[n:]
	d.in.operands = append(d.in.operands, word{kind: k, words: w})
	return w, nil
}

func (d *decoder) id(k operandKind) error {
	w, err := d.take(k, 1)
	if err != nil {
		return err
	}
	if w[0] == 0 || w[0] >= d.m.Bound {
		return fmt.Errorf("id %d is not below the bound %d", w[0], d.m.Bound)
	}
	switch k {
	case kindIdResultType:
		d.in.Type = w[0]
	case kindIdResult:
		d.in.Result = w[0]
	}
	return nil
}

func (d *decoder) enum(k operandKind, desc *kindDesc) error {
	w, err := d.take(k, 1)
	if err != nil {
		return err
	}
	if desc.category == valueEnum {
		e := desc.find(w[0])
		if e == nil {
			return fmt.Errorf("operand value %d is unknown", w[0])
		}
		return d.list(e.params)
	}
	for mask := w[0]; mask != 0; mask &= mask - 1 {
		e := desc.find(mask & -mask)
		if e == nil {
			return fmt.Errorf("operand bit %#x is unknown", mask&-mask)
		}
		if err := d.list(e.params); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) literal(k operandKind) error {
	n := 1
	switch k {
	case kindLiteralString:
		end := stringWords(d.rest)
		if end == 0 {
			return fmt.Errorf("a string does not end")
		}
		n = end
	case kindLiteralContextDependentNumber:
		s, ok := d.m.scalars[d.numberType()]
		if !ok || s.width == 0 || s.width > 64 {
			return fmt.Errorf("a literal of no known number type")
		}
		n = s.words()
	}
	w, err := d.take(k, n)
	if err != nil || k != kindLiteralSpecConstantOpInteger {
		return err
	}
	return d.nested(w[0])
}

// numberType returns the type of the literals of the instruction.
func (d *decoder) numberType() ID {
	if d.in.Op == OpSwitch {
		return d.m.typeOf[d.in.Words[0]]
	}
	return d.in.Type
}

// nested decodes the operands of the operation of an OpSpecConstantOp.
func (d *decoder) nested(opcode uint32) error {
	op := Op(opcode)
	desc := op.desc()
	if opcode > 0xffff || desc == nil || op == OpSpecConstantOp ||
		len(desc.operands) < 2 || desc.operands[1].kind != kindIdResult {
		return fmt.Errorf("operation %d on constants", opcode)
	}
	return d.list(desc.operands[2:])
}

// stringWords returns the words of the string that w begins with, or 0 if it
// does not end.
func stringWords(w []uint32) int {
	for i, x := range w {
		if x&0xff == 0 || x&0xff00 == 0 || x&0xff0000 == 0 || x&0xff000000 == 0 {
			return i + 1
		}
	}
	return 0
}

// stringOf decodes a literal string.
func stringOf(w []uint32) string {
	var s []byte
	for _, x := range w {
		for range 4 {
			if x&0xff == 0 {
				return string(s)
			}
			s = append(s, byte(x))
			x >>= 8
		}
	}
	return string(s)
}

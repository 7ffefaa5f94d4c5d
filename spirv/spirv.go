// Package spirv makes, reads, prints and specializes SPIR-V modules, and runs
// spirv-val of SPIRV-Tools on them.
//
// A module is a []uint32 of words. A Builder writes one; Parse reads one with
// all bounds checked, from anyone; Disassemble prints the assembly language of
// SPIRV-Tools. Validate needs the program spirv-val;
// all else is plain Go.
//
// Names and numbers are those of the SPIR-V specification: opcodes (OpLoad),
// enumerations (StorageClassWorkgroup), the extended instruction set GLSL.std.450
// (GLSLExp). They are generated, like the tables behind Parse and Disassemble.
package spirv

//go:generate go run ./internal/gen -grammar /usr/include/spirv/unified1 -out .

import (
	"fmt"
	"sort"
)

// Op is an opcode.
type Op uint16

// ID names the result of an instruction inside of a module.
type ID = uint32

const (
	magic   = 0x07230203
	version = 0x00010500 // SPIR-V 1.5, of Vulkan 1.2

	headerWords = 5
)

// String returns the name of the instruction, such as OpLoad.
func (o Op) String() string {
	if d := o.desc(); d != nil {
		return d.name
	}
	return fmt.Sprintf("Op(%d)", uint16(o))
}

func (o Op) desc() *opDesc {
	i := sort.Search(len(opTable), func(i int) bool { return opTable[i].op >= o })
	if i == len(opTable) || opTable[i].op != o {
		return nil
	}
	return &opTable[i]
}

// opDesc is a row of the generated table of instructions.
type opDesc struct {
	op       Op
	name     string
	operands []operandDesc
}

type operandDesc struct {
	kind  operandKind
	quant quantifier
}

type quantifier uint8

const (
	one quantifier = iota
	optional
	many
)

type operandKind uint8

type operandCategory uint8

const (
	bitEnum operandCategory = iota
	valueEnum
	idOperand
	literalOperand
	compositeOperand
)

// kindDesc is a row of the generated table of operand kinds.
type kindDesc struct {
	category operandCategory
	bases    []operandKind // of a composite
	values   []enumDesc    // of an enumeration, sorted
}

type enumDesc struct {
	value  uint32
	name   string
	params []operandDesc
}

func (k *kindDesc) find(v uint32) *enumDesc {
	i := sort.Search(len(k.values), func(i int) bool { return k.values[i].value >= v })
	if i == len(k.values) || k.values[i].value != v {
		return nil
	}
	return &k.values[i]
}

package spirv

import (
	"encoding/binary"
	"fmt"
)

// Builder writes a module. Instructions go to the section of the module that
// the specification puts them in, in order of the calls; the same calls give the
// same words. The methods that return an ID define a new one, except that equal
// types, constants and imports are defined once.
type Builder struct {
	bound    ID
	sections [numSections][]uint32
	interned map[string]ID
	seen     map[string]bool
	err      error
}

type section int

// The sections of a module, in the order of the specification (2.4).
const (
	capabilities section = iota
	extensions
	imports
	memoryModel
	entryPoints
	executionModes
	names
	decorations
	globals // types, constants, variables
	head    // of the function being written: OpFunction, first label, locals
	body    // the rest of it
	functions
	numSections
)

// NewBuilder returns a builder of an empty module.
func NewBuilder() *Builder {
	return &Builder{bound: 1, interned: map[string]ID{}, seen: map[string]bool{}}
}

// NewID reserves an ID for a result that is used before it is defined, such as
// the label of a block.
func (b *Builder) NewID() ID {
	b.bound++
	return b.bound - 1
}

// put appends an instruction to a section.
func (b *Builder) put(s section, op Op, operands ...uint32) {
	n := len(operands) + 1
	if n > 0xffff {
		b.err = fmt.Errorf("%v of %d words", op, n)
		return
	}
	b.sections[s] = append(b.sections[s], uint32(n)<<16|uint32(op))
	b.sections[s] = append(b.sections[s], operands...)
}

// once is put for instructions that a module has once.
func (b *Builder) once(s section, op Op, operands ...uint32) {
	if key := keyOf(op, nil, operands); !b.seen[key] {
		b.seen[key] = true
		b.put(s, op, operands...)
	}
}

// keyOf is a string that only equal instructions share: their words, with the number of
// those before the result.
func keyOf(op Op, before, after []uint32) string {
	key := make([]byte, 0, 64)
	key = binary.LittleEndian.AppendUint32(key, uint32(op)<<16|uint32(len(before)))
	for _, words := range [2][]uint32{before, after} {
		for _, w := range words {
			key = binary.LittleEndian.AppendUint32(key, w)
		}
	}
	return string(key)
}

// text encodes a literal string: UTF-8, a zero byte, padded to words.
func text(s string) []uint32 {
	words := make([]uint32, len(s)/4+1)
	for i := range len(s) {
		words[i/4] |= uint32(s[i]) << (i % 4 * 8)
	}
	return words
}

// Capability declares a capability, once.
func (b *Builder) Capability(c Capability) { b.once(capabilities, OpCapability, c) }

// Extension declares an extension, once.
func (b *Builder) Extension(name string) { b.once(extensions, OpExtension, text(name)...) }

// ExtInstImport returns the ID of an extended instruction set, such as
// GLSL.std.450.
func (b *Builder) ExtInstImport(name string) ID {
	return b.intern(imports, OpExtInstImport, nil, text(name))
}

// MemoryModel declares the addressing and the memory model.
func (b *Builder) MemoryModel(a AddressingModel, m MemoryModel) {
	b.put(memoryModel, OpMemoryModel, a, m)
}

// EntryPoint declares fn, with all global variables that it uses.
func (b *Builder) EntryPoint(m ExecutionModel, fn ID, name string, interfaces ...ID) {
	operands := append([]uint32{m, fn}, text(name)...)
	b.put(entryPoints, OpEntryPoint, append(operands, interfaces...)...)
}

// ExecutionMode declares a mode of the entry point fn.
func (b *Builder) ExecutionMode(fn ID, m ExecutionMode, operands ...uint32) {
	b.put(executionModes, OpExecutionMode, append([]uint32{fn, m}, operands...)...)
}

// Name gives an ID a name, for people.
func (b *Builder) Name(id ID, name string) {
	b.put(names, OpName, append([]uint32{id}, text(name)...)...)
}

// Decorate decorates an ID.
func (b *Builder) Decorate(id ID, d Decoration, operands ...uint32) {
	b.put(decorations, OpDecorate, append([]uint32{id, d}, operands...)...)
}

// MemberDecorate decorates a member of a structure type.
func (b *Builder) MemberDecorate(id ID, member uint32, d Decoration, operands ...uint32) {
	b.put(decorations, OpMemberDecorate, append([]uint32{id, member, d}, operands...)...)
}

// intern puts an instruction whose operands are before, its result, after; or
// returns the result of an equal one.
func (b *Builder) intern(s section, op Op, before, after []uint32) ID {
	key := keyOf(op, before, after)
	id, ok := b.interned[key]
	if !ok {
		id = b.NewID()
		b.interned[key] = id
		b.put(s, op, append(append(append([]uint32(nil), before...), id), after...)...)
	}
	return id
}

// Type returns the type that op (OpTypeInt, ...) makes of the operands.
func (b *Builder) Type(op Op, operands ...uint32) ID {
	return b.intern(globals, op, nil, operands)
}

// NewType is Type for a type of its own, which will get decorations that equal
// types must not share.
func (b *Builder) NewType(op Op, operands ...uint32) ID {
	id := b.NewID()
	b.put(globals, op, append([]uint32{id}, operands...)...)
	return id
}

// Constant returns the constant that op (OpConstant, OpConstantComposite,
// OpSpecConstantOp, ...) makes of the operands.
func (b *Builder) Constant(op Op, typ ID, operands ...uint32) ID {
	return b.intern(globals, op, []uint32{typ}, operands)
}

// SpecConstant defines a specialization constant of 32 bits.
func (b *Builder) SpecConstant(typ ID, specID, def uint32) ID {
	id := b.NewID()
	b.put(globals, OpSpecConstant, typ, id, def)
	b.Decorate(id, DecorationSpecId, specID)
	return id
}

// Variable defines a global variable; typ is the type of a pointer to it.
func (b *Builder) Variable(typ ID, s StorageClass) ID {
	id := b.NewID()
	b.put(globals, OpVariable, typ, id, s)
	return id
}

// Function begins a function, whose first block is open. Its type is typ.
func (b *Builder) Function(result, typ ID) ID {
	id := b.NewID()
	b.put(head, OpFunction, result, id, FunctionControlNone, typ)
	b.put(head, OpLabel, b.NewID())
	return id
}

// Local defines a variable of the function; typ is the type of a pointer to it.
// The definition moves to the first block.
func (b *Builder) Local(typ ID) ID {
	id := b.NewID()
	b.put(head, OpVariable, typ, id, StorageClassFunction)
	return id
}

// Emit appends an instruction with a result to the function.
func (b *Builder) Emit(op Op, typ ID, operands ...uint32) ID {
	id := b.NewID()
	b.EmitAs(id, op, typ, operands...)
	return id
}

// EmitAs is Emit with a result from NewID.
func (b *Builder) EmitAs(id ID, op Op, typ ID, operands ...uint32) {
	b.put(body, op, append([]uint32{typ, id}, operands...)...)
}

// Do appends an instruction without a result to the function: a store, a
// branch, a label (whose operand is its ID).
func (b *Builder) Do(op Op, operands ...uint32) { b.put(body, op, operands...) }

// EndFunction ends the function.
func (b *Builder) EndFunction() {
	b.put(body, OpFunctionEnd)
	for _, s := range []section{head, body} {
		b.sections[functions] = append(b.sections[functions], b.sections[s]...)
		b.sections[s] = nil
	}
}

// Words returns the module, or the error of an instruction that has more words
// than SPIR-V can say.
func (b *Builder) Words() ([]uint32, error) {
	if b.err != nil {
		return nil, fmt.Errorf("spirv: %w", b.err)
	}
	words := []uint32{magic, version, 0, b.bound, 0}
	for _, s := range b.sections {
		words = append(words, s...)
	}
	return words, nil
}

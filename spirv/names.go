package spirv

import (
	"fmt"
	"strconv"
	"strings"
)

const maxDescription = 100

// friendlyNames returns unique names: those of OpName, and for types and
// constants what they are, such as v4float, _ptr_Workgroup_uint, uint_32.
func friendlyNames(m *Module) map[ID]string {
	n := namer{names: map[ID]string{}, taken: map[string]bool{}, copies: map[string]int{}}
	for i := range m.Insts {
		in := &m.Insts[i]
		if in.Op == OpName {
			n.set(in.Words[0], stringOf(in.Words[1:]))
		}
	}
	for i := range m.Insts {
		in := &m.Insts[i]
		if in.Result == 0 || n.names[in.Result] != "" {
			continue
		}
		// The names of types nest, so a bound on their length keeps the sum of
		// them linear in the module.
		if name := n.describe(m, in); len(name) <= maxDescription {
			n.set(in.Result, name)
		}
	}
	return n.names
}

type namer struct {
	names  map[ID]string
	taken  map[string]bool
	copies map[string]int // of a name that several ids want
}

// set gives id a name, changed to what the assembler reads and to be unique.
func (n *namer) set(id ID, name string) {
	if name == "" || n.names[id] != "" {
		return
	}
	name = strings.Map(func(r rune) rune {
		if r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	unique := name
	for n.taken[unique] {
		n.copies[name]++
		unique = name + "_" + strconv.Itoa(n.copies[name])
	}
	n.taken[unique] = true
	n.names[id] = unique
}

func (n *namer) of(id ID) string {
	if name := n.names[id]; name != "" {
		return name
	}
	return strconv.FormatUint(uint64(id), 10)
}

// describe returns a name for a type or a constant, and "" for others.
func (n *namer) describe(m *Module, in *Inst) string {
	switch in.Op {
	case OpTypeVoid:
		return "void"
	case OpTypeBool:
		return "bool"
	case OpTypeInt, OpTypeFloat:
		return scalarName(m.scalars[in.Result])
	case OpTypeVector:
		return fmt.Sprintf("v%d%s", in.Words[2], n.of(in.Words[1]))
	case OpTypeArray:
		return "_arr_" + n.of(in.Words[1]) + "_" + n.of(in.Words[2])
	case OpTypeRuntimeArray:
		return "_runtimearr_" + n.of(in.Words[1])
	case OpTypeStruct:
		return "_struct"
	case OpTypePointer:
		storage := kindTable[kindStorageClass].find(in.Words[1])
		return "_ptr_" + storage.name + "_" + n.of(in.Words[2])
	case OpConstantTrue:
		return "true"
	case OpConstantFalse:
		return "false"
	case OpConstant:
		value := number(m.scalars[in.Type], in.Words[2:])
		return n.of(in.Type) + "_" + strings.NewReplacer("-", "n", ".", "_", "+", "").Replace(value)
	}
	return ""
}

func scalarName(s scalar) string {
	switch {
	case s.float && s.width == 32:
		return "float"
	case s.float:
		return fmt.Sprintf("float%d", s.width)
	case s.width == 32 && s.signed:
		return "int"
	case s.width == 32:
		return "uint"
	case s.signed:
		return fmt.Sprintf("int%d", s.width)
	}
	return fmt.Sprintf("uint%d", s.width)
}

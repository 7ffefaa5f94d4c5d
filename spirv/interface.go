package spirv

import "fmt"

// addressBytes is the size of an address in the push constants.
const addressBytes = 8

// Interface is what a module asks of who runs it and what it does with the buffers whose
// addresses it gets: element i of an array of addresses in the push constants is argument i.
type Interface struct {
	Capabilities []Capability
	Extensions   []string
	EntryPoint   string
	LocalSize    [3]uint32
	Shared       uint64 // bytes of the variables of a workgroup
	Args         int    // addresses in the push constants
	PushMembers  int    // members of all blocks of push constants
	Descriptors  bool   // it has a variable that a descriptor set must bind
	// Loads and Stores are of arguments, by number; atomic operations are both.
	Loads, Stores map[int]bool
	// Stray says what it reaches memory through that is no argument; empty if nothing.
	Stray   string
	Rounded []uint32 // bits of the floats that a mode rounds to nearest even
	// Fragments: it puts elements into cooperative matrices by their number in a lane, and so
	// relies on which of them a lane holds.
	Fragments bool
}

// ReadInterface reads the interface of a module whose specialization constants have the values
// of spec, by SpecId, or their defaults.
func ReadInterface(words []uint32, spec map[uint32]uint32) (*Interface, error) {
	words, err := Specialize(words, spec)
	if err != nil {
		return nil, err
	}
	m, err := Parse(words)
	if err != nil {
		return nil, err
	}
	r := reader{m: m, Interface: &Interface{Loads: map[int]bool{}, Stores: map[int]bool{}},
		def: map[ID]*Inst{}, args: map[ID]argSet{}, push: map[ID]bool{}, stride: map[ID]uint32{}, sizes: map[ID]uint64{}}
	if err := r.declarations(); err != nil {
		return nil, fmt.Errorf("spirv: %w", err)
	}
	r.flow()
	r.accesses()
	return r.Interface, nil
}

// argSet are arguments that an address may be of.
type argSet map[int]bool

type reader struct {
	m *Module
	*Interface
	def    map[ID]*Inst
	args   map[ID]argSet // of addresses, pointers, and variables that hold them
	push   map[ID]bool   // variables of push constants
	stride map[ID]uint32 // of arrays
	sizes  map[ID]uint64 // of types
}

// declarations reads what stands before the functions.
func (r *reader) declarations() error {
	entries := 0
	size := ID(0)
	for i := range r.m.Insts {
		in := &r.m.Insts[i]
		if in.Result != 0 {
			r.def[in.Result] = in
			r.measure(in)
		}
		switch in.Op {
		case OpCapability:
			r.Capabilities = append(r.Capabilities, in.Words[0])
		case OpExtension:
			r.Extensions = append(r.Extensions, stringOf(in.Words))
		case OpEntryPoint:
			entries++
			if r.EntryPoint = stringOf(in.Words[2:]); in.Words[0] != ExecutionModelGLCompute {
				return fmt.Errorf("entry point %q is of execution model %d, not compute", r.EntryPoint, in.Words[0])
			}
		case OpExecutionMode:
			switch in.Words[1] {
			case ExecutionModeLocalSize:
				copy(r.LocalSize[:], in.Words[2:])
			case ExecutionModeRoundingModeRTE:
				r.Rounded = append(r.Rounded, in.Words[2:]...)
			}
		case OpDecorate:
			switch {
			case in.Words[1] == DecorationBuiltIn && in.Words[2] == BuiltInWorkgroupSize:
				size = in.Words[0]
			case in.Words[1] == DecorationArrayStride:
				r.stride[in.Words[0]] = in.Words[2]
			}
		case OpVariable:
			if err := r.variable(in); err != nil {
				return err
			}
		}
	}
	if entries != 1 {
		return fmt.Errorf("%d entry points", entries)
	}
	if c := r.at(size); c.Op == OpConstantComposite && len(c.Words) == 5 {
		for i, id := range c.Words[2:] {
			r.LocalSize[i] = r.constant(id)
		}
	}
	return nil
}

// at is the instruction that defines id, or an empty one.
func (r *reader) at(id ID) *Inst {
	if in := r.def[id]; in != nil {
		return in
	}
	return &Inst{}
}

// constant is the value of a constant of 32 bits, 0 of anything else.
func (r *reader) constant(id ID) uint32 {
	if c := r.at(id); c.Op == OpConstant && len(c.Words) == 3 {
		return c.Words[2]
	}
	return 0
}

func (r *reader) variable(in *Inst) error {
	pointer := r.at(in.Type)
	if pointer.Op != OpTypePointer {
		return fmt.Errorf("variable %%%d is of no pointer type", in.Result)
	}
	to := pointer.Words[2]
	switch in.Words[2] {
	case StorageClassUniformConstant, StorageClassUniform, StorageClassStorageBuffer:
		r.Descriptors = true
	case StorageClassWorkgroup:
		n := r.sizes[to]
		if n == 0 {
			return fmt.Errorf("shared memory of a type without size, %%%d", to)
		}
		r.Shared += n
	case StorageClassPushConstant:
		r.push[in.Result] = true
		table := r.at(to)
		if table.Op == OpTypeStruct {
			r.PushMembers += len(table.Words) - 1
		}
		if table.Op != OpTypeStruct || len(table.Words) != 2 {
			return nil
		}
		if array := r.at(table.Words[1]); array.Op == OpTypeArray && r.stride[array.Result] == addressBytes {
			r.Args = int(r.constant(array.Words[2]))
		}
	}
	return nil
}

// measure notes the bytes of a type in shared memory, where it has any.
func (r *reader) measure(in *Inst) {
	switch in.Op {
	case OpTypeInt, OpTypeFloat:
		r.sizes[in.Result] = uint64(in.Words[1]+7) / 8
	case OpTypeVector:
		r.sizes[in.Result] = r.sizes[in.Words[1]] * uint64(in.Words[2])
	case OpTypeArray:
		r.sizes[in.Result] = r.sizes[in.Words[1]] * uint64(r.constant(in.Words[2]))
	}
}

// class is the storage class of the pointer id, or of none.
func (r *reader) class(id ID) (StorageClass, bool) {
	pointer := r.at(r.at(id).Type)
	if pointer.Op != OpTypePointer {
		return 0, false
	}
	return pointer.Words[1], true
}

// flow finds which arguments addresses are of: whatever is made of an address is one of the
// same arguments, but what is loaded from memory is none.
func (r *reader) flow() {
	for changed := true; changed; {
		changed = false
		add := func(to ID, from argSet) {
			for a := range from {
				if !r.args[to][a] {
					if r.args[to] == nil {
						r.args[to] = argSet{}
					}
					r.args[to][a], changed = true, true
				}
			}
		}
		for i := range r.m.Insts {
			in := &r.m.Insts[i]
			switch in.Op {
			case OpAccessChain, OpInBoundsAccessChain:
				if r.push[in.Words[2]] && len(in.Words) == 5 {
					add(in.Result, argSet{int(r.constant(in.Words[4])): true})
					continue
				}
				add(in.Result, r.args[in.Words[2]])
			case OpLoad:
				if class, _ := r.class(in.Words[2]); class == StorageClassPushConstant || class == StorageClassFunction {
					add(in.Result, r.args[in.Words[2]])
				}
			case OpStore:
				if class, _ := r.class(in.Words[0]); class == StorageClassFunction {
					add(in.Words[0], r.args[in.Words[1]])
				}
			case OpBitcast, OpSelect, OpPhi, OpCopyObject, OpConvertUToPtr, OpCompositeExtract, OpCompositeConstruct:
				for _, id := range in.Words[2:] {
					add(in.Result, r.args[id])
				}
			}
		}
	}
}

// accesses finds what reaches memory. Instructions that are not known here, and pass pointers to
// buffers, are strays.
func (r *reader) accesses() {
	touch := func(pointer ID, load, store bool) {
		if class, ok := r.class(pointer); !ok || class != StorageClassPhysicalStorageBuffer {
			return
		}
		if len(r.args[pointer]) == 0 {
			r.Stray = fmt.Sprintf("pointer %%%d is of no argument", pointer)
		}
		for a := range r.args[pointer] {
			r.Loads[a], r.Stores[a] = r.Loads[a] || load, r.Stores[a] || store
		}
	}
	for i := range r.m.Insts {
		in := &r.m.Insts[i]
		switch in.Op {
		case OpLoad, OpAtomicLoad:
			touch(in.Words[2], true, false)
		case OpStore, OpAtomicStore:
			touch(in.Words[0], false, true)
		case OpAtomicIAdd, OpAtomicUMax:
			touch(in.Words[2], true, true)
		case OpCompositeInsert:
			r.Fragments = r.Fragments || r.at(in.Type).Op == OpTypeCooperativeMatrixKHR
		case OpAccessChain, OpInBoundsAccessChain, OpBitcast, OpVariable, OpSelect, OpPhi, OpCopyObject, OpConvertUToPtr, OpName, OpDecorate:
		default:
			for _, w := range in.operands {
				if kindTable[w.kind].category != idOperand || w.kind == kindIdResult {
					continue
				}
				if class, ok := r.class(w.words[0]); ok && class == StorageClassPhysicalStorageBuffer {
					r.Stray = fmt.Sprintf("%v of pointer %%%d", in.Op, w.words[0])
				}
			}
		}
	}
}

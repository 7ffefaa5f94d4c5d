// Package spirv lowers kernels to SPIR-V.
package spirv

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/spirv"
)

// EntryPoint is the name of the entry point of every module.
const EntryPoint = "main"

// Lower returns the SPIR-V 1.5 module of a kernel for Vulkan 1.2, with one entry
// point, main, and the kernel's specialization constants, which stay open. The same
// kernel gives the same words.
func Lower(f *kernel.Func) ([]uint32, error) {
	if f.Groups {
		return nil, fmt.Errorf("kernel %s: SPIR-V has no products of four subgroups", f.Name)
	}
	if f.TF32 {
		return nil, fmt.Errorf("kernel %s: SPIR-V has no matrices of TF32", f.Name)
	}
	if f.Bytes {
		return nil, fmt.Errorf("kernel %s: SPIR-V has no matrices of bytes", f.Name)
	}
	if f.Bulk {
		return nil, fmt.Errorf("kernel %s: SPIR-V has no copies that are waited for by slot, and no gates", f.Name)
	}
	if f.Tiles {
		return nil, fmt.Errorf("kernel %s: SPIR-V has no tiles", f.Name)
	}
	l := &lowering{
		f: f, m: spirv.NewBuilder(),
		values: map[*kernel.Node]spirv.ID{}, inputs: map[spirv.BuiltIn]spirv.ID{},
		views: map[view]spirv.ID{}, pointers: map[bound]spirv.ID{},
	}
	l.module()
	words, err := l.m.Words()
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", f.Name, err)
	}
	return words, nil
}

// lowering writes one kernel as a module.
type lowering struct {
	f      *kernel.Func
	m      *spirv.Builder
	glsl   spirv.ID
	values map[*kernel.Node]spirv.ID

	globals  []spirv.ID // global variables, for the entry point
	inputs   map[spirv.BuiltIn]spirv.ID
	shared   []spirv.ID
	views    map[view]spirv.ID  // types of pointers to buffers
	pointers map[bound]spirv.ID // buffers, as pointers; kernel.Void for their addresses
	access   func(arg int) kernel.Access
	tables   []spirv.ID // local variables that hold them
}

// view is a way to see a buffer: as a structure of one array of elem.
type view struct {
	elem   kernel.Type
	access kernel.Access
}

// bound is an argument seen in one way.
type bound struct {
	arg  uint32
	elem kernel.Type
}

func (l *lowering) module() {
	m := l.m
	m.Capability(spirv.CapabilityShader)
	m.Capability(spirv.CapabilityPhysicalStorageBufferAddresses)
	m.Capability(spirv.CapabilityVulkanMemoryModel)
	for _, class := range l.f.SubgroupOps {
		m.Capability(spirv.CapabilityGroupNonUniform) // the others rest on it
		m.Capability(subgroupCapabilities[class])
	}
	l.glsl = m.ExtInstImport("GLSL.std.450")
	m.MemoryModel(spirv.AddressingModelPhysicalStorageBuffer64, spirv.MemoryModelVulkan)

	for i, s := range l.f.Spec {
		id := m.SpecConstant(l.typ(s.Type), s.ID, s.Default)
		m.Name(id, s.Name)
		l.values[l.f.Constant(i)] = id
	}
	for i, a := range l.f.Arrays() {
		array := m.Type(spirv.OpTypeArray, l.typ(a.Elem()), l.value(a.Length()))
		id := l.global(array, spirv.StorageClassWorkgroup)
		m.Name(id, fmt.Sprintf("shared%d", i))
		l.shared = append(l.shared, id)
	}

	void := m.Type(spirv.OpTypeVoid)
	main := m.Function(void, m.Type(spirv.OpTypeFunction, void))
	m.Name(main, l.f.Name)
	l.constants()
	l.arguments()
	l.region(l.f.Body())
	m.Do(spirv.OpReturn)
	m.EndFunction()

	l.modes(main)
	m.EntryPoint(spirv.ExecutionModelGLCompute, main, EntryPoint, l.globals...)
}

// global defines a global variable of the type to.
func (l *lowering) global(to spirv.ID, s spirv.StorageClass) spirv.ID {
	id := l.m.Variable(l.pointer(s, to), s)
	l.globals = append(l.globals, id)
	return id
}

func (l *lowering) pointer(s spirv.StorageClass, to spirv.ID) spirv.ID {
	return l.m.Type(spirv.OpTypePointer, s, to)
}

// modes states the workgroup size, as an execution mode that a specialized builtin
// overrides, and how results are rounded to f16.
func (l *lowering) modes(main spirv.ID) {
	n := l.f.Workgroup()
	size, err := l.f.Eval(n, nil)
	if err != nil {
		size = 1 // undefined by the defaults alone: call sites specialize it
	}
	l.m.ExecutionMode(main, spirv.ExecutionModeLocalSize, size, 1, 1)
	if slices.Contains(l.f.Features, kernel.RoundsHalf) {
		l.m.Capability(spirv.CapabilityRoundingModeRTE)
		l.m.ExecutionMode(main, spirv.ExecutionModeRoundingModeRTE, 16)
	}
	if n.Op() == kernel.OpConst {
		return
	}
	one := l.uint(1)
	v3 := l.m.Type(spirv.OpTypeVector, l.typ(kernel.U32), 3)
	id := l.m.Constant(spirv.OpSpecConstantComposite, v3, l.value(n), one, one)
	l.m.Decorate(id, spirv.DecorationBuiltIn, spirv.BuiltInWorkgroupSize)
	l.m.Name(id, "workgroup_size")
}

func (l *lowering) typ(t kernel.Type) spirv.ID {
	if t.IsMatrix() {
		return l.matrixType(t)
	}
	if n := t.Lanes(); n > 1 {
		return l.m.Type(spirv.OpTypeVector, l.typ(t.Elem()), uint32(n))
	}
	switch t {
	case kernel.Bool:
		return l.m.Type(spirv.OpTypeBool)
	case kernel.I32:
		return l.m.Type(spirv.OpTypeInt, 32, 1)
	case kernel.F32:
		return l.m.Type(spirv.OpTypeFloat, 32)
	case kernel.F16:
		l.m.Capability(spirv.CapabilityFloat16)
		return l.m.Type(spirv.OpTypeFloat, 16)
	case kernel.U16:
		l.m.Capability(spirv.CapabilityStorageBuffer16BitAccess)
		l.m.Capability(spirv.CapabilityInt16) // spirv-val has a cast to a pointer to 16 bits need it
		return l.m.Type(spirv.OpTypeInt, 16, 0)
	}
	return l.m.Type(spirv.OpTypeInt, 32, 0)
}

func (l *lowering) uint(x uint32) spirv.ID {
	return l.m.Constant(spirv.OpConstant, l.typ(kernel.U32), x)
}

// value returns the ID of a node's result; static nodes are defined at their
// first use.
func (l *lowering) value(n *kernel.Node) spirv.ID {
	id, ok := l.values[n]
	if !ok {
		id = l.static(n)
		l.values[n] = id
	}
	return id
}

func (l *lowering) ids(ns []*kernel.Node) []spirv.ID {
	ids := make([]spirv.ID, len(ns))
	for i, n := range ns {
		ids[i] = l.value(n)
	}
	return ids
}

func (l *lowering) static(n *kernel.Node) spirv.ID {
	typ := l.typ(n.Type())
	switch {
	case n.Op() == kernel.OpConst && n.Type() == kernel.Bool && n.Imm() != 0:
		return l.m.Constant(spirv.OpConstantTrue, typ)
	case n.Op() == kernel.OpConst && n.Type() == kernel.Bool:
		return l.m.Constant(spirv.OpConstantFalse, typ)
	case n.Op() == kernel.OpConst:
		return l.m.Constant(spirv.OpConstant, typ, n.Imm())
	case n.Op() == kernel.OpVec:
		o := spirv.OpConstantComposite
		for _, a := range n.Args() {
			if a.Op() != kernel.OpConst {
				o = spirv.OpSpecConstantComposite
			}
		}
		return l.m.Constant(o, typ, l.ids(n.Args())...)
	}
	args := l.ids(n.Args())
	if by, ok := choices[n.Op()]; ok {
		// SPIR-V has no minimum for constants.
		first := l.constantOp(l.typ(kernel.Bool), by[n.Args()[0].Type()].op, args...)
		return l.constantOp(typ, spirv.OpSelect, append([]spirv.ID{first}, args...)...)
	}
	return l.constantOp(typ, plain[n.Op()][n.Args()[0].Type()].op, args...)
}

// choices are the operations on constants that take the first operand where a
// comparison holds, else the second.
var choices = map[kernel.Op]byKind{kernel.OpMin: plain[kernel.OpLt], kernel.OpMax: plain[kernel.OpGt]}

func (l *lowering) constantOp(typ spirv.ID, o spirv.Op, args ...spirv.ID) spirv.ID {
	return l.m.Constant(spirv.OpSpecConstantOp, typ, append([]uint32{uint32(o)}, args...)...)
}

// arguments finds the addresses of the buffers in the push constants.
func (l *lowering) arguments() {
	m := l.m
	push := l.addresses()
	m.Name(push, "push")
	pushed := l.global(push, spirv.StorageClassPushConstant)
	l.bind(func(arg int) spirv.ID {
		p := l.pointer(spirv.StorageClassPushConstant, l.typ(kernel.U32.Vec(2)))
		return m.Emit(spirv.OpLoad, l.typ(kernel.U32.Vec(2)), m.Emit(spirv.OpAccessChain, p, pushed, l.uint(0), l.uint(uint32(arg))))
	}, func(arg int) kernel.Access { return l.f.Args[arg].Access })
}

// addresses returns the type of a structure of an address for each argument.
func (l *lowering) addresses() spirv.ID {
	table := l.m.NewType(spirv.OpTypeArray, l.typ(kernel.U32.Vec(2)), l.uint(uint32(len(l.f.Args))))
	l.m.Decorate(table, spirv.DecorationArrayStride, 8)
	return l.bufferType(table, kernel.ReadWrite)
}

// bind makes pointers of the addresses of the buffers, for every type that one is
// seen as.
func (l *lowering) bind(load func(arg int) spirv.ID, access func(arg int) kernel.Access) {
	addresses := make([]spirv.ID, len(l.f.Args))
	l.access = access
	l.accesses(l.f.Body(), func(b bound) {
		if _, ok := l.pointers[b]; ok {
			return
		}
		if addresses[b.arg] == 0 {
			addresses[b.arg] = load(int(b.arg))
		}
		if b.elem == kernel.Void {
			l.pointers[b] = addresses[b.arg]
			return
		}
		id := l.m.Emit(spirv.OpBitcast, l.view(view{b.elem, access(int(b.arg))}), addresses[b.arg])
		l.m.Name(id, l.f.Args[b.arg].Name+"_"+b.elem.String())
		l.pointers[b] = id
	})
}

// accesses calls visit for every access to a buffer, in order, with void for its address.
func (l *lowering) accesses(r *kernel.Region, visit func(bound)) {
	for _, n := range r.Nodes() {
		if elem, ok := n.View(); ok && n.Through() == nil {
			visit(bound{n.Imm(), elem})
		}
		for _, inner := range n.Regions() {
			l.accesses(inner, visit)
		}
	}
}

// view returns the type of a pointer to a buffer seen as v.
func (l *lowering) view(v view) spirv.ID {
	id, ok := l.views[v]
	if !ok {
		array := l.m.NewType(spirv.OpTypeRuntimeArray, l.typ(v.elem))
		l.m.Decorate(array, spirv.DecorationArrayStride, uint32(v.elem.Size()))
		buffer := l.bufferType(array, v.access)
		l.m.Name(buffer, fmt.Sprintf("%v_%v", v.access, v.elem))
		id = l.pointer(spirv.StorageClassPhysicalStorageBuffer, buffer)
		l.views[v] = id
	}
	return id
}

// bufferType returns the structure around one array. That a kernel only reads
// or only writes it lets drivers choose caches.
func (l *lowering) bufferType(array spirv.ID, access kernel.Access) spirv.ID {
	id := l.m.NewType(spirv.OpTypeStruct, array)
	l.m.Decorate(id, spirv.DecorationBlock)
	l.m.MemberDecorate(id, 0, spirv.DecorationOffset, 0)
	switch access {
	case kernel.Read:
		l.m.MemberDecorate(id, 0, spirv.DecorationNonWritable)
	case kernel.Write:
		l.m.MemberDecorate(id, 0, spirv.DecorationNonReadable)
	}
	return id
}

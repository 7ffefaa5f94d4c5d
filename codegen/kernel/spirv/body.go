package spirv

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/spirv"
)

func (l *lowering) region(r *kernel.Region) {
	for _, n := range r.Nodes() {
		l.node(n)
	}
}

// node lowers one operation. Those that are more than a row of a table are in
// special.
func (l *lowering) node(n *kernel.Node) {
	if row, ok := plain[n.Op()]; ok {
		l.values[n] = l.instr(n, row[n.Args()[0].Type().Elem()])
		return
	}
	if g, ok := groups[n.Op()]; ok {
		l.values[n] = l.group(n, g)
		return
	}
	special[n.Op()](l, n)
}

// instr emits an instruction with the operands of n.
func (l *lowering) instr(n *kernel.Node, in instr) spirv.ID {
	args := l.ids(n.Args())
	if in.op == spirv.OpExtInst {
		args = append([]spirv.ID{l.glsl, in.glsl}, args...)
	}
	id := l.m.Emit(in.op, l.typ(n.Type()), args...)
	if exact(in) {
		l.m.Decorate(id, spirv.DecorationNoContraction)
	}
	return id
}

// exact reports whether the instruction must not be fused with others, replaced
// by a product with the reciprocal, or for Fma, split in two.
func exact(in instr) bool {
	switch in.op {
	case spirv.OpFAdd, spirv.OpFSub, spirv.OpFMul, spirv.OpFDiv, spirv.OpFNegate:
		return true
	}
	return in.op == spirv.OpExtInst && in.glsl == spirv.GLSLFma
}

func (l *lowering) group(n *kernel.Node, g group) spirv.ID {
	kind := kernel.Void
	if len(n.Args()) > 0 {
		kind = n.Args()[0].Type().Elem()
	}
	operands := []uint32{l.uint(spirv.ScopeSubgroup)}
	if g.operation {
		operands = append(operands, g.how)
	}
	return l.m.Emit(g.instr[kind].op, l.typ(n.Type()), append(operands, l.ids(n.Args())...)...)
}

// special has the operations that plain and groups have not.
var special map[kernel.Op]func(l *lowering, n *kernel.Node)

func init() { // refers to region, which refers to it
	special = map[kernel.Op]func(l *lowering, n *kernel.Node){
		kernel.OpBuiltin:         (*lowering).builtin,
		kernel.OpVec:             (*lowering).vec,
		kernel.OpElem:            (*lowering).elem,
		kernel.OpConvert:         (*lowering).convert,
		kernel.OpPackHalf:        (*lowering).packHalf,
		kernel.OpFMAHalf:         (*lowering).fmaHalf,
		kernel.OpPairHalves:      (*lowering).pairHalves,
		kernel.OpPermute:         (*lowering).permute,
		kernel.OpDotI8:           (*lowering).dot,
		kernel.OpDotU8:           (*lowering).dot,
		kernel.OpAddress:         (*lowering).addressOf,
		kernel.OpLoad:            (*lowering).load,
		kernel.OpLoad16:          (*lowering).load16,
		kernel.OpStore16:         (*lowering).store16,
		kernel.OpStore:           (*lowering).store,
		kernel.OpAtomicAdd:       (*lowering).atomic,
		kernel.OpCopy:            (*lowering).copy,
		kernel.OpCopyGroup:       func(*lowering, *kernel.Node) {},
		kernel.OpAwait:           func(*lowering, *kernel.Node) {}, // dispatches do not overlap
		kernel.OpPrefetchNext:    func(*lowering, *kernel.Node) {},
		kernel.OpCopyWait:        func(*lowering, *kernel.Node) {},
		kernel.OpPrefetch:        func(*lowering, *kernel.Node) {}, // GPUs hide latency by other subgroups
		kernel.OpSharedLoad:      (*lowering).sharedLoad,
		kernel.OpSharedElem:      (*lowering).sharedLoad,
		kernel.OpSharedStore:     (*lowering).sharedStore,
		kernel.OpSharedSet:       (*lowering).sharedStore,
		kernel.OpSharedAdd:       (*lowering).atomic,
		kernel.OpTable:           (*lowering).table,
		kernel.OpVar:             (*lowering).variable,
		kernel.OpVarGet:          (*lowering).get,
		kernel.OpVarSet:          (*lowering).set,
		kernel.OpBarrier:         (*lowering).barrier,
		kernel.OpFence:           (*lowering).fence,
		kernel.OpSubgroupBarrier: (*lowering).barrier,
		kernel.OpMatFill:         (*lowering).matFill,
		kernel.OpMatPairs:        (*lowering).matPairs,
		kernel.OpMatLoad:         (*lowering).matLoad,
		kernel.OpMatStore:        (*lowering).matStore,
		kernel.OpMatMulAdd:       (*lowering).matMulAdd,
		kernel.OpMatTimes:        (*lowering).matTimes,
		kernel.OpMatConvert:      (*lowering).matConvert,
		kernel.OpMatLength:       (*lowering).matLength,
		kernel.OpVarElem:         (*lowering).varElem,
		kernel.OpVarSetElem:      (*lowering).varSetElem,
		kernel.OpIf:              (*lowering).branch,
		kernel.OpFor:             (*lowering).forLoop,
		kernel.OpReturnIf:        (*lowering).returnIf,
	}
}

func (l *lowering) builtin(n *kernel.Node) {
	l.values[n] = l.input(kernel.Builtin(n.Imm()))
}

// input loads what the device says of a lane's place.
func (l *lowering) input(b kernel.Builtin) spirv.ID {
	in := inputs[b]
	typ := l.typ(kernel.U32)
	if in.vector {
		typ = l.m.Type(spirv.OpTypeVector, typ, 3)
	}
	from, ok := l.inputs[in.builtin]
	if !ok {
		from = l.global(typ, spirv.StorageClassInput)
		l.m.Decorate(from, spirv.DecorationBuiltIn, in.builtin)
		l.inputs[in.builtin] = from
	}
	id := l.m.Emit(spirv.OpLoad, typ, from)
	if in.vector {
		id = l.m.Emit(spirv.OpCompositeExtract, l.typ(kernel.U32), id, in.dim)
	}
	return id
}

func (l *lowering) vec(n *kernel.Node) {
	l.values[n] = l.m.Emit(spirv.OpCompositeConstruct, l.typ(n.Type()), l.ids(n.Args())...)
}

func (l *lowering) elem(n *kernel.Node) {
	v, i := n.Args()[0], n.Args()[1]
	if i.Op() == kernel.OpConst {
		l.values[n] = l.m.Emit(spirv.OpCompositeExtract, l.typ(n.Type()), l.value(v), i.Imm())
		return
	}
	l.values[n] = l.m.Emit(spirv.OpVectorExtractDynamic, l.typ(n.Type()), l.value(v), l.value(i))
}

func (l *lowering) convert(n *kernel.Node) {
	o := conversions[fromTo{n.Args()[0].Type().Elem(), n.Type().Elem()}]
	l.values[n] = l.m.Emit(o, l.typ(n.Type()), l.value(n.Args()[0]))
}

// packHalf converts, which the mode that modes states rounds. AMD's compiler takes PackHalf2x16 toward zero, whatever
// the mode.
func (l *lowering) packHalf(n *kernel.Node) {
	pair := l.m.Type(spirv.OpTypeVector, l.typ(kernel.F16), 2)
	l.values[n] = l.m.Emit(spirv.OpBitcast, l.typ(n.Type()), l.m.Emit(spirv.OpFConvert, pair, l.value(n.Args()[0])))
}

func (l *lowering) fmaHalf(n *kernel.Node) {
	pair := l.m.Type(spirv.OpTypeVector, l.typ(kernel.F16), 2)
	operands := []uint32{l.glsl, spirv.GLSLFma}
	for _, id := range l.ids(n.Args()) {
		operands = append(operands, l.m.Emit(spirv.OpBitcast, pair, id))
	}
	id := l.m.Emit(spirv.OpExtInst, pair, operands...)
	l.m.Decorate(id, spirv.DecorationNoContraction)
	l.values[n] = l.m.Emit(spirv.OpBitcast, l.typ(n.Type()), id)
}

func (l *lowering) pairHalves(n *kernel.Node) {
	pair := l.m.Type(spirv.OpTypeVector, l.typ(kernel.F16), 2)
	x, y := l.m.Emit(spirv.OpBitcast, pair, l.value(n.Args()[0])), l.m.Emit(spirv.OpBitcast, pair, l.value(n.Args()[1]))
	l.values[n] = l.m.Emit(spirv.OpBitcast, l.typ(n.Type()), l.m.Emit(spirv.OpVectorShuffle, pair, x, y, n.Imm(), n.Imm()+2))
}

// permute takes the bytes one by one: SPIR-V has no instruction that does.
func (l *lowering) permute(n *kernel.Node) {
	word, x, y, order := l.typ(kernel.U32), l.value(n.Args()[0]), l.value(n.Args()[1]), l.value(n.Args()[2])
	number := func(k uint32) spirv.ID { return l.m.Constant(spirv.OpConstant, word, k) }
	set := func(nibble spirv.ID, bit uint32) spirv.ID {
		return l.m.Emit(spirv.OpINotEqual, l.typ(kernel.Bool), l.m.Emit(spirv.OpBitwiseAnd, word, nibble, number(bit)), number(0))
	}
	bytes := number(0)
	for i := range uint32(4) {
		nibble := l.m.Emit(spirv.OpShiftRightLogical, word, order, number(4*i))
		of := l.m.Emit(spirv.OpSelect, word, set(nibble, 4), y, x)
		left := l.m.Emit(spirv.OpShiftLeftLogical, word, l.m.Emit(spirv.OpBitwiseAnd, word, l.m.Emit(spirv.OpNot, word, nibble), number(3)), number(3))
		top := l.m.Emit(spirv.OpShiftLeftLogical, word, of, left) // the byte is the highest
		sign := l.m.Emit(spirv.OpShiftRightArithmetic, word, top, number(31))
		chosen := l.m.Emit(spirv.OpShiftRightLogical, word, l.m.Emit(spirv.OpSelect, word, set(nibble, 8), sign, top), number(24))
		bytes = l.m.Emit(spirv.OpBitwiseOr, word, bytes, l.m.Emit(spirv.OpShiftLeftLogical, word, chosen, number(8*i)))
	}
	l.values[n] = bytes
}

func (l *lowering) dot(n *kernel.Node) {
	op := spirv.OpSDot
	if n.Op() == kernel.OpDotU8 {
		op = spirv.OpSUDot
	}
	l.m.Capability(spirv.CapabilityDotProduct)
	l.m.Capability(spirv.CapabilityDotProductInput4x8BitPacked)
	l.m.Extension("SPV_KHR_integer_dot_product")
	l.values[n] = l.m.Emit(op, l.typ(n.Type()), l.value(n.Args()[0]), l.value(n.Args()[1]),
		spirv.PackedVectorFormat4x8Bit)
}

// address returns a pointer to what a buffer access accesses.
func (l *lowering) address(n *kernel.Node) spirv.ID {
	elem, _ := n.View()
	pointer := l.pointer(spirv.StorageClassPhysicalStorageBuffer, l.typ(elem))
	buffer := l.pointers[bound{n.Imm(), elem}]
	if through := n.Through(); through != nil {
		buffer = l.m.Emit(spirv.OpBitcast, l.view(view{elem, l.access(int(n.Imm()))}), l.value(through))
	}
	return l.m.Emit(spirv.OpAccessChain, pointer, buffer, l.uint(0), l.value(n.Args()[0]))
}

// addressOf returns the address of an argument as two words.
func (l *lowering) addressOf(n *kernel.Node) { l.values[n] = l.pointers[bound{n.Imm(), kernel.Void}] }

func (l *lowering) load(n *kernel.Node) {
	l.values[n] = l.m.Emit(spirv.OpLoad, l.typ(n.Type()), l.address(n), spirv.MemoryAccessAligned, uint32(n.Align()))
}

func (l *lowering) store(n *kernel.Node) {
	l.m.Do(spirv.OpStore, l.address(n), l.value(n.Args()[1]), spirv.MemoryAccessAligned, uint32(n.Align()))
}

// copy loads and stores: nothing is under way.
func (l *lowering) copy(n *kernel.Node) {
	view, _ := n.View()
	v := l.m.Emit(spirv.OpLoad, l.typ(view), l.address(n), spirv.MemoryAccessAligned, uint32(n.Align()))
	t := l.f.Arrays()[n.Array()].Elem()
	for i := 0; i < view.Lanes(); i += t.Lanes() {
		part := v
		if t != view {
			var words []spirv.ID
			for e := range t.Lanes() {
				words = append(words, l.m.Emit(spirv.OpCompositeExtract, l.typ(kernel.U32), v, spirv.ID(i+e)))
			}
			if part = words[0]; t.Lanes() > 1 {
				part = l.m.Emit(spirv.OpCompositeConstruct, l.typ(t), words...)
			}
		}
		at := l.value(n.Args()[1])
		if i > 0 {
			at = l.m.Emit(spirv.OpIAdd, l.typ(kernel.U32), at, l.uint(uint32(i/t.Lanes())))
		}
		to := l.m.Emit(spirv.OpAccessChain, l.pointer(spirv.StorageClassWorkgroup, l.typ(t)), l.shared[n.Array()], at)
		l.m.Do(spirv.OpStore, to, part, spirv.MemoryAccessNonPrivatePointer)
	}
}

func (l *lowering) load16(n *kernel.Node) {
	half := l.m.Emit(spirv.OpLoad, l.typ(kernel.U16), l.address(n), spirv.MemoryAccessAligned, uint32(n.Align()))
	l.values[n] = l.m.Emit(spirv.OpUConvert, l.typ(n.Type()), half)
}

func (l *lowering) store16(n *kernel.Node) {
	half := l.m.Emit(spirv.OpUConvert, l.typ(kernel.U16), l.value(n.Args()[1]))
	l.m.Do(spirv.OpStore, l.address(n), half, spirv.MemoryAccessAligned, uint32(n.Align()))
}

var atomics = map[kernel.Op]spirv.Op{
	kernel.OpAtomicAdd: spirv.OpAtomicIAdd, kernel.OpSharedAdd: spirv.OpAtomicIAdd,
}

// atomic orders nothing but itself. In buffers its scope is the queue family,
// which needs no feature, unlike the device.
func (l *lowering) atomic(n *kernel.Node) {
	var at spirv.ID
	scope := spirv.ScopeQueueFamily
	if n.Op() == kernel.OpSharedAdd {
		at, scope = l.element(n, 1), spirv.ScopeWorkgroup
	} else {
		at = l.address(n)
	}
	l.values[n] = l.m.Emit(atomics[n.Op()], l.typ(kernel.U32), at, l.uint(scope),
		l.uint(spirv.MemorySemanticsRelaxed), l.value(n.Args()[1]))
}

// element returns a pointer into a shared array: of the first indices operands.
func (l *lowering) element(n *kernel.Node, indices int) spirv.ID {
	t := l.f.Arrays()[n.Imm()].Elem()
	if indices > 1 {
		t = t.Elem()
	}
	operands := append([]spirv.ID{l.shared[n.Imm()]}, l.ids(n.Args()[:indices])...)
	return l.m.Emit(spirv.OpAccessChain, l.pointer(spirv.StorageClassWorkgroup, l.typ(t)), operands...)
}

func (l *lowering) sharedLoad(n *kernel.Node) {
	from := l.element(n, len(n.Args()))
	l.values[n] = l.m.Emit(spirv.OpLoad, l.typ(n.Type()), from, spirv.MemoryAccessNonPrivatePointer)
}

func (l *lowering) sharedStore(n *kernel.Node) {
	last := len(n.Args()) - 1
	l.m.Do(spirv.OpStore, l.element(n, last), l.value(n.Args()[last]), spirv.MemoryAccessNonPrivatePointer)
}

// tableLanes is how many words of a table lie in an element of its array: drivers compare all elements with each other,
// which takes RADV 0.1 s for an array of 1024.
const tableLanes = 4

// table reads constants.
func (l *lowering) table(n *kernel.Node) {
	u32, vector := l.typ(kernel.U32), l.typ(kernel.U32.Vec(tableLanes))
	i := l.value(n.Args()[0])
	element := l.m.Emit(spirv.OpUDiv, u32, i, l.uint(tableLanes))
	at := l.m.Emit(spirv.OpAccessChain, l.pointer(spirv.StorageClassFunction, vector), l.tables[n.Imm()], element)
	lane := l.m.Emit(spirv.OpBitwiseAnd, u32, i, l.uint(tableLanes-1))
	l.values[n] = l.m.Emit(spirv.OpVectorExtractDynamic, u32, l.m.Emit(spirv.OpLoad, vector, at), lane)
}

// constants gives local variables the words of tables, which drivers keep in memory of their own.
func (l *lowering) constants() {
	for _, t := range l.f.Tables() {
		vector := l.typ(kernel.U32.Vec(tableLanes))
		var elements []spirv.ID
		for i := 0; i < len(t.Words); i += tableLanes {
			words := make([]spirv.ID, tableLanes)
			for j := range words {
				words[j] = l.uint(0)
				if i+j < len(t.Words) {
					words[j] = l.uint(t.Words[i+j])
				}
			}
			elements = append(elements, l.m.Constant(spirv.OpConstantComposite, vector, words...))
		}
		array := l.m.Type(spirv.OpTypeArray, vector, l.uint(uint32(len(elements))))
		id := l.m.Local(l.pointer(spirv.StorageClassFunction, array))
		l.m.Do(spirv.OpStore, id, l.m.Constant(spirv.OpConstantComposite, array, elements...))
		l.tables = append(l.tables, id)
	}
}

func (l *lowering) variable(n *kernel.Node) {
	id := l.m.Local(l.pointer(spirv.StorageClassFunction, l.typ(n.Type())))
	l.m.Do(spirv.OpStore, id, l.value(n.Args()[0]))
	l.values[n] = id
}

func (l *lowering) get(n *kernel.Node) {
	l.values[n] = l.m.Emit(spirv.OpLoad, l.typ(n.Type()), l.value(n.Args()[0]))
}

func (l *lowering) set(n *kernel.Node) {
	l.m.Do(spirv.OpStore, l.value(n.Args()[0]), l.value(n.Args()[1]))
}

// ordered are the semantics of what orders accesses to memory.
const ordered = spirv.MemorySemanticsAcquireRelease | spirv.MemorySemanticsMakeAvailable | spirv.MemorySemanticsMakeVisible

func (l *lowering) barrier(n *kernel.Node) {
	scope := l.uint(spirv.ScopeWorkgroup)
	if n.Op() == kernel.OpSubgroupBarrier {
		scope = l.uint(spirv.ScopeSubgroup)
	}
	semantics := ordered | spirv.MemorySemanticsWorkgroupMemory
	if n.Imm() != 0 {
		semantics |= spirv.MemorySemanticsUniformMemory
	}
	l.m.Do(spirv.OpControlBarrier, scope, scope, l.uint(semantics))
}

// fence has the scope of atomic.
func (l *lowering) fence(*kernel.Node) {
	l.m.Do(spirv.OpMemoryBarrier, l.uint(spirv.ScopeQueueFamily), l.uint(ordered|spirv.MemorySemanticsUniformMemory))
}

// branch lowers an if.
func (l *lowering) branch(n *kernel.Node) {
	then, merge := l.m.NewID(), l.m.NewID()
	otherwise := merge
	if len(n.Regions()) > 1 {
		otherwise = l.m.NewID()
	}
	l.selection(n.Args()[0], then, otherwise, merge)
	for i, label := range []spirv.ID{then, otherwise}[:len(n.Regions())] {
		l.m.Do(spirv.OpLabel, label)
		l.region(n.Regions()[i])
		l.m.Do(spirv.OpBranch, merge)
	}
	l.m.Do(spirv.OpLabel, merge)
}

func (l *lowering) selection(cond *kernel.Node, then, otherwise, merge spirv.ID) {
	c := l.value(cond)
	l.m.Do(spirv.OpSelectionMerge, merge, spirv.SelectionControlNone)
	l.m.Do(spirv.OpBranchConditional, c, then, otherwise)
}

// loop lowers what fors and whiles have in common: header, condition, body and
// continue blocks, with what differs in the callbacks.
func (l *lowering) loop(control spirv.LoopControl, cond func() spirv.ID, body, next func()) {
	m := l.m
	test, inner, again, merge := m.NewID(), m.NewID(), m.NewID(), m.NewID()
	header := m.NewID()
	m.Do(spirv.OpBranch, header)
	m.Do(spirv.OpLabel, header)
	m.Do(spirv.OpLoopMerge, merge, again, control)
	m.Do(spirv.OpBranch, test)

	m.Do(spirv.OpLabel, test)
	c := cond()
	m.Do(spirv.OpBranchConditional, c, inner, merge)
	m.Do(spirv.OpLabel, inner)
	body()
	m.Do(spirv.OpBranch, again)
	m.Do(spirv.OpLabel, again)
	next()
	m.Do(spirv.OpBranch, header)

	m.Do(spirv.OpLabel, merge)
}

var loopControls = [...]spirv.LoopControl{spirv.LoopControlNone, spirv.LoopControlUnroll, spirv.LoopControlDontUnroll}

// forLoop keeps the counter in a local variable, which spirv-opt and drivers
// turn into a phi.
func (l *lowering) forLoop(n *kernel.Node) {
	m, u32, body := l.m, l.typ(kernel.U32), n.Regions()[0]
	lo, hi, step := l.value(n.Args()[0]), l.value(n.Args()[1]), l.value(n.Args()[2])
	counter := m.Local(l.pointer(spirv.StorageClassFunction, u32))
	m.Do(spirv.OpStore, counter, lo)
	var i spirv.ID
	l.loop(loopControls[body.Hint()], func() spirv.ID {
		i = m.Emit(spirv.OpLoad, u32, counter)
		l.values[body.Param()] = i
		return m.Emit(spirv.OpULessThan, l.typ(kernel.Bool), i, hi)
	}, func() { l.region(body) }, func() {
		m.Do(spirv.OpStore, counter, m.Emit(spirv.OpIAdd, u32, i, step))
	})
}

func (l *lowering) returnIf(n *kernel.Node) {
	leave, stay := l.m.NewID(), l.m.NewID()
	l.selection(n.Args()[0], leave, stay, stay)
	l.m.Do(spirv.OpLabel, leave)
	l.m.Do(spirv.OpReturn)
	l.m.Do(spirv.OpLabel, stay)
}

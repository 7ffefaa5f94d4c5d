package kernel

import "github.com/zincc-dev/zincc/spirv"

func (l *lowering) region(r *region) {
	for _, n := range r.nodes {
		l.node(n)
	}
}

// node lowers one operation. Those that are more than a row of a table are in
// special.
func (l *lowering) node(n *node) {
	if row, ok := plain[n.op]; ok {
		l.values[n] = l.instr(n, row[n.args[0].typ.Elem()])
		return
	}
	if g, ok := groups[n.op]; ok {
		l.values[n] = l.group(n, g)
		return
	}
	special[n.op](l, n)
}

// instr emits an instruction with the operands of n.
func (l *lowering) instr(n *node, in instr) spirv.ID {
	args := l.ids(n.args)
	if in.op == spirv.OpExtInst {
		args = append([]spirv.ID{l.glsl, in.glsl}, args...)
	}
	id := l.m.Emit(in.op, l.typ(n.typ), args...)
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

func (l *lowering) group(n *node, g group) spirv.ID {
	kind := void
	if len(n.args) > 0 {
		kind = n.args[0].typ.Elem()
	}
	operands := []uint32{l.uint(spirv.ScopeSubgroup)}
	if g.operation {
		operands = append(operands, g.how)
	}
	return l.m.Emit(g.instr[kind].op, l.typ(n.typ), append(operands, l.ids(n.args)...)...)
}

// special has the operations that plain and groups have not.
var special [numOps]func(l *lowering, n *node)

func init() {
	special = [numOps]func(l *lowering, n *node){
		opBuiltin:         (*lowering).builtin,
		opVec:             (*lowering).vec,
		opElem:            (*lowering).elem,
		opConvert:         (*lowering).convert,
		opFMAHalf:         (*lowering).fmaHalf,
		opPairHalves:      (*lowering).pairHalves,
		opDotI8:           (*lowering).dot,
		opDotU8:           (*lowering).dot,
		opAddress:         (*lowering).addressOf,
		opLoad:            (*lowering).load,
		opLoad16:          (*lowering).load16,
		opStore16:         (*lowering).store16,
		opStore:           (*lowering).store,
		opAtomicAdd:       (*lowering).atomic,
		opAtomicMax:       (*lowering).atomic,
		opAtomicLoad:      (*lowering).atomicLoad,
		opSharedLoad:      (*lowering).sharedLoad,
		opSharedElem:      (*lowering).sharedLoad,
		opSharedStore:     (*lowering).sharedStore,
		opSharedSet:       (*lowering).sharedStore,
		opSharedAdd:       (*lowering).atomic,
		opSharedMax:       (*lowering).atomic,
		opVar:             (*lowering).variable,
		opVarGet:          (*lowering).get,
		opVarSet:          (*lowering).set,
		opBarrier:         (*lowering).barrier,
		opFence:           (*lowering).fence,
		opSubgroupBarrier: (*lowering).barrier,
		opMatFill:         (*lowering).matFill,
		opMatPairs:        (*lowering).matPairs,
		opMatLoad:         (*lowering).matLoad,
		opMatStore:        (*lowering).matStore,
		opMatMulAdd:       (*lowering).matMulAdd,
		opMatTimes:        (*lowering).matTimes,
		opMatConvert:      (*lowering).matConvert,
		opMatLength:       (*lowering).matLength,
		opVarElem:         (*lowering).varElem,
		opVarSetElem:      (*lowering).varSetElem,
		opIf:              (*lowering).branch,
		opFor:             (*lowering).forLoop,
		opWhile:           (*lowering).whileLoop,
		opBreakIf:         (*lowering).breakIf,
		opReturnIf:        (*lowering).returnIf,
	}
}

func (l *lowering) builtin(n *node) {
	l.values[n] = l.input(builtin(n.imm))
}

// input loads what the device says of a lane's place.
func (l *lowering) input(b builtin) spirv.ID {
	in := inputs[b]
	typ := l.typ(U32)
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
		id = l.m.Emit(spirv.OpCompositeExtract, l.typ(U32), id, in.dim)
	}
	return id
}

func (l *lowering) vec(n *node) {
	l.values[n] = l.m.Emit(spirv.OpCompositeConstruct, l.typ(n.typ), l.ids(n.args)...)
}

func (l *lowering) elem(n *node) {
	v, i := n.args[0], n.args[1]
	if i.op == opConst {
		l.values[n] = l.m.Emit(spirv.OpCompositeExtract, l.typ(n.typ), l.value(v), i.imm)
		return
	}
	l.values[n] = l.m.Emit(spirv.OpVectorExtractDynamic, l.typ(n.typ), l.value(v), l.value(i))
}

func (l *lowering) convert(n *node) {
	o := conversions[fromTo{n.args[0].typ.Elem(), n.typ.Elem()}]
	l.values[n] = l.m.Emit(o, l.typ(n.typ), l.value(n.args[0]))
}

func (l *lowering) fmaHalf(n *node) {
	pair := l.m.Type(spirv.OpTypeVector, l.typ(F16), 2)
	operands := []uint32{l.glsl, spirv.GLSLFma}
	for _, id := range l.ids(n.args) {
		operands = append(operands, l.m.Emit(spirv.OpBitcast, pair, id))
	}
	id := l.m.Emit(spirv.OpExtInst, pair, operands...)
	l.m.Decorate(id, spirv.DecorationNoContraction)
	l.values[n] = l.m.Emit(spirv.OpBitcast, l.typ(n.typ), id)
}

func (l *lowering) pairHalves(n *node) {
	pair := l.m.Type(spirv.OpTypeVector, l.typ(F16), 2)
	x, y := l.m.Emit(spirv.OpBitcast, pair, l.value(n.args[0])), l.m.Emit(spirv.OpBitcast, pair, l.value(n.args[1]))
	l.values[n] = l.m.Emit(spirv.OpBitcast, l.typ(n.typ), l.m.Emit(spirv.OpVectorShuffle, pair, x, y, n.imm, n.imm+2))
}

func (l *lowering) dot(n *node) {
	op := spirv.OpSDot
	if n.op == opDotU8 {
		op = spirv.OpSUDot
	}
	l.m.Capability(spirv.CapabilityDotProduct)
	l.m.Capability(spirv.CapabilityDotProductInput4x8BitPacked)
	l.m.Extension("SPV_KHR_integer_dot_product")
	l.values[n] = l.m.Emit(op, l.typ(n.typ), l.value(n.args[0]), l.value(n.args[1]),
		spirv.PackedVectorFormat4x8Bit)
}

// address returns a pointer to what a buffer access accesses.
func (l *lowering) address(n *node) spirv.ID {
	elem, _ := viewOf(n)
	pointer := l.pointer(spirv.StorageClassPhysicalStorageBuffer, l.typ(elem))
	buffer := l.pointers[bound{n.imm, elem}]
	if through := n.through(); through != nil {
		buffer = l.m.Emit(spirv.OpBitcast, l.view(view{elem, l.access(int(n.imm))}), l.value(through))
	}
	return l.m.Emit(spirv.OpAccessChain, pointer, buffer, l.uint(0), l.value(n.args[0]))
}

// addressOf returns the address of an argument as two words.
func (l *lowering) addressOf(n *node) { l.values[n] = l.pointers[bound{n.imm, void}] }

func (l *lowering) load(n *node) {
	l.values[n] = l.m.Emit(spirv.OpLoad, l.typ(n.typ), l.address(n), spirv.MemoryAccessAligned, uint32(n.align))
}

func (l *lowering) store(n *node) {
	l.m.Do(spirv.OpStore, l.address(n), l.value(n.args[1]), spirv.MemoryAccessAligned, uint32(n.align))
}

func (l *lowering) load16(n *node) {
	half := l.m.Emit(spirv.OpLoad, l.typ(u16), l.address(n), spirv.MemoryAccessAligned, uint32(n.align))
	l.values[n] = l.m.Emit(spirv.OpUConvert, l.typ(n.typ), half)
}

func (l *lowering) store16(n *node) {
	half := l.m.Emit(spirv.OpUConvert, l.typ(u16), l.value(n.args[1]))
	l.m.Do(spirv.OpStore, l.address(n), half, spirv.MemoryAccessAligned, uint32(n.align))
}

var atomics = map[op]spirv.Op{
	opAtomicAdd: spirv.OpAtomicIAdd, opSharedAdd: spirv.OpAtomicIAdd,
	opAtomicMax: spirv.OpAtomicUMax, opSharedMax: spirv.OpAtomicUMax,
}

// atomic orders nothing but itself. In buffers its scope is the queue family,
// which needs no feature, unlike the device.
func (l *lowering) atomic(n *node) {
	var at spirv.ID
	scope := spirv.ScopeQueueFamily
	if n.op == opSharedAdd || n.op == opSharedMax {
		at, scope = l.element(n, 1), spirv.ScopeWorkgroup
	} else {
		at = l.address(n)
	}
	l.values[n] = l.m.Emit(atomics[n.op], l.typ(U32), at, l.uint(scope),
		l.uint(spirv.MemorySemanticsRelaxed), l.value(n.args[1]))
}

func (l *lowering) atomicLoad(n *node) {
	l.values[n] = l.m.Emit(spirv.OpAtomicLoad, l.typ(U32), l.address(n),
		l.uint(spirv.ScopeQueueFamily), l.uint(spirv.MemorySemanticsRelaxed))
}

// element returns a pointer into a shared array: of the first indices operands.
func (l *lowering) element(n *node, indices int) spirv.ID {
	t := l.f.arrays[n.imm].elem
	if indices > 1 {
		t = t.Elem()
	}
	operands := append([]spirv.ID{l.shared[n.imm]}, l.ids(n.args[:indices])...)
	return l.m.Emit(spirv.OpAccessChain, l.pointer(spirv.StorageClassWorkgroup, l.typ(t)), operands...)
}

func (l *lowering) sharedLoad(n *node) {
	from := l.element(n, len(n.args))
	l.values[n] = l.m.Emit(spirv.OpLoad, l.typ(n.typ), from, spirv.MemoryAccessNonPrivatePointer)
}

func (l *lowering) sharedStore(n *node) {
	last := len(n.args) - 1
	l.m.Do(spirv.OpStore, l.element(n, last), l.value(n.args[last]), spirv.MemoryAccessNonPrivatePointer)
}

func (l *lowering) variable(n *node) {
	id := l.m.Local(l.pointer(spirv.StorageClassFunction, l.typ(n.typ)))
	l.m.Do(spirv.OpStore, id, l.value(n.args[0]))
	l.values[n] = id
}

func (l *lowering) get(n *node) {
	l.values[n] = l.m.Emit(spirv.OpLoad, l.typ(n.typ), l.value(n.args[0]))
}

func (l *lowering) set(n *node) {
	l.m.Do(spirv.OpStore, l.value(n.args[0]), l.value(n.args[1]))
}

// ordered are the semantics of what orders accesses to memory.
const ordered = spirv.MemorySemanticsAcquireRelease | spirv.MemorySemanticsMakeAvailable | spirv.MemorySemanticsMakeVisible

func (l *lowering) barrier(n *node) {
	scope := l.uint(spirv.ScopeWorkgroup)
	if n.op == opSubgroupBarrier {
		scope = l.uint(spirv.ScopeSubgroup)
	}
	semantics := ordered | spirv.MemorySemanticsWorkgroupMemory
	if n.imm != 0 {
		semantics |= spirv.MemorySemanticsUniformMemory
	}
	l.m.Do(spirv.OpControlBarrier, scope, scope, l.uint(semantics))
}

// fence has the scope of atomic.
func (l *lowering) fence(*node) {
	l.m.Do(spirv.OpMemoryBarrier, l.uint(spirv.ScopeQueueFamily), l.uint(ordered|spirv.MemorySemanticsUniformMemory))
}

// branch lowers an if.
func (l *lowering) branch(n *node) {
	then, merge := l.m.NewID(), l.m.NewID()
	otherwise := merge
	if len(n.regions) > 1 {
		otherwise = l.m.NewID()
	}
	l.selection(n.args[0], then, otherwise, merge)
	for i, label := range []spirv.ID{then, otherwise}[:len(n.regions)] {
		l.m.Do(spirv.OpLabel, label)
		l.region(n.regions[i])
		l.m.Do(spirv.OpBranch, merge)
	}
	l.m.Do(spirv.OpLabel, merge)
}

func (l *lowering) selection(cond *node, then, otherwise, merge spirv.ID) {
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
	l.loopMerges = append(l.loopMerges, merge)

	m.Do(spirv.OpLabel, test)
	c := cond()
	m.Do(spirv.OpBranchConditional, c, inner, merge)
	m.Do(spirv.OpLabel, inner)
	body()
	m.Do(spirv.OpBranch, again)
	m.Do(spirv.OpLabel, again)
	next()
	m.Do(spirv.OpBranch, header)

	l.loopMerges = l.loopMerges[:len(l.loopMerges)-1]
	m.Do(spirv.OpLabel, merge)
}

var loopControls = [...]spirv.LoopControl{spirv.LoopControlNone, spirv.LoopControlUnroll, spirv.LoopControlDontUnroll}

// forLoop keeps the counter in a local variable, which spirv-opt and drivers
// turn into a phi.
func (l *lowering) forLoop(n *node) {
	m, u32, body := l.m, l.typ(U32), n.regions[0]
	lo, hi, step := l.value(n.args[0]), l.value(n.args[1]), l.value(n.args[2])
	counter := m.Local(l.pointer(spirv.StorageClassFunction, u32))
	m.Do(spirv.OpStore, counter, lo)
	var i spirv.ID
	l.loop(loopControls[body.hint], func() spirv.ID {
		i = m.Emit(spirv.OpLoad, u32, counter)
		l.values[body.param] = i
		return m.Emit(spirv.OpULessThan, l.typ(Bool), i, hi)
	}, func() { l.region(body) }, func() {
		m.Do(spirv.OpStore, counter, m.Emit(spirv.OpIAdd, u32, i, step))
	})
}

func (l *lowering) whileLoop(n *node) {
	cond, body := n.regions[0], n.regions[1]
	l.loop(spirv.LoopControlNone, func() spirv.ID {
		l.region(cond)
		return l.value(cond.result)
	}, func() { l.region(body) }, func() {})
}

func (l *lowering) breakIf(n *node) {
	leave, stay := l.m.NewID(), l.m.NewID()
	l.selection(n.args[0], leave, stay, stay)
	l.m.Do(spirv.OpLabel, leave)
	l.m.Do(spirv.OpBranch, l.loopMerges[len(l.loopMerges)-1])
	l.m.Do(spirv.OpLabel, stay)
}

func (l *lowering) returnIf(n *node) {
	leave, stay := l.m.NewID(), l.m.NewID()
	l.selection(n.args[0], leave, stay, stay)
	l.m.Do(spirv.OpLabel, leave)
	l.m.Do(spirv.OpReturn)
	l.m.Do(spirv.OpLabel, stay)
}

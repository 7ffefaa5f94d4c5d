package kernel

// Buffer is an argument of the kernel. It has no element type: each access
// says how it reads the bytes. An index counts elements of the access's type
// from the start of the buffer, and is less than 2^31; accesses are aligned to
// the size of their type. Nothing is checked against the buffer's size.
type Buffer struct {
	b       *Builder
	index   int
	access  Access
	address *Node // of one of several; nil for the argument of the index
	ahead   bool  // loads and copies are as Ahead says
}

// Ahead returns the buffer for loads and copies that do not wait for writers: if another lane
// may be writing the word, the value is undefined, and the kernel must not use it. Run returns
// arbitrary bits then. A load of what nobody writes stays before the next SubgroupHint so: a driver's compiler moves
// others behind products, where the next ones wait for them.
func (m *Buffer) Ahead() *Buffer {
	early := *m
	early.ahead = true
	return &early
}

// Among returns buffer which of a list, chosen at run time; which is less than the list's length. All must have
// the same Access. A kernel that does the same with one of several arguments
// then has the code once.
func (b *Builder) Among(list []*Buffer, which Operand) *Buffer {
	first := list[0]
	chosen := first.pointer()
	for i, m := range list[1:] {
		if m.access != first.access {
			b.fail("among: arguments %q and %q are declared %v and %v", b.f.Args[first.index].Name, b.f.Args[m.index].Name, first.access, m.access)
		}
		chosen = b.Select(b.Eq(Value{b.typed(OpAddress, which, U32)}, i+1), m.pointer(), chosen)
	}
	return &Buffer{b: b, index: first.index, access: first.access, address: chosen.n}
}

// pointer returns the buffer's address.
func (m *Buffer) pointer() Value {
	if m.address != nil {
		return m.b.visible(Value{m.address})
	}
	return m.b.add(&Node{op: OpAddress, typ: U32.Vec(2), imm: uint32(m.index)})
}

// at returns the operands of an access.
func (m *Buffer) at(args ...*Node) []*Node {
	if m.address != nil {
		args = append(args, m.b.visible(Value{m.address}).n)
	}
	return args
}

// bufferOperands are those of an access to an argument of its own.
var bufferOperands = map[Op]int{OpLoad: 1, OpStore: 2, OpLoad16: 1, OpStore16: 2, OpAtomicAdd: 2, OpPrefetch: 1, OpBulk: 6, OpCopy: 2}

// through returns the address that a buffer access goes through, nil if it is the argument's.
func (n *Node) through() *Node {
	if count := bufferOperands[n.op]; len(n.args) > count {
		return n.args[count]
	}
	return nil
}

// Load returns element i of the buffer seen as an array of t: U32, I32, F32 or a
// vector of them (8 or 16 bytes, one access).
func (m *Buffer) Load(t Type, i Operand) Value {
	m.check(OpLoad, t, Read)
	return m.b.add(&Node{op: OpLoad, typ: t, imm: uint32(m.index), align: t.Size(), ahead: m.ahead, args: m.at(m.b.typed(OpLoad, i, U32))})
}

// Store writes v as element i of the buffer seen as an array of v's type.
func (m *Buffer) Store(i Operand, v Value) {
	v = m.b.visible(v)
	m.check(OpStore, v.Type(), Write)
	m.b.add(&Node{op: OpStore, imm: uint32(m.index), align: v.Type().Size(), args: m.at(m.b.typed(OpStore, i, U32), v.n)})
}

// Load16 returns element i of the buffer seen as an array of 16 bits, in the lower half
// of a U32. Load16 and Store16 need the features shaderInt16 and storageBuffer16BitAccess.
func (m *Buffer) Load16(i Operand) Value {
	m.check(OpLoad16, U32, Read)
	m.b.need16()
	return m.b.add(&Node{op: OpLoad16, typ: U32, imm: uint32(m.index), align: 2, ahead: m.ahead, args: m.at(m.b.typed(OpLoad16, i, U32))})
}

// Store16 writes the lower half of the U32 v as element i of the buffer seen as an array
// of 16 bits.
func (m *Buffer) Store16(i, v Operand) {
	m.check(OpStore16, U32, Write)
	m.b.need16()
	m.b.add(&Node{op: OpStore16, imm: uint32(m.index), align: 2,
		args: m.at(m.b.typed(OpStore16, i, U32), m.b.typed(OpStore16, v, U32))})
}

func (b *Builder) need16() {
	b.need("shaderInt16")
	b.need("storageBuffer16BitAccess")
}

// AtomicAdd adds v to element i of the buffer seen as an array of U32 and returns
// what was there. The order between lanes is not defined, so it is for counters,
// not for sums of floats.
func (m *Buffer) AtomicAdd(i, v Operand) Value { return m.atomic(OpAtomicAdd, i, v) }

// Prefetch asks the cache for the line with element i of the buffer seen as an array of U32; the element may lie beyond
// the buffer. The kernel will load it soon, or store to it if it only writes the buffer. Devices may ignore it.
func (m *Buffer) Prefetch(i Operand) {
	m.b.add(&Node{op: OpPrefetch, imm: uint32(m.index), align: 4, args: m.at(m.b.typed(OpPrefetch, i, U32))})
}

func (m *Buffer) atomic(o Op, i, v Operand) Value {
	m.check(o, U32, ReadWrite)
	return m.b.add(&Node{op: o, typ: U32, imm: uint32(m.index), align: 4,
		args: m.at(m.b.typed(o, i, U32), m.b.typed(o, v, U32))})
}

func (m *Buffer) check(o Op, t Type, want Access) {
	name := m.b.f.Args[m.index].Name
	switch {
	case m.access&want != want:
		m.b.fail("%s: argument %q is declared %v", ops[o].name, name, m.access)
	case !t.inMemory():
		m.b.fail("%s: argument %q as %v", ops[o].name, name, t)
	}
}

// Array is memory shared by the lanes of a workgroup. Its content is undefined at
// first; what one lane writes, others see after a Barrier.
type Array struct {
	b      *Builder
	index  int
	elem   Type
	length *Node
}

// Shared declares an array of n elements of type t: U32, I32, F32 or a vector of
// them. n is a Go int or a Value known at specialization time.
func (b *Builder) Shared(t Type, n Operand) *Array {
	if !t.inMemory() {
		b.fail("shared array of %v", t)
		t = U32
	}
	length := b.static("length of a shared array", n)
	if length == nil {
		length = b.constant(U32, 1).n
	}
	a := &Array{b: b, index: len(b.f.arrays), elem: t, length: length}
	b.f.arrays = append(b.f.arrays, a)
	return a
}

// Load returns element i.
func (a *Array) Load(i Operand) Value {
	return a.access(OpSharedLoad, a.elem, a.b.typed(OpSharedLoad, i, U32))
}

// Store writes element i.
func (a *Array) Store(i, v Operand) {
	a.access(OpSharedStore, Void, a.b.typed(OpSharedStore, i, U32), a.b.typed(OpSharedStore, v, a.elem))
}

// LoadElem returns element e of the vector i of an array of vectors.
func (a *Array) LoadElem(i, e Operand) Value {
	a.vector(OpSharedElem)
	return a.access(OpSharedElem, a.elem.Elem(), a.b.typed(OpSharedElem, i, U32), a.b.typed(OpSharedElem, e, U32))
}

// StoreElem writes element e of the vector i of an array of vectors.
func (a *Array) StoreElem(i, e, v Operand) {
	a.vector(OpSharedSet)
	a.access(OpSharedSet, Void, a.b.typed(OpSharedSet, i, U32), a.b.typed(OpSharedSet, e, U32),
		a.b.typed(OpSharedSet, v, a.elem.Elem()))
}

// AtomicAdd adds v to element i of an array of U32 and returns what was there.
func (a *Array) AtomicAdd(i, v Operand) Value { return a.atomic(OpSharedAdd, i, v) }

func (a *Array) vector(o Op) {
	if a.elem.Lanes() == 1 {
		a.b.fail("%s of an array of %v", ops[o].name, a.elem)
	}
}

func (a *Array) atomic(o Op, i, v Operand) Value {
	if a.elem != U32 {
		a.b.fail("%s of an array of %v", ops[o].name, a.elem)
	}
	return a.access(o, U32, a.b.typed(o, i, U32), a.b.typed(o, v, U32))
}

func (a *Array) access(o Op, t Type, args ...*Node) Value {
	return a.b.add(&Node{op: o, typ: t, imm: uint32(a.index), args: args})
}

// Var is a mutable local of one lane. Loops carry it from one iteration to
// the next, and ifs can change it.
type Var struct {
	b *Builder
	n *Node
}

// Var declares a local of type t with an initial value.
func (b *Builder) Var(t Type, init Operand) *Var {
	return &Var{b: b, n: b.add(&Node{op: OpVar, typ: t, args: []*Node{b.typed(OpVar, init, t)}}).n}
}

// Get returns the present value.
func (v *Var) Get() Value {
	return v.b.add(&Node{op: OpVarGet, typ: v.n.typ, args: []*Node{v.b.visible(Value{v.n}).n}})
}

// Set replaces the value.
func (v *Var) Set(x Operand) {
	v.b.visible(Value{v.n})
	v.b.add(&Node{op: OpVarSet, args: []*Node{v.n, v.b.typed(OpVarSet, x, v.n.typ)}})
}

package kernel

// Copies of many elements from buffers into shared arrays that go on while the lanes do (cp.async.bulk and mbarriers of
// NVIDIA's Hopper). Lanes wait for them by slot.

// Arrivals are slots, each with the copies that are to arrive there, by turns.
type Arrivals struct {
	b     *Builder
	array *Array // of the slots that wait for copies, then of those that wait for subgroups
	slots int
}

// Arrivals declares so many slots. All lanes of the workgroup come to it, as to a Barrier.
func (b *Builder) Arrivals(slots int) *Arrivals {
	b.f.Bulk = true
	s := &Arrivals{b, b.Shared(U32.Vec(2), 2*slots), slots}
	b.add(&Node{op: OpArrivals, imm: uint32(s.array.index), align: slots})
	return s
}

// Copy begins to copy n elements of the buffer from element j on, seen as an array of U32x4, to an array of
// these, from element i on. A lane begins it for all. Nobody may touch those of the array until the turn of the slot, which the copy is, has been waited
// for; a turn begins when that before has been waited for.
func (s *Arrivals) Copy(slot Operand, a *Array, i Operand, m *Buffer, j Operand, n int) {
	const o = OpBulk
	b := s.b
	m.check(o, U32.Vec(4), Read)
	if a.elem != U32.Vec(4) || n < 1 || n >= 1<<16 {
		b.fail("%s of %d elements into an array of %v", ops[o].name, n, a.elem)
		return
	}
	number := func(v int) *Node { return b.constant(U32, uint32(v)).n }
	b.add(&Node{op: o, imm: uint32(m.index), align: 16, array: a, args: m.at(b.typed(o, j, U32), b.typed(o, i, U32), b.typed(o, slot, U32),
		number(s.array.index), number(n))})
}

// Wait waits for the copy of a slot's turn: for its first and every other one with 0 for the turn, else with 1. Then all lanes see
// what it has brought. All lanes of the workgroup come to it, with the same slot and turn.
func (s *Arrivals) Wait(slot, turn Operand) {
	const o = OpArrived
	s.b.add(&Node{op: o, imm: uint32(s.array.index), args: []*Node{s.b.typed(o, slot, U32), s.b.typed(o, turn, U32)}})
}

// Done says that the subgroup is done with what the slot's last copy has brought. One lane says so for all: in PTX
// they must have come together behind their last reads, as products of matrices do.
func (s *Arrivals) Done(slot Operand) {
	s.b.add(&Node{op: OpDone, imm: uint32(s.array.index), align: s.slots, args: []*Node{s.b.typed(OpDone, slot, U32)}})
}

// Free waits until a slot is free for the copy of a turn, 0 and 1 as of Wait: until all subgroups are done with the one before, if there
// was one. The lane that begins the copy waits.
func (s *Arrivals) Free(slot, turn Operand) {
	const o = OpFree
	s.b.add(&Node{op: o, imm: uint32(s.array.index), align: s.slots, args: []*Node{s.b.typed(o, slot, U32), s.b.typed(o, turn, U32)}})
}

// Bulk is what an OpBulk copies.
type Bulk struct {
	At, Slot *Node // element of the array, slot
	Arrivals int   // the array of the slots
	Elements int   // of 16 bytes
}

// Bulk returns what an OpBulk copies.
func (n *Node) Bulk() Bulk {
	return Bulk{At: n.args[1], Slot: n.args[2], Arrivals: int(n.args[3].imm), Elements: int(n.args[4].imm)}
}

package kernel

// Copies of many elements from buffers into shared arrays that go on while the lanes do (cp.async.bulk and mbarriers of
// NVIDIA's Hopper). Lanes wait for them by slot.

// Arrivals are the slots of bulk copies. The copies of a slot take turns.
type Arrivals struct {
	b     *Builder
	array *Array // of the slots that wait for copies, then of those that wait for subgroups
	slots int
}

// Arrivals declares n slots. All lanes of the workgroup must reach it, as a Barrier.
func (b *Builder) Arrivals(slots int) *Arrivals {
	b.f.Bulk = true
	s := &Arrivals{b, b.Shared(U32.Vec(2), 2*slots), slots}
	b.add(&Node{op: OpArrivals, imm: uint32(s.array.index), align: slots})
	return s
}

// Copy starts to copy n elements of the buffer, seen as an array of U32x4, from element j on, to an array of U32x4,
// from element i on. One lane starts the copy for all. The copy is the slot's next turn: nobody may access these
// elements of the array until Wait has waited for that turn. A turn begins when Wait has waited for the turn before it.
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

// Wait waits for the copy of a slot's turn. turn is 0 for the first turn and every other one after it, else 1. After
// Wait all lanes see the copied elements. All lanes of the workgroup must reach it, with the same slot and turn.
func (s *Arrivals) Wait(slot, turn Operand) {
	const o = OpArrived
	s.b.add(&Node{op: o, imm: uint32(s.array.index), args: []*Node{s.b.typed(o, slot, U32), s.b.typed(o, turn, U32)}})
}

// Done says that the subgroup no longer needs the elements of the slot's last copy. One lane says so for all. In PTX
// the lanes must have converged after their last reads, as matrix products do.
func (s *Arrivals) Done(slot Operand) {
	s.b.add(&Node{op: OpDone, imm: uint32(s.array.index), align: s.slots, args: []*Node{s.b.typed(OpDone, slot, U32)}})
}

// Free waits until a slot is free for the copy of a turn (0 or 1, as in Wait), that is, until all subgroups are done
// with the turn before it, if there was one. The lane that starts the copy waits.
func (s *Arrivals) Free(slot, turn Operand) {
	const o = OpFree
	s.b.add(&Node{op: o, imm: uint32(s.array.index), align: s.slots, args: []*Node{s.b.typed(o, slot, U32), s.b.typed(o, turn, U32)}})
}

// Bulk describes the copy of an OpBulk.
type Bulk struct {
	At, Slot *Node // element of the array, slot
	Arrivals int   // the array of the slots
	Elements int   // of 16 bytes
}

// Bulk returns the copy of an OpBulk.
func (n *Node) Bulk() Bulk {
	return Bulk{At: n.args[1], Slot: n.args[2], Arrivals: int(n.args[3].imm), Elements: int(n.args[4].imm)}
}

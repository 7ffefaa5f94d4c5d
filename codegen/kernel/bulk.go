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

// Piece is a part of a copy: N elements of a buffer, seen as an array of U32x4, from element From on, go to an array
// from element To on, which begins at 16 bytes.
type Piece struct {
	Buffer   *Buffer
	From, To Operand
	N        int
}

// Copy starts to copy pieces to an array of vectors of U32. One lane starts the copy for all. The copy is the slot's
// next turn: no subgroup may access these elements of the array until it has waited for that turn with Wait. The
// subgroup that starts the copy has waited for the turn before, and some subgroup waits for each turn.
func (s *Arrivals) Copy(slot Operand, a *Array, pieces ...Piece) {
	const o = OpBulk
	b, all := s.b, 0
	for _, p := range pieces {
		p.Buffer.check(o, U32.Vec(4), Read)
		all += p.N
		if a.elem.Elem() != U32 || p.N < 1 || all >= 1<<16 {
			b.fail("%s of %d elements into an array of %v", ops[o].name, p.N, a.elem)
			return
		}
	}
	number := func(v int) *Node { return b.constant(U32, uint32(v)).n }
	for _, p := range pieces {
		b.add(&Node{op: o, imm: uint32(p.Buffer.index), align: 16, array: a, args: p.Buffer.at(b.typed(o, p.From, U32), b.typed(o, p.To, U32),
			b.typed(o, slot, U32), number(s.array.index), number(p.N), number(all))})
		all = 0
	}
}

// Wait waits for the copy of a slot's turn. turn is 0 for the first turn and every other one after it, else 1. After
// Wait the lanes of the subgroup see the copied elements. All of them must reach it, with the same slot and turn. Other
// subgroups need not, but one that waits for a turn has waited for those before it.
func (s *Arrivals) Wait(slot, turn Operand) {
	const o = OpArrived
	s.b.add(&Node{op: o, imm: uint32(s.array.index), args: []*Node{s.b.typed(o, slot, U32), s.b.typed(o, turn, U32)}})
}

// Done says that the subgroup, which has waited for the slot's last copy, no longer needs its elements. One lane says
// so for all. In PTX the lanes must have converged after their last reads, as matrix products do.
func (s *Arrivals) Done(slot Operand) {
	s.b.add(&Node{op: OpDone, imm: uint32(s.array.index), align: s.slots, args: []*Node{s.b.typed(OpDone, slot, U32)}})
}

// Free waits until a slot is free for the copy of a turn (0 or 1, as in Wait), that is, until all subgroups are done
// with the turn before it, if there was one. The lane that starts the copy waits.
func (s *Arrivals) Free(slot, turn Operand) {
	const o = OpFree
	s.b.add(&Node{op: o, imm: uint32(s.array.index), align: s.slots, args: []*Node{s.b.typed(o, slot, U32), s.b.typed(o, turn, U32)}})
}

// Bulk describes the piece of an OpBulk.
type Bulk struct {
	At, Slot *Node // element of the array, slot
	Arrivals int   // the array of the slots
	Elements int   // of 16 bytes
	All      int   // elements of all pieces of the copy, if this is its first one; else 0
}

// Bulk returns the piece of an OpBulk.
func (n *Node) Bulk() Bulk {
	number := func(i int) int { return int(n.args[i].imm) }
	return Bulk{At: n.args[1], Slot: n.args[2], Arrivals: number(3), Elements: number(4), All: number(5)}
}

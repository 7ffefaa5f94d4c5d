package kernel

// Gates are barriers in two halves. A subgroup reaches a gate when it has done what others wait for, and goes on; who
// comes to wait there waits until all subgroups have reached it. The turns of a gate follow one another.
type Gates struct {
	b     *Builder
	array *Array
}

// Gates declares n gates. All lanes of the workgroup must reach it, as a Barrier.
func (b *Builder) Gates(n int) *Gates {
	b.f.Bulk = true
	g := &Gates{b, b.Shared(U32.Vec(2), n)}
	b.add(&Node{op: OpGates, imm: uint32(g.array.index), align: n})
	return g
}

// Reach says that the lanes of the subgroup have come to here in the gate's turn. All lanes of the workgroup must come
// to it, but none waits.
func (g *Gates) Reach(gate int) {
	g.b.add(&Node{op: OpReach, imm: uint32(g.array.index), align: gate})
}

// Await waits until all subgroups have reached the gate in a turn: 0 for the first one and every other one after it,
// else 1. Then the lane sees what all lanes of the workgroup wrote to shared arrays before they reached it. All lanes
// must come to it, with the same turn. A subgroup waits for a turn before it reaches the gate in the next but one.
func (g *Gates) Await(gate int, turn Operand) {
	g.b.add(&Node{op: OpReached, imm: uint32(g.array.index), align: gate, args: []*Node{g.b.typed(OpReached, turn, U32)}})
}

package kernel

// Products of four subgroups with a matrix in shared memory (wgmma of NVIDIA's Hopper). Subgroups 4i to
// 4i+3 come to them together. Each has a matrix A of its own, and all have B in common. The products are
// made while the lanes go on.

// GroupSide is how many subgroups multiply together.
const GroupSide = 4

// GroupProduct is a product of 16x16 by 16xN: A, of F16, is the subgroup's own, as MatPairs makes it. Of B an
// element of an array of U32x4 has 8 neighbours of a column: those in columns 0 to N-1 begin at At, and
// stride elements on is the other half of each. At and stride are the same in the four subgroups.
type GroupProduct struct {
	A  Value
	At Operand
}

// MatGroupAdd adds products to sums, which are accumulators of 16x8: the columns of B from left to right, N is at most 256. Until
// MatGroupWait says that they are done nobody may write what is multiplied of the array, or read or set sums.
func (b *Builder) MatGroupAdd(sums []*Var, a *Array, stride Operand, products ...GroupProduct) {
	const o = OpMatGroupAdd
	b.f.Fragments, b.f.Groups = true, true
	if a.elem != U32.Vec(4) || len(sums) < 1 || len(sums) > 32 || len(products) < 1 {
		b.fail("%s of %d sums and %d products in an array of %v", ops[o].name, len(sums), len(products), a.elem)
		return
	}
	args := []*Node{b.typed(o, stride, U32)}
	for _, p := range products {
		if b.visible(p.A).Type() != F16.Matrix(16, 16, MatrixA) {
			b.fail("%s of %v", ops[o].name, p.A.Type())
		}
		args = append(args, p.A.n, b.typed(o, p.At, U32))
	}
	for _, s := range sums {
		if s.n.typ != F32.Matrix(16, 8, Accumulator) {
			b.fail("%s into %v", ops[o].name, s.n.typ)
		}
		args = append(args, b.visible(Value{s.n}).n)
	}
	b.add(&Node{op: o, imm: uint32(a.index), align: len(products), args: args})
}

// MatGroupWait waits until of the calls of MatGroupAdd no more than the last left are under way.
func (b *Builder) MatGroupWait(left int) {
	if left < 0 || left > 7 {
		b.fail("%s for %d", ops[OpMatGroupWait].name, left)
	}
	b.add(&Node{op: OpMatGroupWait, imm: uint32(left)})
}

// Group returns the operands of OpMatGroupAdd by what they are.
func (n *Node) Group() (stride *Node, a, at, sums []*Node) {
	for i := range n.align {
		a, at = append(a, n.args[1+2*i]), append(at, n.args[2+2*i])
	}
	return n.args[0], a, at, n.args[1+2*n.align:]
}

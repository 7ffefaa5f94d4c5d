package kernel

// Products of four subgroups with a matrix in shared memory (wgmma of NVIDIA's Hopper). Subgroups 4i to
// 4i+3 come to them together. Each has a matrix A of its own, and all have B in common. The products are
// made while the lanes go on.

// GroupSide is the number of subgroups that multiply together.
const GroupSide = 4

// GroupProduct is a product of 16x16 by 16xN. A, of F16, is a matrix of the subgroup, as MatPairs makes it, or is in
// the array from Rows on; B is in the array from At on. Rows and At are the same in the four subgroups.
type GroupProduct struct {
	A        Value
	Rows, At Operand
}

// GroupLines is the layout of the operands of MatGroup in an array of U32x4, which begins with a line. A line has 8
// elements of 8 neighbours each. Neighbours 8e to 8e+7 of line i are in element e^(i%8) of that line.
type GroupLines struct {
	// ByRow: a line is 64 columns of a row of B; the next 64 columns are Stride elements further. At is where a line
	// begins. Otherwise a line is a column of B, and At is the place of two elements, counted in order, of the first
	// column.
	ByRow  bool
	Stride int
	// Left: A is in the array, too. Lines are its rows, 16 for each subgroup, and Rows is the place of two elements of
	// the first row. Otherwise each subgroup has its own A.
	Left bool
}

// MatGroupAdd starts to add products to sums, accumulators of 16x8 for the columns of B from left to right; N is at
// most 256. An element of the array of U32x4 holds 8 neighbours of a column of B. The first halves of columns 0 to N-1
// begin at At; the second halves are stride elements further. Until MatGroupWait has waited for the products, nobody
// may write their operands in the array, or read or set sums.
func (b *Builder) MatGroupAdd(sums []*Var, a *Array, stride int, products ...GroupProduct) {
	b.matGroup(sums, a, stride, 0, products)
}

// MatGroup starts to add products to sums, or to set sums to them, as MatGroupAdd does, with operands in the layout
// lines.
func (b *Builder) MatGroup(sums []*Var, set bool, a *Array, l GroupLines, products ...GroupProduct) {
	b.f.Lines = true
	flags := uint32(groupLines)
	for flag, is := range map[uint32]bool{groupByRow: l.ByRow, groupLeft: l.Left, groupSet: set} {
		if is {
			flags |= flag
		}
	}
	b.matGroup(sums, a, l.Stride, flags, products)
}

// Flags of OpMatGroupAdd.
const (
	groupLines = 1 << iota
	groupByRow
	groupLeft
	groupSet
)

func (b *Builder) matGroup(sums []*Var, a *Array, stride int, flags uint32, products []GroupProduct) {
	const o = OpMatGroupAdd
	b.f.Fragments, b.f.Groups = true, true
	if a.elem != U32.Vec(4) || len(sums) < 1 || len(sums) > 32 || len(products) < 1 {
		b.fail("%s of %d sums and %d products in an array of %v", ops[o].name, len(sums), len(products), a.elem)
		return
	}
	args := []*Node{b.U32(uint32(stride)).n, b.U32(flags).n}
	for _, p := range products {
		switch {
		case flags&groupLeft != 0:
			args = append(args, b.typed(o, p.Rows, U32))
		case b.visible(p.A).Type() != F16.Matrix(16, 16, MatrixA):
			b.fail("%s of %v", ops[o].name, p.A.Type())
			return
		default:
			args = append(args, p.A.n)
		}
		args = append(args, b.typed(o, p.At, U32))
	}
	for _, s := range sums {
		if s.n.typ != F32.Matrix(16, 8, Accumulator) {
			b.fail("%s into %v", ops[o].name, s.n.typ)
		}
		args = append(args, b.visible(Value{s.n}).n)
	}
	b.add(&Node{op: o, imm: uint32(a.index), align: len(products), args: args})
}

// MatGroupWait waits until at most the last left calls of MatGroupAdd and MatGroup are under way.
func (b *Builder) MatGroupWait(left int) {
	if left < 0 || left > 7 {
		b.fail("%s for %d", ops[OpMatGroupWait].name, left)
	}
	b.add(&Node{op: OpMatGroupWait, imm: uint32(left)})
}

// Group describes an OpMatGroupAdd: for each product A, a matrix or its place, and the place of B; and the variables of
// the sums.
type Group struct {
	GroupLines
	Lines, Set  bool
	A, At, Sums []*Node
}

// Group returns the description of an OpMatGroupAdd.
func (n *Node) Group() Group {
	flags := n.args[1].imm
	g := Group{GroupLines{flags&groupByRow != 0, int(n.args[0].imm), flags&groupLeft != 0}, flags&groupLines != 0, flags&groupSet != 0, nil, nil, nil}
	rest := n.args[2:]
	for ; len(g.A) < n.align; rest = rest[2:] {
		g.A, g.At = append(g.A, rest[0]), append(g.At, rest[1])
	}
	g.Sums = rest
	return g
}

package ptx

import "github.com/zincc-dev/zincc/codegen/kernel"

// fuse finds the dot products that are used once, as a term of a sum: dp4a adds it.
func fuse(f *kernel.Func) map[*kernel.Node]bool {
	uses := map[*kernel.Node]int{}
	f.Body().Walk(func(n *kernel.Node) {
		for _, a := range n.Args() {
			uses[a]++
		}
	})
	fused := map[*kernel.Node]bool{}
	f.Body().Walk(func(n *kernel.Node) {
		if n.Op() != kernel.OpAdd || n.Type() != kernel.I32 {
			return
		}
		for _, a := range n.Args() {
			if isDot(a) && uses[a] == 1 {
				fused[a] = true
				return
			}
		}
	})
	return fused
}

func isDot(n *kernel.Node) bool { return n.Op() == kernel.OpDotI8 || n.Op() == kernel.OpDotU8 }

// sum lowers an addition that has a dot product as a term, and reports whether it was one.
func (l *lowering) sum(n *kernel.Node) bool {
	if n.Op() != kernel.OpAdd {
		return false
	}
	for i, a := range n.Args() {
		if l.fused[a] {
			l.values[n] = []operand{l.dp4a(a, l.scalar(n.Args()[1-i]))}
			return true
		}
	}
	return false
}

func (l *lowering) dot(n *kernel.Node) { l.values[n] = []operand{l.dp4a(n, number(0))} }

// dp4a adds a dot product to a number.
func (l *lowering) dp4a(n *kernel.Node, sum operand) operand {
	instr := "dp4a.s32.s32"
	if n.Op() == kernel.OpDotU8 {
		instr = "dp4a.s32.u32"
	}
	x, y := l.scalar(n.Args()[0]), l.scalar(n.Args()[1])
	return l.word(instr, "%s, %s, %s", x.as(kernel.U32), y.as(kernel.U32), sum.as(kernel.I32))
}

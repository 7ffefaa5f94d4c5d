package ptx

import "github.com/zincc-dev/zincc/codegen/kernel"

// mostUnrolled bounds the iterations of a loop that is written out.
const mostUnrolled = 64

// within lowers a region that lanes come to only where the condition holds.
func (l *lowering) within(r *kernel.Region, condition *kernel.Node) {
	outer := l.apart
	l.apart = outer || !l.uniform.is(condition)
	l.region(r)
	l.apart = outer
}

func (l *lowering) jump(c operand, to string) {
	switch {
	case !c.lit:
		l.do("@%s bra %s", c.reg, to)
		l.branched = true
	case c.bits != 0:
		l.do("bra %s", to)
	}
}

func (l *lowering) jumpUnless(c operand, to string) {
	switch {
	case !c.lit:
		l.do("@!%s bra %s", c.reg, to)
		l.branched = true
	case c.bits == 0:
		l.do("bra %s", to)
	}
}

func (l *lowering) branch(n *kernel.Node) {
	c := l.scalar(n.Args()[0])
	if c.lit {
		if i := int(1 - c.bits); i < len(n.Regions()) {
			l.region(n.Regions()[i])
		}
		return
	}
	otherwise, before := l.label(), l.waited
	l.jumpUnless(c, otherwise)
	l.within(n.Regions()[0], n.Args()[0])
	if len(n.Regions()) == 1 {
		l.mark(otherwise)
		l.waited = before
		return
	}
	end, first := l.label(), l.waited
	l.do("bra %s", end)
	l.mark(otherwise)
	l.waited = before
	l.within(n.Regions()[1], n.Args()[0])
	l.waited = l.waited && first
	l.mark(end)
}

// returnIf has loads that stand before it asked for before it is known who returns: the driver's compiler would move
// them behind it, but for a barrier of the subgroup, which becomes no instruction. Who returns has waited.
func (l *lowering) returnIf(n *kernel.Node) {
	c := l.scalar(n.Args()[0])
	if !c.lit && l.o.Overlap && !l.o.WaitFirst && l.together() {
		l.do("bar.warp.sync -1")
	}
	switch {
	case c.lit && c.bits == 0:
	case l.waited && c.lit:
		l.do("ret")
	case l.waited:
		l.do("@%s ret", c.reg)
		l.branched = true
	default:
		stays := l.label()
		l.jumpUnless(c, stays)
		l.prefetch(false)
		l.waitHere()
		l.do("ret")
		l.mark(stays)
	}
}

// loop tests at its end, and before its first round where it may have none.
func (l *lowering) loop(n *kernel.Node) {
	lo, hi, step := l.scalar(n.Args()[0]), l.scalar(n.Args()[1]), l.scalar(n.Args()[2])
	r := n.Regions()[0]
	known := lo.lit && hi.lit && step.lit
	if known && lo.bits >= hi.bits {
		return
	}
	end := l.label()
	if known && l.writtenOut(r, (hi.bits-lo.bits-1)/step.bits+1) {
		for i := lo.bits; i < hi.bits; i += step.bits {
			l.values[r.Param()] = []operand{number(i)}
			l.region(r)
		}
	} else {
		i, again := l.word("mov.b32", "%s", lo.as(kernel.U32)), l.label()
		if !(lo.lit && hi.lit) {
			l.jump(l.condition("setp.ge.u32", "%s, %s", i.reg, hi.as(kernel.U32)), end)
		}
		l.values[r.Param()] = []operand{i}
		if r.Hint() == kernel.Rolled {
			l.code.WriteString("\t.pragma \"nounroll\";\n")
		}
		l.mark(again)
		outer := l.apart
		l.apart = outer || !l.uniform.loop(n)
		l.region(r)
		l.do("add.u32 %s, %s, %s", i.reg, i.reg, step.as(kernel.U32))
		l.jump(l.condition("setp.lt.u32", "%s, %s", i.reg, hi.as(kernel.U32)), again)
		l.apart = outer
	}
	l.mark(end)
}

// writtenOut reports whether a loop of so many rounds has none: its body stands there as often.
// Elements of matrices have an index that is known then.
func (l *lowering) writtenOut(r *kernel.Region, rounds uint32) bool {
	return rounds == 1 || r.Hint() == kernel.Unroll && rounds <= mostUnrolled
}

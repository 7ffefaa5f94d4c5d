package ptx

import "github.com/zincc-dev/zincc/codegen/kernel"

// Gates are mbarriers at which one lane of each subgroup arrives.

func (l *lowering) gates(n *kernel.Node) {
	if l.o.Arch < bulkArch {
		l.fail(n, "sm_%d has none, sm_%d and later have", l.o.Arch, bulkArch)
		return
	}
	others := l.label()
	l.jump(l.condition("setp.ne.u32", "%s, 0", l.builtins[kernel.LocalID].reg), others)
	for i := range n.Align() {
		l.do("mbarrier.init.shared.b64 [%s], %d", l.shared(int(n.Imm()), number(uint32(i))), l.size/Wave)
	}
	l.mark(others)
	l.do("bar.sync 0")
}

func (l *lowering) reach(n *kernel.Node) {
	if l.f.Groups { // products of groups read what lanes have written
		l.do("fence.proxy.async.shared::cta")
	}
	l.do("bar.warp.sync -1")
	c := l.condition("setp.eq.u32", "%s, 0", l.builtins[kernel.SubgroupLane].reg)
	l.do("@%s mbarrier.arrive.shared.b64 _, [%s]", c.reg, l.gate(n))
}

func (l *lowering) reached(n *kernel.Node) {
	l.awaitPhase(l.gate(n), l.scalar(n.Args()[0]))
}

// gate returns the address of a node's mbarrier.
func (l *lowering) gate(n *kernel.Node) string {
	return l.shared(int(n.Imm()), number(uint32(n.Align())))
}

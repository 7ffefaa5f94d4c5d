package ptx

import "github.com/zincc-dev/zincc/codegen/kernel"

// Copies are cp.async.bulk (PTX ISA, "Non-tensor copy"), slots mbarriers: a phase ends when one lane has said how many
// bytes to expect, and these have come.

// bulkArch is the first architecture that has them.
const bulkArch = 90

func (l *lowering) arrivals(n *kernel.Node) {
	if l.o.Arch < bulkArch {
		l.fail(n, "sm_%d has none, sm_%d and later have", l.o.Arch, bulkArch)
		return
	}
	others := l.label()
	l.jump(l.condition("setp.ne.u32", "%s, 0", l.builtins[kernel.LocalID].reg), others)
	for i := range n.Align() {
		l.do("mbarrier.init.shared.b64 [%s], 1", l.shared(int(n.Imm()), number(uint32(i))))
		l.do("mbarrier.init.shared.b64 [%s], %d", l.shared(int(n.Imm()), number(uint32(n.Align()+i))), l.size/Wave)
	}
	l.do("fence.mbarrier_init.release.cluster")
	l.mark(others)
	l.do("fence.proxy.async.shared::cta")
	l.do("bar.sync 0")
}

func (l *lowering) bulk(n *kernel.Node) {
	c := n.Bulk()
	from, to, slot := l.place(n), l.shared(n.Array(), l.scalar(c.At)), l.shared(c.Arrivals, l.scalar(c.Slot))
	const size = 16
	if c.All > 0 {
		l.do("mbarrier.arrive.expect_tx.shared.b64 _, [%s], %d", slot, size*c.All)
	}
	hint, policy := "", ""
	if l.steady(n) { // weights, which a step reads once, are the first to leave the L2 cache
		once := l.reg(addresses)
		l.do("createpolicy.fractional.L2::evict_first.b64 %s, 1.0", once)
		hint, policy = ".L2::cache_hint", ", "+once
	}
	l.do("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes%s [%s], %s, %d, [%s]%s", hint, to, from, size*c.Elements, slot, policy)
}

func (l *lowering) arrived(n *kernel.Node) {
	l.awaitPhase(l.slot(n, 0), l.scalar(n.Args()[1]))
}

// done has one lane of the subgroup say so.
func (l *lowering) done(n *kernel.Node) {
	c := l.condition("setp.eq.u32", "%s, 0", l.builtins[kernel.SubgroupLane].reg)
	slot := l.slot(n, n.Align())
	l.do("@%s mbarrier.arrive.shared.b64 _, [%s]", c.reg, slot)
}

// free waits for the phase before: a fresh mbarrier takes that of parity 1 for ended.
func (l *lowering) free(n *kernel.Node) {
	turn := l.word("xor.b32", "%s, 1", l.held(l.scalar(n.Args()[1]), kernel.U32))
	l.awaitPhase(l.slot(n, n.Align()), turn)
}

// slot returns a register with the address of a node's mbarrier, of those from one on.
func (l *lowering) slot(n *kernel.Node, first int) string {
	i := l.scalar(n.Args()[0])
	if i.lit {
		return l.word("mov.u32", "%s", l.shared(int(n.Imm()), number(i.bits+uint32(first)))).reg
	}
	return l.word("add.u32", "%s, %d", l.shared(int(n.Imm()), i), 8*first).reg
}

func (l *lowering) awaitPhase(slot string, turn operand) {
	parity, again := l.held(turn, kernel.U32), l.label()
	l.mark(again)
	l.jumpUnless(l.condition("mbarrier.try_wait.parity.shared.b64", "[%s], %s", slot, parity), again)
}

package ptx

import "github.com/zincc-dev/zincc/codegen/kernel"

// Kernels that overlap (programmatic dependent launch, sm_90 and later). A grid may begin once all
// workgroups of the one before have said so, which they do when they begin. It reads constants,
// and waits before it touches anything else: then all grids before have ended, as each waits, too,
// and what they wrote is seen. The branches of an if wait for themselves, so that each may load its
// constants before; who comes to another wait does not wait again. A kernel of WaitFirst waits where it begins.
//
// A kernel with LateTrigger lets the next grid begin behind its own wait. That grid then sees what all grids but this
// one wrote, and its EarlyLoads may come before its own wait, too.

// begin lets the next grid begin.
func (l *lowering) begin() {
	if !l.o.Overlap {
		l.waited = true
		return
	}
	if !l.o.LateTrigger {
		l.do("griddepcontrol.launch_dependents")
	}
	if l.o.WaitFirst {
		l.awaitNow()
	}
}

// await waits before a node if it, or a loop that it is, touches other memory than what may be read early or may
// return, and not all lanes that come to it have waited. Where there are EarlyLoads, lanes that return wait for
// themselves.
func (l *lowering) await(n *kernel.Node) {
	if l.waited || n.Op() == kernel.OpIf || n.Op() == kernel.OpReturnIf && l.o.EarlyLoads != nil {
		return
	}
	waits := l.touches(n)
	for _, r := range n.Regions() {
		r.Walk(func(n *kernel.Node) { waits = waits || l.touches(n) })
	}
	if waits {
		l.awaitNow()
	}
}

// awaitNow waits unless all lanes have; a kernel ends with it.
func (l *lowering) awaitNow() {
	if !l.waited {
		l.prefetch(false)
		l.waitHere()
		l.waited = true
	}
}

func (l *lowering) waitHere() {
	l.do("griddepcontrol.wait")
	if l.o.LateTrigger {
		l.do("griddepcontrol.launch_dependents")
	}
}

func (l *lowering) touches(n *kernel.Node) bool {
	switch n.Op() {
	case kernel.OpReturnIf, kernel.OpAwait:
		return true
	case kernel.OpPrefetch: // changes no value, whoever writes meanwhile
		return false
	}
	if _, ok := n.View(); !ok || n.Op() == kernel.OpAddress {
		return false
	}
	return !l.steady(n) && !l.loadsEarly(n)
}

// loadsEarly reports whether an access reads what the grid before does not write. Copies that go through the L1 cache,
// which may hold older values, are none.
func (l *lowering) loadsEarly(n *kernel.Node) bool {
	loads := n.Op() == kernel.OpLoad || n.Op() == kernel.OpLoad16
	if view, ok := n.View(); ok && n.Op() == kernel.OpCopy {
		loads = view.Size() == 16
	}
	return loads && n.Through() == nil && l.o.EarlyLoads != nil && l.o.EarlyLoads(int(n.Imm()))
}

// steady reports whether an access is of constants, whichever address it goes through.
func (l *lowering) steady(n *kernel.Node) bool {
	if n.Through() != nil {
		return l.steadyAddress(n.Through())
	}
	return l.constant(int(n.Imm()))
}

func (l *lowering) steadyAddress(n *kernel.Node) bool {
	switch n.Op() {
	case kernel.OpAddress:
		return l.constant(int(n.Imm()))
	case kernel.OpSelect:
		return l.steadyAddress(n.Args()[1]) && l.steadyAddress(n.Args()[2])
	}
	return false
}

// Ahead is what is prefetched of an argument, a constant: of each part so many lines of 128 bytes from First on.
type Ahead struct {
	Arg, Parts, Lines, First int
	Stride                   int64 // bytes from part to part
	// After: behind the kernel's own weights (kernel.OpPrefetchNext), not before it waits.
	After bool
}

func (l *lowering) prefetchNext(*kernel.Node) {
	l.ended = true
	l.prefetch(true)
}

// prefetch asks for what is ahead before the kernel waits, or for what is after its weights: a lane of the grid for a
// line.
func (l *lowering) prefetch(after bool) {
	var list []Ahead
	for _, a := range l.o.Ahead {
		if a.After == after {
			list = append(list, a)
		}
	}
	if len(list) == 0 {
		return
	}
	workgroup := l.special("%ctaid.z")
	for _, b := range []string{"y", "x"} {
		workgroup = l.word("mad.lo.u32", "%s, %s, %s", workgroup.reg, l.special("%nctaid."+b).reg, l.special("%ctaid."+b).reg)
	}
	first := l.word("mad.lo.u32", "%s, %d, %s", workgroup.reg, l.size, l.special("%tid.x").reg)
	for _, a := range list {
		const line = 128
		i, again, end := l.word("mov.b32", "%s", first.reg), l.label(), l.label()
		l.jump(l.condition("setp.ge.u32", "%s, %d", i.reg, a.Parts*a.Lines), end)
		l.mark(again)
		part, _ := l.divided(kernel.OpDiv, i, number(uint32(a.Lines)))
		offset := l.word("mad.lo.u32", "%s, %d, %s", part.reg, -uint32(a.Lines), i.reg)
		begin, at := l.reg(addresses), l.reg(addresses)
		l.do("mad.wide.u32 %s, %s, %d, %s", begin, part.reg, a.Stride, l.addresses[a.Arg])
		l.do("mad.wide.u32 %s, %s, %d, %s", at, offset.reg, line, begin)
		if a.First > 0 {
			l.do("add.s64 %s, %s, %d", at, at, a.First*line)
		}
		l.do("prefetch.global.L2 [%s]", at)
		l.do("add.u32 %s, %s, %d", i.reg, i.reg, l.o.Grid*int(l.size))
		l.jump(l.condition("setp.lt.u32", "%s, %d", i.reg, a.Parts*a.Lines), again)
		l.mark(end)
	}
}

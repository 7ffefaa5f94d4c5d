package ptx

import "github.com/zincc-dev/zincc/codegen/kernel"

// Kernels that overlap (programmatic dependent launch, sm_90 and later). A grid may begin once all
// workgroups of the one before have begun and said so, which they do at once. It reads constants,
// and waits before it touches anything else: then all grids before have ended, as each waits, too,
// and what they wrote is seen.

// begin lets the next grid begin, and finds where this one waits: before the first operation of
// the body that touches other memory than constants, or may return, in it or in its regions.
func (l *lowering) begin() {
	if !l.o.Overlap {
		return
	}
	l.do("griddepcontrol.launch_dependents")
	among := true // addresses of several arguments are constants
	l.f.Body().Walk(func(n *kernel.Node) {
		if n.Op() == kernel.OpAddress {
			among = among && l.constant(int(n.Imm()))
		}
	})
	for _, n := range l.f.Body().Nodes() {
		waits := l.touches(n, among)
		for _, r := range n.Regions() {
			r.Walk(func(n *kernel.Node) { waits = waits || l.touches(n, among) })
		}
		if waits {
			l.wait = n
			return
		}
	}
}

func (l *lowering) touches(n *kernel.Node, among bool) bool {
	if n.Op() == kernel.OpReturnIf {
		return true
	}
	if _, ok := n.View(); !ok || n.Op() == kernel.OpAddress {
		return false
	}
	if n.Through() != nil {
		return !among
	}
	return !l.constant(int(n.Imm()))
}

// await waits if n is where the kernel does; nil is its end.
func (l *lowering) await(n *kernel.Node) {
	if l.o.Overlap && n == l.wait && !l.waited {
		l.do("griddepcontrol.wait")
		l.waited = true
	}
}

package llvm

import "github.com/zincc-dev/zincc/codegen/kernel"

// analysis says which values differ between the lanes of a subgroup. A value that does not
// stays scalar. Where lanes part (an if, a loop or a leave whose condition differs), the
// lowering keeps a mask of those that are active.
type analysis struct {
	parents map[*kernel.Region]parent
	homes   map[*kernel.Node]*kernel.Region // of vars and returns
	varying map[*kernel.Node]bool           // values; of a var, its content
	parting map[*kernel.Node]bool           // ifs, loops and leaves at which lanes part
	partial map[*kernel.Node]bool           // sets of vars by some of the lanes that may read them
	leaves  map[*kernel.Node]bool           // nodes after which lanes may be missing in their region
	returns map[*kernel.Node]bool           // loops and ifs in which lanes may return while others stay
	uses    map[*kernel.Node]int
	changed bool
}

// parent is the place of a region: in a node, in a region.
type parent struct {
	node   *kernel.Node
	region *kernel.Region
}

func analyze(f *kernel.Func) *analysis {
	a := &analysis{
		parents: map[*kernel.Region]parent{}, homes: map[*kernel.Node]*kernel.Region{},
		varying: map[*kernel.Node]bool{}, parting: map[*kernel.Node]bool{}, partial: map[*kernel.Node]bool{},
		leaves: map[*kernel.Node]bool{}, returns: map[*kernel.Node]bool{}, uses: map[*kernel.Node]int{},
	}
	a.place(f.Body())
	for a.changed = true; a.changed; {
		a.changed = false
		a.region(f.Body())
	}
	return a
}

// place finds where everything is.
func (a *analysis) place(r *kernel.Region) {
	for _, n := range r.Nodes() {
		for _, arg := range n.Args() {
			a.uses[arg]++
		}
		a.homes[n] = r
		for _, inner := range n.Regions() {
			a.parents[inner] = parent{n, r}
			a.place(inner)
		}
	}
}

func (a *analysis) mark(m map[*kernel.Node]bool, n *kernel.Node, when bool) {
	if when && !m[n] {
		m[n], a.changed = true, true
	}
}

// parted reports whether lanes part between region r and one around it; nil: the whole kernel.
func (a *analysis) parted(r, outer *kernel.Region) bool {
	for r != outer {
		p, ok := a.parents[r]
		if !ok {
			break
		}
		if a.parting[p.node] {
			return true
		}
		r = p.region
	}
	return false
}

func (a *analysis) any(ns []*kernel.Node) bool {
	for _, n := range ns {
		if a.varying[n] {
			return true
		}
	}
	return false
}

func (a *analysis) region(r *kernel.Region) {
	for _, n := range r.Nodes() {
		a.node(n, r)
		for _, inner := range n.Regions() {
			a.region(inner)
			for _, m := range inner.Nodes() {
				// Returns reach through all.
				op := m.Op()
				gone := a.parting[m] && op == kernel.OpReturnIf || a.returns[m]
				a.mark(a.returns, n, gone)
				a.mark(a.leaves, n, gone || n.Op() == kernel.OpIf && a.leaves[m])
			}
		}
	}
}

func (a *analysis) node(n *kernel.Node, r *kernel.Region) {
	switch n.Op() {
	case kernel.OpBuiltin:
		b := kernel.Builtin(n.Imm())
		a.mark(a.varying, n, b == kernel.SubgroupLane || b == kernel.LocalID)
	case kernel.OpAtomicAdd, kernel.OpSharedAdd, kernel.OpSubgroupElect:
		a.mark(a.varying, n, true)
	case kernel.OpSubgroupAdd, kernel.OpSubgroupMax, kernel.OpSubgroupMin, kernel.OpSubgroupAny: // the same in all lanes
	case kernel.OpSubgroupExclusiveAdd:
		a.mark(a.varying, n, true)
	case kernel.OpSubgroupShuffle:
		a.mark(a.varying, n, a.varying[n.Args()[0]] && a.varying[n.Args()[1]])
	case kernel.OpSubgroupShuffleXor:
		a.mark(a.varying, n, a.varying[n.Args()[0]])
	case kernel.OpVarSet:
		v := n.Args()[0]
		a.mark(a.partial, n, a.parted(r, a.homes[v]))
		a.mark(a.varying, v, a.partial[n] || a.varying[n.Args()[1]])
	case kernel.OpIf:
		a.mark(a.parting, n, a.varying[n.Args()[0]])
	case kernel.OpFor:
		param := n.Regions()[0].Param()
		a.mark(a.varying, param, a.varying[n.Args()[0]] || a.varying[n.Args()[2]])
		a.mark(a.parting, n, a.any(n.Args()))
	case kernel.OpReturnIf:
		a.mark(a.parting, n, a.varying[n.Args()[0]] || a.parted(r, nil))
		a.mark(a.leaves, n, a.parting[n])
	default:
		a.mark(a.varying, n, a.any(n.Args()))
	}
}

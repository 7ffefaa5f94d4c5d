package ptx

import "github.com/zincc-dev/zincc/codegen/kernel"

// uniformity knows what the active lanes of a subgroup agree on. Where they agree on all
// conditions around an operation between lanes, all of them come to it together.
type uniformity struct {
	differ map[*kernel.Node]bool // results, variables and loops that lanes may not agree on
	depth  map[*kernel.Node]int  // of the variables: conditions around that lanes may not agree on
	leaves bool                  // some lanes may return before others
	again  bool                  // something was learned that other nodes may depend on
}

// analyze starts with the belief that all agree and takes back what does not hold until nothing
// more is to be taken back.
func analyze(f *kernel.Func) *uniformity {
	u := &uniformity{differ: map[*kernel.Node]bool{}, depth: map[*kernel.Node]int{}, again: true}
	for u.again {
		u.again = false
		u.region(f.Body(), 0, nil)
	}
	return u
}

// is reports whether lanes agree on a value.
func (u *uniformity) is(n *kernel.Node) bool { return !u.differ[n] }

// loop reports whether lanes that begin a loop together end it together.
func (u *uniformity) loop(n *kernel.Node) bool { return !u.differ[n] }

func (u *uniformity) mark(n *kernel.Node) {
	if !u.differ[n] {
		u.differ[n] = true
		u.again = true
	}
}

// region looks at the nodes behind depth conditions that lanes may not agree on, in loop.
func (u *uniformity) region(r *kernel.Region, depth int, loop *kernel.Node) {
	inside := func(n *kernel.Node) int {
		if u.differ[n] {
			return depth + 1
		}
		return depth
	}
	for _, n := range r.Nodes() {
		switch n.Op() {
		case kernel.OpIf:
			for _, r := range n.Regions() {
				u.region(r, inside(n.Args()[0]), loop)
			}
		case kernel.OpFor:
			for _, a := range n.Args() {
				if u.differ[a] {
					u.mark(n)
				}
			}
			if u.differ[n.Args()[0]] || u.differ[n.Args()[2]] {
				u.mark(n.Regions()[0].Param())
			}
			u.region(n.Regions()[0], inside(n), n)
		case kernel.OpWhile:
			for _, r := range n.Regions() {
				u.region(r, inside(n), n)
			}
			if u.differ[n.Regions()[0].Result()] {
				u.mark(n)
			}
		case kernel.OpBreakIf:
			if u.differ[n.Args()[0]] || depth > 0 {
				u.mark(loop)
			}
		case kernel.OpReturnIf:
			if (u.differ[n.Args()[0]] || depth > 0) && !u.leaves {
				u.leaves, u.again = true, true
			}
		case kernel.OpVar:
			u.depth[n] = depth
			if u.differ[n.Args()[0]] {
				u.mark(n)
			}
		case kernel.OpVarSet, kernel.OpVarSetElem:
			v := n.Args()[0]
			if depth > u.depth[v] || u.differ[n.Args()[len(n.Args())-1]] {
				u.mark(v)
			}
		default:
			if u.parts(n) {
				u.mark(n)
			}
		}
	}
}

// parts reports whether lanes may get different results of an operation.
func (u *uniformity) parts(n *kernel.Node) bool {
	switch n.Op() {
	case kernel.OpBuiltin:
		b := kernel.Builtin(n.Imm())
		return b == kernel.LocalID || b == kernel.SubgroupLane
	case kernel.OpSubgroupAdd, kernel.OpSubgroupMax, kernel.OpSubgroupMin, kernel.OpSubgroupAny, kernel.OpMatLength:
		return false
	case kernel.OpSubgroupShuffle:
		return u.differ[n.Args()[1]]
	case kernel.OpSubgroupElect, kernel.OpSubgroupExclusiveAdd, kernel.OpSubgroupShuffleXor, kernel.OpVarElem,
		kernel.OpAtomicAdd, kernel.OpAtomicMax, kernel.OpAtomicLoad, kernel.OpSharedAdd, kernel.OpSharedMax:
		return true
	}
	for _, a := range n.Args() {
		if u.differ[a] {
			return true
		}
	}
	return false
}

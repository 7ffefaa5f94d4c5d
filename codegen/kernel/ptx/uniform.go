package ptx

import "github.com/zincc-dev/zincc/codegen/kernel"

// uniformity knows what the active lanes of a subgroup agree on. Where they agree on all
// conditions around an operation between lanes, all of them come to it together.
type uniformity struct {
	f      *kernel.Func
	spec   map[uint32]uint32
	blocks map[*kernel.Node]uint32
	differ map[*kernel.Node]bool // results, variables and loops that lanes may not agree on
	depth  map[*kernel.Node]int  // of the variables: conditions around that lanes may not agree on
	leaves bool                  // some lanes may return before others
	again  bool                  // something was learned that other nodes may depend on
}

// analyze starts with the belief that all agree and takes back what does not hold until nothing
// more is to be taken back.
func analyze(f *kernel.Func, spec map[uint32]uint32) *uniformity {
	u := &uniformity{f: f, spec: spec, blocks: map[*kernel.Node]uint32{}, differ: map[*kernel.Node]bool{}, depth: map[*kernel.Node]int{}, again: true}
	for u.again {
		u.again = false
		u.region(f.Body(), 0)
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

// region looks at the nodes behind depth conditions that lanes may not agree on.
func (u *uniformity) region(r *kernel.Region, depth int) {
	for _, n := range r.Nodes() {
		switch n.Op() {
		case kernel.OpIf:
			for _, r := range n.Regions() {
				u.region(r, u.inside(n.Args()[0], depth))
			}
		case kernel.OpFor:
			u.counts(n)
			u.region(n.Regions()[0], u.inside(n, depth))
		case kernel.OpReturnIf:
			if u.inside(n.Args()[0], depth) > 0 && !u.leaves {
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

// inside is the conditions that lanes may not agree on behind one more.
func (u *uniformity) inside(condition *kernel.Node, depth int) int {
	if u.differ[condition] {
		return depth + 1
	}
	return depth
}

// counts looks at the numbers of a loop: lanes that begin it together may end it apart, and count apart.
func (u *uniformity) counts(n *kernel.Node) {
	lo, hi, step, count := n.Args()[0], n.Args()[1], n.Args()[2], n.Regions()[0].Param()
	b := u.block(lo)
	if b != 0 && u.multiple(step)%b != 0 {
		b = 0
	}
	u.blocks[count] = b
	if u.differ[lo] && !u.alike(lo, hi) || u.differ[hi] || u.differ[step] || b == 0 {
		u.mark(n)
	}
	if u.differ[lo] || u.differ[step] {
		u.mark(count)
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
	case kernel.OpSubgroupElect, kernel.OpSubgroupExclusiveAdd, kernel.OpSubgroupShuffleXor, kernel.OpVarElem, kernel.OpMatBytes,
		kernel.OpAtomicAdd, kernel.OpSharedAdd:
		return true
	}
	switch n.Op() {
	case kernel.OpLt, kernel.OpGe:
		if u.alike(n.Args()[0], n.Args()[1]) {
			return false
		}
	case kernel.OpGt, kernel.OpLe:
		if u.alike(n.Args()[1], n.Args()[0]) {
			return false
		}
	}
	for _, a := range n.Args() {
		if u.differ[a] {
			return true
		}
	}
	return false
}

// alike reports whether x < y holds in all lanes of a subgroup or in none.
func (u *uniformity) alike(x, y *kernel.Node) bool {
	b := u.block(x)
	return b != 0 && !u.differ[y] && u.multiple(y)%b == 0
}

// block returns a power of two such that all lanes of a subgroup have a value between the same
// two multiples of it, 0 if none is known.
func (u *uniformity) block(n *kernel.Node) uint32 {
	if n.Type() != kernel.U32 {
		return 0
	}
	if !u.differ[n] {
		return 1
	}
	switch n.Op() {
	case kernel.OpParam:
		return u.blocks[n]
	case kernel.OpBuiltin:
		return Wave
	case kernel.OpAdd:
		for i, x := range n.Args() {
			if b, y := u.block(x), n.Args()[1-i]; b > 1 && !u.differ[y] && u.multiple(y)%b == 0 {
				return b
			}
		}
	case kernel.OpMul:
		for i, x := range n.Args() {
			if c, ok := u.static(n.Args()[1-i]); ok && power(c) && c < 1<<16 {
				return u.block(x) * c
			}
		}
	case kernel.OpDiv:
		if c, ok := u.static(n.Args()[1]); ok && power(c) {
			if b := u.block(n.Args()[0]); b > c {
				return b / c
			} else if b > 0 {
				return 1
			}
		}
	}
	return 0
}

// multiple returns a power of two, at most 2^16, that divides a value.
func (u *uniformity) multiple(n *kernel.Node) uint32 {
	const most = 1 << 16
	if c, ok := u.static(n); ok {
		return min(most, c&-c|most*truth(c == 0))
	}
	switch n.Op() {
	case kernel.OpAdd, kernel.OpSub:
		return min(u.multiple(n.Args()[0]), u.multiple(n.Args()[1]))
	case kernel.OpMul:
		return min(most, u.multiple(n.Args()[0])*u.multiple(n.Args()[1]))
	}
	return 1
}

func truth(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func power(c uint32) bool { return c != 0 && c&(c-1) == 0 }

func (u *uniformity) static(n *kernel.Node) (uint32, bool) {
	if !n.Static() || n.Type() != kernel.U32 {
		return 0, false
	}
	c, err := u.f.Eval(n, u.spec)
	return c, err == nil
}

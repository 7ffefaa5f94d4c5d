package kernel

// A compiler that estimates cycles from code alone must assume how often loops
// repeat and how often branches are taken. These are the assumptions of ACO, the
// compiler of Mesa's RADV, as its figures of small kernels show (Mesa 25.0).
const (
	assumedUniform   = 0.5  // of a branch that subgroups take as one, however deep
	assumedDivergent = 0.75 // of a branch for which lanes part
	// Loops of constant bounds are unrolled up to so many iterations and, unless
	// the kernel asks for it, so many operations.
	unrolledIterations = 32
	unrolledOperations = 26 * 32
)

// assumedIterations are those of a loop and what is around it, by depth.
var assumedIterations = [...]float64{1, 8, 32, 64}

// Weigh counts the operations that the first lane of a workgroup executes, and
// the operations under the assumptions above. Their ratio corrects the compiler's
// cycles. Where control flow depends on memory, both counts use the assumptions, but
// kernels do not end early. An operation on vectors counts once for each element. group is
// the workgroup's place in the grid; constants that spec lacks have their default. first
// has what the first element of an argument is, by its name, where that is known.
func (f *Func) Weigh(spec map[uint32]uint32, group [3]uint32, first map[string]uint32) (executed, assumed float64) {
	w := &weigher{f: f, spec: spec, group: group, first: first, seen: map[*Node]known{}}
	w.region(f.body, place{times: 1})
	return w.executed, w.assumed
}

type weigher struct {
	f                 *Func
	spec              map[uint32]uint32
	group             [3]uint32
	first             map[string]uint32
	seen              map[*Node]known
	executed, assumed float64
}

// known is what a weigher knows of a value.
type known struct {
	value   uint32
	is      bool // value is that of the first lane
	uniform bool // the lanes of a subgroup agree on it
}

// place is what is around a node.
type place struct {
	times              float64 // it is executed
	unrolled           float64 // iterations of unrolled loops; 0 for none
	loops              int     // others
	uniform, divergent bool    // branches
}

func (p place) assumed() float64 {
	n := assumedIterations[min(p.loops, len(assumedIterations)-1)] * max(1, p.unrolled)
	if p.uniform {
		n *= assumedUniform
	}
	if p.divergent {
		n *= assumedDivergent
	}
	return n
}

func (w *weigher) region(r *Region, p place) {
	for _, n := range r.nodes {
		switch n.op {
		case OpIf:
			w.branch(n, p)
		case OpFor:
			w.loop(n, p)
		case OpReturnIf:
			// To the compiler the rest is the other side of a branch.
			c := w.know(n.args[0])
			if c.is && c.value != 0 {
				p.times = 0
			}
			if !n.args[0].static() {
				p.uniform, p.divergent = p.uniform || c.uniform, p.divergent || !c.uniform
			}
		}
		count := operationsOf(n)
		w.executed += p.times * count
		w.assumed += p.assumed() * count
	}
}

// operationsOf is the elements of the widest vector that n takes or makes. Variables
// are registers.
func operationsOf(n *Node) float64 {
	if n.op == OpVar || n.op == OpVarGet || n.op == OpVarSet {
		return 0
	}
	most := 1
	for _, a := range n.args {
		most = max(most, a.typ.Lanes())
	}
	if n.typ != Void {
		most = max(most, n.typ.Lanes())
	}
	return float64(most)
}

func (w *weigher) branch(n *Node, p place) {
	c := w.know(n.args[0])
	for i, r := range n.regions {
		inside := p
		inside.uniform, inside.divergent = p.uniform || c.uniform, p.divergent || !c.uniform
		switch taken := c.value != 0; {
		case !c.is:
			inside.times *= inside.assumed() / p.assumed()
		case taken != (i == 0):
			inside.times = 0
		}
		w.region(r, inside)
	}
}

func (w *weigher) loop(n *Node, p place) {
	r := n.regions[0]
	lo, hi, step := w.know(n.args[0]), w.know(n.args[1]), w.know(n.args[2])
	w.seen[r.param] = known{value: lo.value, is: lo.is, uniform: lo.uniform && step.uniform}
	inside := p
	inside.loops++
	times := inside.assumed() / p.assumed()
	if lo.is && hi.is && step.is && step.value != 0 {
		times = 0
		if hi.value > lo.value {
			times = float64((hi.value-lo.value-1)/step.value + 1)
		}
		constant := n.args[0].static() && n.args[1].static() && n.args[2].static()
		if constant && times == 0 {
			return
		}
		if constant && r.hint != Rolled && times <= unrolledIterations && (r.hint == Unroll || times*operations(r) <= unrolledOperations) {
			inside.loops--
			inside.unrolled = max(1, p.unrolled) * times
		}
	}
	inside.times *= times
	w.region(r, inside)
}

// operations counts those of r, each once.
func operations(r *Region) float64 {
	sum := 0.0
	for _, n := range r.nodes {
		sum += operationsOf(n)
		for _, inner := range n.regions {
			sum += operations(inner)
		}
	}
	return sum
}

// know computes an integer or a condition as far as it follows from the
// constants and the workgroup's place. In a loop it is that of the first round.
func (w *weigher) know(n *Node) known {
	k, ok := w.seen[n]
	if !ok {
		k = w.compute(n)
		w.seen[n] = k
	}
	return k
}

func (w *weigher) compute(n *Node) known {
	if n.static() {
		v, err := w.f.eval(n, w.spec)
		return known{v, err == nil, true}
	}
	switch {
	case n.op == OpBuiltin:
		return w.builtin(Builtin(n.imm))
	case n.op == OpAddress:
		return known{uniform: true}
	case n.op == OpLoad:
		if v, ok := w.first[w.f.Args[n.imm].Name]; ok && n.typ == U32 && w.know(n.args[0]) == (known{0, true, true}) {
			return known{v, true, true}
		}
	case n.op == OpVarGet || n.op == OpParam || len(n.args) == 0:
		return known{}
	case n.op >= OpSubgroupAdd && n.op <= OpSubgroupMin, n.op == OpSubgroupAny:
		return known{uniform: true}
	}
	k := known{is: true, uniform: true}
	var args []uint32
	for _, a := range n.args {
		arg := w.know(a)
		k.is = k.is && arg.is && a.typ.Lanes() == 1 && a.typ != F32
		k.uniform = k.uniform && arg.uniform
		args = append(args, arg.value)
	}
	if k.is {
		v, err := foldOp(n.op, n.args[0].typ, args)
		k.value, k.is = v, err == nil
	}
	return k
}

func (w *weigher) builtin(b Builtin) known {
	switch b {
	case WorkgroupIDX, WorkgroupIDY, WorkgroupIDZ:
		return known{w.group[b-WorkgroupIDX], true, true}
	case SubgroupLane, LocalID:
		return known{is: true}
	case SubgroupID:
		return known{is: true, uniform: true}
	}
	return known{uniform: true}
}

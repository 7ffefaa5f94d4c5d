package kernel

import (
	"fmt"
	"slices"
)

// Case is a kernel with its constants and grid, to be run inside another kernel.
type Case struct {
	Kernel *Func
	Spec   map[uint32]uint32 // constants by id; those it lacks have their default
	Grid   [3]int
	// Constant says of each argument whether its memory stays as it is while the
	// outer kernel runs.
	Constant []bool
	// Teams is how many of its workgroups fit into one of the outer kernel, at most;
	// 0 for as many as there are lanes.
	Teams int
}

// Cases sets what RunCase chooses from. Subgroups have wave lanes. The size of this
// kernel's workgroups, a Go int, must be set before.
//
// Barriers of a case may be inside of its loops and ifs only if its workgroup is as
// large as this kernel's: else some teams would wait for others. A case ends
// (ReturnIf) outside of loops and ifs.
func (b *Builder) Cases(wave int, cases []Case) {
	if b.f.workgroup == nil || b.f.workgroup.op != opConst {
		b.fail("cases in a workgroup of unknown size")
		return
	}
	for i := range cases {
		if err := cases[i].check(int(b.f.workgroup.imm), wave); err != nil {
			b.fail("case %d: kernel %s: %v", i, cases[i].Kernel.Name, err)
			return
		}
		b.f.Dealt = b.f.Dealt || cases[i].Kernel.Dealt
		for _, class := range cases[i].Kernel.SubgroupOps {
			b.subgroup[class] = true
		}
		for _, name := range cases[i].Kernel.Features {
			b.need(name)
		}
	}
	b.subgroup["basic"] = true
	b.f.cases, b.f.caseWave = cases, wave
}

// RunCase runs the case of that index, a U32 that is the same in the whole grid, on
// all workgroups of this kernel: the workgroups of the case's grid are dealt out to
// teams of lanes, as many of a workgroup as fit. low and high are the halves of the
// address of the case's argument block. All lanes of all workgroups must come to it;
// it ends without waiting for other workgroups.
func (b *Builder) RunCase(index, low, high Value) {
	if b.f.cases == nil {
		b.fail("run_case without cases")
	}
	b.add(&node{op: opRunCase, args: []*node{b.typed(opRunCase, index, U32), b.typed(opRunCase, low, U32), b.typed(opRunCase, high, U32)}})
}

// teamsOf returns how many workgroups of the case fit into one of that many lanes.
func (c *Case) teamsOf(lanes int) (int, error) {
	size, err := c.Kernel.WorkgroupSize(c.Spec)
	if err != nil {
		return 0, err
	}
	n := lanes / int(size)
	if c.Teams > 0 {
		n = min(n, c.Teams)
	}
	return n, nil
}

func (c *Case) check(lanes, wave int) error {
	f := c.Kernel
	size, err := f.WorkgroupSize(c.Spec)
	if err != nil {
		return err
	}
	if size == 0 || int(size) > lanes || int(size)%wave != 0 {
		return fmt.Errorf("workgroup of %d in one of %d with subgroups of %d", size, lanes, wave)
	}
	if len(f.cases) > 0 {
		return fmt.Errorf("it has cases itself")
	}
	if len(c.Constant) != len(f.Args) {
		return fmt.Errorf("%d arguments, %d are described", len(f.Args), len(c.Constant))
	}
	return checkInside(f.body, f.body, int(size) == lanes)
}

// checkInside refuses what a case cannot have inside of loops and ifs.
func checkInside(r, body *region, whole bool) error {
	for _, n := range r.nodes {
		switch {
		case n.op == opBarrier && r != body && !whole:
			return fmt.Errorf("a barrier inside of a loop or if")
		case n.op == opReturnIf && r != body:
			return fmt.Errorf("it ends inside of a loop or if")
		case n.op == opMatLoad || n.op == opMatStore:
			return fmt.Errorf("matrices in shared memory")
		}
		for _, inner := range n.regions {
			if err := checkInside(inner, body, whole); err != nil {
				return err
			}
		}
	}
	return nil
}

// pool is one array of shared memory for the arrays of that type of all cases, of
// which one runs at a time.
type pool struct {
	elem   Type
	length uint32
}

// pools returns the pools of the kernel's cases.
func (f *Func) pools() ([]pool, error) {
	var pools []pool
	for i := range f.cases {
		c := &f.cases[i]
		teams, err := c.teamsOf(int(f.workgroup.imm))
		if err != nil {
			return nil, err
		}
		sum := map[Type]uint32{}
		for _, a := range c.Kernel.arrays {
			n, err := c.Kernel.eval(a.length, c.Spec)
			if err != nil {
				return nil, fmt.Errorf("case %d: length of a shared array: %w", i, err)
			}
			at := slices.IndexFunc(pools, func(p pool) bool { return p.elem == a.elem })
			if at < 0 {
				at = len(pools)
				pools = append(pools, pool{elem: a.elem})
			}
			sum[a.elem] += n * uint32(teams)
			pools[at].length = max(pools[at].length, sum[a.elem])
		}
	}
	return pools, nil
}

// segments is a body split at the barriers that all lanes come to.
type segments struct {
	nodes    [][]*node
	barriers []*node   // between them
	uses     [][]*node // by segment, the values made in those before it that it uses
}

func (f *Func) segments() *segments {
	s := &segments{nodes: [][]*node{nil}}
	for _, n := range f.body.nodes {
		if n.op == opBarrier {
			s.barriers = append(s.barriers, n)
			s.nodes = append(s.nodes, nil)
			continue
		}
		last := len(s.barriers)
		s.nodes[last] = append(s.nodes[last], n)
	}
	s.uses = crossing(s.nodes)
	return s
}

// crossing returns, by segment, the values made in the segments before that it uses.
// Variables are everywhere, and builtins are read anew.
func crossing(segments [][]*node) [][]*node {
	made := map[*node]int{}
	for i, s := range segments {
		for _, n := range s {
			made[n] = i
		}
	}
	uses := make([][]*node, len(segments))
	for i, s := range segments {
		seen := map[*node]bool{}
		var visit func(nodes []*node)
		use := func(a *node) {
			from, ok := made[a]
			if ok && from < i && !seen[a] && a.op != opVar {
				seen[a] = true
				uses[i] = append(uses[i], a)
			}
		}
		visit = func(nodes []*node) {
			for _, n := range nodes {
				for _, a := range n.args {
					use(a)
				}
				for _, r := range n.regions {
					visit(r.nodes)
					if r.result != nil {
						use(r.result)
					}
				}
			}
		}
		visit(s)
	}
	return uses
}

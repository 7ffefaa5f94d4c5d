package kernel

import "github.com/zincc-dev/zincc/spirv"

// team is a case, and where its workgroup runs, while it is lowered.
type team struct {
	*Case
	spec     map[uint32]uint32
	size     uint32   // lanes of a team
	count    uint32   // teams of a workgroup
	index    spirv.ID // of the team; 0 if there is one
	builtins [numBuiltins]spirv.ID
	bases    []spirv.ID         // of shared arrays in their pools; 0 for the beginning
	spills   map[*node]spirv.ID // variables of values that later segments use
	live     spirv.ID           // variable: the team has a workgroup that has not ended
	*segments
}

// enterCases makes what the cases share, once.
func (l *lowering) enterCases() {
	if l.teams != nil {
		return
	}
	pools, err := l.f.pools()
	if err != nil {
		l.fail(err)
	}
	l.pools = map[Type]spirv.ID{}
	for _, p := range pools {
		l.pools[p.elem] = l.global(l.m.Type(spirv.OpTypeArray, l.typ(p.elem), l.uint(p.length)), spirv.StorageClassWorkgroup)
		l.m.Name(l.pools[p.elem], "pool_"+p.elem.String())
	}
	lanes := l.f.workgroup.imm
	for i := range l.f.cases {
		c := &l.f.cases[i]
		t := &team{Case: c, spec: c.Spec, spills: map[*node]spirv.ID{}}
		size, err := c.Kernel.WorkgroupSize(c.Spec)
		if err != nil {
			l.fail(err)
		}
		count, err := c.teamsOf(int(lanes))
		if err != nil {
			l.fail(err)
		}
		t.size, t.count = size, uint32(count)
		t.segments = c.Kernel.segments()
		t.live = l.m.Local(l.pointer(spirv.StorageClassFunction, l.typ(Bool)))
		for _, list := range t.uses {
			for _, n := range list {
				if t.spills[n] == 0 && n.op != opBuiltin {
					t.spills[n] = l.m.Local(l.pointer(spirv.StorageClassFunction, l.typ(n.typ)))
				}
			}
		}
		l.teams = append(l.teams, t)
	}
}

// runCase lowers a switch over the cases, in each a loop over the workgroups of the
// case that are this workgroup's.
func (l *lowering) runCase(n *node) {
	m := l.m
	l.enterCases()
	index, low, high := l.value(n.args[0]), l.value(n.args[1]), l.value(n.args[2])
	block := m.Emit(spirv.OpCompositeConstruct, l.typ(U32.Vec(2)), low, high)
	merge := m.NewID()
	operands := []uint32{index, merge}
	var labels []spirv.ID
	for i := range l.teams {
		labels = append(labels, m.NewID())
		operands = append(operands, uint32(i), labels[i])
	}
	m.Do(spirv.OpSelectionMerge, merge, spirv.SelectionControlNone)
	m.Do(spirv.OpSwitch, operands...)
	outer := *l
	for i, t := range l.teams {
		m.Do(spirv.OpLabel, labels[i])
		l.enter(t, &outer, block)
		l.eachWorkgroup(t)
		m.Do(spirv.OpBranch, merge)
	}
	l.f, l.values, l.pointers, l.access, l.shared, l.team = outer.f, outer.values, outer.pointers, outer.access, outer.shared, nil
	m.Do(spirv.OpLabel, merge)
}

// eachWorkgroup lowers the loop over a case's workgroups.
func (l *lowering) eachWorkgroup(t *team) {
	m, u32 := l.m, l.typ(U32)
	next := m.Local(l.pointer(spirv.StorageClassFunction, u32))
	m.Do(spirv.OpStore, next, m.Emit(spirv.OpIMul, u32, l.input(workgroupIDX), l.uint(t.count)))
	stride := m.Emit(spirv.OpIMul, u32, l.input(numWorkgroupsX), l.uint(t.count))
	var base spirv.ID
	l.loop(spirv.LoopControlNone, func() spirv.ID {
		base = m.Emit(spirv.OpLoad, u32, next)
		return m.Emit(spirv.OpULessThan, l.typ(Bool), base, l.uint(t.total()))
	}, func() {
		l.placeTeam(base)
		for i := range t.nodes {
			if i > 0 {
				l.barrier(t.barriers[i-1])
			}
			l.whenLive(func() { l.segment(i) })
		}
		if len(t.Kernel.arrays) > 0 {
			l.barrier(&node{op: opBarrier}) // before the next one uses the arrays
		}
	}, func() {
		m.Do(spirv.OpStore, next, m.Emit(spirv.OpIAdd, u32, base, stride))
	})
}

// total is the workgroups of the case's grid.
func (t *team) total() uint32 { return uint32(t.Grid[0] * t.Grid[1] * t.Grid[2]) }

// enter makes t what is lowered: its constants, variables, lanes, arrays, arguments.
func (l *lowering) enter(t *team, outer *lowering, block spirv.ID) {
	m, u32 := l.m, l.typ(U32)
	l.f, l.values, l.pointers, l.shared, l.team = t.Kernel, map[*node]spirv.ID{}, map[bound]spirv.ID{}, nil, t
	for i, s := range t.Kernel.Spec {
		bits, ok := t.Spec[s.ID]
		if !ok {
			bits = s.Default
		}
		l.values[t.Kernel.specNodes[i]] = m.Constant(spirv.OpConstant, l.typ(s.Type), bits)
	}
	wave, local := uint32(outer.f.caseWave), l.input(localID)
	t.builtins[numSubgroups] = l.uint(t.size / wave)
	t.builtins[localID], t.builtins[subgroupID] = local, l.input(subgroupID)
	for i, n := range t.Grid {
		t.builtins[int(numWorkgroupsX)+i] = l.uint(uint32(n))
	}
	if outer.f.workgroup.imm != t.size {
		t.index = m.Emit(spirv.OpUDiv, u32, local, l.uint(t.size))
		t.builtins[localID] = m.Emit(spirv.OpUMod, u32, local, l.uint(t.size))
		first := m.Emit(spirv.OpIMul, u32, t.index, l.uint(t.size/wave))
		t.builtins[subgroupID] = m.Emit(spirv.OpISub, u32, t.builtins[subgroupID], first)
	}
	l.placeArrays(t)

	typ := l.addresses()
	m.MemberDecorate(typ, 0, spirv.DecorationNonWritable)
	m.Name(typ, "argument_block")
	block = m.Emit(spirv.OpBitcast, l.pointer(spirv.StorageClassPhysicalStorageBuffer, typ), block)
	address := l.typ(U32.Vec(2))
	l.bind(func(arg int) spirv.ID {
		p := l.pointer(spirv.StorageClassPhysicalStorageBuffer, address)
		p = m.Emit(spirv.OpAccessChain, p, block, l.uint(0), l.uint(uint32(arg)))
		return m.Emit(spirv.OpLoad, address, p, spirv.MemoryAccessAligned, 8)
	}, func(arg int) Access {
		if t.Constant[arg] {
			return Read
		}
		return ReadWrite // others write it between the stages
	})
}

// placeArrays finds the place of each shared array in the pool of its type: those
// of all teams lie side by side.
func (l *lowering) placeArrays(t *team) {
	begin := map[Type]uint32{}
	t.bases = nil
	for _, a := range t.Kernel.arrays {
		n, _ := t.Kernel.eval(a.length, t.Spec) // pools has seen it
		l.shared = append(l.shared, l.pools[a.elem])
		var base spirv.ID
		if t.count > 1 {
			base = l.m.Emit(spirv.OpIMul, l.typ(U32), t.index, l.uint(n))
		}
		switch at := begin[a.elem]; {
		case at > 0 && base != 0:
			base = l.m.Emit(spirv.OpIAdd, l.typ(U32), base, l.uint(at))
		case at > 0:
			base = l.uint(at)
		}
		t.bases = append(t.bases, base)
		begin[a.elem] += n * t.count
	}
}

// placeTeam gives the team its workgroup of the case's grid, of those from base on, if
// there is one for it.
func (l *lowering) placeTeam(base spirv.ID) {
	m, t, u32, boolean := l.m, l.team, l.typ(U32), l.typ(Bool)
	at := base
	if t.index != 0 {
		at = m.Emit(spirv.OpIAdd, u32, base, t.index)
	}
	live := m.Emit(spirv.OpULessThan, boolean, at, l.uint(t.total()))
	if t.index != 0 {
		// Lanes may be left that are no team.
		live = m.Emit(spirv.OpLogicalAnd, boolean, live, m.Emit(spirv.OpULessThan, boolean, t.index, l.uint(t.count)))
	}
	m.Do(spirv.OpStore, t.live, live)
	for i, n := range t.Grid {
		place, later := at, 1
		for _, n := range t.Grid[i+1:] {
			later *= n
		}
		switch {
		case n == 1:
			place = l.uint(0)
		case later > 1:
			place = m.Emit(spirv.OpUMod, u32, at, l.uint(uint32(n)))
			at = m.Emit(spirv.OpUDiv, u32, at, l.uint(uint32(n)))
		}
		t.builtins[int(workgroupIDX)+i] = place
	}
}

// when lowers an if.
func (l *lowering) when(cond spirv.ID, then func()) {
	inner, merge := l.m.NewID(), l.m.NewID()
	l.m.Do(spirv.OpSelectionMerge, merge, spirv.SelectionControlNone)
	l.m.Do(spirv.OpBranchConditional, cond, inner, merge)
	l.m.Do(spirv.OpLabel, inner)
	then()
	l.m.Do(spirv.OpBranch, merge)
	l.m.Do(spirv.OpLabel, merge)
}

func (l *lowering) whenLive(then func()) {
	l.when(l.m.Emit(spirv.OpLoad, l.typ(Bool), l.team.live), then)
}

// segment lowers a segment of the case, for live teams.
func (l *lowering) segment(i int) {
	for _, n := range l.team.uses[i] {
		if n.op == opBuiltin {
			l.builtin(n)
		} else {
			l.values[n] = l.m.Emit(spirv.OpLoad, l.typ(n.typ), l.team.spills[n])
		}
	}
	l.nodes(l.team.nodes[i])
}

// nodes lowers nodes of the case's body, those behind a return for teams that have
// not returned.
func (l *lowering) nodes(list []*node) {
	for i, n := range list {
		if n.op == opReturnIf {
			l.m.Do(spirv.OpStore, l.team.live, l.m.Emit(spirv.OpLogicalNot, l.typ(Bool), l.value(n.args[0])))
			l.whenLive(func() { l.nodes(list[i+1:]) })
			return
		}
		l.node(n)
		if spill := l.team.spills[n]; spill != 0 {
			l.m.Do(spirv.OpStore, spill, l.values[n])
		}
	}
}

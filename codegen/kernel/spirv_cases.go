package kernel

import "github.com/zincc-dev/zincc/spirv"

// team is where a case's workgroup runs.
type team struct {
	spec     map[uint32]uint32
	builtins [numBuiltins]spirv.ID
	index    spirv.ID           // of the team; 0 if there is one
	bases    []spirv.ID         // of shared arrays in their pools; 0 for the beginning
	spills   map[*node]spirv.ID // variables of values that later segments use
	live     spirv.ID           // variable: the team has a workgroup that has not ended
}

// runCase lowers a switch over the cases.
func (l *lowering) runCase(n *node) {
	m := l.m
	index, low, high := l.value(n.args[0]), l.value(n.args[1]), l.value(n.args[2])
	block := m.Emit(spirv.OpCompositeConstruct, l.typ(U32.Vec(2)), low, high)
	list, err := l.f.pools()
	if err != nil {
		l.fail(err)
	}
	pools := map[Type]spirv.ID{}
	for _, p := range list {
		pools[p.elem] = l.global(m.Type(spirv.OpTypeArray, l.typ(p.elem), l.uint(p.length)), spirv.StorageClassWorkgroup)
		m.Name(pools[p.elem], "pool_"+p.elem.String())
	}
	merge := m.NewID()
	operands := []uint32{index, merge}
	var labels []spirv.ID
	for i := range l.f.cases {
		labels = append(labels, m.NewID())
		operands = append(operands, uint32(i), labels[i])
	}
	m.Do(spirv.OpSelectionMerge, merge, spirv.SelectionControlNone)
	m.Do(spirv.OpSwitch, operands...)
	outer := *l
	for i := range outer.f.cases {
		m.Do(spirv.OpLabel, labels[i])
		l.oneCase(&outer.f.cases[i], block, &outer, pools)
		m.Do(spirv.OpBranch, merge)
	}
	l.f, l.values, l.pointers, l.shared, l.team = outer.f, outer.values, outer.pointers, outer.shared, nil
	m.Do(spirv.OpLabel, merge)
}

// oneCase lowers the loop over the workgroups of a case that are this workgroup's.
func (l *lowering) oneCase(c *Case, block spirv.ID, outer *lowering, pools map[Type]spirv.ID) {
	m, u32, boolean := l.m, l.typ(U32), l.typ(Bool)
	lanes, wave := outer.f.workgroup.imm, uint32(outer.f.caseWave)
	size, err := c.Kernel.WorkgroupSize(c.Spec)
	if err != nil {
		l.fail(err)
		return
	}
	fit, err := c.teamsOf(int(lanes))
	if err != nil {
		l.fail(err)
		return
	}
	teams := uint32(fit)
	t := &team{spec: c.Spec, spills: map[*node]spirv.ID{}}
	if t.spec == nil {
		t.spec = map[uint32]uint32{}
	}
	l.f, l.values, l.pointers, l.shared, l.team = c.Kernel, map[*node]spirv.ID{}, map[bound]spirv.ID{}, nil, t
	for i, s := range c.Kernel.Spec {
		bits, ok := c.Spec[s.ID]
		if !ok {
			bits = s.Default
		}
		l.values[c.Kernel.specNodes[i]] = m.Constant(spirv.OpConstant, l.typ(s.Type), bits)
	}

	local := l.input(localID)
	group := l.input(workgroupIDX)
	groups := l.input(numWorkgroupsX)
	t.builtins[numSubgroups] = l.uint(size / wave)
	t.builtins[localID], t.builtins[subgroupID] = local, l.input(subgroupID)
	for i, n := range c.Grid {
		t.builtins[int(numWorkgroupsX)+i] = l.uint(uint32(n))
	}
	if teams > 1 || lanes != size {
		t.index = m.Emit(spirv.OpUDiv, u32, local, l.uint(size))
		t.builtins[localID] = m.Emit(spirv.OpUMod, u32, local, l.uint(size))
		first := m.Emit(spirv.OpIMul, u32, t.index, l.uint(size/wave))
		t.builtins[subgroupID] = m.Emit(spirv.OpISub, u32, t.builtins[subgroupID], first)
	}
	l.placeArrays(c, teams, pools)
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
		if c.Constant[arg] {
			return Read
		}
		return ReadWrite // others write it between the stages
	})

	total := uint32(c.Grid[0] * c.Grid[1] * c.Grid[2])
	next := m.Local(l.pointer(spirv.StorageClassFunction, u32))
	t.live = m.Local(l.pointer(spirv.StorageClassFunction, boolean))
	m.Do(spirv.OpStore, next, m.Emit(spirv.OpIMul, u32, group, l.uint(teams)))
	stride := m.Emit(spirv.OpIMul, u32, groups, l.uint(teams))
	var base spirv.ID
	l.loop(spirv.LoopControlNone, func() spirv.ID {
		base = m.Emit(spirv.OpLoad, u32, next)
		return m.Emit(spirv.OpULessThan, boolean, base, l.uint(total))
	}, func() {
		at := base
		if t.index != 0 {
			at = m.Emit(spirv.OpIAdd, u32, base, t.index)
		}
		live := m.Emit(spirv.OpULessThan, boolean, at, l.uint(total))
		if t.index != 0 && lanes != teams*size {
			whole := m.Emit(spirv.OpULessThan, boolean, t.index, l.uint(teams))
			live = m.Emit(spirv.OpLogicalAnd, boolean, live, whole)
		}
		m.Do(spirv.OpStore, t.live, live)
		l.placeWorkgroup(c.Grid, at)
		l.segments()
		if len(c.Kernel.arrays) > 0 {
			l.barrier(&node{op: opBarrier}) // before the next one uses the arrays
		}
	}, func() {
		m.Do(spirv.OpStore, next, m.Emit(spirv.OpIAdd, u32, base, stride))
	})
}

// placeWorkgroup computes the place of workgroup at of the case's grid.
func (l *lowering) placeWorkgroup(grid [3]int, at spirv.ID) {
	u32, zero := l.typ(U32), l.uint(0)
	for i, n := range grid {
		place := at
		later := 1
		for _, n := range grid[i+1:] {
			later *= n
		}
		switch {
		case n == 1:
			place = zero
		case later > 1:
			place = l.m.Emit(spirv.OpUMod, u32, at, l.uint(uint32(n)))
			at = l.m.Emit(spirv.OpUDiv, u32, at, l.uint(uint32(n)))
		}
		l.team.builtins[int(workgroupIDX)+i] = place
	}
}

// placeArrays finds the place of each shared array in the pool of its type: those
// of all teams lie side by side.
func (l *lowering) placeArrays(c *Case, teams uint32, pools map[Type]spirv.ID) {
	begin := map[Type]uint32{}
	for _, a := range c.Kernel.arrays {
		n, _ := c.Kernel.eval(a.length, c.Spec) // pools has seen it
		l.shared = append(l.shared, pools[a.elem])
		var base spirv.ID
		if l.team.index != 0 && teams > 1 {
			base = l.m.Emit(spirv.OpIMul, l.typ(U32), l.team.index, l.uint(n))
		}
		switch at := begin[a.elem]; {
		case at > 0 && base != 0:
			base = l.m.Emit(spirv.OpIAdd, l.typ(U32), base, l.uint(at))
		case at > 0:
			base = l.uint(at)
		}
		l.team.bases = append(l.team.bases, base)
		begin[a.elem] += n * teams
	}
}

// segments lowers the body for the teams that are live, with its barriers for all.
func (l *lowering) segments() {
	m, t := l.m, l.team
	segments := l.f.segments()
	uses := crossing(segments)
	for _, list := range uses {
		for _, n := range list {
			if t.spills[n] == 0 && n.op != opBuiltin {
				t.spills[n] = m.Local(l.pointer(spirv.StorageClassFunction, l.typ(n.typ)))
			}
		}
	}
	for i, nodes := range segments {
		if i > 0 {
			l.barrier(&node{op: opBarrier})
		}
		var merges []spirv.ID
		begin := func() {
			inner, merge := m.NewID(), m.NewID()
			live := m.Emit(spirv.OpLoad, l.typ(Bool), t.live)
			m.Do(spirv.OpSelectionMerge, merge, spirv.SelectionControlNone)
			m.Do(spirv.OpBranchConditional, live, inner, merge)
			m.Do(spirv.OpLabel, inner)
			merges = append(merges, merge)
		}
		begin()
		for _, n := range uses[i] {
			if n.op == opBuiltin {
				l.builtin(n)
			} else {
				l.values[n] = m.Emit(spirv.OpLoad, l.typ(n.typ), t.spills[n])
			}
		}
		for _, n := range nodes {
			if n.op == opReturnIf {
				m.Do(spirv.OpStore, t.live, m.Emit(spirv.OpLogicalNot, l.typ(Bool), l.value(n.args[0])))
				begin()
				continue
			}
			l.node(n)
			if spill := t.spills[n]; spill != 0 {
				m.Do(spirv.OpStore, spill, l.values[n])
			}
		}
		for j := len(merges) - 1; j >= 0; j-- {
			m.Do(spirv.OpBranch, merges[j])
			m.Do(spirv.OpLabel, merges[j])
		}
	}
}

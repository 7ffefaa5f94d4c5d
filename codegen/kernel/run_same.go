package kernel

// Some of what kernels compute is the same for all lanes of a workgroup. Run computes that once, in lane 0, and copies it to the other
// lanes only where some node reads it by lane.

// findSame marks the nodes whose value is the same for all lanes that compute it, loops that all lanes go through as often, ifs that all or no
// lanes enter, and values that are read by lane.
func (f *Func) findSame() {
	f.body.walk(func(n *Node) {
		n.same = f.sameOf(n)
		for _, a := range n.args {
			n.same, a.same = n.same && (a.same || a.static()), a.same || a.static()
		}
		if n.op == OpFor {
			n.regions[0].param.same = n.same
		}
		if n.op == OpWhile {
			n.regions[0].result.wide = true
		}
		if !n.same {
			for _, a := range n.args {
				a.wide = true
			}
		}
	})
}

// sameOf reports whether a node is the same for all lanes if its operands are.
func (f *Func) sameOf(n *Node) bool {
	switch n.op {
	case OpBuiltin:
		return Builtin(n.imm) != SubgroupLane && Builtin(n.imm) != SubgroupID && Builtin(n.imm) != LocalID
	case OpLoad, OpLoad16: // nothing writes what is declared Read
		return f.Args[n.imm].Access == Read && !n.ahead
	case OpAddress, OpTable, OpFor, OpIf:
		return true
	}
	return n.op >= OpVec && n.op <= OpElem
}

// lanesOf is how many lanes have a value of their own of what n computes.
func (m *machine) lanesOf(n *Node) int {
	if n.same {
		return 1
	}
	return m.lanes
}

// spread copies what lane 0 has of n to the others, if they read it.
func (m *machine) spread(n *Node) {
	if !n.same || !n.wide {
		return
	}
	all := m.values[n.number]
	for done := len(all) / m.lanes; done < len(all); done *= 2 {
		copy(all[done:], all[:done])
	}
}

// count is a loop that all lanes go through as often, until all have left it.
func (m *machine) count(active []bool, body *Region, low, high, step uint32) {
	i := m.storage(body.param, 1)
	m.left = append(m.left, make([]bool, m.lanes))
	for ; low < high && m.err == nil; low += step {
		inside := append([]bool(nil), active...)
		m.stay(inside)
		if !anyLane(inside) {
			break
		}
		i[0] = low
		m.spread(body.param)
		m.region(body, inside)
	}
	m.left = m.left[:len(m.left)-1]
}

package kernel

// gate is a gate in Run: how often it was reached, and when last.
type gate struct {
	turns uint32
	at    int32
}

// open makes gates.
func (m *machine) open(n *Node, active []bool) {
	m.together(n, active, m.lanes)
	m.races.barrier(n, false)
	m.gates[int(n.imm)] = make([]gate, n.align)
}

// gateOf returns the gate that a node is about, at which all lanes are; nil if they are not or there is none.
func (m *machine) gateOf(n *Node, active []bool) *gate {
	m.together(n, active, m.lanes)
	if list := m.gates[int(n.imm)]; m.err == nil && n.align < len(list) {
		return &list[n.align]
	}
	m.fail(n, "gate %d of %d", n.align, len(m.gates[int(n.imm)]))
	return nil
}

func (m *machine) reach(n *Node, active []bool) {
	if g := m.gateOf(n, active); g != nil {
		g.turns, g.at = g.turns+1, m.races.tick(n.number)
	}
}

// reached orders what was before all lanes reached the gate, and no more.
func (m *machine) reached(n *Node, active []bool) {
	g := m.gateOf(n, active)
	if g == nil || m.isLeft(n) {
		return
	}
	for l, turn := range m.value(n.args[0]) {
		if g.turns == 0 || (g.turns-1)&1 != turn&1 {
			m.fail(n, "lane %d: gate %d was reached %d times, not in turn %d", l, n.align, g.turns, turn)
			return
		}
	}
	m.races.since = max(m.races.since, g.at)
}

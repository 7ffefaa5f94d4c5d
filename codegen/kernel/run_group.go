package kernel

// Products of four subgroups in Run. They are made when a wait has them done, of what the array then has: what
// has been written meanwhile shows in the sums, and is a race unless a barrier lies between.

// products are those under way, by group of subgroups, the oldest first.
type products map[int][]product

// product is a call of MatGroupAdd by a group of subgroups.
type product struct {
	node   *Node
	stride int
	at     []int
	a      [][]uint32 // of all its lanes
}

// groupOf returns the lanes of the groups that come to a node, which all of their subgroups have to.
func (m *machine) groupOf(n *Node, active []bool) []int {
	size := GroupSide * m.wave
	if m.wave != 32 || m.lanes%size != 0 {
		m.fail(n, "subgroups of %d, workgroups of %d", m.wave, m.lanes)
		return nil
	}
	return m.together(n, active, size)
}

func (m *machine) groupAdd(n *Node, active []bool) {
	stride, a, at, _ := n.Group()
	for _, g := range m.groupOf(n, active) {
		size := GroupSide * m.wave
		first := g * size
		p := product{node: n, stride: int(m.value(stride)[first])}
		for i := range at {
			p.at = append(p.at, int(m.value(at[i])[first]))
			count := m.words(a[i].typ)
			p.a = append(p.a, append([]uint32(nil), m.value(a[i])[first*count:][:size*count]...))
			for l := first; l < first+size; l++ {
				if v, s := int(m.value(at[i])[l]), int(m.value(stride)[l]); v != p.at[i] || s != p.stride {
					m.fail(n, "lane %d: element %d, stride %d; lane %d: element %d, stride %d", first, p.at[i], p.stride, l, v, s)
					return
				}
			}
		}
		m.products[g] = append(m.products[g], p)
		for i := range p.at { // what is there now must be seen
			m.groupColumns(p, i, first/m.wave)
		}
	}
}

// groupColumns returns B of product i by column, as a subgroup reads it.
func (m *machine) groupColumns(p product, i, subgroup int) [][16]float64 {
	_, _, _, sums := p.node.Group()
	words := m.shared[p.node.imm]
	columns := make([][16]float64, 8*len(sums))
	for c := range columns {
		for half := range 2 {
			word := 4 * (p.at[i] + half*p.stride + c)
			if word+4 > len(words) {
				m.fail(p.node, "element %d of an array of %d", word/4, len(words)/4)
				return nil
			}
			m.inShared(p.node, int(p.node.imm), word, 4, -1-subgroup)
			for e := range 8 {
				columns[c][8*half+e] = float64(matrixFloat(F16, words[word+e/2]>>(e%2*16)&0xffff))
			}
		}
	}
	return columns
}

// finish makes the oldest product of a group.
func (m *machine) finish(group int) {
	p := m.products[group][0]
	m.products[group] = m.products[group][1:]
	_, a, _, sums := p.node.Group()
	for i := range p.a {
		columns := m.groupColumns(p, i, group*GroupSide)
		if m.err != nil {
			return
		}
		for s := range GroupSide {
			rows := m.gather(a[i].typ, p.a[i], s*m.wave)
			first := (group*GroupSide + s) * m.wave
			for j, v := range sums {
				held := m.storage(v, m.words(v.typ))
				sum := m.gather(v.typ, held, first)
				for r := range sum {
					for c := range sum[r] {
						for k, x := range rows[r] {
							sum[r][c] += x * columns[8*j+c][k]
						}
					}
				}
				m.scatter(v.typ, sum, held, first)
			}
		}
	}
}

func (m *machine) groupWait(n *Node, active []bool) {
	for _, g := range m.groupOf(n, active) {
		for m.err == nil && len(m.products[g]) > int(n.imm) {
			m.finish(g)
		}
	}
}

// touch reports what reads or sets sums of products that are under way.
func (p products) touch(m *machine, n *Node, active []bool) {
	switch n.op {
	case OpVarGet, OpVarSet, OpVarElem, OpVarSetElem:
	default:
		return
	}
	for g, list := range p {
		if len(list) == 0 || !anyLane(active[g*GroupSide*m.wave:][:GroupSide*m.wave]) {
			continue
		}
		for _, one := range list {
			_, _, _, sums := one.node.Group()
			for _, v := range sums {
				if v == n.args[0] {
					m.fail(n, "products at %s are not waited for", one.node.place())
					return
				}
			}
		}
	}
}

package kernel

// Products of four subgroups in Run. They are made when a wait has them done, of what the array then has: what
// has been written meanwhile shows in the sums, and is a race unless a barrier lies between.

// products are those under way, by group of subgroups, the oldest first.
type products map[int][]product

// product is a call of MatGroup by a group of subgroups.
type product struct {
	Group
	node     *Node
	rows, at []int
	a        [][]uint32 // of all its lanes, if it is their own
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
	what := n.Group()
	for _, g := range m.groupOf(n, active) {
		size := GroupSide * m.wave
		first := g * size
		p := product{Group: what, node: n}
		for i, at := range what.At {
			p.at = append(p.at, m.groupPlace(n, at, first))
			if what.Left {
				p.rows = append(p.rows, m.groupPlace(n, what.A[i], first))
				continue
			}
			count := m.words(what.A[i].typ)
			p.a = append(p.a, append([]uint32(nil), m.value(what.A[i])[first*count:][:size*count]...))
		}
		if m.err != nil {
			return
		}
		m.products[g] = append(m.products[g], p)
		for i := range p.at { // what is there now must be seen
			m.groupRight(p, i, first/m.wave)
			for s := range GroupSide {
				m.groupLeft(p, i, first/m.wave+s)
			}
		}
	}
}

// groupPlace returns the element of the array that the lanes of a group, of which first is the first, name.
func (m *machine) groupPlace(n, at *Node, first int) int {
	list := m.value(at)
	for l := first; l < first+GroupSide*m.wave; l++ {
		if list[l] != list[first] {
			m.fail(n, "lane %d: element %d; lane %d: element %d", first, list[first], l, list[l])
		}
	}
	return int(list[first])
}

// groupEight returns the neighbours in an element of the array, as subgroups read it, from one on.
func (m *machine) groupEight(p product, element, subgroup, readers int) (eight [8]float64) {
	words := m.shared[p.node.imm]
	if 4*element+4 > len(words) {
		m.fail(p.node, "element %d of an array of %d", element, len(words)/4)
		return eight
	}
	for r := range readers {
		m.inShared(p.node, int(p.node.imm), 4*element, 4, -1-subgroup-r)
	}
	for e := range eight {
		eight[e] = float64(matrixFloat(F16, words[4*element+e/2]>>(e%2*16)&0xffff))
	}
	return eight
}

// inLine returns where an element lies, that many lines and elements on from one that is counted in order.
func (p product) inLine(from, lines, on int) int {
	e := from%8 + on
	line := from/8 + lines + e/8*p.Stride/8
	return 8*line + (e%8 ^ line%8)
}

// groupRight returns B of product i by column, as the subgroups of a group read it, of which the first is given.
func (m *machine) groupRight(p product, i, subgroup int) [][16]float64 {
	columns := make([][16]float64, 8*len(p.Sums))
	for from := 0; from < len(columns) && m.err == nil; from += 8 {
		for k := range 16 {
			if p.ByRow {
				for e, x := range m.groupEight(p, p.inLine(p.at[i], k, from/8), subgroup, GroupSide) {
					columns[from+e][k] = x
				}
				continue
			}
			c, half := from+k%8, k/8
			at := p.at[i] + half*p.Stride + c
			if p.Lines {
				at = p.inLine(p.at[i], c, half)
			}
			for e, x := range m.groupEight(p, at, subgroup, GroupSide) {
				columns[c][8*half+e] = x
			}
		}
	}
	return columns
}

// groupLeft returns the 16 rows of A of product i that a subgroup has, of 16 elements each.
func (m *machine) groupLeft(p product, i, subgroup int) (rows []float64) {
	if !p.Left {
		return m.gather(p.A[i].typ, p.a[i], subgroup%GroupSide*m.wave, 0)
	}
	for r := range 16 {
		for half := range 2 {
			eight := m.groupEight(p, p.inLine(p.rows[i], subgroup%GroupSide*16+r, half), subgroup, 1)
			rows = append(rows, eight[:]...)
		}
	}
	return rows
}

// finish makes the oldest product of a group.
func (m *machine) finish(group int) {
	p := m.products[group][0]
	m.products[group] = m.products[group][1:]
	for i := range p.at {
		columns := m.groupRight(p, i, group*GroupSide)
		for s := range GroupSide {
			rows := m.groupLeft(p, i, group*GroupSide+s)
			if m.err != nil {
				return
			}
			first := (group*GroupSide + s) * m.wave
			for j, v := range p.Sums {
				held := m.storage(v, m.words(v.typ))
				sums := m.gather(v.typ, held, first, 1)
				if p.Set && i == 0 {
					clear(sums)
				}
				for at := range sums {
					row, column, sum := rows[at/8*16:][:16], &columns[8*j+at%8], sums[at]
					for k, x := range row {
						sum += x * column[k]
					}
					sums[at] = sum
				}
				m.scatter(v.typ, sums, held, first)
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

// within reports whether products read of what a slot's last copy has brought: of lines, maybe.
func (p product) within(s *slot) bool {
	width := p.Stride + 8*len(p.Sums)
	if p.Lines {
		width = 8 * 8 * len(p.Sums)
	}
	if p.ByRow {
		width = (len(p.Sums)-1)/8*p.Stride + 8*16
	}
	for i, at := range p.at {
		if s.within(int(p.node.imm), 4*at, 4*width) || p.Left && s.within(int(p.node.imm), 4*p.rows[i], 4*8*16*GroupSide) {
			return true
		}
	}
	return false
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
			for _, v := range one.Sums {
				if v == n.args[0] {
					m.fail(n, "products at %s are not waited for", one.node.place())
					return
				}
			}
		}
	}
}

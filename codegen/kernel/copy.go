package kernel

import "encoding/binary"

// Copies from buffers to shared memory while lanes go on (cp.async of NVIDIA's Ampere and later): more bytes are
// on their way than registers hold.

// Copy starts to copy element i of the buffer, seen as an array of t (U32 or a vector of U32), to the array a of U32,
// from element to on. to is a multiple of the words of t. Nobody may read or write the copied elements of a until the
// lane has waited for the copy's group (CopyGroup, CopyWait). Of a buffer that is Ahead it does not wait for writers.
func (m *Buffer) Copy(t Type, a *Array, to, i Operand) { m.copy(t, a, to, i, false) }

// CopyLine is Copy of an element whose line the lane or others soon copy the rest of: memory may fetch the whole line.
func (m *Buffer) CopyLine(t Type, a *Array, to, i Operand) { m.copy(t, a, to, i, true) }

func (m *Buffer) copy(t Type, a *Array, to, i Operand, line bool) {
	m.check(OpCopy, t, Read)
	if t.Elem() != U32 || a.elem.Elem() != U32 || t.Size()%a.elem.Size() != 0 {
		m.b.fail("%s: %v into an array of %v", ops[OpCopy].name, t, a.elem)
	}
	m.b.add(&Node{op: OpCopy, imm: uint32(m.index), align: t.Size(), ahead: m.ahead, array: a, line: line, args: m.at(m.b.typed(OpCopy, i, U32), m.b.typed(OpCopy, to, U32))})
}

// CopyGroup makes the lane's copies since the last CopyGroup a group, which may be empty.
func (b *Builder) CopyGroup() { b.add(&Node{op: OpCopyGroup}) }

// CopyWait waits until at most the last left of the lane's groups are under way. The lane then sees the elements of
// the others; other lanes see them after a barrier.
func (b *Builder) CopyWait(left int) {
	if left < 0 || left > 7 {
		b.fail("%s for %d", ops[OpCopyWait].name, left)
	}
	b.add(&Node{op: OpCopyWait, imm: uint32(left)})
}

// copied is an element on its way.
type copied struct {
	array, at int
	words     []uint32
}

// copies are those of a lane: of the groups that it has not waited for, and of none yet.
type copies struct {
	groups [][]copied
	open   []copied
}

// copy leaves the element undefined until the lane waits.
func (m *machine) copy(n *Node, active []bool) {
	index, to := m.value(n.args[0]), m.value(n.args[1])
	var address []uint32
	if through := n.through(); through != nil {
		address = m.value(through)
	}
	width, words := n.align/4, m.shared[n.array.index]
	for l := range m.lanes {
		if !active[l] {
			continue
		}
		arg := int(n.imm)
		if address != nil {
			arg = int(address[2*l])
		}
		data, from, at := m.args[arg], int(index[l])*n.align, int(to[l])*n.array.elem.Lanes()
		switch {
		case from+n.align > len(data):
			m.fail(n, "lane %d: byte %d of argument %q, which has %d", l, from, m.f.Args[arg].Name, len(data))
			return
		case at+width > len(words):
			m.fail(n, "lane %d: element %d of an array of %d", l, to[l], len(words)/n.array.elem.Lanes())
			return
		case at%width != 0:
			m.fail(n, "lane %d: %d words to word %d", l, width, at)
			return
		}
		m.inBuffer(n, arg, from, n.align, l)
		m.inShared(n, n.array.index, at, width, l)
		c := copied{array: n.array.index, at: at}
		for e := range width {
			c.words = append(c.words, binary.LittleEndian.Uint32(data[from+4*e:]))
			words[at+e] = undefined
		}
		if n.ahead {
			w := m.accessOf(n)
			m.early(&w, arg, from, n.align, l, c.words)
		}
		m.copies[l].open = append(m.copies[l].open, c)
	}
}

func (m *machine) copyGroup(_ *Node, active []bool) {
	for l := range active {
		if c := &m.copies[l]; active[l] {
			c.groups, c.open = append(c.groups, c.open), nil
		}
	}
}

func (m *machine) copyWait(n *Node, active []bool) {
	for l := range active {
		for c := &m.copies[l]; active[l] && len(c.groups) > int(n.imm); c.groups = c.groups[1:] {
			for _, one := range c.groups[0] {
				m.inShared(n, one.array, one.at, len(one.words), l)
				copy(m.shared[one.array][one.at:], one.words)
			}
		}
	}
}

package kernel

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
)

// Table is an array of constants that lanes read at indices of their own. It lies in shared
// memory, which the workgroup fills before it does anything else.
type Table struct{ array *Array }

// Constants are what a table holds.
type Constants struct {
	Elem  Type
	Words []uint32
	table *Table
}

// Table declares a table of elements of type t: U32, or a vector of them. Tables of the same words
// are one.
func (b *Builder) Table(t Type, words []uint32) *Table {
	if t.Elem() != U32 || !t.inMemory() || len(words) == 0 || len(words)%t.Lanes() != 0 {
		b.fail("table of %d words of %v", len(words), t)
		t, words = U32, []uint32{0}
	}
	for _, c := range b.f.tables {
		if c.Elem == t && slices.Equal(c.Words, words) {
			return c.table
		}
	}
	table := &Table{b.Shared(t, len(words)/t.Lanes())}
	b.f.tables = append(b.f.tables, Constants{t, slices.Clone(words), table})
	return table
}

// Load returns element i.
func (t *Table) Load(i Operand) Value { return t.array.Load(i) }

// fillTables puts what fills the tables before what the kernel does.
func (b *Builder) fillTables() {
	if len(b.f.tables) == 0 || b.err != nil || b.f.workgroup == nil {
		return
	}
	rest := b.f.body.nodes
	b.f.body.nodes = nil
	lane := b.LocalID()
	for k, c := range b.f.tables {
		b.For(lane, len(c.Words)/c.Elem.Lanes(), b.WorkgroupSize(), func(i Value) {
			c.table.array.Store(i, b.add(&Node{op: OpTable, typ: c.Elem, imm: uint32(k), args: []*Node{i.n}}))
		})
	}
	b.Barrier()
	b.f.body.nodes = append(b.f.body.nodes, rest...)
}

// Tables returns the tables, by the index that OpTable has as Imm.
func (f *Func) Tables() []Constants {
	return f.tables
}

// tableElem reads a table's constants.
func (m *machine) tableElem(n *Node, active []bool) {
	width, words, index := n.typ.Lanes(), m.f.tables[n.imm].Words, m.value(n.args[0])
	to := m.storage(n, width)
	for l := range m.lanes {
		if active[l] {
			copy(to[l*width:][:width], words[int(index[l])*width:])
		}
	}
}

// tableString prints a table, long ones by their ends and a checksum.
func tableString(c Constants) string {
	list := func(words []uint32) (s string) {
		for _, w := range words {
			s += fmt.Sprintf(" %#x", w)
		}
		return
	}
	const most = 8
	if len(c.Words) <= most {
		return list(c.Words)
	}
	sum := fnv.New32a()
	for _, w := range c.Words {
		sum.Write(binary.LittleEndian.AppendUint32(nil, w))
	}
	return fmt.Sprintf("%s ...%s, fnv %#x", list(c.Words[:most/2]), list(c.Words[len(c.Words)-most/2:]), sum.Sum32())
}

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

// Constants are the constants of which a table is made.
type Constants struct {
	Words []uint32
	elem  func(word func(i Operand) Value, i Value) Value
	table *Table
}

// Table declares a table of n elements of type t: U32, or a vector of U32. elem computes element i from constants,
// which word reads; if elem is nil, the constants are the elements. Tables of the same type and constants are one
// table.
func (b *Builder) Table(t Type, n int, words []uint32, elem func(word func(i Operand) Value, i Value) Value) *Table {
	if elem == nil {
		elem = func(word func(i Operand) Value, i Value) Value { return word(i) }
	}
	if t.Elem() != U32 || n < 1 || len(words) == 0 {
		b.fail("table of %d %v, of %d words", n, t, len(words))
		t, n, words = U32, 1, []uint32{0}
	}
	for _, c := range b.f.tables {
		if c.table.array.elem == t && slices.Equal(c.Words, words) {
			return c.table
		}
	}
	table := &Table{b.Shared(t, n)}
	b.f.tables = append(b.f.tables, Constants{slices.Clone(words), elem, table})
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
		word := func(i Operand) Value {
			return b.add(&Node{op: OpTable, typ: U32, imm: uint32(k), args: []*Node{b.typed(OpTable, i, U32)}})
		}
		b.For(lane, Value{c.table.array.length}, b.WorkgroupSize(), func(i Value) { c.table.array.Store(i, c.elem(word, i)) })
	}
	b.Barrier()
	b.f.body.nodes = append(b.f.body.nodes, rest...)
}

// Tables returns the tables, by the index that OpTable has as Imm.
func (f *Func) Tables() []Constants {
	return f.tables
}

// constant reads a table's constants.
func (m *machine) constant(n *Node, active []bool) {
	words, index := m.f.tables[n.imm].Words, m.value(n.args[0])
	to := m.storage(n, 1)
	for l := range m.lanes {
		if !active[l] {
			continue
		}
		if int(index[l]) >= len(words) {
			m.fail(n, "lane %d: word %d of %d", l, index[l], len(words))
			return
		}
		to[l] = words[index[l]]
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

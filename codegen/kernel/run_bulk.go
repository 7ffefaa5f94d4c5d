package kernel

import (
	"encoding/binary"
	"slices"
)

// Copies in Run arrive when a subgroup waits for them. Until then nothing of use is where they go. A subgroup may
// access what they bring when it has waited, too.

// arrivals are the slots of an array: what has been begun of each and not arrived, and the turns that have ended.
type arrivals map[int][]slot

type slot struct {
	ended  uint32
	waited []uint32 // the turns that subgroups have waited for
	begun  []copied
	last   []copied        // what has arrived last
	done   map[int32]int32 // when subgroups were done with it
	freed  uint32          // how often all were
}

// arrange makes slots.
func (m *machine) arrange(n *Node, active []bool) {
	m.together(n, active, m.lanes)
	m.races.barrier(n, false)
	list := make([]slot, n.align)
	for i := range list {
		list[i].waited = make([]uint32, len(m.races.within))
	}
	m.arrivals[int(n.imm)] = list
}

// slotOf returns the slot that a node is about.
func (m *machine) slotOf(n *Node, array int, i uint32) *slot {
	if list := m.arrivals[array]; int(i) < len(list) {
		return &list[i]
	}
	m.fail(n, "slot %d of %d", i, len(m.arrivals[array]))
	return nil
}

// bulk begins what active lanes copy.
func (m *machine) bulk(n *Node, active []bool) {
	what := n.Bulk()
	from, to, slots := m.value(n.args[0]), m.value(what.At), m.value(what.Slot)
	for l := range m.lanes {
		if !active[l] || m.err != nil {
			continue
		}
		s := m.slotOf(n, what.Arrivals, slots[l])
		arg := int(n.imm)
		if through := n.through(); through != nil {
			arg = int(m.value(through)[2*l])
		}
		data, at, size := m.args[arg], 16*int(from[l]), 16*what.Elements
		c := copied{array: n.array.index, at: n.array.elem.Lanes() * int(to[l]), words: make([]uint32, size/4)}
		switch {
		case s == nil:
			return
		case at+size > len(data):
			m.fail(n, "lane %d: bytes %d to %d of argument %q, which has %d", l, at, at+size, m.f.Args[arg].Name, len(data))
			return
		case c.at+size/4 > len(m.shared[c.array]):
			m.fail(n, "lane %d: words %d to %d of an array of %d", l, c.at, c.at+size/4, len(m.shared[c.array]))
			return
		case c.at%4 > 0:
			m.fail(n, "lane %d: 16 bytes to word %d", l, c.at)
			return
		case what.All > 0 && (len(s.begun) > 0 || s.waited[m.races.subgroup(int16(l))] != s.ended):
			m.fail(n, "lane %d: slot %d has a copy that was not waited for", l, slots[l])
			return
		}
		m.inBuffer(n, arg, at, size, l)
		m.inShared(n, c.array, c.at, size/4, l)
		for i := range c.words {
			c.words[i] = binary.LittleEndian.Uint32(data[at+4*i:])
			m.shared[c.array][c.at+i] = undefined
		}
		m.races.shared[c.array].bring(c.at, len(c.words), brought{s, s.ended + 1})
		s.begun = append(s.begun, c)
	}
}

// arrive has subgroups wait for turns of slots.
func (m *machine) arrive(n *Node, active []bool) {
	slots, turns := m.value(n.args[0]), m.value(n.args[1])
	for _, subgroup := range m.together(n, active, m.wave) {
		first := subgroup * m.wave
		for l := first; l < min(first+m.wave, m.lanes); l++ {
			if slots[l] != slots[first] || turns[l] != turns[first] {
				m.fail(n, "lane %d: slot %d, turn %d; lane %d: slot %d, turn %d", first, slots[first], turns[first], l, slots[l], turns[l])
			}
		}
		s := m.slotOf(n, int(n.imm), slots[first])
		if m.err != nil {
			return
		}
		if s.ended&1 == turns[first]&1 {
			m.end(n, s, slots[first])
		}
		if s.waited[subgroup]+1 < s.ended {
			m.fail(n, "subgroup %d: slot %d has had a turn that it has not waited for", subgroup, slots[first])
		}
		s.waited[subgroup] = s.ended
	}
}

// end ends the turn of a slot.
func (m *machine) end(n *Node, s *slot, number uint32) {
	if len(s.begun) == 0 {
		m.fail(n, "slot %d: nothing will arrive", number)
		return
	}
	for _, c := range s.begun {
		copy(m.shared[c.array][c.at:], c.words)
		clear(m.races.shared[c.array].of(c.at, len(c.words))) // who may access it is in brought
	}
	s.last, s.begun, s.done, s.ended = s.begun, nil, map[int32]int32{}, s.ended+1
}

// within reports whether words of an array are of what the slot's last copy has brought.
func (s *slot) within(array, at, words int) bool {
	return slices.ContainsFunc(s.last, func(c copied) bool { return c.array == array && at < c.at+len(c.words) && c.at < at+words })
}

// done notes subgroups that are done with a slot.
func (m *machine) done(n *Node, active []bool) {
	slots := m.value(n.args[0])
	for _, subgroup := range m.together(n, active, m.wave) {
		s := m.slotOf(n, int(n.imm), slots[subgroup*m.wave])
		if m.err != nil {
			return
		}
		if s.last == nil || s.waited[subgroup] != s.ended || s.done[int32(subgroup)] > 0 {
			m.fail(n, "subgroup %d: nothing of slot %d to be done with", subgroup, slots[subgroup*m.wave])
			return
		}
		for _, p := range m.products[subgroup/GroupSide] {
			if p.within(s) {
				m.fail(n, "subgroup %d: products at %s are not waited for", subgroup, p.node.place())
			}
		}
		if s.done[int32(subgroup)] = m.races.now(); len(s.done) == m.lanes/m.wave {
			s.freed++
		}
	}
}

// free lets a lane copy again what all are done with.
func (m *machine) free(n *Node, active []bool) {
	slots, turns := m.value(n.args[0]), m.value(n.args[1])
	for l := range m.lanes {
		if !active[l] || m.err != nil {
			continue
		}
		s := m.slotOf(n, int(n.imm), slots[l])
		switch {
		case s == nil:
		case s.freed&1 != turns[l]&1:
			m.fail(n, "slot %d: not all subgroups will be done", slots[l])
		case s.last != nil && s.freed == s.ended:
			for _, c := range s.last {
				if v := m.afterDone(s, c); v != nil {
					m.fail(n, "slot %d: %s was done with it", slots[l], m.describe(*v))
					return
				}
			}
		}
	}
}

// afterDone returns an access of what a slot has brought by a subgroup that was done with it; else it is forgotten who
// accessed it.
func (m *machine) afterDone(s *slot, c copied) *visit {
	cells := m.races.shared[c.array].of(c.at, len(c.words))
	for i := range cells {
		for _, v := range []visit{cells[i].write, cells[i].read, cells[i].near, cells[i].far} {
			if v.time >= m.races.start && v.time > s.done[m.races.subgroup(v.lane)] {
				return &v
			}
		}
	}
	clear(cells)
	return nil
}

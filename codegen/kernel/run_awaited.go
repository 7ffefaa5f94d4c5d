package kernel

import "fmt"

// Who has waited for copies in Run. One wait orders the lanes of one subgroup with a copy, which races do not know.

// brought is what brings something: a slot in a turn, of which 1 is the first.
type brought struct {
	by   *slot
	turn uint32
}

// bring notes what brings words of an array.
func (s *shadow) bring(at, words int, by brought) {
	if s.brought == nil {
		s.brought = make([]brought, len(s.cells))
	}
	for i := range s.of(at, words) {
		s.brought[at/s.grain+i] = by
	}
}

// awaited checks that a subgroup that accesses words of an array has waited for the copies that bring them, if any do.
func (m *machine) awaited(array, at, words int, w *access) {
	s := m.races.shared[array]
	if s.brought == nil || m.err != nil {
		return
	}
	for i := range s.of(at, words) {
		if b := s.brought[at/s.grain+i]; b.by != nil && b.by.waited[w.subgroup] < b.turn {
			m.err = fmt.Errorf("word %d of shared array %d: %s, whose subgroup has not waited for the copy", at+i*s.grain, array, m.describe(w.visit))
			return
		}
	}
}

// allAwaited checks that some subgroup has waited for each copy: none may come when the workgroup is gone.
func (m *machine) allAwaited() {
	for _, list := range m.arrivals {
		for i, s := range list {
			if len(s.begun) > 0 && m.err == nil {
				m.err = fmt.Errorf("nobody waits for the last copy of slot %d", i)
			}
		}
	}
}

package machine

import (
	"slices"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
)

// Compares says whether the elements of an array are compared in a state: those of one that has begun, or ended with
// the last byte.
func (s *State) Compares() bool {
	return slices.ContainsFunc(s.places, func(p place) bool {
		return p.lexer.Behind != lex.Anything || p.then != nil && p.then.distinct
	})
}

// Compare returns a state without the places where elements of arrays are not as they must be; nil if none is left.
// behind says whether an element that has just ended, of the innermost array, lets its lexeme come. spent says whether
// the elements of an array from the outermost one on are all that the one which has begun can become; it gets how many
// different ones that are, at least, and a state of the rest of that element.
func (m *Machine) Compare(s *State, behind func(lex.Behind) bool, spent func(array, ways int, rest func() *State) bool) *State {
	keep := func(p place) bool {
		if p.lexer.Behind != lex.Anything && p.state == 0 && !behind(p.lexer.Behind) {
			return false
		}
		own := p.lexer.Behind == lex.Differs // the innermost array is between two elements
		ways := p.lexer.Ways(p.state)
		for c := p.then; spent != nil && c != nil && c.distinct; c = c.below {
			compares := c.item.Symbol != nil && c.item.Symbol.elements == DistinctElements
			if compares && !own && spent(int(c.arrays)-1, ways, func() *State {
				return m.single(place{p.lexer, p.state, m.above(p.then, c)})
			}) {
				return false
			}
			own = own && !compares
			if c.item.Symbol != nil && c.item.Symbol.ways != nil {
				ways = max(ways, c.item.Symbol.ways())
			}
		}
		return true
	}
	w := work{m: m, final: s.final}
	for _, p := range s.places {
		if keep(p) {
			w.places = append(w.places, p)
		}
	}
	if len(w.places) == len(s.places) {
		return s
	}
	return w.state()
}

// above returns a stack down to a cell, without it.
func (m *Machine) above(from, to *cell) *cell {
	if from == to {
		return nil
	}
	return m.push(from.item, m.above(from.below, to))
}

// Free says whether any text may follow in the string that all places of a state are in.
func (s *State) Free() bool {
	return !slices.ContainsFunc(s.places, func(p place) bool {
		_, any, _ := p.lexer.InString(p.state)
		return !any
	})
}

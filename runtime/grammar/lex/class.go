package lex

import "slices"

// Class is a set of code points, of which texts are known as a whole.
type Class uint8

// The classes, the largest first.
const (
	Plain Class = iota // may stand in a JSON string as they are
	Word               // ASCII's letters and digits, and _
	classes
)

// Classes are all of them.
var Classes = []Class{Plain, Word}

var classSets = [classes]Set{
	Plain: {{0x20, 0x21}, {0x23, 0x5b}, {0x5d, 0xd7ff}, {0xe000, MaxRune}},
	Word:  {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
}

// Has says whether a code point is of the class.
func (c Class) Has(r rune) bool {
	if c == Plain {
		return r >= 0x20 && r != '"' && r != '\\'
	}
	return classSets[c].Has(r)
}

// Far is a radius without end.
const Far = 1 << 30

// searchRadius bounds how many states Radius looks at.
const searchRadius = 512

// Radius returns how many code points of a class, any of them, may surely follow: Far if any number. exact says that
// more of them surely may not.
func (p *Pool) Radius(t *Term, c Class) (n int, exact bool) {
	if t == p.any {
		return Far, true
	}
	if t.op == opRep && t.a.op == opSet && contains(t.a.set, classSets[c]) {
		if t.hi < 0 {
			return Far, true
		}
		return int(t.hi), true
	}
	if t.op == opCat && t.a.op == opRep && t.a.a.op == opSet && !t.boolean && contains(t.a.a.set, classSets[c]) {
		if t.a.hi < 0 {
			return Far, true
		}
		return int(t.a.hi), false
	}
	if r := t.radius[c]; r > 0 {
		return int(r) - 1, false
	}
	seen := map[*Term]bool{t: true}
	ring := []*Term{t}
	radius := 0
search:
	for len(ring) > 0 {
		var next []*Term
		for _, s := range ring {
			edges := p.Edges(s)
			if !covers(edges, classSets[c]) || len(seen) > searchRadius {
				break search
			}
			for _, e := range edges {
				if !seen[e.To] && touches(e, classSets[c]) {
					seen[e.To] = true
					next = append(next, e.To)
				}
			}
		}
		ring = next
		radius++
	}
	if len(ring) == 0 {
		radius = Far
		for s := range seen {
			s.radius[c] = Far + 1
		}
	}
	t.radius[c] = int32(radius) + 1
	return radius, false
}

// contains says whether a set has all of another one.
func contains(s, of Set) bool { return slices.Equal(s.And(of), of) }

// touches says whether an edge is for a code point of a set.
func touches(e Edge, s Set) bool {
	for _, r := range s {
		if e.Lo <= r.Hi && e.Hi >= r.Lo {
			return true
		}
	}
	return false
}

// covers says whether edges lead on by all code points of a set.
func covers(edges []Edge, set Set) bool {
	i := 0
	for _, r := range set {
		at := r.Lo
		for at <= r.Hi {
			for i < len(edges) && edges[i].Hi < at {
				i++
			}
			if i == len(edges) || edges[i].Lo > at {
				return false
			}
			at = edges[i].Hi + 1
		}
	}
	return true
}

// Clip returns a language that has the same texts, and the same beginnings of texts, of at most n code points. What is
// counted farther than that counts no more.
func (p *Pool) Clip(t *Term, n int) *Term {
	switch {
	case t.boolean:
		return t
	case t.op == opRep && t.a.op == opSet:
		lo, hi := int(t.lo), int(t.hi)
		if lo > n+1 {
			lo = n + 1
		}
		if hi > n+1 {
			hi = -1
		}
		if lo == int(t.lo) && hi == int(t.hi) {
			return t
		}
		return p.Repeat(t.a, lo, hi)
	case t.op == opCat:
		if a := p.Clip(t.a, n); a != t.a {
			return p.Cat(a, t.b)
		}
	}
	return t
}

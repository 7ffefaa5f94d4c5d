package schema

import (
	"slices"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
)

// trieNode is a beginning of names.
type trieNode struct {
	runes    []rune  // that may follow, ascending
	to       []int32 // where they lead
	from, up int     // the names that begin so: from, and behind the last
	name     int     // the name that this is, -1: none
}

// newTrie returns the trie of sorted names. Node 0 is the root.
func newTrie(names []string) []trieNode {
	trie := []trieNode{{up: len(names), name: -1}}
	for i, name := range names {
		at := int32(0)
		for _, r := range name {
			n := &trie[at]
			if k := len(n.runes); k > 0 && n.runes[k-1] == r {
				at = n.to[k-1]
				trie[at].up = i + 1
				continue
			}
			next := int32(len(trie))
			n.runes, n.to = append(n.runes, r), append(n.to, next)
			trie = append(trie, trieNode{from: i, up: i + 1, name: -1})
			at = next
		}
		trie[at].name = i
	}
	return trie
}

// nameAt is a place in a name of an object: in the trie of the names that schemas know, in the language of other names,
// and in each pattern.
type nameAt struct {
	state   *objectState
	node    int32     // -1: no name begins so
	other   *lex.Term // nil: no other name begins so
	matches *matchAt  // nil: there are no patterns
	text    *letters  // if the object is guarded
}

// matchAt is a list of places in patterns.
type matchAt struct {
	head *lex.Term
	tail *matchAt
}

// at returns the place for all that are equal.
func (s *objectState) at(k nameAt) *nameAt {
	k.state = s
	p := s.keys[k]
	if p == nil {
		s.def.c.pool.Spend(1)
		p = &k
		s.keys[k] = p
	}
	return p
}

// matches returns the places in all patterns before the first code point.
func (d *objectDef) matches() *matchAt {
	var m *matchAt
	for _, p := range slices.Backward(d.patterns) {
		m = d.c.match(p.Term, m)
	}
	return m
}

// match returns the list for all that are equal.
func (c *compiler) match(head *lex.Term, tail *matchAt) *matchAt {
	k := matchAt{head, tail}
	if c.matchesAt == nil {
		c.matchesAt = map[matchAt]*matchAt{}
	}
	m := c.matchesAt[k]
	if m == nil {
		m = &k
		c.matchesAt[k] = m
	}
	return m
}

func (c *compiler) nextMatch(m *matchAt, r rune) *matchAt {
	if m == nil {
		return nil
	}
	t, ok := c.pool.Next(m.head, r)
	if !ok {
		t = c.pool.None()
	}
	return c.match(t, c.nextMatch(m.tail, r))
}

// nameRunes is the language of the names of an object.
type nameRunes struct{ *objectDef }

func (d nameRunes) Next(p any, r rune) (any, bool) {
	at := p.(*nameAt)
	s := at.state
	s.look()
	next := nameAt{node: -1}
	if at.node >= 0 {
		n := &d.trie[at.node]
		if i, ok := slices.BinarySearch(n.runes, r); ok {
			next.node = n.to[i]
		}
	}
	live := next.node >= 0 && s.below(next.node)
	if at.other != nil && s.any {
		if t, ok := d.c.pool.Next(at.other, r); ok {
			next.other, live = t, true
			next.matches = d.c.nextMatch(at.matches, r)
			if d.guarded {
				next.text = at.text.with(r)
			}
		}
	}
	if !live {
		return nil, false
	}
	return s.at(next), true
}

// below says whether a name of the trie that may come begins with a node.
func (s *objectState) below(node int32) bool {
	n := &s.def.trie[node]
	return s.sums[n.up] > s.sums[n.from]
}

func (d nameRunes) Any(p any, lo, hi rune) bool {
	at := p.(*nameAt)
	s := at.state
	s.look()
	if at.other != nil && s.any && d.c.pool.AnyOf(at.other, lo, hi) {
		return true
	}
	if at.node < 0 {
		return false
	}
	n := &d.trie[at.node]
	i, _ := slices.BinarySearch(n.runes, lo)
	for ; i < len(n.runes) && n.runes[i] <= hi; i++ {
		if s.below(n.to[i]) {
			return true
		}
	}
	return false
}

func (d nameRunes) Accept(p any) (out any, ok bool) {
	at := p.(*nameAt)
	s := at.state
	s.look()
	if at.node >= 0 {
		if i := d.trie[at.node].name; i >= 0 {
			if !s.adds[i] {
				return nil, false
			}
			return s.rest(i, nil), true
		}
	}
	if at.other == nil || !s.any || !at.other.Nullable() || d.guarded && !d.takes(at.text.text()) {
		return nil, false
	}
	var matches []bool
	for m := at.matches; m != nil; m = m.tail {
		p := d.patterns[len(matches)]
		matches = append(matches, m.head.Nullable() && (p.unless == nil || !p.unless(at.text.text())))
	}
	return s.rest(-1, matches), true
}

// takes says whether the schemas of names take one.
func (d nameRunes) takes(name string) bool {
	return !slices.ContainsFunc(d.rules, func(r *objects) bool { return r.names != nil && !d.c.nameHolds(r.names, name) })
}

func (d nameRunes) Radius(p any, c lex.Class) (int, bool) {
	at := p.(*nameAt)
	at.state.look()
	if at.other == nil || !at.state.any {
		return 0, false
	}
	n, exact := d.c.pool.Radius(at.other, c)
	return n, exact && at.node < 0
}

func (d nameRunes) Ways(p any) int {
	at := p.(*nameAt)
	if at.state.look(); at.other == nil || !at.state.any {
		return 0
	}
	return at.state.names(at.other)
}

func (d nameRunes) First(p any) (f lex.First) {
	at := p.(*nameAt)
	at.state.look()
	if at.other != nil && at.state.any {
		f.Add(d.c.pool, at.other)
	}
	if at.node >= 0 {
		for _, r := range d.trie[at.node].runes {
			f.AddRune(r)
		}
	}
	return f
}

func (d nameRunes) All(p any) bool {
	at := p.(*nameAt)
	at.state.look()
	return at.node < 0 && at.state.any && at.other == d.c.pool.Any() && at.matches == nil
}

// Other says whether a name may follow that is none of a list: names that schemas know come once by themselves.
func (d nameRunes) Other(p any, list []string) bool {
	at := p.(*nameAt)
	s := at.state
	s.look()
	return at.node >= 0 && s.below(at.node) || at.other != nil && s.any && d.c.pool.Other(at.other, list)
}

func (d nameRunes) Endless(p any) bool {
	at := p.(*nameAt)
	at.state.look()
	return at.other == d.c.pool.Any() && at.state.any
}

func (d nameRunes) Clip(p any, n int) any {
	at := p.(*nameAt)
	if at.other == nil || at.node >= 0 {
		return p
	}
	next := *at
	next.other = d.c.pool.Clip(at.other, n)
	return at.state.at(next)
}

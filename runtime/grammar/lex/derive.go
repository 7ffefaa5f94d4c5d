package lex

import "slices"

// Edges returns where code points lead from a term: ascending, without overlap, to languages that have a text.
func (p *Pool) Edges(t *Term) []Edge {
	edges := p.derive(t)
	if !t.boolean {
		return edges
	}
	var out []Edge
	for _, e := range edges {
		if p.Live(e.To) {
			out = append(out, e)
		}
	}
	return out
}

// derive returns the edges of a term, those to boolean terms whether they have a text or not.
func (p *Pool) derive(t *Term) []Edge {
	if t.expanded {
		return t.edges
	}
	var edges []Edge
	switch t.op {
	case opSet:
		for _, r := range t.set {
			edges = append(edges, Edge{r.Lo, r.Hi, p.empty})
		}
	case opCat:
		edges = p.follow(p.derive(t.a), t.b)
		if t.a.nullable {
			edges = p.union([][]Edge{edges, p.derive(t.b)})
		}
	case opRep:
		hi := t.hi
		if hi > 0 {
			hi--
		}
		edges = p.follow(p.derive(t.a), p.Repeat(t.a, int(max(t.lo-1, 0)), int(hi)))
	case opLater:
		edges = p.derive(t.later())
		t.later = nil
	case opOr:
		lists := make([][]Edge, len(t.list))
		for i, s := range t.list {
			lists[i] = p.derive(s)
		}
		edges = p.union(lists)
	case opAnd:
		edges = p.derive(t.list[0])
		for _, s := range t.list[1:] {
			edges = p.overlay(edges, p.derive(s), func(a, b *Term) *Term { return p.And(a, b) })
		}
	case opNot:
		for _, r := range all {
			edges = append(edges, Edge{r.Lo, r.Hi, p.none})
		}
		edges = p.overlay(edges, p.derive(t.a), func(a, b *Term) *Term { return p.Not(b) })
	}
	p.Spend(1 + len(edges)/16)
	t.edges, t.expanded = edges, true
	return edges
}

// follow puts a language behind all edges.
func (p *Pool) follow(edges []Edge, then *Term) []Edge {
	out := make([]Edge, len(edges))
	var last, made *Term
	for i, e := range edges {
		if e.To != last || i == 0 {
			last, made = e.To, p.cat(e.To, then)
		}
		out[i] = Edge{e.Lo, e.Hi, made}
	}
	return join(out)
}

// union lays edges over each other, two lists at a time.
func (p *Pool) union(lists [][]Edge) []Edge {
	switch len(lists) {
	case 0:
		return nil
	case 1:
		return lists[0]
	}
	half := len(lists) / 2
	return p.overlay(p.union(lists[:half]), p.union(lists[half:]), func(a, b *Term) *Term { return p.Or(a, b) })
}

// overlay joins two lists of edges: where both or one have an edge, f says where it leads. None stands for the other.
func (p *Pool) overlay(a, b []Edge, f func(a, b *Term) *Term) []Edge {
	out := make([]Edge, 0, len(a)+len(b))
	i, j := 0, 0
	at := rune(0)
	for i < len(a) || j < len(b) {
		next, end := rune(MaxRune+1), rune(MaxRune)
		x, y := p.none, p.none
		if i < len(a) {
			if a[i].Lo <= at {
				x, end = a[i].To, min(end, a[i].Hi)
			} else {
				end = min(end, a[i].Lo-1)
			}
			next = min(next, max(at, a[i].Lo))
		}
		if j < len(b) {
			if b[j].Lo <= at {
				y, end = b[j].To, min(end, b[j].Hi)
			} else {
				end = min(end, b[j].Lo-1)
			}
			next = min(next, max(at, b[j].Lo))
		}
		if next > at {
			at = next
			continue
		}
		if to := f(x, y); to != p.none {
			out = append(out, Edge{at, end, to})
		}
		at = end + 1
		if i < len(a) && a[i].Hi < at {
			i++
		}
		if j < len(b) && b[j].Hi < at {
			j++
		}
	}
	return join(out)
}

// join makes one edge of neighbours that lead to the same.
func join(edges []Edge) []Edge {
	out := edges[:0]
	for _, e := range edges {
		if n := len(out); n > 0 && out[n-1].To == e.To && out[n-1].Hi+1 == e.Lo {
			out[n-1].Hi = e.Hi
			continue
		}
		out = append(out, e)
	}
	return out
}

// Live says whether a language has any text. Without intersections and complements it has unless it is None; with them
// the automaton is searched for a state that ends a text.
func (p *Pool) Live(t *Term) bool {
	if t.live != 0 {
		return t.live > 0
	}
	if rest := p.uncounted(t); rest != nil && !p.Live(rest) {
		t.live = -1 // found among fewer states
		return false
	}
	from := map[*Term]*Term{t: nil}
	queue := []*Term{t}
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		if s.live > 0 || s.nullable {
			for ; s != nil; s = from[s] {
				s.live = 1
			}
			return true
		}
		for _, e := range p.derive(s) {
			if _, seen := from[e.To]; !seen && e.To.live >= 0 {
				from[e.To] = s
				queue = append(queue, e.To)
				p.Spend(1)
			}
		}
	}
	for _, s := range queue {
		s.live = -1
	}
	return false
}

// uncounted is an intersection without its bounds of the length; nil for other terms.
func (p *Pool) uncounted(t *Term) *Term {
	if t.op != opAnd {
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(t.list), func(s *Term) bool { return s.op == opRep && s.a == p.any.a })
	if len(rest) == len(t.list) || len(rest) == 0 {
		return nil
	}
	return p.And(rest...)
}

// Next returns where a code point leads; false: nowhere.
func (p *Pool) Next(t *Term, r rune) (*Term, bool) {
	edges := p.derive(t)
	lo, hi := 0, len(edges)
	for lo < hi {
		m := (lo + hi) / 2
		if edges[m].Hi < r {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo == len(edges) || edges[lo].Lo > r || !p.Live(edges[lo].To) {
		return nil, false
	}
	return edges[lo].To, true
}

// AnyOf says whether one of the code points lo to hi leads anywhere.
func (p *Pool) AnyOf(t *Term, lo, hi rune) bool {
	edges := p.derive(t)
	i, n := 0, len(edges)
	for i < n {
		m := (i + n) / 2
		if edges[m].Hi < lo {
			i = m + 1
		} else {
			n = m
		}
	}
	for ; i < len(edges) && edges[i].Lo <= hi; i++ {
		if p.Live(edges[i].To) {
			return true
		}
	}
	return false
}

// Has says whether a text is in the language.
func (p *Pool) Has(t *Term, text string) bool {
	for _, r := range text {
		var ok bool
		if t, ok = p.Next(t, r); !ok {
			return false
		}
	}
	return t.nullable
}

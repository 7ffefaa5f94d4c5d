package schema

import (
	"maps"
	"math/big"
	"slices"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
)

// complement returns the ways not to be valid by a union.
func (c *compiler) complement(n *node, alts []*alt, keyword string) ([]*alt, error) {
	out := []*alt{full()}
	for _, a := range alts {
		rest, err := c.without(n, keyword, a)
		if err != nil {
			return nil, err
		}
		if out, err = c.product(out, rest, n, keyword); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// without returns the ways not to be valid by an alt. It refuses what has names by formats without an automaton in a
// complement already.
func (c *compiler) without(n *node, keyword string, a *alt) ([]*alt, error) {
	general := n.refuse(keyword, "names by a format that has no automaton are not supported in it")
	var out []*alt
	if rest := allType &^ a.types; rest != 0 {
		out = append(out, &alt{types: rest})
	}
	if a.types&isNumber != 0 && !a.num.free() {
		for _, m := range a.num.complement() {
			out = append(out, &alt{types: isNumber, num: m})
		}
	}
	if a.types&isString != 0 {
		for _, t := range a.text {
			if t = c.pool.Not(t); c.pool.Live(t) {
				out = append(out, &alt{types: isString, text: []*lex.Term{t}})
			}
		}
	}
	if a.types&isString != 0 {
		for _, g := range a.guards {
			m := &alt{types: isString, guards: []guarded{{g.guard, !g.not}}}
			if c.join(m); m.types != 0 {
				out = append(out, m)
			}
		}
	}
	if a.types&isArray != 0 {
		for _, r := range a.arr {
			for _, m := range c.withoutArray(n, r) {
				out = append(out, &alt{types: isArray, arr: []*arrays{m}})
			}
		}
	}
	if a.types&isObject != 0 {
		for _, r := range a.obj {
			list, ok := c.withoutObject(n, r)
			if !ok {
				return nil, general
			}
			out = append(out, list...)
		}
	}
	return out, nil
}

// withoutArray returns the arrays of which one condition does not hold.
func (c *compiler) withoutArray(n *node, r *arrays) (out []*arrays) {
	if r.min > 0 {
		out = append(out, &arrays{max: r.min - 1})
	}
	if r.max >= 0 {
		out = append(out, &arrays{min: r.max + 1, max: -1})
	}
	for i, s := range r.prefix {
		prefix := make([]*node, i+1)
		for j := range i {
			prefix[j] = c.anything(n)
		}
		prefix[i] = c.not(s)
		out = append(out, &arrays{prefix: prefix, min: i + 1, max: -1})
	}
	if r.rest != nil {
		out = append(out, &arrays{some: []some{{from: len(r.prefix), node: c.not(r.rest), min: 1, max: -1}}, max: -1})
	}
	for _, s := range r.some {
		if s.min > 0 {
			few := s
			few.min, few.max, few.not = 0, s.min-1, c.not(s.node)
			out = append(out, &arrays{some: []some{few}, max: -1})
		}
		if s.max >= 0 {
			many := s
			many.min, many.max, many.not = s.max+1, -1, nil
			out = append(out, &arrays{some: []some{many}, max: -1})
		}
	}
	if r.repeats != anyRepeats {
		out = append(out, &arrays{repeats: differ + equalOnes - r.repeats, max: -1})
	}
	return out
}

// not is the schema of what is not valid by another one.
func (c *compiler) not(s *node) *node { return c.made(s, s.value, "not") }

// withoutObject returns the objects of which one condition does not hold; false if that is not supported.
func (c *compiler) withoutObject(n *node, r *objects) ([]*alt, bool) {
	var out []*alt
	// What tells objects apart comes first; all else is said of objects that are alike in it.
	told := []*objects{}
	add := func(o objects) { out = append(out, &alt{types: isObject, obj: append([]*objects{&o}, told...)}) }
	names := slices.Sorted(maps.Keys(r.props))
	for _, name := range names {
		if stringsOf(r.props[name].value) == nil {
			continue
		}
		absent := objects{props: map[string]*node{name: c.never(n)}, max: -1}
		if slices.Contains(r.required, name) {
			add(absent)
		}
		add(objects{props: map[string]*node{name: c.not(r.props[name])}, required: []string{name}, max: -1})
		if slices.Contains(r.required, name) {
			told = append(told, &objects{props: map[string]*node{name: r.props[name]}, required: []string{name}, max: -1})
		}
	}
	for _, name := range r.required {
		if s := r.props[name]; s == nil || stringsOf(s.value) == nil {
			add(objects{props: map[string]*node{name: c.never(n)}, max: -1})
		}
	}
	for _, name := range names {
		if stringsOf(r.props[name].value) == nil {
			add(objects{props: map[string]*node{name: c.not(r.props[name])}, required: []string{name}, max: -1})
		}
	}
	p := c.pool
	unknown := make([]*lex.Term, 0, len(r.props)+len(r.patterns))
	for name := range r.props {
		unknown = append(unknown, p.Text(name))
	}
	for _, s := range r.patterns {
		unknown = append(unknown, s.Term)
		add(objects{some: []pattern{{Term: s.Term, node: c.not(s.node)}}, max: -1})
	}
	if r.extra != nil {
		add(objects{some: []pattern{{Term: p.Not(p.Or(unknown...)), node: c.not(r.extra)}}, max: -1})
	}
	if r.names != nil {
		add(objects{some: []pattern{c.otherNames(n, r.names)}, max: -1})
	}
	for _, s := range r.some {
		if s.unless != nil {
			return nil, false
		}
		add(objects{patterns: []pattern{{Term: s.Term, node: c.not(s.node)}}, max: -1})
	}
	for _, name := range slices.Sorted(maps.Keys(r.needs)) {
		for _, other := range r.needs[name] {
			add(objects{props: map[string]*node{other: c.never(n)}, required: []string{name}, max: -1})
		}
	}
	if r.min > 0 {
		add(objects{max: r.min - 1})
	}
	if r.max >= 0 {
		add(objects{min: r.max + 1, max: -1})
	}
	return out, true
}

// otherNames are members of names that are not valid by a schema.
func (c *compiler) otherNames(n, names *node) pattern {
	p := pattern{node: c.anything(n)}
	var all []*lex.Term
	for _, a := range c.must(c.union(names)).alts {
		if a.types&isString == 0 {
			continue
		}
		all = append(all, c.bounds(a, true))
		if len(a.guards) > 0 && c.o.Documents { // names are decided at their end
			p.Term, p.unless = c.pool.Any(), func(name string) bool { return c.nameHolds(names, name) }
			return p
		}
	}
	p.Term = c.pool.Not(c.pool.Or(all...))
	return p
}

// complement returns sets whose union is all other numbers.
func (a num) complement() (out []num) {
	if a.listed { // and what else there is does not count
		return []num{{not: a.values}}
	}
	if a.mult != nil {
		out = append(out, num{apart: []*big.Rat{a.mult}})
	}
	for _, m := range a.apart {
		out = append(out, num{mult: m})
	}
	if a.lo != nil {
		out = append(out, num{hi: a.lo, hiOpen: !a.loOpen})
	}
	if a.hi != nil {
		out = append(out, num{lo: a.hi, loOpen: !a.hiOpen})
	}
	for _, v := range a.not {
		out = append(out, num{lo: v, hi: v})
	}
	return out
}

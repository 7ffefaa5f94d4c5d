package schema

import (
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

// without returns the ways not to be valid by an alt. It refuses what would need more than types, constants, bounds,
// patterns and the presence of members.
func (c *compiler) without(n *node, keyword string, a *alt) ([]*alt, error) {
	general := n.refuse(keyword, "only types, constants, bounds, patterns and required members are supported in it")
	var out []*alt
	if rest := allType &^ a.types; rest != 0 {
		out = append(out, &alt{types: rest})
	}
	if a.types&isNumber != 0 && !a.num.free() {
		list, ok := a.num.complement()
		if !ok {
			return nil, general
		}
		for _, m := range list {
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
			if len(r.prefix) > 0 || r.rest != nil {
				return nil, general
			}
			if r.min > 0 {
				out = append(out, &alt{types: isArray, arr: []*arrays{{max: r.min - 1}}})
			}
			if r.max >= 0 {
				out = append(out, &alt{types: isArray, arr: []*arrays{{min: r.max + 1, max: -1}}})
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

func (c *compiler) withoutObject(n *node, r *objects) ([]*alt, bool) {
	if len(r.patterns) > 0 || r.extra != nil || r.names != nil || len(r.needs) > 0 {
		return nil, false
	}
	var out []*alt
	add := func(o objects) { out = append(out, &alt{types: isObject, obj: []*objects{&o}}) }
	for _, name := range r.required {
		add(objects{props: map[string]*node{name: c.never(n)}, max: -1})
	}
	for name, s := range r.props {
		add(objects{props: map[string]*node{name: c.made(s, s.value, "not")}, required: []string{name}, max: -1})
	}
	if r.min > 0 {
		add(objects{max: r.min - 1})
	}
	if r.max >= 0 {
		add(objects{min: r.max + 1, max: -1})
	}
	return out, true
}

// complement returns sets whose union is all other numbers; false if there are no such sets.
func (a num) complement() ([]num, bool) {
	if a.mult != nil {
		return nil, false
	}
	var out []num
	if a.listed {
		out = append(out, num{not: a.values})
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
	return out, true
}

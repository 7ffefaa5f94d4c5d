package schema

import (
	"math/big"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
)

// inhabitation says what is known of whether anything is valid.
type inhabitation int8

const (
	notKnown inhabitation = iota
	searched              // further up
	something
	nothing
)

// inhabited says whether a value is valid by a union. Values are finite, so a schema that needs itself is not.
func (c *compiler) inhabited(u *union) bool {
	ok, _ := c.search(u)
	return ok
}

// search is inhabited. sure says that the answer does not depend on a search that goes on further up.
func (c *compiler) search(u *union) (ok, sure bool) {
	switch u.state {
	case something, nothing:
		return u.state == something, true
	case searched:
		return false, false
	}
	c.must(u)
	u.state = searched
	sure = true
	for _, a := range u.alts {
		has, certain := c.searchAlt(u, a)
		if has {
			u.state = something
			return true, true
		}
		sure = sure && certain
	}
	u.state = notKnown
	if sure {
		u.state = nothing
	}
	return false, sure
}

func (c *compiler) searchAlt(u *union, a *alt) (ok, sure bool) {
	if a.types&(isBool|isNull|isNumber|isString) != 0 {
		return true, true // both has looked at them
	}
	sure = true
	if a.types&isArray != 0 {
		d := c.array(u, a)
		all, certain := d.max < 0 || d.min <= d.max, true
		for i := 0; i < min(d.min, len(d.prefix)+1) && all; i++ {
			all, certain = c.search(d.element(i))
		}
		if all {
			return true, true
		}
		sure = sure && certain
	}
	if a.types&isObject != 0 {
		has, certain := c.object(u, a).possible()
		if has {
			return true, true
		}
		sure = sure && certain
	}
	return false, sure
}

// disjoint refuses a oneOf of which a value may be valid by two branches.
func (c *compiler) disjoint(x exclusive) error {
	for i, one := range x.list {
		for j, other := range x.list[:i] {
			for _, a := range one {
				for _, b := range other {
					c.pool.Spend(1)
					if apart(a, b) {
						continue
					}
					m := c.both(a, b)
					if m == nil {
						continue
					}
					if c.overlaps(m) {
						return x.node.refuse("oneOf", overlap(j, i))
					}
				}
			}
		}
	}
	return nil
}

// overlaps says whether a value is valid by an alt of two others. Of objects it looks at the members that are required first.
func (c *compiler) overlaps(m *alt) bool {
	if m.types == isObject {
		for _, r := range m.obj {
			for _, name := range r.required {
				if !c.inhabited(c.valueOf(m.obj, name)) {
					return false
				}
			}
		}
	}
	return c.inhabited(&union{alts: []*alt{m}, made: true, arrays: map[*alt]*arrayDef{}, objects: map[*alt]*objectDef{}})
}

func overlap(i, j int) string {
	return "branches " + big.NewInt(int64(i)).String() + " and " + big.NewInt(int64(j)).String() + " overlap; anyOf takes both"
}

// apart says of two alts at a glance that no value is valid by both: of objects that one member, which one of them
// requires, tells apart by its constants.
func apart(a, b *alt) bool {
	if a.types&b.types != isObject {
		return a.types&b.types == 0
	}
	for _, r := range slices.Concat(a.obj, b.obj) {
		for _, name := range r.required {
			x, y := constantsOf(a, name), constantsOf(b, name)
			if x == nil || y == nil {
				continue
			}
			if !slices.ContainsFunc(x, func(s string) bool { return slices.Contains(y, s) }) {
				return true
			}
		}
	}
	return false
}

// constantsOf returns the strings that a member may be, nil if it may be something else.
func constantsOf(a *alt, name string) []string {
	for _, r := range a.obj {
		s := r.props[name]
		if s == nil || s.kind != object {
			continue
		}
		list := []*value{s.get("const")}
		if list[0] == nil {
			e := s.get("enum")
			if e == nil {
				continue
			}
			list = e.list
		}
		var out []string
		for _, v := range list {
			if v.kind != str {
				return nil
			}
			out = append(out, v.text)
		}
		return out
	}
	return nil
}

// nameTerm returns the strings that are valid by a schema.
func (c *compiler) nameTerm(n *node) *lex.Term {
	var list []*lex.Term
	for _, a := range c.must(c.union(n)).alts {
		if a.types&isString != 0 {
			list = append(list, c.pool.And(a.text...))
		}
	}
	return c.pool.Or(list...)
}

// sortedNames returns names in the order of their code points, once each.
func sortedNames(names []string) []string {
	slices.SortFunc(names, strings.Compare)
	return slices.Compact(names)
}

package schema

import (
	"slices"
	"strconv"
)

// apart takes out of the branches of a oneOf what several of them take: of each type where two take all its values, and
// where a branch says little enough that its complement is known.
func (c *compiler) apart(n *node, list [][]*alt) ([][]*alt, error) {
	var once, twice types
	for _, branch := range list {
		all := types(0)
		for _, a := range branch {
			all |= a.whole()
		}
		twice |= once & all
		once |= all
	}
	out := make([][]*alt, len(list))
	for i, branch := range list {
		for _, a := range branch {
			b := *a
			if b.types &^= twice; b.types != 0 {
				out[i] = append(out[i], &b)
			}
		}
	}
	for _, branch := range out {
		if slices.ContainsFunc(branch, func(a *alt) bool { return !a.simple() }) || len(out) > maxComplements {
			return out, nil
		}
	}
	// Of each branch what none of the others takes.
	alone := slices.Clone(out)
	for i := range out {
		for j, other := range out {
			for _, a := range other {
				if j == i {
					continue
				}
				rest, err := c.without(n, "oneOf", a)
				if err != nil {
					return nil, err
				}
				if alone[i], err = c.product(alone[i], rest, n, "oneOf"); err != nil {
					return nil, err
				}
			}
		}
	}
	return alone, nil
}

// simple says whether without knows the complement of an alt by itself.
func (a *alt) simple() bool {
	return a.num.mult == nil &&
		!slices.ContainsFunc(a.arr, func(r *arrays) bool { return len(r.prefix) > 0 || r.rest != nil }) &&
		!slices.ContainsFunc(a.obj, func(r *objects) bool {
			return len(r.props) > 0 || len(r.patterns) > 0 || r.extra != nil || r.names != nil || len(r.needs) > 0
		})
}

// maxComplements is how many branches of a oneOf are told apart by their complements.
const maxComplements = 8

// whole are the types of which all values are valid.
func (a *alt) whole() types {
	t := a.types & (isNull | isBool)
	for _, x := range []struct {
		bit types
		all bool
	}{{isNumber, a.num.free()}, {isString, len(a.text)+len(a.guards) == 0}, {isArray, len(a.arr) == 0}, {isObject, len(a.obj) == 0}} {
		if x.all {
			t |= a.types & x.bit
		}
	}
	return t
}

// disjoint refuses a oneOf of which a value may be valid by two branches.
func (c *compiler) disjoint(x exclusive) error {
	for i, one := range x.list {
		for j, other := range x.list[:i] {
			for _, a := range one {
				for _, b := range other {
					c.pool.Spend(1)
					if distinct(a, b) {
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

// overlaps says whether a value is valid by an alt of two others. Of objects it looks at the members that are required
// first.
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
	return "branches " + strconv.Itoa(i) + " and " + strconv.Itoa(j) + " overlap; anyOf takes both"
}

// distinct says of two alts at a glance that no value is valid by both: of objects that one member, which one of them
// requires, tells apart by its constants.
func distinct(a, b *alt) bool {
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

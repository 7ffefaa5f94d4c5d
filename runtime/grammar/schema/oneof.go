package schema

import (
	"reflect"
	"slices"
	"strconv"
)

// apart takes out of the branches of a oneOf what several of them take: of each type where two take all its values, and
// of those that are known to share values what the other one takes.
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
	// Of each branch what none of those takes that it shares values with. Of two that are written alike nothing is
	// left: to take one out of the other would leave ways that no value goes.
	alone, written := slices.Clone(out), n.get("oneOf").list
	for _, p := range c.shared[n.value] {
		if alone[p[0]] == nil && alone[p[1]] == nil {
			continue
		}
		if reflect.DeepEqual(written[p[0]], written[p[1]]) {
			alone[p[0]], alone[p[1]] = nil, nil
			continue
		}
		for _, x := range [][2]int{p, {p[1], p[0]}} {
			rest, err := c.complement(n, out[x[1]], "oneOf")
			if err == nil {
				alone[x[0]], err = c.product(alone[x[0]], rest, n, "oneOf")
			}
			if e, ok := err.(*Error); ok && e.Refused {
				return nil, n.refuse("oneOf", overlap(p[0], p[1]))
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return alone, nil
}

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

// disjoint finds the branches of a oneOf of which a value may be valid by two. Which these are is known when all
// schemas are there; then they are read again.
func (c *compiler) disjoint(x exclusive) {
	for i := range x.list {
		for j := range i {
			pair := [2]int{j, i}
			if !slices.Contains(c.shared[x.node.value], pair) && c.share(x.list[i], x.list[j]) {
				c.shared[x.node.value] = append(c.shared[x.node.value], pair)
				c.again = true
			}
		}
	}
}

// share says whether a value is valid by two unions.
func (c *compiler) share(one, other []*alt) bool {
	for _, a := range one {
		for _, b := range other {
			c.pool.Spend(1)
			if m := c.both(a, b); m != nil && c.overlaps(m) {
				return true
			}
		}
	}
	return false
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

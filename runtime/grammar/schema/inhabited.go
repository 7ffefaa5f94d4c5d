package schema

import (
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
	if a.types&(isBool|isNull|isNumber|isString) != 0 { // both has looked at them
		if a.types&(isBool|isNull|isNumber) != 0 || c.o.Notation != Gemma {
			return true, true
		}
		if t, _ := c.strings(a); c.pool.Live(t) {
			return true, true
		}
	}
	sure = true
	if a.types&isArray != 0 {
		d := c.array(u, a)
		all, certain := d.reaches(d.begin(), c.search)
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

// nameTerm returns the strings that are valid by a schema.
func (c *compiler) nameTerm(n *node) *lex.Term {
	var list []*lex.Term
	for _, a := range c.must(c.union(n)).alts {
		if a.types&isString != 0 {
			t, _ := c.strings(a)
			list = append(list, t)
		}
	}
	return c.pool.Or(list...)
}

// nameHolds says whether a string is valid by a schema.
func (c *compiler) nameHolds(n *node, name string) bool {
	return slices.ContainsFunc(c.must(c.union(n)).alts, func(a *alt) bool {
		if a.types&isString == 0 {
			return false
		}
		t, guards := c.strings(a)
		return c.pool.Has(t, name) && (&alt{guards: guards}).accepts(name)
	})
}

// guardsNames says whether a schema of names has guards.
func (c *compiler) guardsNames(n *node) bool {
	return n != nil && slices.ContainsFunc(c.must(c.union(n)).alts, func(a *alt) bool {
		if a.types&isString == 0 {
			return false
		}
		_, guards := c.strings(a)
		return len(guards) > 0
	})
}

// sortedNames returns names in the order of their code points, once each.
func sortedNames(names []string) []string {
	slices.SortFunc(names, strings.Compare)
	return slices.Compact(names)
}

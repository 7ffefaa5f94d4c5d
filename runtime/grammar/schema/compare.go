package schema

import (
	"math/big"
	"slices"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
)

// compare prepares arrays whose elements must differ, or of which two must be equal. Where there are few values, an
// array has no more elements than these.
func (d *arrayDef) compare(u *union) {
	c := d.c
	c.compares = true
	refuse := func(why string) {
		path := ""
		if len(u.nodes) > 0 {
			path = u.nodes[0].path
		}
		panic(&Error{Keyword: "uniqueItems", Path: path, Problem: why, Refused: true})
	}
	if c.o.Notation != JSON {
		refuse("is not supported in calls of this form")
	}
	if d.repeats == equalOnes {
		d.min = max(d.min, 2)
		if d.max >= 0 || len(d.prefix) > 0 || slices.ContainsFunc(d.some, func(s some) bool { return s.max >= 0 }) {
			refuse("is supported in a complement for arrays without bounds only")
		}
		return
	}
	if c.o.Documents || d.max >= 0 && d.max <= 1 {
		return
	}
	few := false
	for i, e := range append(d.prefix[:len(d.prefix):len(d.prefix)], d.rest) {
		n, known := c.values(e, map[*union]bool{})
		switch {
		case !known:
			refuse("is not supported for elements of which there are few and that are no constants, numbers or strings")
		case n == lex.Many || n == 0:
		case i > 0 || len(d.prefix) > 0 || len(d.some) > 0:
			few = true
		case d.max < 0 || n < d.max:
			d.max = n
		}
	}
	if few {
		refuse("is not supported for elements of which there are few, beside others or contains")
	}
}

// maxValues is how many numbers are counted one by one.
const maxValues = 1 << 12

// values counts the values of a union, at most lex.Many; false if they cannot be counted. above are unions that have
// this one in them.
func (c *compiler) values(u *union, above map[*union]bool) (n int, known bool) {
	if above[u] {
		return 0, true // counted there; if there are any, they have no end
	}
	above[u] = true
	defer delete(above, u)
	if !c.inhabited(u) {
		return 0, true
	}
	var words types
	var texts []*lex.Term
	numbers := map[string]bool{}
	few := 0 // alts of arrays and objects that have few values
	for _, a := range c.must(u).alts {
		words |= a.types & (isNull | isBool)
		if a.types&isString != 0 {
			t, _ := c.strings(a)
			texts = append(texts, t)
		}
		if a.types&isNumber != 0 && !a.num.list(numbers) {
			return lex.Many, true
		}
		if a.types&isArray != 0 {
			d := c.array(u, a)
			switch c.arrayValues(d, above) {
			case many:
				return lex.Many, true
			case several:
				few++
			case single:
				n++
			}
			if len(d.some) > 0 {
				continue
			}
		}
		if a.types&isObject != 0 {
			switch c.objectValues(c.object(u, a), above) {
			case many:
				return lex.Many, true
			case several:
				few++
			case single:
				n++
			}
		}
	}
	if t := c.pool.Or(texts...); c.pool.Live(t) {
		n += c.pool.Words(t)
	}
	for _, bit := range []types{isNull, isTrue, isFalse} {
		if words&bit != 0 {
			n++
		}
	}
	n = min(lex.Many, n+len(numbers))
	return n, few == 0 || n == lex.Many
}

// amount is how many values there are, as far as counting goes.
type amount uint8

const (
	none amount = iota
	single
	several // but not many
	many
)

func (c *compiler) arrayValues(d *arrayDef, above map[*union]bool) amount {
	if len(d.some) > 0 {
		return several
	}
	if d.max < 0 && c.inhabited(d.rest) && d.repeats == anyRepeats {
		return many
	}
	for i := 0; (d.max < 0 || i < d.max) && i <= len(d.prefix); i++ {
		if m, ok := c.values(d.element(i), above); m == lex.Many && ok {
			return many
		}
	}
	switch {
	case !d.completes(d.begin()):
		return none
	case d.max == 0:
		return single
	}
	return several
}

func (c *compiler) objectValues(d *objectDef, above map[*union]bool) amount {
	s := d.state("", 0, 0)
	if !s.completes() {
		return none
	}
	if s.look(); s.any && c.pool.Words(s.other) == lex.Many {
		return many
	}
	endless := false
	for i := range d.names {
		if s.adds[i] {
			s.next(i, nil, func(u *union, _ *objectState) bool {
				m, ok := c.values(u, above)
				endless = endless || m == lex.Many && ok
				return !endless
			})
		}
	}
	switch {
	case endless:
		return many
	case len(d.names) == 0 || d.max == 0:
		return single
	}
	return several
}

// list adds the numbers of a set to a list; false if they have no end, or are many.
func (a num) list(to map[string]bool) bool {
	if a.listed {
		for _, v := range a.values {
			to[v.RatString()] = true
		}
		return true
	}
	if a.lo == nil || a.hi == nil || a.mult == nil {
		if a.lo != nil && a.hi != nil && a.lo.Cmp(a.hi) == 0 {
			to[a.lo.RatString()] = true
			return true
		}
		return false
	}
	first, last := ceil(new(big.Rat).Quo(a.lo, a.mult)), floor(new(big.Rat).Quo(a.hi, a.mult))
	if n := new(big.Int).Sub(last, first); !n.IsInt64() || n.Int64() > maxValues {
		return false
	}
	for q := first; q.Cmp(last) <= 0; q.Add(q, one) {
		if v := new(big.Rat).Mul(new(big.Rat).SetInt(q), a.mult); a.fits(v) {
			to[v.RatString()] = true
		}
	}
	return true
}

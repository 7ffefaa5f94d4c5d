package schema

import (
	"math/big"
	"slices"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
)

// alt is one way to be valid: a set of types, and for each what holds of values of that type. A schema is a union of
// alts.
type alt struct {
	types types
	num   num
	text  []*lex.Term // all hold
	arr   []*arrays   // all hold
	obj   []*objects  // all hold

	guards []guarded // of strings; all hold

	told map[string]*mark // what marks returns
}

type types uint8

const (
	isNull types = 1 << iota
	isTrue
	isFalse
	isNumber
	isString
	isArray
	isObject
	isBool  = isTrue | isFalse
	allType = isNull | isBool | isNumber | isString | isArray | isObject
)

// arrays is what one schema says of arrays.
type arrays struct {
	prefix   []*node
	rest     *node // nil: anything
	some     []some
	min, max int // max < 0: without end
	repeats  repeats
}

// repeats says whether elements of an array may be equal.
type repeats int8

const (
	anyRepeats repeats = iota
	differ             // no two are
	equalOnes          // some two are
)

// some is a count of the elements, from one on, that are valid by a schema.
type some struct {
	from     int
	node     *node
	not      *node // its complement, if there is a bound above
	min, max int   // max < 0: without end
}

// objects is what one schema says of objects.
type objects struct {
	props    map[string]*node
	patterns []pattern
	extra    *node     // of names that none of these have; nil: anything
	names    *node     // of all names, as strings; nil: anything
	some     []pattern // a member of such a name has such a value
	required []string
	needs    map[string][]string // names that come with a name
	min, max int
}

type pattern struct {
	*lex.Term
	node   *node
	unless func(name string) bool // of some: names of the term that do not count; nil: all do
}

// has says whether a name is one of a pattern.
func (c *compiler) has(p pattern, name string) bool {
	return c.pool.Has(p.Term, name) && (p.unless == nil || !p.unless(name))
}

// both returns what is valid by a and by b; nil if nothing is, as far as types and strings say.
func (c *compiler) both(a, b *alt) *alt {
	m := &alt{types: a.types & b.types, num: a.num.and(b.num)}
	if m.types&isString != 0 {
		m.text, m.guards = slices.Concat(a.text, b.text), slices.Concat(a.guards, b.guards)
		if len(a.text)+len(a.guards) > 0 && len(b.text)+len(b.guards) > 0 {
			c.join(m)
		}
	}
	if m.types&isArray != 0 {
		m.arr = slices.Concat(a.arr, b.arr)
	}
	if m.types&isObject != 0 {
		if m.obj = slices.Concat(a.obj, b.obj); len(a.obj) > 0 && len(b.obj) > 0 && clash(a, b) {
			m.types, m.obj = m.types&^isObject, nil
		}
	}
	if m.types&isNumber != 0 && m.num.none() {
		m.types &^= isNumber
	}
	if m.types == 0 {
		return nil
	}
	return m
}

// join makes one condition of what holds of strings, and takes these out if there are none.
func (c *compiler) join(m *alt) {
	if t, _ := c.strings(m); !c.pool.Live(t) {
		m.types, m.text, m.guards = m.types&^isString, nil, nil
	} else {
		m.text = []*lex.Term{c.pool.And(m.text...)}
	}
}

// maxAlts bounds the ways to be valid by one schema.
const (
	maxAlts     = 4096
	tooManyWays = "more than 4096 ways to be valid"
)

// product returns the ways to be valid by both of two unions.
func (c *compiler) product(a, b []*alt, n *node, keyword string) ([]*alt, error) {
	var out []*alt
	for _, x := range a {
		for _, y := range b {
			if m := c.both(x, y); m != nil {
				if len(out) == maxAlts {
					return nil, n.fail(keyword, tooManyWays)
				}
				c.pool.Spend(1)
				out = append(out, m)
			}
		}
	}
	return out, nil
}

// num is a set of numbers.
type num struct {
	lo, hi         *big.Rat // nil: without end
	loOpen, hiOpen bool     // the bound itself is not in the set
	mult           *big.Rat // of which they are multiples; nil: any
	values         []*big.Rat
	listed         bool // only values are in the set
	not            []*big.Rat
	apart          []*big.Rat // of which they are no multiples
}

func (a num) free() bool {
	return a.lo == nil && a.hi == nil && a.mult == nil && !a.listed && len(a.not)+len(a.apart) == 0
}

// and returns the intersection.
func (a num) and(b num) num {
	if b.free() {
		return a
	}
	if a.free() {
		return b
	}
	m := a
	if b.lo != nil && (m.lo == nil || b.lo.Cmp(m.lo) > 0 || b.lo.Cmp(m.lo) == 0 && b.loOpen) {
		m.lo, m.loOpen = b.lo, b.loOpen
	}
	if b.hi != nil && (m.hi == nil || b.hi.Cmp(m.hi) < 0 || b.hi.Cmp(m.hi) == 0 && b.hiOpen) {
		m.hi, m.hiOpen = b.hi, b.hiOpen
	}
	if m.mult = b.mult; m.mult == nil || a.mult != nil {
		m.mult = leastCommon(a.mult, b.mult)
	}
	m.not, m.apart = slices.Concat(a.not, b.not), slices.Concat(a.apart, b.apart)
	m.listed = a.listed || b.listed
	switch {
	case !a.listed:
		m.values = b.values
	case !b.listed:
		m.values = a.values
	default:
		m.values = nil
		for _, v := range a.values {
			if slices.ContainsFunc(b.values, func(w *big.Rat) bool { return v.Cmp(w) == 0 }) {
				m.values = append(m.values, v)
			}
		}
	}
	if m.listed {
		m.values = slices.DeleteFunc(slices.Clone(m.values), func(v *big.Rat) bool { return !m.fits(v) })
	}
	return m
}

// fits says whether a number is in the set but for the list.
func (a *num) fits(v *big.Rat) bool {
	if a.lo != nil {
		if d := v.Cmp(a.lo); d < 0 || d == 0 && a.loOpen {
			return false
		}
	}
	if a.hi != nil {
		if d := v.Cmp(a.hi); d > 0 || d == 0 && a.hiOpen {
			return false
		}
	}
	if a.mult != nil && !multiple(v, a.mult) ||
		slices.ContainsFunc(a.apart, func(m *big.Rat) bool { return multiple(v, m) }) {
		return false
	}
	return !slices.ContainsFunc(a.not, func(w *big.Rat) bool { return v.Cmp(w) == 0 })
}

// has says whether a number is in the set.
func (a *num) has(v *big.Rat) bool {
	if a.listed && !slices.ContainsFunc(a.values, func(w *big.Rat) bool { return v.Cmp(w) == 0 }) {
		return false
	}
	return a.fits(v)
}

// none says whether the set is empty.
func (a *num) none() bool {
	if a.free() {
		return false
	}
	if a.listed {
		return len(a.values) == 0
	}
	if a.mult != nil && slices.ContainsFunc(a.apart, func(m *big.Rat) bool { return multiple(a.mult, m) }) {
		return true
	}
	return !a.between(a.lo, a.loOpen, a.hi, a.hiOpen)
}

// between says whether a number of the set, not counting the list, lies within bounds that are in its own.
func (a *num) between(lo *big.Rat, loOpen bool, hi *big.Rat, hiOpen bool) bool {
	if lo == nil || hi == nil {
		return true
	}
	if d := lo.Cmp(hi); d > 0 || d == 0 && (loOpen || hiOpen) {
		return false
	} else if d == 0 {
		return a.fits(lo)
	}
	if a.mult == nil {
		return true // not and apart leave single numbers out of infinitely many
	}
	// The first and the last multiple.
	first := ceil(new(big.Rat).Quo(lo, a.mult))
	if v := new(big.Rat).Mul(new(big.Rat).SetInt(first), a.mult); loOpen && v.Cmp(lo) == 0 {
		first.Add(first, one)
	}
	last := floor(new(big.Rat).Quo(hi, a.mult))
	if v := new(big.Rat).Mul(new(big.Rat).SetInt(last), a.mult); hiOpen && v.Cmp(hi) == 0 {
		last.Sub(last, one)
	}
	n := new(big.Int).Sub(last, first)
	if n.Sign() < 0 {
		return false
	}
	if n.Add(n, one); len(a.apart) > 0 {
		return a.some(first, last)
	}
	out := 0
	for i, w := range a.not {
		q := new(big.Rat).Quo(w, a.mult)
		if q.IsInt() && q.Num().Cmp(first) >= 0 && q.Num().Cmp(last) <= 0 &&
			!slices.ContainsFunc(a.not[:i], func(v *big.Rat) bool { return v.Cmp(w) == 0 }) {
			out++
		}
	}
	return n.Cmp(big.NewInt(int64(out))) > 0
}

// maxMultiples is how many multiples are tried to find one that is none of another number.
const maxMultiples = 1 << 12

// some says whether one of the multiples from first to last is in the set.
func (a *num) some(first, last *big.Int) bool {
	for i := 0; first.Cmp(last) <= 0; i++ {
		if a.fits(new(big.Rat).Mul(new(big.Rat).SetInt(first), a.mult)) {
			return true
		}
		if i == maxMultiples {
			panic(&lex.LimitError{What: "numbers that are multiples and not, of which few are left"})
		}
		first = new(big.Int).Add(first, one)
	}
	return false
}

// multiple says whether a number is another one times a whole number.
func multiple(v, of *big.Rat) bool { return new(big.Rat).Quo(v, of).IsInt() }

var one = big.NewInt(1)

func floor(r *big.Rat) *big.Int {
	q, m := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int)) // Euclid's: m is 0 or more
	_ = m
	return q
}

func ceil(r *big.Rat) *big.Int {
	q, m := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if m.Sign() > 0 {
		q.Add(q, one)
	}
	return q
}

// leastCommon returns the least number of which both are divisors; nil is a divisor of all.
func leastCommon(a, b *big.Rat) *big.Rat {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	lcm := func(x, y *big.Int) *big.Int {
		g := new(big.Int).GCD(nil, nil, x, y)
		return new(big.Int).Mul(x, new(big.Int).Div(y, g))
	}
	return new(big.Rat).SetFrac(lcm(a.Num(), b.Num()), new(big.Int).GCD(nil, nil, a.Denom(), b.Denom()))
}

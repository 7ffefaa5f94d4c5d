package schema

import (
	"slices"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
)

// objectDef is what holds of the objects of an alt.
type objectDef struct {
	c        *compiler
	names    []string // that some schema knows, ascending
	values   []*union // of these names
	named    []bool   // propertyNames takes the name
	must     bits     // required
	needs    [][]int  // by name: names that come with it
	patterns []pattern
	ruled    int // how many of patterns are of patternProperties
	rules    []*objects
	some     []pattern // a member of such a name has such a value
	other    *lex.Term // names that no schema knows and that may come
	kindList []nameKind
	others   int    // how many there are of these, at most lex.Many
	loose    bool   // any text may begin such a name
	closed   bool   // no such name comes in answers, though the schemas do not say so
	guarded  bool   // such names are decided at their end
	min, max int    // max < 0: without end
	tags     *Tags  // nil: written as JSON
	keywords bool   // its members are arguments of Python
	texts    []bool // by name: it is read as text, if there are tags

	ready  bool
	trie   []trieNode
	lexer  *lex.Lexer
	states map[objectKey]*objectState
	unions map[string]*union // of other names, by the patterns that they match
	wanted []*union          // of members that some ask for
}

// object returns the objects of an alt.
func (c *compiler) object(u *union, a *alt) *objectDef {
	if d := u.objects[a]; d != nil {
		return d
	}
	d := &objectDef{c: c, rules: a.obj, max: -1, states: map[objectKey]*objectState{}, unions: map[string]*union{}}
	u.objects[a] = d
	required := d.gather()
	d.relate()
	// Answers have no names that no schema knows, unless one speaks of such, or minProperties wants more members.
	spoken := slices.ContainsFunc(a.obj, func(r *objects) bool { return r.extra != nil || r.names != nil && len(r.props) == 0 })
	d.closed = !c.o.Documents && !spoken && d.ruled == 0 && len(d.names) > 0 && d.min <= required && d.known()
	shut := slices.ContainsFunc(a.obj, func(r *objects) bool { return r.extra != nil && r.extra.kind == no })
	c.open = c.open || !d.closed && !shut || len(d.patterns) > 0
	if c.o.Notation == Gemma {
		if !d.closed && !shut || len(d.patterns) > 0 { // a name would be known at its end
			panic(&Error{Keyword: "additionalProperties", Path: c.at.path, Problem: unnamedInGemma, Refused: true})
		}
		for i, name := range d.names {
			d.named[i] = d.named[i] && bareName(name, ":")
		}
	}
	if len(d.patterns) == 0 {
		c.valueUnion(d, nil) // so that it is looked at before the first token
	} else {
		d.kinds()
	}
	d.want()
	return d
}

// gather takes bounds, patterns and names from all rules, and returns how many names are required.
func (d *objectDef) gather() (required int) {
	var names []string
	musts := map[string]bool{}
	for _, r := range d.rules {
		for _, name := range r.required {
			musts[name] = true
		}
		for name := range r.props {
			names = append(names, name)
		}
		names = append(names, r.required...)
		for name, list := range r.needs {
			names = append(append(names, name), list...)
		}
		d.patterns = append(d.patterns, r.patterns...)
		d.some = append(d.some, r.some...)
		names = append(names, d.c.few(r)...)
		d.min = max(d.min, r.min)
		if r.max >= 0 && (d.max < 0 || r.max < d.max) {
			d.max = r.max
		}
	}
	d.ruled = len(d.patterns)
	d.patterns = append(d.patterns, d.some...) // whose names are told apart, too
	if len(d.some) > maxSome {
		panic(&lex.LimitError{What: "more than 8 schemas of which a member must be"})
	}
	d.names = sortedNames(names)
	return len(musts)
}

// relate says of each name what its values are, whether it may be there, and which others must be then.
func (d *objectDef) relate() {
	d.needs = make([][]int, len(d.names))
	for i, name := range d.names {
		d.values = append(d.values, d.c.valueOf(d.rules, name))
		d.named = append(d.named, true)
		for _, r := range d.rules {
			if r.names != nil && d.named[i] {
				d.named[i] = d.c.nameHolds(r.names, name)
			}
			if slices.Contains(r.required, name) {
				d.must = d.must.with(i)
			}
			for _, other := range r.needs[name] {
				j, _ := slices.BinarySearch(d.names, other)
				d.needs[i] = append(d.needs[i], j)
			}
		}
	}
}

// want lists the values by which members are what some must be.
func (d *objectDef) want() {
	if len(d.some) == 0 {
		return
	}
	take := func(u *union, _ uint8) bool { d.wanted = append(d.wanted, u); return true }
	for i := range d.names {
		d.ways(i, nil, 0, take)
	}
	for _, k := range d.kinds() {
		d.ways(-1, k.matches, 0, take)
	}
}

// prepare works out which names may come. It needs to know what is inhabited, so it comes when all unions are there.
func (d *objectDef) prepare() {
	if d.ready {
		return
	}
	d.ready = true
	c := d.c
	names := c.pool.Any()
	for _, r := range d.rules {
		if r.names != nil {
			names = c.pool.And(names, c.nameTerm(r.names))
			d.guarded = d.guarded || c.guardsNames(r.names)
		}
	}
	if d.closed {
		names = c.pool.None()
	}
	d.loose = names == c.pool.Any()
	if len(d.patterns) == 0 {
		if !c.inhabited(c.valueUnion(d, nil)) {
			names, d.loose = c.pool.None(), false
		}
	} else {
		var list []*lex.Term
		whole := true
		for _, k := range d.kinds() {
			if c.inhabited(k.value) {
				list = append(list, k.names)
			} else {
				whole = false
			}
		}
		if !whole {
			names, d.loose = c.pool.Or(list...), false
		}
	}
	d.guarded = d.guarded || slices.ContainsFunc(d.some, func(p pattern) bool { return p.unless != nil })
	d.other = names
	if !d.loose && len(d.names) > 0 && names != c.pool.None() {
		known := make([]*lex.Term, len(d.names))
		for i, n := range d.names {
			known[i] = c.pool.Text(n)
		}
		d.other = c.pool.And(names, c.pool.Not(c.pool.Or(known...)))
	}
	if !c.pool.Live(d.other) {
		d.other = c.pool.None()
	}
	d.others = c.pool.Words(d.other)
	d.trie = newTrie(d.names)
	if d.bare() {
		d.lexer = lex.NewLexer(lex.UTF8{Runes: nameRunes{d}})
		return
	}
	d.lexer = lex.NewLexer(c.syntax.strings(nameRunes{d}))
	d.lexer.JSON = true
}

// possible says whether there is any such object, and whether that is sure, as compiler.search does.
func (d *objectDef) possible() (ok, sure bool) {
	sure = true
	need := d.closure(d.must)
	n := 0
	for i := range d.names {
		if !need.has(i) {
			continue
		}
		n++
		if !d.named[i] {
			return false, sure
		}
		has, certain := d.c.search(d.values[i])
		if sure = sure && certain; !has {
			return false, certain
		}
	}
	if len(d.some) > 0 {
		has, certain := d.satisfy("", 0, 0, d.c.search)
		return has, sure && certain
	}
	// More members than are required: of names that are known, and of others.
	left := 0
	if n < d.min && !d.closed {
		for _, k := range d.kinds() {
			has, certain := d.c.search(k.value)
			if has {
				left = min(lex.Many, left+d.c.pool.Words(k.names))
			}
			sure = sure && certain
		}
	}
	ok = d.fill(need, n, left, func(i int) bool {
		if !d.named[i] {
			return false
		}
		has, certain := d.c.search(d.values[i])
		sure = sure && certain
		return has
	})
	return ok, sure
}

// closure adds to a set of names those that come with them.
func (d *objectDef) closure(set bits) bits {
	for again := true; again; {
		again = false
		for i, list := range d.needs {
			if !set.has(i) {
				continue
			}
			for _, j := range list {
				if !set.has(j) {
					set, again = set.with(j), true
				}
			}
		}
	}
	return set
}

// fits says whether a name may come at all.
func (d *objectDef) fits(i int) bool { return d.named[i] && d.c.inhabited(d.values[i]) }

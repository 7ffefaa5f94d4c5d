package schema

import (
	mathbits "math/bits"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
	"github.com/zincc-dev/zincc/runtime/grammar/machine"
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

// bits is a set of names.
type bits string

func (b bits) has(i int) bool { return i>>3 < len(b) && b[i>>3]>>(i&7)&1 != 0 }

func (b bits) with(i int) bits {
	out := make([]byte, max(len(b), i>>3+1))
	copy(out, b)
	out[i>>3] |= 1 << (i & 7)
	return bits(out)
}

func (b bits) count() (n int) {
	for i := range len(b) {
		n += mathbits.OnesCount8(b[i])
	}
	return n
}

// object returns the objects of an alt.
func (c *compiler) object(u *union, a *alt) *objectDef {
	if d := u.objects[a]; d != nil {
		return d
	}
	d := &objectDef{c: c, rules: a.obj, max: -1, states: map[objectKey]*objectState{}, unions: map[string]*union{}}
	u.objects[a] = d
	var names []string
	required := map[string]bool{}
	for _, r := range a.obj {
		for _, name := range r.required {
			required[name] = true
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
		names = append(names, c.few(r)...)
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
	d.needs = make([][]int, len(d.names))
	for i, name := range d.names {
		d.values = append(d.values, c.valueOf(d.rules, name))
		d.named = append(d.named, true)
		for _, r := range a.obj {
			if r.names != nil && d.named[i] {
				d.named[i] = c.nameHolds(r.names, name)
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
	// Answers have no names that no schema knows, unless one speaks of such, or minProperties wants more members.
	spoken := slices.ContainsFunc(a.obj, func(r *objects) bool { return r.extra != nil || r.names != nil && len(r.props) == 0 })
	d.closed = !c.o.Documents && !spoken && d.ruled == 0 && len(d.names) > 0 && d.min <= len(required) && d.known()
	shut := slices.ContainsFunc(a.obj, func(r *objects) bool { return r.extra != nil && r.extra.kind == no })
	c.open = c.open || !d.closed && !shut || len(d.patterns) > 0
	if c.o.Notation == Gemma && (!d.closed && !shut || len(d.patterns) > 0) { // a name would be known at its end
		panic(&Error{Keyword: "additionalProperties", Path: c.at.path, Problem: unnamedInGemma, Refused: true})
	}
	for i, name := range d.names {
		d.named[i] = d.named[i] && (c.o.Notation != Gemma || bareName(name, ":"))
	}
	if len(d.patterns) == 0 {
		c.valueUnion(d, nil) // so that it is looked at before the first token
	} else {
		d.kinds()
	}
	if len(d.some) > 0 {
		for i := range d.names {
			d.ways(i, nil, 0, func(u *union, _ uint8) bool { d.wanted = append(d.wanted, u); return true })
		}
		for _, k := range d.kinds() {
			d.ways(-1, k.matches, 0, func(u *union, _ uint8) bool { d.wanted = append(d.wanted, u); return true })
		}
	}
	return d
}

// maxFew is how many names a pattern, or propertyNames, may have that are known one by one.
const maxFew = 256

// few returns the names of patterns and of propertyNames that have few. They are known, as those of properties, so that
// none is begun that has come.
func (c *compiler) few(r *objects) (names []string) {
	terms := make([]*lex.Term, 0, len(r.patterns)+1)
	for _, p := range r.patterns {
		terms = append(terms, p.Term)
	}
	if r.names != nil {
		terms = append(terms, c.nameTerm(r.names))
	}
	for _, t := range terms {
		if list, ok := c.pool.Texts(t, maxFew); ok {
			names = append(names, list...)
		}
	}
	return names
}

// valueOf returns the union of a member's value.
func (c *compiler) valueOf(rules []*objects, name string) *union {
	return c.union(c.nodesOf(rules, name)...)
}

// nodesOf are the schemas of a member's value.
func (c *compiler) nodesOf(rules []*objects, name string) (nodes []*node) {
	for _, r := range rules {
		n, ok := r.props[name]
		if ok {
			nodes = append(nodes, n)
		}
		for _, p := range r.patterns {
			if c.pool.Has(p.Term, name) {
				nodes, ok = append(nodes, p.node), true
			}
		}
		if !ok && r.extra != nil {
			nodes = append(nodes, r.extra)
		}
	}
	return nodes
}

// valueUnion returns the union of the value of a name that no schema knows, by which patterns it matches.
func (c *compiler) valueUnion(d *objectDef, matches []bool) *union {
	key := make([]byte, len(matches))
	for i, m := range matches {
		if m {
			key[i] = 1
		}
	}
	u := d.unions[string(key)]
	if u != nil {
		return u
	}
	u = c.union(d.otherNodes(matches)...)
	d.unions[string(key)] = u
	return u
}

// otherNodes are the schemas of a name that no schema knows, by which patterns it matches.
func (d *objectDef) otherNodes(matches []bool) (nodes []*node) {
	i := 0
	for _, r := range d.rules {
		any := false
		for _, p := range r.patterns {
			if matches[i] {
				nodes, any = append(nodes, p.node), true
			}
			i++
		}
		if !any && r.extra != nil {
			nodes = append(nodes, r.extra)
		}
	}
	return nodes
}

// nameKind are the names that no schema knows of one set of patterns.
type nameKind struct {
	matches []bool
	names   *lex.Term
	value   *union
}

// kinds returns the sets of patterns that some such name matches. It finds the sets pattern by pattern.
func (d *objectDef) kinds() []nameKind {
	if d.kindList != nil {
		return d.kindList
	}
	c := d.c
	known := make([]*lex.Term, len(d.names))
	for i, n := range d.names {
		known[i] = c.pool.Text(n)
	}
	names := c.pool.Not(c.pool.Or(known...))
	for _, r := range d.rules {
		if r.names != nil {
			names = c.pool.And(names, c.nameTerm(r.names))
		}
	}
	d.kindList = []nameKind{}
	matches := make([]bool, len(d.patterns))
	var try func(i int, t *lex.Term)
	try = func(i int, t *lex.Term) {
		if !c.pool.Live(t) {
			return
		}
		if i == len(matches) {
			d.kindList = append(d.kindList, nameKind{slices.Clone(matches), t, c.valueUnion(d, matches)})
			return
		}
		p := d.patterns[i].Term
		for _, m := range []bool{true, false} {
			matches[i] = m
			if !m {
				p = c.pool.Not(p)
			}
			try(i+1, c.pool.And(t, p))
		}
	}
	try(0, names)
	return d.kindList
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

// objectState is an object of which some members are written.
type objectState struct {
	def    *objectDef
	seen   bits
	n      int       // members, as far as they count
	done   uint8     // of what some ask for
	other  *lex.Term // other names that may come next
	end    int8
	adds   []bool // by name: whether the name may come next
	sums   []int32
	any    bool // whether a name of other names may come next
	known  bool // adds and any are worked out
	first  *machine.Symbol
	after  *machine.Symbol
	member map[string]*machine.Symbol
	keys   map[nameAt]*nameAt
}

type objectKey struct {
	seen bits
	n    int
	done uint8
}

// state returns the state of an object with these members.
func (d *objectDef) state(seen bits, n int, done uint8) *objectState {
	d.prepare()
	if d.max < 0 && d.others == lex.Many {
		n = min(n, d.min)
	}
	k := objectKey{bits(strings.TrimRight(string(seen), "\x00")), n, done}
	s := d.states[k]
	if s == nil {
		d.c.pool.Spend(1)
		s = &objectState{def: d, seen: k.seen, n: n, done: done, member: map[string]*machine.Symbol{}, keys: map[nameAt]*nameAt{}}
		d.states[k] = s
	}
	return s
}

// completes says whether the object can still become whole.
func (s *objectState) completes() bool {
	if s.end != 0 {
		return s.end > 0
	}
	s.end = -1
	d := s.def
	if s.done != d.all() {
		if ok, _ := d.satisfy(s.seen, s.n, s.done, func(u *union) (bool, bool) { return d.c.inhabited(u), true }); ok {
			s.end = 1
		}
		return s.end > 0
	}
	need := d.closure(joined(d.must, s.seen))
	n := s.n
	for i := range d.names {
		if !need.has(i) || s.seen.has(i) {
			continue
		}
		if n++; !d.fits(i) {
			return false
		}
	}
	if !d.fill(need, n, s.left(), d.fits) {
		return false
	}
	s.end = 1
	return true
}

// left is how many names may still come that no schema knows.
func (s *objectState) left() int {
	if s.def.others == lex.Many {
		return lex.Many
	}
	return s.def.others - (s.n - s.seen.count())
}

func joined(a, b bits) bits {
	out := make([]byte, max(len(a), len(b)))
	copy(out, a)
	for i := range len(b) {
		out[i] |= b[i]
	}
	return bits(out)
}

// fits says whether a name may come at all.
func (d *objectDef) fits(i int) bool { return d.named[i] && d.c.inhabited(d.values[i]) }

// whole says whether the object may end.
func (s *objectState) whole() bool {
	d := s.def
	need := d.closure(joined(d.must, s.seen))
	for i := range d.names {
		if need.has(i) && !s.seen.has(i) {
			return false
		}
	}
	return s.n >= d.min && s.done == d.all()
}

// look works out which names may come next.
func (s *objectState) look() {
	if s.known {
		return
	}
	s.known = true
	d := s.def
	s.adds, s.sums = make([]bool, len(d.names)), make([]int32, len(d.names)+1)
	room := d.max < 0 || s.n < d.max
	for i := range d.names {
		s.adds[i] = room && !s.seen.has(i) && d.fits(i) && s.leads(i, nil)
		s.sums[i+1] = s.sums[i]
		if s.adds[i] {
			s.sums[i+1]++
		}
	}
	s.any, s.other = room && s.left() > 0 && s.leads(-1, nil), d.other
	if len(d.some) > 0 { // some names may lead on, and others not
		var list []*lex.Term
		for _, k := range d.kindList {
			if room && s.left() > 0 && d.c.inhabited(k.value) && s.leads(-1, k.matches) {
				list = append(list, k.names)
			}
		}
		s.other = d.c.pool.And(d.other, d.c.pool.Or(list...))
		s.any = d.c.pool.Live(s.other)
	}
}

// more says whether a member may come.
func (s *objectState) more() bool {
	s.look()
	return s.any || s.sums[len(s.sums)-1] > 0
}

// begin is the symbol of what follows the opening bracket.
func (s *objectState) begin() *machine.Symbol {
	if s.first == nil {
		w := s.def.c.syntax
		s.first = machine.NewSymbol(func() (out [][]machine.Item) {
			if s.whole() {
				out = append(out, []machine.Item{w.endEmptyObject})
			}
			if s.more() {
				out = append(out, []machine.Item{s.key()})
			}
			return out
		}).Ways(s.ways)
	}
	return s.first
}

// behind is the symbol of what follows a member.
func (s *objectState) behind() *machine.Symbol {
	if s.after == nil {
		w := s.def.c.syntax
		s.after = machine.NewSymbol(func() (out [][]machine.Item) {
			if s.whole() {
				out = append(out, []machine.Item{w.endObject})
			}
			if s.more() {
				out = append(out, []machine.Item{w.comma, s.key()})
			}
			return out
		}).Ways(s.ways)
	}
	return s.after
}

// ways is how many different objects this one can become, at least.
func (s *objectState) ways() int {
	if s.look(); s.any {
		return s.names(s.other)
	}
	return 1
}

// names is how many names of a part of the other ones have not come yet, at least.
func (s *objectState) names(t *lex.Term) int {
	n := s.def.c.pool.Words(t)
	switch {
	case n == lex.Many:
		return n
	case s.def.others == lex.Many:
		return 0 // all of them may have come
	}
	return max(0, n-(s.def.others-s.left()))
}

// key is the lexeme of a name, whose end leads to the symbol of the rest of the member.
func (s *objectState) key() machine.Item {
	d := s.def
	s.look()
	at := s.at(nameAt{node: 0, other: s.other, matches: d.matches()})
	begin := lex.BeginJSON(at)
	if d.bare() {
		begin = lex.Begin(at)
	}
	return machine.Lexeme(d.lexer, d.lexer.State(begin))
}

// rest is the symbol of a member behind its name: of name i, or i < 0 of another one that matches patterns.
func (s *objectState) rest(i int, matches []bool) *machine.Symbol {
	d := s.def
	var key []byte
	if i >= 0 {
		key = []byte(d.names[i])
	} else {
		key = append(key, 0xff)
		for _, m := range matches {
			if m {
				key = append(key, 1)
			} else {
				key = append(key, 0)
			}
		}
	}
	m := s.member[string(key)]
	if m == nil {
		w := d.c.syntax
		m = machine.NewSymbol(func() (out [][]machine.Item) {
			s.next(i, matches, func(u *union, next *objectState) bool {
				switch {
				case d.tags != nil:
					out = append(out, d.taggedValue(d.texts[i], u, next)...)
				case d.keywords:
					out = append(out, []machine.Item{w.equals, w.value(u), machine.Of(next.keyword(true))})
				default:
					out = append(out, []machine.Item{w.colon, w.value(u), machine.Of(next.behind())})
				}
				return true
			})
			return out
		})
		s.member[string(key)] = m
	}
	return m
}

package schema

import (
	"strings"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
	"github.com/zincc-dev/zincc/runtime/grammar/machine"
)

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

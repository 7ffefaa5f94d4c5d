// Package lex holds regular languages of code points as terms, which are the states of their automata: the
// derivative of a term by a code point is the term of what may follow it (Brzozowski 1964; Owens, Reppy and
// Turon 2009). Terms have intersection and complement, so a pattern, bounds of the length and a format hold together.
// A Lexer writes a language in bytes: as UTF-8, as a JSON string, or as what a front end brings.
//
// States are built when they are met. A Pool bounds how many there are, and for how long one call may build:
// over that it panics with a *LimitError, which the exported calls of package grammar turn into an error.
package lex

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

type op uint8

const (
	opNone op = iota // no text at all
	opEmpty
	opSet
	opCat
	opOr
	opAnd
	opNot
	opRep
	opLater
)

// Term is a regular language. Terms of one Pool that are written alike are one pointer.
type Term struct {
	id       int32
	op       op
	nullable bool  // has the empty text
	boolean  bool  // has an intersection or a complement in it
	live     int8  // whether it has any text: 0 not known, 1 yes, -1 no
	lo, hi   int32 // of opRep; hi < 0: without end
	set      Set
	a, b     *Term
	list     []*Term
	edges    []Edge
	expanded bool
	later    func() *Term   // of opLater
	radius   [classes]int32 // 0 not known, else plus 1
	words    int32          // 0 not known, else plus 1
}

// Edge leads from a term by the code points Lo to Hi.
type Edge struct {
	Lo, Hi rune
	To     *Term
}

// Nullable says whether the language has the empty text.
func (t *Term) Nullable() bool { return t.nullable }

// Pool makes the terms of one grammar.
type Pool struct {
	index map[string]*Term
	next  int32
	spent int       // terms since the last Allow
	until time.Time // the call ends; zero: it has not built much
	most  time.Duration
	key   []byte

	none, empty, any *Term
}

// LimitError says that a language is too complex.
type LimitError struct{ What string }

func (e *LimitError) Error() string { return e.What }

// Limits of a Pool.
const (
	maxTerms = 1 << 17 // of all of one call
	maxList  = 4096    // alternatives of one state
)

// NewPool returns an empty pool, with which one may build for some time.
func NewPool(most time.Duration) *Pool {
	p := &Pool{index: map[string]*Term{}}
	p.none = p.intern(&Term{op: opNone, live: -1})
	p.empty = p.intern(&Term{op: opEmpty, nullable: true})
	p.any = p.Repeat(p.Set(all), 0, -1)
	p.Allow(most)
	return p
}

// Allow sets anew how much may be built from now on, and forgets which terms are alike if there are many: new ones
// then no longer share with old ones, and mean the same.
func (p *Pool) Allow(most time.Duration) {
	p.spent, p.until, p.most = 0, time.Time{}, most
	if len(p.index) > 4*maxTerms {
		p.index = map[string]*Term{}
	}
}

func (p *Pool) intern(t *Term) *Term {
	k := append(p.key[:0], byte(t.op))
	k = binary.AppendVarint(binary.AppendVarint(k, int64(t.lo)), int64(t.hi))
	for _, s := range []*Term{t.a, t.b} {
		if s != nil {
			k = binary.AppendUvarint(k, uint64(s.id))
		}
	}
	for _, s := range t.list {
		k = binary.AppendUvarint(k, uint64(s.id))
	}
	for _, r := range t.set {
		k = binary.AppendUvarint(binary.AppendUvarint(k, uint64(r.Lo)), uint64(r.Hi))
	}
	p.key = k
	if old, ok := p.index[string(k)]; ok {
		return old
	}
	p.Spend(1)
	t.id = p.next
	p.next++
	if t.live == 0 && !t.boolean {
		t.live = 1 // the empty language is none of these: it is always opNone
	}
	p.index[string(k)] = t
	return t
}

// Spend counts n things as built.
func (p *Pool) Spend(n int) {
	before := p.spent
	p.spent += n
	if p.spent > maxTerms {
		panic(&LimitError{fmt.Sprintf("more than %d states", maxTerms)})
	}
	if p.spent>>8 == before>>8 {
		return
	}
	if now := time.Now(); p.until.IsZero() {
		p.until = now.Add(p.most)
	} else if now.After(p.until) {
		panic(&LimitError{fmt.Sprintf("more than %v to build", p.most)})
	}
}

// None is the language of no text.
func (p *Pool) None() *Term { return p.none }

// Empty is the language of the empty text.
func (p *Pool) Empty() *Term { return p.empty }

// Any is the language of all texts.
func (p *Pool) Any() *Term { return p.any }

// Set is the language of the texts of one code point in s.
func (p *Pool) Set(s Set) *Term {
	if len(s) == 0 {
		return p.none
	}
	return p.intern(&Term{op: opSet, set: s})
}

// Text is the language of one text.
func (p *Pool) Text(text string) *Term {
	t := p.empty
	for _, r := range slices.Backward([]rune(text)) {
		t = p.Cat(p.Set(NewSet(Range{r, r})), t)
	}
	return t
}

// Cat is the language of texts of each, one behind the other.
func (p *Pool) Cat(parts ...*Term) *Term {
	out := p.empty
	for _, t := range slices.Backward(parts) {
		out = p.cat(t, out)
	}
	return out
}

func (p *Pool) cat(a, b *Term) *Term {
	switch {
	case a == p.none || b == p.none:
		return p.none
	case a == p.empty:
		return b
	case b == p.empty:
		return a
	case a.op == opCat:
		return p.cat(a.a, p.cat(a.b, b))
	case a == p.any && b == p.any, a == p.any && b.op == opCat && b.a == p.any:
		return b
	}
	return p.intern(&Term{op: opCat, a: a, b: b, nullable: a.nullable && b.nullable, boolean: a.boolean || b.boolean})
}

// Or is the union.
func (p *Pool) Or(list ...*Term) *Term {
	flat := make([]*Term, 0, len(list))
	var set Set
	for _, t := range list {
		switch {
		case t == p.any:
			return t
		case t == p.none:
		case t.op == opOr:
			flat = append(flat, t.list...)
		case t.op == opSet:
			set = append(set, t.set...)
		default:
			flat = append(flat, t)
		}
	}
	if len(set) > 0 {
		flat = append(flat, p.Set(NewSet(set...)))
	}
	flat = sorted(flat)
	switch len(flat) {
	case 0:
		return p.none
	case 1:
		return flat[0]
	}
	if len(flat) > maxList {
		panic(&LimitError{fmt.Sprintf("a state of more than %d alternatives", maxList)})
	}
	o := &Term{op: opOr, list: flat}
	for _, t := range flat {
		o.nullable = o.nullable || t.nullable
		o.boolean = o.boolean || t.boolean
	}
	return p.intern(o)
}

// And is the intersection.
func (p *Pool) And(list ...*Term) *Term {
	var flat []*Term
	lo, hi := int32(0), int32(-1) // of bounds of the length
	for _, t := range list {
		switch {
		case t == p.none:
			return t
		case t == p.any:
		case t.op == opAnd:
			flat = append(flat, t.list...)
		default:
			flat = append(flat, t)
		}
	}
	rest := flat[:0]
	for _, t := range flat {
		if t.op == opRep && t.a == p.any.a {
			lo = max(lo, t.lo)
			if t.hi >= 0 && (hi < 0 || t.hi < hi) {
				hi = t.hi
			}
			continue
		}
		rest = append(rest, t)
	}
	if flat = rest; lo > 0 || hi >= 0 {
		flat = append(flat, p.Repeat(p.any.a, int(lo), int(hi)))
	}
	flat = sorted(flat)
	for _, t := range flat {
		if t == p.none || t.op == opNot && slices.Contains(flat, t.a) {
			return p.none
		}
		if t == p.empty {
			for _, u := range flat {
				if !u.nullable {
					return p.none
				}
			}
			return p.empty
		}
	}
	switch len(flat) {
	case 0:
		return p.any
	case 1:
		return flat[0]
	}
	if len(flat) > maxList {
		panic(&LimitError{fmt.Sprintf("a state of more than %d conditions", maxList)})
	}
	n := &Term{op: opAnd, list: flat, boolean: true, nullable: true}
	for _, t := range flat {
		n.nullable = n.nullable && t.nullable
	}
	return p.intern(n)
}

func sorted(list []*Term) []*Term {
	slices.SortFunc(list, func(a, b *Term) int { return int(a.id - b.id) })
	return slices.Clip(slices.Compact(list))
}

// Not is the complement.
func (p *Pool) Not(t *Term) *Term {
	switch {
	case t == p.none:
		return p.any
	case t == p.any:
		return p.none
	case t.op == opNot:
		return t.a
	}
	return p.intern(&Term{op: opNot, a: t, boolean: true, nullable: !t.nullable})
}

// Repeat is the language of lo to hi texts of t, one behind the other; hi < 0: without end.
func (p *Pool) Repeat(t *Term, lo, hi int) *Term {
	const most = 1<<31 - 1
	lo, hi = min(lo, most), min(hi, most)
	if t.nullable {
		lo = 0
	}
	switch {
	case hi == 0 || t == p.empty || t == p.none && lo == 0:
		return p.empty
	case t == p.none || hi >= 0 && lo > hi:
		return p.none
	case lo == 1 && hi == 1:
		return t
	case t.op == opRep && t.hi < 0 && t.lo == 0 && hi != 0: // of t* it is t*
		return t
	}
	return p.intern(&Term{op: opRep, a: t, lo: int32(lo), hi: int32(max(hi, -1)), nullable: lo == 0, boolean: t.boolean})
}

// Opt is t or nothing.
func (p *Pool) Opt(t *Term) *Term { return p.Repeat(t, 0, 1) }

// NotEmpty is t without the empty text.
func (p *Pool) NotEmpty(t *Term) *Term {
	if !t.nullable {
		return t
	}
	switch t.op {
	case opEmpty:
		return p.none
	case opCat:
		return p.Or(p.Cat(p.NotEmpty(t.a), t.b), p.NotEmpty(t.b))
	case opOr:
		list := make([]*Term, len(t.list))
		for i, s := range t.list {
			list[i] = p.NotEmpty(s)
		}
		return p.Or(list...)
	case opRep:
		return p.Cat(p.NotEmpty(t.a), p.Repeat(t.a, int(max(t.lo-1, 0)), int(max(t.hi-1, -1))))
	}
	return p.And(t, p.Repeat(p.any.a, 1, -1))
}

// Loop is a language with the texts of what f returns, which has no empty text and may have the language itself in it,
// behind a code point. f is called once.
func (p *Pool) Loop(f func() *Term) *Term {
	p.Spend(1)
	t := &Term{op: opLater, later: f, id: p.next, boolean: true}
	p.next++
	return t
}

// Later is a language with the texts of what f returns, which must not have the empty text alone or as one of several.
// f is called when the first code point of a text is met.
func (p *Pool) Later(f func() *Term) *Term {
	p.Spend(1)
	t := &Term{op: opLater, later: f, id: p.next, live: 1}
	p.next++
	return t
}

package ecma

import (
	"slices"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
)

// Search returns the texts in which a pattern is found, wherever it begins and ends.
func Search(pool *lex.Pool, pattern string) (*lex.Term, error) {
	a, err := parse(pattern)
	if err != nil {
		return nil, err
	}
	b := newBuilder(pool, a)
	if !a.asserts {
		return pool.Cat(pool.Any(), b.plain(a), pool.Any()), nil
	}
	any := func(place) *lex.Term { return pool.Any() }
	list := []*lex.Term{b.from(a, place{begin: true}, any)}
	for i, set := range b.sets {
		list = append(list, pool.Cat(pool.Any(), pool.Set(set), b.from(a, place{last: i}, any)))
	}
	return pool.Or(list...), nil
}

// Whole returns the texts that a pattern matches from begin to end.
func Whole(pool *lex.Pool, pattern string) (*lex.Term, error) {
	a, err := parse(pattern)
	if err != nil {
		return nil, err
	}
	b := newBuilder(pool, a)
	if !a.asserts {
		return b.plain(a), nil
	}
	return b.from(a, place{begin: true}, func(place) *lex.Term { return pool.Empty() }), nil
}

// builder makes terms of a pattern.
type builder struct {
	*lex.Pool
	sets []lex.Set // of characters that assertions do not tell apart where they look back
}

// newBuilder finds which characters assertions tell apart.
func newBuilder(pool *lex.Pool, a *ast) *builder {
	b := &builder{pool, []lex.Set{lex.All()}}
	var visit func(a *ast)
	visit = func(a *ast) {
		switch {
		case a.op == opBoundary:
			b.tell(words)
		case a.op == opLook && a.behind:
			b.tell(a.set)
		}
		if a.sub != nil {
			visit(a.sub)
		}
		for _, s := range a.list {
			visit(s)
		}
	}
	visit(a)
	return b
}

// tell tells the characters of a set apart from others.
func (b *builder) tell(set lex.Set) {
	var sets []lex.Set
	for _, s := range b.sets {
		for _, t := range []lex.Set{s.And(set), s.And(set.Not())} {
			if len(t) > 0 {
				sets = append(sets, t)
			}
		}
	}
	b.sets = sets
}

// place is where a part of a pattern begins: at the begin of the text, or behind a character of one of the sets.
type place struct {
	begin bool
	last  int
	moved bool // by the turn of the innermost repetition
}

// behind says whether the character before a place is of a set.
func (b *builder) behind(at place, set lex.Set) bool {
	return !at.begin && len(b.sets[at.last].And(set)) > 0
}

// rest is what may follow behind a part, by where that ends: up to the end of the text.
type rest func(at place) *lex.Term

// once calls a rest once for each place.
func once(f rest) rest {
	kept := map[place]*lex.Term{}
	return func(at place) *lex.Term {
		t := kept[at]
		if t == nil {
			t = f(at)
			kept[at] = t
		}
		return t
	}
}

// plain returns the texts of a part without assertions.
func (b *builder) plain(a *ast) *lex.Term {
	switch a.op {
	case opSet:
		return b.Set(a.set)
	case opRepeat:
		return b.Repeat(b.plain(a.sub), a.lo, a.hi)
	}
	list := make([]*lex.Term, len(a.list))
	for i, s := range a.list {
		list[i] = b.plain(s)
	}
	if a.op == opOr {
		return b.Or(list...)
	}
	return b.Cat(list...)
}

// from returns the texts of a part that begins at a place, and of what follows it.
func (b *builder) from(a *ast, at place, then rest) *lex.Term {
	b.Spend(1)
	if !a.asserts && (len(b.sets) == 1 || a.op == opSet) {
		return b.step(a, at, then)
	}
	switch a.op {
	case opBegin:
		if !at.begin {
			return b.None()
		}
		return then(at)
	case opEnd:
		return b.And(b.Empty(), then(at))
	case opBoundary:
		word := b.Cat(b.Set(words), b.Any())
		if b.behind(at, words) != a.not {
			word = b.Not(word)
		}
		return b.And(word, then(at))
	case opLook:
		if a.behind {
			if (b.behind(at, a.set) || a.begin && at.begin) == a.not {
				return b.None()
			}
			return then(at)
		}
		look := b.from(a.sub, at, func(place) *lex.Term { return b.Any() })
		if a.not {
			look = b.Not(look)
		}
		return b.And(look, then(at))
	case opOr:
		then = once(then)
		list := make([]*lex.Term, len(a.list))
		for i, s := range a.list {
			list[i] = b.from(s, at, then)
		}
		return b.Or(list...)
	case opRepeat:
		return b.repeat(a.sub, a.lo, a.hi, then)(at)
	}
	for _, s := range slices.Backward(a.list) {
		next := then
		then = once(func(at place) *lex.Term { return b.from(s, at, next) })
	}
	return then(at)
}

// step returns the texts of a part without assertions, and of what follows it. Where it matters, the part is one
// character.
func (b *builder) step(a *ast, at place, then rest) *lex.Term {
	if len(b.sets) == 1 {
		t := b.plain(a)
		list := []*lex.Term{b.Cat(b.NotEmpty(t), then(place{moved: true}))}
		if t.Nullable() {
			list = append(list, then(at))
		}
		if len(list) == 2 && list[1] == then(place{moved: true}) {
			return b.Cat(t, list[1])
		}
		return b.Or(list...)
	}
	var list []*lex.Term
	for i, set := range b.sets {
		list = append(list, b.Cat(b.Set(a.set.And(set)), then(place{last: i, moved: true})))
	}
	return b.Or(list...)
}

// repeat returns the rest that begins with lo to hi turns of a part. Turns that need not be have a character at least.
func (b *builder) repeat(a *ast, lo, hi int, then rest) rest {
	if hi == 0 {
		return then
	}
	b.Spend(64) // each turn is a part of its own
	if lo > 0 {
		next := b.repeat(a, lo-1, max(hi-1, min(hi, -1)), then)
		return once(func(at place) *lex.Term { return b.from(a, at, next) })
	}
	var turn rest
	next := func(at place) *lex.Term { return turn(at) }
	if hi > 0 {
		next = b.repeat(a, 0, hi-1, then)
	}
	loops := map[place]*lex.Term{}
	turn = func(at place) *lex.Term {
		moved := at.moved
		at.moved = false
		again := func(to place) *lex.Term {
			if !to.moved {
				return b.None()
			}
			to.moved = true
			return next(to)
		}
		key := at
		key.moved = false
		loop := loops[key]
		if loop == nil {
			loop = b.Loop(func() *lex.Term { return b.from(a, at, once(again)) })
			loops[key] = loop
		}
		at.moved = moved
		return b.Or(then(at), loop)
	}
	return once(turn)
}

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
	b := builder{pool}
	if !a.anchor {
		t, err := b.plain(a)
		return pool.Cat(pool.Any(), t, pool.Any()), err
	}
	some := pool.Repeat(pool.Set(lex.All()), 1, -1)
	var list []*lex.Term
	for _, begin := range []bool{true, false} {
		for _, end := range []bool{true, false} {
			t, err := b.between(a, begin, end)
			if err != nil {
				return nil, err
			}
			if !begin {
				t = pool.Cat(some, t)
			}
			if !end {
				t = pool.Cat(t, some)
			}
			list = append(list, t)
		}
	}
	return pool.Or(list...), nil
}

// Whole returns the texts that a pattern matches from begin to end.
func Whole(pool *lex.Pool, pattern string) (*lex.Term, error) {
	a, err := parse(pattern)
	if err != nil {
		return nil, err
	}
	b := builder{pool}
	if !a.anchor {
		return b.plain(a)
	}
	return b.between(a, true, true)
}

type builder struct{ *lex.Pool }

// plain returns the texts of a part without anchors.
func (b builder) plain(a *ast) (*lex.Term, error) {
	switch a.op {
	case opSet:
		return b.Set(a.set), nil
	case opRepeat:
		t, err := b.plain(a.sub)
		if err != nil {
			return nil, err
		}
		return b.Repeat(t, a.lo, a.hi), nil
	}
	list := make([]*lex.Term, len(a.list))
	for i, s := range a.list {
		var err error
		if list[i], err = b.plain(s); err != nil {
			return nil, err
		}
	}
	if a.op == opOr {
		return b.Or(list...), nil
	}
	return b.Cat(list...), nil
}

// between returns the texts of a part that begins where the whole text begins, or else not, and ends where it ends, or
// else not.
func (b builder) between(a *ast, begin, end bool) (*lex.Term, error) {
	if !a.anchor {
		return b.plain(a)
	}
	switch a.op {
	case opBegin:
		return b.when(begin), nil
	case opEnd:
		return b.when(end), nil
	case opOr:
		var list []*lex.Term
		for _, s := range a.list {
			t, err := b.between(s, begin, end)
			if err != nil {
				return nil, err
			}
			list = append(list, t)
		}
		return b.Or(list...), nil
	case opRepeat:
		return b.repeat(a, begin, end)
	}
	return b.sequence(a.list, begin, end)
}

func (b builder) when(yes bool) *lex.Term {
	if yes {
		return b.Empty()
	}
	return b.None()
}

// sequence returns the texts of parts behind each other: the first ones may be empty, so that the next begins where the
// text does, and the last ones in the same way.
func (b builder) sequence(list []*ast, begin, end bool) (*lex.Term, error) {
	// behind[1] is what follows if the text has not begun before, behind[0] if it has.
	behind := [2]*lex.Term{b.Empty(), b.Empty()}
	last := true // nothing follows
	for _, head := range slices.Backward(list) {
		var now [2]*lex.Term
		for i, first := range []bool{false, begin} {
			inner, err := b.between(head, first, last && end)
			if err != nil {
				return nil, err
			}
			final, err := b.between(head, first, end)
			if err != nil {
				return nil, err
			}
			switch {
			case last:
				now[i] = final
			case behind[0] == behind[1] && inner == final:
				now[i] = b.Cat(inner, behind[0])
			default:
				now[i] = b.Or(
					b.Cat(b.part(inner, false), b.part(behind[0], false)),
					b.Cat(b.part(inner, true), b.part(behind[i], false)),
					b.Cat(b.part(final, false), b.part(behind[0], true)),
					b.Cat(b.part(final, true), b.part(behind[i], true)))
			}
		}
		behind, last = now, false
	}
	return behind[1], nil
}

// part returns the empty text alone, or all others.
func (b builder) part(t *lex.Term, empty bool) *lex.Term {
	if empty {
		return b.when(t.Nullable())
	}
	return b.NotEmpty(t)
}

// repeat returns the texts of a repetition with an anchor in it. Of these, only the first can begin and only the last
// end where the text does.
func (b builder) repeat(a *ast, begin, end bool) (*lex.Term, error) {
	if a.lo > 1 || a.hi > 1 {
		return nil, &Error{Problem: "a counted repetition of an anchor is not supported", At: a.at, Refused: true}
	}
	once, err := b.between(a.sub, begin, end)
	if err != nil {
		return nil, err
	}
	list := []*lex.Term{once}
	if a.lo == 0 {
		list = append(list, b.Empty())
	}
	if a.hi < 0 {
		var t [3]*lex.Term
		for i, at := range [][2]bool{{begin, false}, {false, false}, {false, end}} {
			if t[i], err = b.between(a.sub, at[0], at[1]); err != nil {
				return nil, err
			}
		}
		list = append(list, b.Cat(b.part(t[0], false), b.Repeat(b.part(t[1], false), 0, -1), b.part(t[2], false)))
	}
	return b.Or(list...), nil
}

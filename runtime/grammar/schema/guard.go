package schema

import (
	"slices"

	"github.com/zincc-dev/zincc/runtime/grammar/ecma"
	"github.com/zincc-dev/zincc/runtime/grammar/idna"
	"github.com/zincc-dev/zincc/runtime/grammar/lex"
)

// guard is a condition of strings that has no automaton with few states. Documents are decided by holds, at the end of
// a string. Answers are written within inner, which is a part of what holds; where the condition must not hold, without
// outer, of which what holds is a part.
type guard struct {
	inner, outer *lex.Term
	holds        func(text string) bool
}

// guarded is a guard that must hold, or must not.
type guarded struct {
	*guard
	not bool
}

func (g guarded) accepts(text string) bool { return g.holds(text) != g.not }

// guardedFormats are the formats that are guards.
var guardedFormats = map[string]func(c *compiler) *guard{
	"hostname": (*compiler).hostname,
	"idn-hostname": func(c *compiler) *guard {
		inner := c.pool.Or(c.hostname().inner, c.regex(plainLabel+`(?:\.`+plainLabel+`){0,2}`))
		return &guard{inner: inner, outer: c.regex(`[0-9A-Za-z.\-\u00b7-\u{10ffff}]{1,253}`), holds: idna.Internationalized}
	},
	"regex": func(c *compiler) *guard {
		return &guard{inner: c.regex(patternOf(3)), outer: c.pool.Not(c.regex(`[*+?)\]{}][^]*`)), holds: ecma.Valid}
	},
}

func (c *compiler) hostname() *guard {
	outer := c.pool.And(c.regex(hostname), c.pool.Repeat(c.pool.Set(lex.All()), 0, 253))
	return &guard{inner: c.pool.And(outer, c.pool.Not(c.regex(reserved))), outer: outer, holds: idna.Hostname}
}

const (
	// Names with labels that stand for others, or are kept for such.
	reserved = `(?:[^]*\.)?[^][^]--[^]*`

	// Labels of letters that are written from left to right, small ones where there are two sizes, so few that they are
	// no longer than 63 bytes as A-labels.
	plainLabel = `(?:` + label3 + `|[0-9a-z\u00e0-\u00f6\u00f8-\u00ff\u03b1-\u03c1\u03c3-\u03c9\u0430-\u044f\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fa5` +
		`\uac00-\ud7a3]{1,11})`
	label3 = `[0-9A-Za-z][0-9A-Za-z]?[0-9A-Za-z]?`
)

// patternOf is a pattern for patterns with groups in each other, as many as depth: without look-around, references and
// properties.
func patternOf(depth int) string {
	const (
		escape = `\\[dDwWsSnrtfv^$\\.*+?()[\]{}|/]`
		class  = `\[\^?(?:a-z|A-Z|0-9|a-f|A-F|[^\\\]\-]|\\-|` + escape + `)*\]`
		count  = `(?:(?:[*+?]|\{\d{1,3},?\}|\{0,\d{1,3}\})\??)?`
	)
	atom := `[^\^$\\.*+?()[\]{}|]|\.|` + escape + `|` + class
	all := `[\^$]|(?:` + atom + `)` + count
	for range depth {
		all = `[\^$]|(?:` + atom + `|\((?:\?:)?(?:` + all + `|\|)*\))` + count
	}
	return `(?:` + all + `|\|)*`
}

// guard returns a guard that is a format.
func (c *compiler) guard(format string) *guard {
	g := c.guards[format]
	if g == nil {
		g = guardedFormats[format](c)
		c.guards[format] = g
	}
	return g
}

// maxListed is how many strings are decided one by one.
const maxListed = 256

// strings returns the strings of an alt, and the guards that decide which of these there are. Answers need none.
func (c *compiler) strings(a *alt) (*lex.Term, []guarded) {
	if len(a.guards) == 0 {
		return c.writable(c.pool.And(a.text...)), nil
	}
	all := c.bounds(a, true)
	if texts, few := c.pool.Texts(all, maxListed); few {
		var list []*lex.Term
		for _, s := range texts {
			if a.accepts(s) {
				list = append(list, c.pool.Text(s))
			}
		}
		return c.writable(c.pool.Or(list...)), nil
	}
	if c.o.Documents {
		return all, a.guards
	}
	return c.writable(c.bounds(a, false)), nil
}

// bounds are strings that have all of an alt, or that all are of an alt.
func (c *compiler) bounds(a *alt, all bool) *lex.Term {
	list := slices.Clone(a.text)
	for _, g := range a.guards {
		switch {
		case all && g.not:
			list = append(list, c.pool.Not(g.inner))
		case all:
			list = append(list, g.outer)
		case g.not:
			list = append(list, c.pool.Not(g.outer))
		default:
			list = append(list, g.inner)
		}
	}
	return c.pool.And(list...)
}

// accepts says whether the guards take a text.
func (a *alt) accepts(text string) bool {
	return !slices.ContainsFunc(a.guards, func(g guarded) bool { return !g.accepts(text) })
}

// maxGuarded bounds the strings that guards look at, in code points.
const maxGuarded = 1 << 16

// letters are what is written of a string, the last one first.
type letters struct {
	before *letters
	r      rune
	n      int
}

func (l *letters) with(r rune) *letters {
	n := 1
	if l != nil {
		n = l.n + 1
	}
	if n > maxGuarded {
		panic(&lex.LimitError{What: "a string of more than 65536 characters, whose format is looked at as a whole"})
	}
	return &letters{before: l, r: r, n: n}
}

func (l *letters) text() string {
	if l == nil {
		return ""
	}
	out := make([]rune, l.n)
	for i := l.n - 1; i >= 0; i-- {
		out[i], l = l.r, l.before
	}
	return string(out)
}

// guardedRunes are the strings of a term that guards take.
type guardedRunes struct {
	lex.Terms
	guards []guarded
}

type guardedAt struct {
	term *lex.Term
	text *letters
}

func (g guardedRunes) Next(p any, r rune) (any, bool) {
	at := p.(guardedAt)
	t, ok := g.Pool.Next(at.term, r)
	if !ok {
		return nil, false
	}
	return guardedAt{t, at.text.with(r)}, true
}

func (g guardedRunes) Accept(p any) (any, bool) {
	at := p.(guardedAt)
	if !at.term.Nullable() {
		return nil, false
	}
	return nil, (&alt{guards: g.guards}).accepts(at.text.text())
}

func (g guardedRunes) Any(p any, lo, hi rune) bool       { return g.AnyOf(p.(guardedAt).term, lo, hi) }
func (g guardedRunes) First(p any) lex.First             { return g.Terms.First(p.(guardedAt).term) }
func (g guardedRunes) Radius(any, lex.Class) (int, bool) { return 0, false }
func (g guardedRunes) All(any) bool                      { return false }
func (g guardedRunes) Clip(p any, _ int) any             { return p }

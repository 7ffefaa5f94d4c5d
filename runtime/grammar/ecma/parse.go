// Package ecma makes terms of ECMAScript's regular expressions, with the flag u as JSON schema has it: code points
// are characters, \d and \w are ASCII, escapes that mean nothing are errors.
package ecma

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
)

// Error says what of a pattern cannot be used, and at which byte.
type Error struct {
	Problem string
	At      int
	Refused bool // the pattern may be good: this is not supported
}

func (e *Error) Error() string { return fmt.Sprintf("%s at byte %d of the pattern", e.Problem, e.At) }

// Is makes refusals errors.ErrUnsupported.
func (e *Error) Is(target error) bool { return e.Refused && target == errors.ErrUnsupported }

// Limits of a pattern.
const (
	maxDepth = 200
	maxCount = 1 << 20
)

// ast is a part of a pattern.
type ast struct {
	op                 op
	set                lex.Set // of opSet
	list               []*ast  // of opCat, opOr
	sub                *ast    // of opRepeat
	lo, hi             int     // of opRepeat; hi < 0: without end
	asserts            bool    // has a part that stands for no text in it
	not, behind, begin bool    // of opLook and opBoundary: it must not be so; it looks behind, and takes the begin of the text
	at                 int     // byte of the pattern
}

type op uint8

const (
	opSet op = iota
	opCat
	opOr
	opRepeat
	opBegin
	opEnd
	opBoundary // between a character of a word, set, and another one
	opLook     // sub follows, or a character of set comes before
)

type parser struct {
	in    string
	at    int
	depth int

	// syntax: only whether it is a pattern is asked. Then what it has are groups by number and by name, and what it
	// refers to.
	syntax            bool
	captures, highest int
	names, named      []string
}

func (p *parser) fail(problem string) *Error { return &Error{Problem: problem, At: p.at} }

func (p *parser) refuse(what string) *Error {
	return &Error{Problem: what + " is not supported", At: p.at, Refused: true}
}

func parse(pattern string) (*ast, error) {
	return (&parser{}).whole(pattern)
}

func (p *parser) whole(pattern string) (*ast, error) {
	if !utf8.ValidString(pattern) {
		return nil, &Error{Problem: "no UTF-8"}
	}
	p.in = pattern
	a, err := p.alternatives()
	if err == nil && p.at < len(p.in) {
		err = p.fail("a ) without a (")
	}
	return a, err
}

func (p *parser) peek() byte {
	if p.at < len(p.in) {
		return p.in[p.at]
	}
	return 0
}

func (p *parser) take(s string) bool {
	if strings.HasPrefix(p.in[p.at:], s) {
		p.at += len(s)
		return true
	}
	return false
}

func (p *parser) rune() rune {
	r, n := utf8.DecodeRuneInString(p.in[p.at:])
	p.at += n
	return r
}

func (p *parser) alternatives() (*ast, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("more than 200 groups in each other")
	}
	defer func() { p.depth-- }()
	or := &ast{op: opOr, at: p.at}
	for {
		cat := &ast{op: opCat, at: p.at}
		for p.at < len(p.in) && p.peek() != '|' && p.peek() != ')' {
			a, err := p.quantified()
			if err != nil {
				return nil, err
			}
			cat.list = append(cat.list, a)
			cat.asserts = cat.asserts || a.asserts
		}
		or.list = append(or.list, cat)
		or.asserts = or.asserts || cat.asserts
		if !p.take("|") {
			break
		}
	}
	if len(or.list) == 1 {
		return or.list[0], nil
	}
	return or, nil
}

func (p *parser) quantified() (*ast, error) {
	at := p.at
	a, err := p.atom()
	if err != nil {
		return nil, err
	}
	lo, hi := 1, 1
	switch {
	case p.take("*"):
		lo, hi = 0, -1
	case p.take("+"):
		hi = -1
	case p.take("?"):
		lo = 0
	case p.peek() == '{':
		if lo, hi, err = p.counts(); err != nil {
			return nil, err
		}
	default:
		return a, nil
	}
	p.take("?") // lazy: the same texts
	if a.op >= opBegin {
		p.at = at
		return nil, p.fail("an assertion with a quantifier")
	}
	return &ast{op: opRepeat, sub: a, lo: lo, hi: hi, asserts: a.asserts, at: at}, nil
}

// counts reads {n}, {n,} or {n,m}.
func (p *parser) counts() (lo, hi int, err error) {
	end := strings.IndexByte(p.in[p.at:], '}')
	bad := p.fail("a { that begins no count")
	if end < 0 {
		return 0, 0, bad
	}
	from, to, ranged := strings.Cut(p.in[p.at+1:p.at+end], ",")
	number := func(s string) (int, bool) {
		if s == "" || strings.Trim(s, "0123456789") != "" {
			return 0, false
		}
		n, err := strconv.Atoi(s)
		if err != nil || n > maxCount {
			n = maxCount
		}
		return n, true
	}
	lo, ok := number(from)
	hi = lo
	if ranged {
		if hi = -1; to != "" {
			var good bool
			hi, good = number(to)
			ok = ok && good
		}
	}
	if !ok {
		return 0, 0, bad
	}
	if hi >= 0 && lo > hi {
		return 0, 0, p.fail("a count from more to less")
	}
	p.at += end + 1
	return lo, hi, nil
}

// groups are what a group may begin with.
var groups = []struct {
	begin             string
	look, not, behind bool
}{
	{begin: "(?:"},
	{begin: "(?=", look: true},
	{begin: "(?!", look: true, not: true},
	{begin: "(?<=", look: true, behind: true},
	{begin: "(?<!", look: true, not: true, behind: true},
}

func (p *parser) atom() (*ast, error) {
	at := p.at
	switch c := p.peek(); c {
	case '(':
		return p.group()
	case '[':
		set, err := p.class()
		return &ast{op: opSet, set: set, at: at}, err
	case '\\':
		return p.escape()
	case '.':
		p.at++
		return &ast{op: opSet, set: lex.Chars("\n\r\u2028\u2029").Not(), at: at}, nil
	case '^':
		p.at++
		return &ast{op: opBegin, asserts: true, at: at}, nil
	case '$':
		p.at++
		return &ast{op: opEnd, asserts: true, at: at}, nil
	case '*', '+', '?':
		return nil, p.fail("nothing to repeat")
	case '{', '}', ']':
		return nil, p.fail("a " + string(c) + " without a \\")
	}
	r := p.rune()
	return &ast{op: opSet, set: lex.NewSet(lex.Range{Lo: r, Hi: r}), at: at}, nil
}

func (p *parser) group() (*ast, error) {
	known := false
	for _, g := range groups {
		if strings.HasPrefix(p.in[p.at:], g.begin) {
			p.at += len(g.begin)
			if g.look {
				return p.look(g.not, g.behind)
			}
			known = true
			break
		}
	}
	if !known {
		switch {
		case p.take("(?<"):
			name, rest, ok := strings.Cut(p.in[p.at:], ">")
			if !ok || !isName(name) {
				return nil, p.fail("a group without a name")
			}
			p.at = len(p.in) - len(rest)
			if err := p.capture(name); err != nil {
				return nil, err
			}
		case p.take("(?"):
			return nil, p.fail("a group that ECMAScript does not have")
		default:
			p.take("(")
			p.capture("")
		}
	}
	a, err := p.alternatives()
	if err == nil && !p.take(")") {
		err = p.fail("a ( without a )")
	}
	return a, err
}

// isName says whether a text names a group: an identifier of ECMAScript.
func isName(s string) bool {
	for i, r := range s {
		begins := r == '_' || r == '$' || unicode.In(r, unicode.L, unicode.Nl, unicode.Other_ID_Start)
		goesOn := unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue) || r == 0x200c || r == 0x200d
		if !begins && (i == 0 || !goesOn) || unicode.In(r, unicode.Pattern_Syntax) && r != '$' {
			return false
		}
	}
	return s != ""
}

// escape reads what begins with a backslash outside of a class.
func (p *parser) escape() (*ast, error) {
	at := p.at
	if p.at+1 == len(p.in) {
		return nil, p.fail("a \\ at the end")
	}
	switch c := p.in[p.at+1]; {
	case c == 'b' || c == 'B':
		p.at += 2
		return &ast{op: opBoundary, asserts: true, not: c == 'B', at: at}, nil
	case p.syntax && c == '-':
		return nil, p.fail("an escape that ECMAScript has in classes only")
	case p.syntax && ('1' <= c && c <= '9' || c == 'k'):
		return p.reference()
	case '1' <= c && c <= '9' || c == 'k':
		return nil, p.refuse("the back reference \\" + string(c))
	}
	set, err := p.escaped()
	return &ast{op: opSet, set: set, at: at}, err
}

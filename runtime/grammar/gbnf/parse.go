// Package gbnf makes grammars of GBNF, as llama.cpp writes them: rules over characters, of which root is the whole
// text.
package gbnf

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
)

// Error says what of a grammar cannot be used, and in which line or rule.
type Error struct {
	Line    int    // 0: of the whole
	Rule    string // "": none yet
	Problem string
	Refused bool // the grammar may be good: this is not supported
}

func (e *Error) Error() string {
	s := "grammar: "
	if e.Line > 0 {
		s += fmt.Sprintf("line %d: ", e.Line)
	}
	if e.Rule != "" {
		s += e.Rule + ": "
	}
	return s + e.Problem
}

// Limits of a grammar.
const (
	maxDepth = 200
	maxCount = 2000
	maxRules = 4096
)

// Is makes refusals errors.ErrUnsupported.
func (e *Error) Is(target error) bool { return e.Refused && target == errors.ErrUnsupported }

type op uint8

const (
	opSet op = iota
	opText
	opMark // a control token
	opRef
	opCat
	opOr
	opRepeat
)

// part is a part of a rule.
type part struct {
	op     op
	set    lex.Set
	text   string // of opText, opMark; of opRef the rule
	list   []*part
	lo, hi int // of opRepeat, of list[0]; hi < 0: without end
	line   int
}

// rules are the rules of a grammar.
type rules struct {
	byName map[string]*part
	names  []string // in order
}

type parser struct {
	in    string
	at    int
	rule  string
	depth int
	rules

	lines, counted int // ends of lines in the first bytes
}

func (p *parser) line() int {
	if p.at > p.counted {
		p.lines += strings.Count(p.in[p.counted:p.at], "\n")
		p.counted = p.at
	}
	return 1 + p.lines
}

func (p *parser) fail(format string, args ...any) *Error {
	return &Error{Line: p.line(), Rule: p.rule, Problem: fmt.Sprintf(format, args...)}
}

func parse(text string) (*rules, error) {
	if !utf8.ValidString(text) {
		return nil, &Error{Problem: "no UTF-8"}
	}
	p := &parser{in: text, rules: rules{byName: map[string]*part{}}}
	for p.space(true); p.at < len(p.in); p.space(true) {
		if err := p.readRule(); err != nil {
			return nil, err
		}
	}
	return &p.rules, nil
}

// space passes over white space and comments, and over ends of lines if they may come.
func (p *parser) space(lines bool) {
	for p.at < len(p.in) {
		switch c := p.in[p.at]; {
		case c == ' ' || c == '\t' || (c == '\n' || c == '\r') && lines:
			p.at++
		case c == '#':
			for p.at < len(p.in) && p.in[p.at] != '\n' && p.in[p.at] != '\r' {
				p.at++
			}
		default:
			return
		}
	}
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

func isWord(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '-'
}

func (p *parser) name() string {
	from := p.at
	for p.at < len(p.in) && isWord(p.in[p.at]) {
		p.at++
	}
	return p.in[from:p.at]
}

func (p *parser) readRule() error {
	p.rule = ""
	name := p.name()
	if name == "" {
		return p.fail("want the name of a rule")
	}
	p.rule = name
	p.space(false)
	if !p.take("::=") {
		return p.fail("want ::=")
	}
	p.space(true)
	body, err := p.alternatives(false)
	if err != nil {
		return err
	}
	if c := p.peek(); p.at < len(p.in) && c != '\n' && c != '\r' {
		return p.fail("%q is not expected here", c)
	}
	if len(p.names) == maxRules {
		return p.fail("more than %d rules", maxRules)
	}
	if p.byName[name] == nil {
		p.names = append(p.names, name)
	}
	p.byName[name] = body // the last one counts
	return nil
}

// alternatives reads sequences. Within parentheses they may go over several lines.
func (p *parser) alternatives(nested bool) (*part, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("more than %d groups in each other", maxDepth)
	}
	defer func() { p.depth-- }()
	or := &part{op: opOr, line: p.line()}
	for {
		s, err := p.sequence(nested)
		if err != nil {
			return nil, err
		}
		or.list = append(or.list, s)
		if p.peek() != '|' {
			break
		}
		p.at++
		p.space(true)
	}
	if len(or.list) == 1 {
		return or.list[0], nil
	}
	return or, nil
}

func (p *parser) sequence(nested bool) (*part, error) {
	cat := &part{op: opCat, line: p.line()}
	for {
		x, err := p.element()
		if x == nil || err != nil {
			return cat, err
		}
		for {
			p.space(nested)
			repeated, err := p.repeated(x)
			if err != nil {
				return nil, err
			}
			if repeated == x {
				break
			}
			x = repeated
		}
		cat.list = append(cat.list, x)
	}
}

// element reads one part; nil where the sequence ends.
func (p *parser) element() (*part, error) {
	line := p.line()
	switch c := p.peek(); {
	case p.at == len(p.in):
		return nil, nil
	case c == '"':
		p.at++
		var b strings.Builder
		for !p.take(`"`) {
			r, err := p.char()
			if err != nil {
				return nil, err
			}
			b.WriteRune(r)
		}
		return &part{op: opText, text: b.String(), line: line}, nil
	case c == '[':
		return p.class()
	case c == '.':
		p.at++
		return &part{op: opSet, set: lex.All(), line: line}, nil
	case c == '(':
		p.at++
		p.space(true)
		x, err := p.alternatives(true)
		if err == nil && !p.take(")") {
			err = p.fail("a ( without a )")
		}
		return x, err
	case c == '<':
		return p.token()
	case c == '!':
		return nil, &Error{Line: line, Rule: p.rule, Problem: "! in front of a token is not supported", Refused: true}
	case isWord(c):
		return &part{op: opRef, text: p.name(), line: line}, nil
	}
	return nil, nil
}

// token reads <text>, a control token.
func (p *parser) token() (*part, error) {
	line := p.line()
	end := strings.IndexByte(p.in[p.at:], '>')
	if end < 0 || strings.ContainsAny(p.in[p.at:p.at+end], "\r\n") {
		return nil, p.fail("a < without a >")
	}
	text := p.in[p.at : p.at+end+1]
	if text[1] == '[' {
		return nil, &Error{Line: line, Rule: p.rule, Problem: "tokens by number, as " + text + ", are not supported", Refused: true}
	}
	p.at += len(text)
	return &part{op: opMark, text: text, line: line}, nil
}

// char reads a character of a text or a class.
func (p *parser) char() (rune, error) {
	if p.at == len(p.in) {
		return 0, p.fail("a text or class without an end")
	}
	if p.peek() != '\\' {
		r, n := utf8.DecodeRuneInString(p.in[p.at:])
		p.at += n
		return r, nil
	}
	if p.at++; p.at == len(p.in) {
		return 0, p.fail("a \\ at the end")
	}
	c := p.in[p.at]
	p.at++
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	switch {
	case digits > 0:
		if p.at+digits <= len(p.in) {
			if r, err := strconv.ParseUint(p.in[p.at:p.at+digits], 16, 32); err == nil && r <= lex.MaxRune && (r < 0xd800 || r > 0xdfff) {
				p.at += digits
				return rune(r), nil
			}
		}
		return 0, p.fail("want %d hexadecimal digits of a character behind \\%c", digits, c)
	case strings.IndexByte(`"\[]`, c) >= 0:
		return rune(c), nil
	case c == 't':
		return '\t', nil
	case c == 'r':
		return '\r', nil
	case c == 'n':
		return '\n', nil
	}
	return 0, p.fail("unknown escape \\%c", c)
}

func (p *parser) class() (*part, error) {
	line := p.line()
	p.at++
	not := p.take("^")
	var ranges []lex.Range
	for !p.take("]") {
		lo, err := p.char()
		if err != nil {
			return nil, err
		}
		hi := lo
		if p.peek() == '-' && p.at+1 < len(p.in) && p.in[p.at+1] != ']' {
			p.at++
			if hi, err = p.char(); err != nil {
				return nil, err
			}
		}
		if lo > hi {
			return nil, p.fail("a range from more to less")
		}
		ranges = append(ranges, lex.Range{Lo: lo, Hi: hi})
	}
	set := lex.NewSet(ranges...)
	if not {
		set = set.Not()
	}
	return &part{op: opSet, set: set, line: line}, nil
}

// repeated reads what repeats a part; it returns the part itself where nothing does.
func (p *parser) repeated(x *part) (*part, error) {
	lo, hi := 0, -1
	switch p.peek() {
	case '*':
	case '+':
		lo = 1
	case '?':
		hi = 1
	case '{':
		p.at++
		p.space(true)
		var err error
		if lo, err = p.number(); err != nil {
			return nil, err
		}
		hi = lo
		if p.space(true); p.take(",") {
			hi = -1
			if p.space(true); p.peek() != '}' {
				if hi, err = p.number(); err != nil {
					return nil, err
				}
				p.space(true)
			}
		}
		if p.peek() != '}' {
			return nil, p.fail("a { without a }")
		}
		if hi >= 0 && lo > hi {
			return nil, p.fail("a count from more to less")
		}
	default:
		return x, nil
	}
	p.at++
	return &part{op: opRepeat, list: []*part{x}, lo: lo, hi: hi, line: x.line}, nil
}

func (p *parser) number() (int, error) {
	from := p.at
	for p.at < len(p.in) && '0' <= p.in[p.at] && p.in[p.at] <= '9' {
		p.at++
	}
	n, err := strconv.Atoi(p.in[from:p.at])
	if err != nil || n > maxCount {
		return 0, p.fail("want a count of at most %d", maxCount)
	}
	return n, nil
}

package jinja

import (
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokData tokenKind = iota // text between tags
	tokVarBegin
	tokVarEnd
	tokBlockBegin
	tokBlockEnd
	tokName
	tokString
	tokInt
	tokFloat
	tokOp
	tokEnd // of the source
)

type token struct {
	kind tokenKind
	text string // of a string its value
	at   int    // offset in the source
}

// lexer cuts a source into tokens and does what tags say about the white space
// around them.
type lexer struct {
	src    string
	at     int
	tokens []token
}

func lex(src string) []token {
	l := lexer{src: src}
	for l.at < len(src) {
		l.text()
	}
	l.emit(tokEnd, "", len(src))
	return l.tokens
}

func (l *lexer) emit(kind tokenKind, text string, at int) {
	l.tokens = append(l.tokens, token{kind, text, at})
}

// text reads up to the next tag, and the tag.
func (l *lexer) text() {
	start := l.at
	i := l.nextTag()
	if i < 0 {
		l.emit(tokData, l.src[start:], start)
		l.at = len(l.src)
		return
	}
	l.at = i + 2
	sign := l.sign()
	tag := l.src[i+1]
	if s := l.before(start, i, sign, tag != '{'); s != "" {
		l.emit(tokData, s, start)
	}
	switch tag {
	case '{':
		l.emit(tokVarBegin, "", i)
		l.inside(tokVarEnd)
	case '#':
		l.comment(i)
	default:
		if !l.raw(i) {
			l.emit(tokBlockBegin, "", i)
			l.inside(tokBlockEnd)
		}
	}
}

// nextTag returns where the next tag begins, or -1.
func (l *lexer) nextTag() int {
	for i := l.at; ; i++ {
		n := strings.IndexByte(l.src[i:], '{')
		if n < 0 {
			return -1
		}
		if i += n; i+1 < len(l.src) && strings.IndexByte("{%#", l.src[i+1]) >= 0 {
			return i
		}
	}
}

// sign reads a - or + behind the opening of a tag.
func (l *lexer) sign() byte {
	if l.at < len(l.src) && (l.src[l.at] == '-' || l.src[l.at] == '+') {
		l.at++
		return l.src[l.at-1]
	}
	return 0
}

// before returns the text from start to the tag at end, less the white space
// that the tag takes: all of it for -, else, before tags that print nothing,
// that between the beginning of the line and the tag.
func (l *lexer) before(start, end int, sign byte, lstrip bool) string {
	s := l.src[start:end]
	switch {
	case sign == '-':
		return strings.TrimRightFunc(s, isSpace)
	case sign == '+' || !lstrip:
		return s
	}
	line := strings.LastIndexByte(s, '\n') + 1
	if line == 0 && start > 0 && l.src[start-1] != '\n' {
		return s
	}
	if strings.TrimLeftFunc(s[line:], isSpace) == "" {
		return s[:line]
	}
	return s
}

// after skips the white space that the end of a tag takes: all of it for -,
// else, behind tags that print nothing, the end of the line.
func (l *lexer) after(sign byte, trim bool) {
	switch {
	case sign == '-':
		l.space()
	case sign != '+' && trim && strings.HasPrefix(l.src[l.at:], "\n"):
		l.at++
	}
}

func (l *lexer) space() {
	l.at = len(l.src) - len(strings.TrimLeftFunc(l.src[l.at:], isSpace))
}

func (l *lexer) comment(start int) {
	n := strings.Index(l.src[l.at:], "#}")
	if n < 0 {
		failAt(start, "missing end of comment tag")
	}
	var sign byte
	if n > 0 {
		sign = l.src[l.at+n-1]
	}
	l.at += n + 2
	l.after(sign, true)
}

// raw reads a raw block, if the tag that was opened is one.
func (l *lexer) raw(start int) bool {
	open, ok := l.word(l.at, "raw")
	if !ok || l.src[open-2:open] != "%}" || l.src[open-3] == '+' {
		return false
	}
	if l.at = open; l.src[open-3] == '-' {
		l.space()
	}
	body := l.at
	for i := body; ; i++ {
		n := strings.Index(l.src[i:], "{%")
		if n < 0 {
			failAt(start, "missing end of raw directive")
		}
		i += n
		l.at = i + 2
		sign := l.sign()
		end, ok := l.word(l.at, "endraw")
		if !ok {
			continue
		}
		if s := l.before(body, i, sign, true); s != "" {
			l.emit(tokData, s, body)
		}
		l.at = end
		l.after(l.src[end-3], true)
		return true
	}
}

// word reads a tag that is one word and returns where it ends.
func (l *lexer) word(at int, word string) (end int, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimLeftFunc(l.src[at:], isSpace), word)
	rest = strings.TrimLeftFunc(rest, isSpace)
	if ok && rest != "" && (rest[0] == '-' || rest[0] == '+') {
		rest = rest[1:]
	}
	if !ok || !strings.HasPrefix(rest, "%}") {
		return 0, false
	}
	return len(l.src) - len(rest) + 2, true
}

// operators, longer ones first.
var operators = []string{"**", "//", "==", "!=", ">=", "<=",
	"+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";"}

var closing = map[string]string{"(": ")", "[": "]", "{": "}"}

// inside reads the tokens of a tag up to its end.
func (l *lexer) inside(end tokenKind) {
	var open []string // brackets to be closed
	for {
		l.space()
		if l.at >= len(l.src) {
			return // the parser misses the end
		}
		if len(open) == 0 && l.tagEnd(end) {
			return
		}
		at, c := l.at, l.src[l.at]
		switch {
		case c >= '0' && c <= '9':
			l.number()
		case c == '"' || c == '\'':
			l.str(c)
		case l.name():
		default:
			op := l.operator()
			if want := closing[op]; want != "" {
				open = append(open, want)
			} else if strings.ContainsAny(op, ")]}") {
				if len(open) == 0 {
					failAt(at, "unexpected '%s'", op)
				}
				if want := open[len(open)-1]; want != op {
					failAt(at, "unexpected '%s', expected '%s'", op, want)
				}
				open = open[:len(open)-1]
			}
		}
	}
}

// tagEnd reads the end of a tag if it stands here.
func (l *lexer) tagEnd(kind tokenKind) bool {
	mark, signs := "%}", "-+"
	if kind == tokVarEnd {
		mark, signs = "}}", "-"
	}
	rest := l.src[l.at:]
	var sign byte
	if strings.IndexByte(signs, rest[0]) >= 0 && strings.HasPrefix(rest[1:], mark) {
		sign = rest[0]
		l.at++
	} else if !strings.HasPrefix(rest, mark) {
		return false
	}
	l.emit(kind, "", l.at)
	l.at += 2
	l.after(sign, kind == tokBlockEnd)
	return true
}

func (l *lexer) operator() string {
	for _, op := range operators {
		if strings.HasPrefix(l.src[l.at:], op) {
			l.emit(tokOp, op, l.at)
			l.at += len(op)
			return op
		}
	}
	r, _ := utf8.DecodeRuneInString(l.src[l.at:])
	failAt(l.at, "unexpected character %q", r)
	return ""
}

func (l *lexer) name() bool {
	rest := strings.TrimLeftFunc(l.src[l.at:], func(r rune) bool {
		return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
	})
	n := len(l.src) - len(rest)
	if n == l.at {
		return false
	}
	l.emit(tokName, l.src[l.at:n], l.at)
	l.at = n
	return true
}

// digits returns the end of a run of digits with single _ between them.
func (l *lexer) digits(i int, valid string) int {
	end := i
	for i < len(l.src) && strings.IndexByte(valid, l.src[i]) >= 0 {
		i++
		end = i
		if i < len(l.src) && l.src[i] == '_' {
			i++
		}
	}
	return end
}

const decimal = "0123456789"

var radixes = []struct {
	prefix, digits string
	base           int
}{
	{"0b", "01", 2},
	{"0o", "01234567", 8},
	{"0x", "0123456789abcdefABCDEF", 16},
}

func (l *lexer) number() {
	start := l.at
	if l.float() {
		return
	}
	end, base := 0, 10
	for _, radix := range radixes {
		if strings.EqualFold(l.src[start:min(start+2, len(l.src))], radix.prefix) {
			skip := start + 2
			if strings.HasPrefix(l.src[skip:], "_") {
				skip++
			}
			if e := l.digits(skip, radix.digits); e > skip {
				end, base = e, radix.base
			}
		}
	}
	switch {
	case base != 10:
	case l.src[start] == '0':
		end = l.digits(start, "0")
	default:
		end = l.digits(start, decimal)
	}
	text := strings.ReplaceAll(l.src[start:end], "_", "")
	if base != 10 {
		text = text[2:]
	}
	i, ok := new(big.Int).SetString(text, base)
	if !ok || !i.IsInt64() {
		failAt(start, "number %s is too large", text)
	}
	l.emit(tokInt, i.String(), start)
	l.at = end
}

func (l *lexer) float() bool {
	start := l.at
	if start > 0 && l.src[start-1] == '.' {
		return false
	}
	end := l.digits(start, decimal)
	whole := end
	if strings.HasPrefix(l.src[end:], ".") {
		if e := l.digits(end+1, decimal); e > end+1 {
			end = e
		}
	}
	if end < len(l.src) && l.src[end]|0x20 == 'e' {
		e := end + 1
		if e < len(l.src) && (l.src[e] == '+' || l.src[e] == '-') {
			e++
		}
		if d := l.digits(e, decimal); d > e {
			end = d
		}
	}
	if end == whole {
		return false
	}
	l.emit(tokFloat, strings.ReplaceAll(l.src[start:end], "_", ""), start)
	l.at = end
	return true
}

// str reads a string in quotes and undoes Python's escapes in it.
func (l *lexer) str(quote byte) {
	var b strings.Builder
	for i := l.at + 1; i < len(l.src); {
		switch c := l.src[i]; c {
		case quote:
			l.emit(tokString, b.String(), l.at)
			l.at = i + 1
			return
		case '\\':
			n, s := unescape(l.src[i:])
			b.WriteString(s)
			i += n
		default:
			b.WriteByte(c)
			i++
		}
	}
	failAt(l.at, "a string is not closed")
}

var escapes = map[byte]string{'\n': "", '\\': `\`, '\'': "'", '"': `"`, 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v"}

// hexDigits of the escapes that have them.
var hexDigits = map[byte]int{'x': 2, 'u': 4, 'U': 8}

// unescape returns what the escape at the start of s stands for and its length.
// An unknown one stands for itself.
func unescape(s string) (n int, text string) {
	if len(s) < 2 {
		return 1, s
	}
	if text, ok := escapes[s[1]]; ok {
		return 2, text
	}
	if digits := hexDigits[s[1]]; digits > 0 && len(s) >= 2+digits {
		if r, err := strconv.ParseUint(s[2:2+digits], 16, 32); err == nil && r <= unicode.MaxRune {
			return 2 + digits, string(rune(r))
		}
	}
	n = 1
	for n < 4 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
		n++
	}
	if n > 1 {
		r, _ := strconv.ParseUint(s[1:n], 8, 32)
		return n, string(rune(r))
	}
	return 1, `\`
}

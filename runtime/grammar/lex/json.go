package lex

import "strings"

// Phases of a JSON string beside those of its text.
const (
	opening       = afterText + iota // before the first quote
	escape                           // behind a backslash
	hex                              // in \u, V has N digits
	surrogate                        // behind the first half of a pair, which is V
	surrogateMark                    // behind the backslash of the second
	surrogateHex                     // in the second: V has the first half's bits above 16 bits, N digits below
	closed                           // behind the last quote
)

// JSONString writes texts as JSON strings, with every escape that JSON has. Halves of pairs alone are no text.
type JSONString struct {
	Runes
	// Needed: \u stands for no letter, digit or mark of ASCII that needs no escape anywhere. Programs that write JSON
	// write it so.
	Needed bool
	// Single: the quotes are single ones, as of Python. \' stands for one.
	Single bool
}

func (j JSONString) quote() byte {
	if j.Single {
		return '\''
	}
	return '"'
}

// needed are the code points that some program writes with \u.
var needed = Set{{0, 0x1f}, {'"', '"'}, {'&', '\''}, {'+', '+'}, {'/', '/'}, {'<', '>'}, {'\\', '\\'}, {0x7f, MaxRune}}

// escapable says whether one of the code points lo to hi leads on behind \u.
func (j JSONString) escapable(p any, lo, hi rune) bool {
	if !j.Needed {
		return j.Any(p, lo, hi)
	}
	for _, r := range needed {
		if lo, hi := max(lo, r.Lo), min(hi, r.Hi); lo <= hi && j.Any(p, lo, hi) {
			return true
		}
	}
	return false
}

// BeginJSON is the state before the first quote.
func BeginJSON(p any) Key { return Key{Phase: opening, P: p} }

// InJSON is the state behind the first quote.
func InJSON(p any) Key { return Key{P: p} }

const escapes, escaped = `"\/bfnrt`, "\"\\/\b\f\n\r\t"

func (j JSONString) Step(k Key, b byte) (Key, bool) {
	switch k.Phase {
	case opening:
		return Key{P: k.P}, b == j.quote()
	case inText:
		switch {
		case b == j.quote():
			_, ok := j.Runes.Accept(k.P)
			return Key{Phase: closed, P: k.P}, ok
		case b == '\\':
			k.Phase = escape
			return k, j.escapes(k.P)
		case b < 0x20:
			return k, false
		}
	case escape:
		if b == 'u' {
			k.Phase = hex
			return k, j.escapable(k.P, 0, MaxRune)
		}
		i := strings.IndexByte(escapes, b)
		if j.Single && b == '\'' {
			p, ok := j.Next(k.P, '\'')
			return Key{P: p}, ok
		}
		if i < 0 {
			return k, false
		}
		p, ok := j.Next(k.P, rune(escaped[i]))
		return Key{P: p}, ok
	case hex:
		return j.hex(k, b)
	case surrogate:
		k.Phase = surrogateMark
		return k, b == '\\'
	case surrogateMark:
		k.Phase, k.V, k.N = surrogateHex, (k.V-0xd800)<<16, 0
		return k, b == 'u'
	case surrogateHex:
		return j.second(k, b)
	case closed:
		return k, false
	}
	return stepUTF8(j.Runes, k, b)
}

// escapes says whether an escape leads on.
func (j JSONString) escapes(p any) bool {
	if j.escapable(p, 0, MaxRune) {
		return true
	}
	for _, r := range escaped {
		if j.Any(p, r, r) {
			return true
		}
	}
	return j.Single && j.Any(p, '\'', '\'')
}

func digit(b byte) (rune, bool) {
	switch {
	case '0' <= b && b <= '9':
		return rune(b - '0'), true
	case 'a' <= b|0x20 && b|0x20 <= 'f':
		return rune(b|0x20-'a') + 10, true
	}
	return 0, false
}

// hex follows a digit of \u. The code points that may come of it are those with these digits first, and where halves of
// pairs are among these, those behind the first plane.
func (j JSONString) hex(k Key, b byte) (Key, bool) {
	d, ok := digit(b)
	if !ok {
		return k, false
	}
	k.V, k.N = k.V<<4|d, k.N+1
	left := 4 * (4 - int(k.N))
	lo := k.V << left
	hi := lo + 1<<left - 1
	if k.N < 4 {
		return k, j.escapable(k.P, lo, hi) || j.pairs(k.P, lo, hi)
	}
	if 0xd800 <= k.V && k.V < 0xdc00 {
		k.Phase = surrogate
		return k, j.pairs(k.P, k.V, k.V)
	}
	p, ok := j.Next(k.P, k.V)
	return Key{P: p}, ok && (!j.Needed || needed.Has(k.V))
}

// pairs says whether a pair whose first half is one of lo to hi leads on.
func (j JSONString) pairs(p any, lo, hi rune) bool {
	lo, hi = max(lo, 0xd800), min(hi, 0xdbff)
	return lo <= hi && j.Any(p, 0x10000+(lo-0xd800)<<10, 0x10000+(hi-0xd800)<<10+0x3ff)
}

// second follows a digit of the second half.
func (j JSONString) second(k Key, b byte) (Key, bool) {
	d, ok := digit(b)
	if !ok {
		return k, false
	}
	first, low := k.V>>16, k.V&0xffff<<4|d
	k.V, k.N = first<<16|low, k.N+1
	left := 4 * (4 - int(k.N))
	lo := max(low<<left, 0xdc00)
	hi := min(low<<left+1<<left-1, 0xdfff)
	base := 0x10000 + first<<10
	if lo > hi || !j.Any(k.P, base+lo-0xdc00, base+hi-0xdc00) {
		return k, false
	}
	if k.N < 4 {
		return k, true
	}
	p, ok := j.Next(k.P, base+low-0xdc00)
	return Key{P: p}, ok
}

func (j JSONString) Accept(k Key) (any, bool) {
	if k.Phase != closed {
		return nil, false
	}
	return j.Runes.Accept(k.P)
}

func (j JSONString) More(k Key) bool { return k.Phase != closed }

func (j JSONString) Radius(k Key, c Class) (int, bool) {
	if k.Phase != inText || j.Single && c.Has('\'') {
		return 0, false
	}
	return j.Runes.Radius(k.P, c)
}

func (j JSONString) Clip(k Key, n int) Key {
	k.P = j.Runes.Clip(k.P, n)
	return k
}

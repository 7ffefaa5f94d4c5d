package text

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// A class is what a pattern sees of a code point: an ASCII code point is its
// own class, any other one falls in one of the classes below by its general
// category. White space outside ASCII is seen as a vertical tab.
type class = uint8

const (
	classSpace  class = '\v'
	classLetter class = 128 + iota
	classNumber
	classPunct
	classMark
	classSymbol
	classOther
)

// unicode151 is what Unicode 15.1, which llama.cpp follows, has more than the
// 15.0 of package unicode.
var unicode151 = []struct {
	lo, hi rune
	is     class
}{
	{0x2EBF0, 0x2EE5D, classLetter},
	{0x2FFC, 0x2FFF, classSymbol},
	{0x31EF, 0x31EF, classSymbol},
}

// classTable holds the class of every code point.
var classTable = sync.OnceValue(func() []class {
	t := make([]class, unicode.MaxRune+1)
	for i := range t {
		t[i] = classOther
	}
	for _, c := range []struct {
		is  class
		tab *unicode.RangeTable
	}{
		{classLetter, unicode.L},
		{classNumber, unicode.N},
		{classPunct, unicode.P},
		{classMark, unicode.M},
		{classSymbol, unicode.S},
		{classSpace, unicode.White_Space},
	} {
		for _, r := range c.tab.R16 {
			for x := int(r.Lo); x <= int(r.Hi); x += int(r.Stride) {
				t[x] = c.is
			}
		}
		for _, r := range c.tab.R32 {
			for x := int(r.Lo); x <= int(r.Hi); x += int(r.Stride) {
				t[x] = c.is
			}
		}
	}
	for _, r := range unicode151 {
		for x := r.lo; x <= r.hi; x++ {
			t[x] = r.is
		}
	}
	for i := range utf8.RuneSelf {
		t[i] = class(i)
	}
	return t
})

// runes is a text as a pattern sees it: code points with their classes.
// Code point i is the bytes src[offs[i]:offs[i+1]].
type runes struct {
	src   string
	cps   []rune
	class []class
	offs  []int32
}

// newRunes decodes s. A byte that starts no sequence becomes U+FFFD in src;
// surrogates are taken at their value, because llama.cpp does so and token ids
// would differ otherwise.
func newRunes(s string) *runes {
	n := utf8.RuneCountInString(s)
	r := &runes{src: s, cps: make([]rune, 0, n), class: make([]class, 0, n), offs: make([]int32, 0, n+1)}
	if !utf8.ValidString(s) {
		r.src = sanitize(s)
	}
	tab := classTable()
	for i := 0; i < len(r.src); {
		cp, size := decodeLoose(r.src[i:])
		r.offs = append(r.offs, int32(i))
		r.cps = append(r.cps, cp)
		r.class = append(r.class, tab[cp])
		i += size
	}
	r.offs = append(r.offs, int32(len(r.src)))
	return r
}

// sanitize re-encodes s code point by code point.
func sanitize(s string) string {
	b := make([]byte, 0, len(s)+len(s)/2)
	for i := 0; i < len(s); {
		cp, size := decodeLoose(s[i:])
		if 0xD800 <= cp && cp <= 0xDFFF {
			b = append(b, 0xED, 0x80|byte(cp>>6)&0x3F, 0x80|byte(cp)&0x3F)
		} else {
			b = utf8.AppendRune(b, cp)
		}
		i += size
	}
	return string(b)
}

// decodeLoose returns the first code point of s, which is not empty, and the
// number of bytes it takes. Unlike utf8.DecodeRune it lets surrogates pass;
// anything else that is malformed is one byte of U+FFFD.
func decodeLoose(s string) (rune, int) {
	c := s[0]
	n := sequenceLen(c)
	switch {
	case c < utf8.RuneSelf:
		return rune(c), 1
	case c < 0xC0 || c >= 0xF8 || n > len(s):
		return utf8.RuneError, 1
	}
	cp := rune(c) & (0x7F >> n)
	for i := 1; i < n; i++ {
		if s[i]&0xC0 != 0x80 {
			return utf8.RuneError, 1
		}
		cp = cp<<6 | rune(s[i]&0x3F)
	}
	if cp > unicode.MaxRune || cp < leastRune[n] {
		return utf8.RuneError, 1
	}
	return cp, n
}

// leastRune is the smallest code point that needs a sequence of this length.
var leastRune = [5]rune{2: 0x80, 3: 0x800, 4: 0x10000}

// sequenceLen is the length of a UTF-8 sequence that its first byte announces,
// 1 for bytes that start none.
func sequenceLen(c byte) int {
	switch {
	case c < 0xC0:
		return 1
	case c < 0xE0:
		return 2
	case c < 0xF0:
		return 3
	default:
		return 4
	}
}

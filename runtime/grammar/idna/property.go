package idna

import (
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Exceptions are code points that are allowed, or not, whatever the rules say (RFC 5892 2.6). Those that depend on what
// stands around are in contexts.
var exceptions = map[rune]bool{
	0x00df: true, 0x03c2: true, 0x06fd: true, 0x06fe: true, 0x0f0b: true, 0x3007: true,
	0x0640: false, 0x07fa: false, 0x302e: false, 0x302f: false, 0x3031: false, 0x3032: false, 0x3033: false, 0x3034: false,
	0x3035: false, 0x303b: false,
}

// never are blocks of which nothing is allowed: old Hangul letters, and marks for symbols and music (RFC 5892 2.4 and
// 2.9).
var never = &unicode.RangeTable{
	R16: []unicode.Range16{{0x1100, 0x11ff, 1}, {0x20d0, 0x20ff, 1}, {0xa960, 0xa97c, 1}, {0xd7b0, 0xd7fb, 1}},
	R32: []unicode.Range32{{0x1d100, 0x1d24f, 1}},
}

var (
	letterDigits = []*unicode.RangeTable{unicode.Ll, unicode.Lu, unicode.Lo, unicode.Nd, unicode.Lm, unicode.Mn, unicode.Mc}
	ignorable    = []*unicode.RangeTable{
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Cf, unicode.White_Space,
		unicode.Noncharacter_Code_Point,
	}
)

// allowed says whether a code point is in labels, whatever stands around: PVALID of RFC 5892.
func allowed(r rune) bool {
	if yes, is := exceptions[r]; is {
		return yes
	}
	if isLDH(r) {
		return true
	}
	return !unicode.Is(never, r) && !unicode.In(r, ignorable...) && unicode.In(r, letterDigits...) && stable(r)
}

// stable says whether a code point stays what it is when letters are folded and normalized.
func stable(r rune) bool {
	s := string(r)
	return norm.NFKC.String(cases.Fold().String(norm.NFKC.String(s))) == s
}

// contexts are the code points that are allowed where their neighbours say so (RFC 5892 appendix A).
var contexts = map[rune]func(label []rune, at int) bool{
	0x200c: func(l []rune, i int) bool { return behindVirama(l, i) || joining(l, i) },
	0x200d: behindVirama,
	0x00b7: func(l []rune, i int) bool { return i > 0 && i+1 < len(l) && l[i-1] == 'l' && l[i+1] == 'l' },
	0x0375: func(l []rune, i int) bool { return i+1 < len(l) && unicode.Is(unicode.Greek, l[i+1]) },
	0x05f3: behindHebrew,
	0x05f4: behindHebrew,
	0x30fb: func(l []rune, _ int) bool {
		return some(l, func(r rune) bool { return unicode.In(r, unicode.Hiragana, unicode.Katakana, unicode.Han) })
	},
}

// Digits of Arabic and extended ones do not mix.
func init() {
	const arabic, extended = 0x0660, 0x06f0
	for i := range rune(10) {
		contexts[arabic+i] = without(extended)
		contexts[extended+i] = without(arabic)
	}
}

func without(first rune) func(label []rune, at int) bool {
	return func(l []rune, _ int) bool {
		return !some(l, func(r rune) bool { return first <= r && r < first+10 })
	}
}

func some(label []rune, is func(r rune) bool) bool {
	for _, r := range label {
		if is(r) {
			return true
		}
	}
	return false
}

func behindHebrew(label []rune, at int) bool {
	return at > 0 && unicode.Is(unicode.Hebrew, label[at-1])
}

// behindVirama says whether the code point before is a virama, by its combining class.
func behindVirama(label []rune, at int) bool {
	const virama = 9
	return at > 0 && norm.NFC.PropertiesString(string(label[at-1])).CCC() == virama
}

// joining says whether letters on both sides would join, but for the code point between. Marks do not count.
func joining(label []rune, at int) bool {
	mark := func(r rune) bool { return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) }
	before, behind := at-1, at+1
	for before >= 0 && mark(label[before]) {
		before--
	}
	for behind < len(label) && mark(label[behind]) {
		behind++
	}
	return before >= 0 && behind < len(label) &&
		unicode.In(label[before], joinsLeft, joinsDual) && unicode.In(label[behind], joinsRight, joinsDual)
}

package ecma

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
)

var (
	digits = lex.NewSet(lex.Range{Lo: '0', Hi: '9'})
	words  = lex.NewSet(lex.Range{Lo: '0', Hi: '9'}, lex.Range{Lo: 'A', Hi: 'Z'}, lex.Range{Lo: 'a', Hi: 'z'}, lex.Range{Lo: '_', Hi: '_'})
	spaces = lex.Chars("\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff")
)

// classes are escapes that stand for several characters.
var classes = map[byte]lex.Set{
	'd': digits, 'D': digits.Not(), 'w': words, 'W': words.Not(), 's': spaces, 'S': spaces.Not(),
}

// controls are escapes that stand for control characters.
var controls = map[byte]rune{'t': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r'}

// syntax are characters that an escape stands for themselves.
const syntax = `^$\.*+?()[]{}|/-`

// escaped reads an escape that stands for a set of characters.
func (p *parser) escaped() (lex.Set, error) {
	from := p.at
	p.at++
	if p.at == len(p.in) {
		p.at = from
		return nil, p.fail("a \\ at the end")
	}
	c := p.in[p.at]
	p.at++
	one := func(r rune) (lex.Set, error) { return lex.NewSet(lex.Range{Lo: r, Hi: r}), nil }
	if set, ok := classes[c]; ok {
		return set, nil
	}
	if r, ok := controls[c]; ok {
		return one(r)
	}
	if strings.IndexByte(syntax, c) >= 0 {
		return one(rune(c))
	}
	rest := p.in[p.at:]
	switch {
	case c == '0' && (rest == "" || rest[0] < '0' || rest[0] > '9'):
		return one(0)
	case c == 'c' && rest != "" && ('a' <= rest[0]|0x20 && rest[0]|0x20 <= 'z'):
		p.at++
		return one(rune(rest[0] & 31))
	case c == 'x':
		if r, ok := p.hex(2); ok {
			return one(r)
		}
	case c == 'u':
		if r, ok := p.unicode(); ok {
			return one(r)
		}
	case c == 'p' || c == 'P':
		if set := p.property(rest); set != nil {
			if c == 'P' {
				set = set.Not()
			}
			return set, nil
		}
		p.at = from
		return nil, p.fail("an unknown property of characters")
	}
	p.at = from
	return nil, p.fail("an escape that ECMAScript does not have")
}

// property reads the name of a property in braces; nil if it is unknown.
func (p *parser) property(rest string) lex.Set {
	name, _, ok := strings.Cut(strings.TrimPrefix(rest, "{"), "}")
	if !ok || !strings.HasPrefix(rest, "{") {
		return nil
	}
	set := property(name)
	if set == nil && p.syntax && knownProperty(name) {
		set = lex.All()
	}
	if set != nil {
		p.at += len(name) + 2
	}
	return set
}

// hex reads n hexadecimal digits.
func (p *parser) hex(n int) (rune, bool) {
	if len(p.in)-p.at < n || strings.Trim(p.in[p.at:p.at+n], "0123456789abcdefABCDEF") != "" {
		return 0, false
	}
	r, err := strconv.ParseUint(p.in[p.at:p.at+n], 16, 32)
	p.at += n
	return rune(r), err == nil
}

// unicode reads what follows \u: four digits, two such halves of a pair, or digits in braces.
func (p *parser) unicode() (rune, bool) {
	if p.take("{") {
		text, _, ok := strings.Cut(p.in[p.at:], "}")
		r, err := strconv.ParseUint(text, 16, 32)
		p.at += len(text) + 1
		return rune(r), ok && err == nil && r <= lex.MaxRune
	}
	r, ok := p.hex(4)
	if ok && 0xd800 <= r && r < 0xdc00 {
		at := p.at
		if p.take(`\u`) {
			if low, ok := p.hex(4); ok && 0xdc00 <= low && low < 0xe000 {
				return 0x10000 + (r-0xd800)<<10 + low - 0xdc00, true
			}
		}
		p.at = at
	}
	return r, ok
}

// class reads [..].
func (p *parser) class() (lex.Set, error) {
	from := p.at
	p.at++
	not := p.take("^")
	var set lex.Set
	for {
		if p.at == len(p.in) {
			p.at = from
			return nil, p.fail("a [ without a ]")
		}
		if p.take("]") {
			break
		}
		lo, err := p.member()
		if err != nil {
			return nil, err
		}
		if p.peek() != '-' || strings.HasPrefix(p.in[p.at:], "-]") || p.at+1 == len(p.in) {
			set = append(set, lo...)
			continue
		}
		at := p.at
		p.at++
		hi, err := p.member()
		if err != nil {
			return nil, err
		}
		if !single(lo) || !single(hi) || lo[0].Lo > hi[0].Lo {
			p.at = at
			return nil, p.fail("a range from more to less, or of classes")
		}
		set = append(set, lex.Range{Lo: lo[0].Lo, Hi: hi[0].Lo})
	}
	set = lex.NewSet(set...)
	if not {
		set = set.Not()
	}
	return set, nil
}

func single(s lex.Set) bool { return len(s) == 1 && s[0].Lo == s[0].Hi }

// member reads a character or an escape within a class.
func (p *parser) member() (lex.Set, error) {
	if p.peek() != '\\' {
		r := p.rune()
		return lex.Set{{Lo: r, Hi: r}}, nil
	}
	if p.take(`\b`) {
		return lex.Set{{Lo: '\b', Hi: '\b'}}, nil
	}
	return p.escaped()
}

// longNames are the names of general categories that package unicode has the short names of.
var longNames = map[string]string{
	"Letter": "L", "Cased_Letter": "LC", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Titlecase_Letter": "Lt",
	"Modifier_Letter": "Lm", "Other_Letter": "Lo", "Mark": "M", "Combining_Mark": "M", "Nonspacing_Mark": "Mn",
	"Spacing_Mark": "Mc", "Enclosing_Mark": "Me", "Number": "N", "Decimal_Number": "Nd", "digit": "Nd", "Letter_Number": "Nl",
	"Other_Number": "No", "Punctuation": "P", "punct": "P", "Connector_Punctuation": "Pc", "Dash_Punctuation": "Pd",
	"Open_Punctuation": "Ps", "Close_Punctuation": "Pe", "Initial_Punctuation": "Pi", "Final_Punctuation": "Pf",
	"Other_Punctuation": "Po", "Symbol": "S", "Math_Symbol": "Sm", "Currency_Symbol": "Sc", "Modifier_Symbol": "Sk",
	"Other_Symbol": "So", "Separator": "Z", "Space_Separator": "Zs", "Line_Separator": "Zl", "Paragraph_Separator": "Zp",
	"Control": "Cc", "cntrl": "Cc", "Format": "Cf", "Private_Use": "Co",
}

// property returns the characters of \p{..}; nil if the name is not known.
func property(name string) lex.Set {
	key, value, named := strings.Cut(name, "=")
	switch {
	case named && (key == "Script" || key == "sc"):
		return table(script(value))
	case named && (key == "General_Category" || key == "gc"):
		name = value
	case named:
		return nil
	}
	if short, ok := longNames[name]; ok {
		name = short
	}
	switch name {
	case "Any":
		return lex.All()
	case "ASCII":
		return lex.NewSet(lex.Range{Lo: 0, Hi: 0x7f})
	case "LC":
		return table(unicode.Lu).Or(table(unicode.Ll)).Or(table(unicode.Lt))
	case "Alphabetic", "Alpha":
		return table(unicode.L).Or(table(unicode.Nl)).Or(table(unicode.Other_Alphabetic))
	case "Uppercase", "Upper":
		return table(unicode.Lu).Or(table(unicode.Other_Uppercase))
	case "Lowercase", "Lower":
		return table(unicode.Ll).Or(table(unicode.Other_Lowercase))
	case "White_Space", "space":
		return table(unicode.White_Space)
	}
	if t := table(unicode.Categories[name]); t != nil {
		return t
	}
	return table(unicode.Properties[name])
}

func table(t *unicode.RangeTable) lex.Set {
	if t == nil {
		return nil
	}
	var ranges []lex.Range
	for _, r := range t.R16 {
		ranges = spread(ranges, rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range t.R32 {
		ranges = spread(ranges, rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	return lex.NewSet(ranges...)
}

func spread(ranges []lex.Range, lo, hi, stride rune) []lex.Range {
	if stride == 1 {
		return append(ranges, lex.Range{Lo: lo, Hi: hi})
	}
	for r := lo; r <= hi; r += stride {
		ranges = append(ranges, lex.Range{Lo: r, Hi: r})
	}
	return ranges
}

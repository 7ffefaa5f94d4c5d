package lex

import (
	"cmp"
	"slices"
)

// Range is the code points from Lo to Hi.
type Range struct{ Lo, Hi rune }

// Set is a set of code points: ranges that ascend and do not touch.
type Set []Range

// MaxRune is the last code point.
const MaxRune = 0x10ffff

// all is every code point that UTF-8 can write: surrogates are none.
var all = Set{{0, 0xd7ff}, {0xe000, MaxRune}}

// All returns every code point but surrogates.
func All() Set { return slices.Clone(all) }

// NewSet returns the union of ranges, without surrogates.
func NewSet(ranges ...Range) Set {
	s := slices.Clone(ranges)
	slices.SortFunc(s, func(a, b Range) int { return cmp.Compare(a.Lo, b.Lo) })
	var out Set
	for _, r := range s {
		if r.Lo > r.Hi {
			continue
		}
		if n := len(out); n > 0 && r.Lo <= out[n-1].Hi+1 {
			out[n-1].Hi = max(out[n-1].Hi, r.Hi)
			continue
		}
		out = append(out, r)
	}
	return out.And(all)
}

// Chars returns the set of the code points of a text.
func Chars(text string) Set {
	var ranges []Range
	for _, r := range text {
		ranges = append(ranges, Range{r, r})
	}
	return NewSet(ranges...)
}

// Or returns the union.
func (s Set) Or(t Set) Set { return NewSet(append(slices.Clone(s), t...)...) }

// And returns the intersection.
func (s Set) And(t Set) Set {
	var out Set
	for i, j := 0, 0; i < len(s) && j < len(t); {
		if lo, hi := max(s[i].Lo, t[j].Lo), min(s[i].Hi, t[j].Hi); lo <= hi {
			out = append(out, Range{lo, hi})
		}
		if s[i].Hi < t[j].Hi {
			i++
		} else {
			j++
		}
	}
	return out
}

// Not returns the complement.
func (s Set) Not() Set {
	var out Set
	next := rune(0)
	for _, r := range s {
		if r.Lo > next {
			out = append(out, Range{next, r.Lo - 1})
		}
		next = r.Hi + 1
	}
	if next <= MaxRune {
		out = append(out, Range{next, MaxRune})
	}
	return out.And(all)
}

// Has says whether a code point is in the set.
func (s Set) Has(r rune) bool {
	_, found := slices.BinarySearchFunc(s, r, func(a Range, r rune) int {
		switch {
		case a.Hi < r:
			return -1
		case a.Lo > r:
			return 1
		}
		return 0
	})
	return found
}

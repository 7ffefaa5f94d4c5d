package idna

import "golang.org/x/text/unicode/bidi"

// classOf is the class of a code point in the order of writing.
func classOf(r rune) bidi.Class {
	p, _ := bidi.LookupRune(r)
	return p.Class()
}

// isRightToLeft says whether a name with a code point is written in both directions.
func isRightToLeft(r rune) bool {
	switch classOf(r) {
	case bidi.R, bidi.AL, bidi.AN:
		return true
	}
	return false
}

// set is a set of classes.
func set(list ...bidi.Class) (s uint64) {
	for _, c := range list {
		s |= 1 << c
	}
	return s
}

var (
	weak        = set(bidi.EN, bidi.ES, bidi.CS, bidi.ET, bidi.ON, bidi.BN, bidi.NSM)
	right       = set(bidi.R, bidi.AL)
	inRight     = weak | right | set(bidi.AN)
	endsRight   = right | set(bidi.EN, bidi.AN)
	left        = set(bidi.L)
	inLeft      = weak | left
	endsLeft    = left | set(bidi.EN)
	bothNumbers = set(bidi.EN, bidi.AN)
)

// ordered says whether a label of a name that is written in both directions keeps its order (RFC 5893 section 2).
func ordered(label []rune) bool {
	first := set(classOf(label[0]))
	in, ends := inLeft, endsLeft
	switch {
	case first&right != 0:
		in, ends = inRight, endsRight
	case first&left == 0:
		return false
	}
	var seen, last uint64
	for _, r := range label {
		c := set(classOf(r))
		seen |= c
		if c != set(bidi.NSM) {
			last = c
		}
	}
	return seen&^in == 0 && last&ends != 0 && seen&bothNumbers != bothNumbers
}

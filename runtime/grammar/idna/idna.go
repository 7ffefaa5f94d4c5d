// Package idna says which host names are valid: those of RFC 1123 with A-labels, and internationalized ones, by IDNA
// 2008 (RFC 5890 to 5893). Nothing is mapped, but for the marks between labels.
package idna

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The longest label and the longest name, in bytes of ASCII.
const (
	maxLabel = 63
	maxName  = 253
)

// prefix begins an A-label, which stands for a label beyond ASCII.
const prefix = "xn--"

// Hostname says whether a name of ASCII is one of a host. Its A-labels stand for something.
func Hostname(name string) bool {
	return isASCII(name) && valid(strings.Split(name, "."))
}

// dots are the marks that stand between labels, beside the full stop.
var dots = strings.NewReplacer("\u3002", ".", "\uff0e", ".", "\uff61", ".")

// Internationalized says whether a name is one of a host, whose labels may be beyond ASCII.
func Internationalized(name string) bool {
	return utf8.ValidString(name) && valid(strings.Split(dots.Replace(name), "."))
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// valid says whether a name has these labels.
func valid(labels []string) bool {
	total := len(labels) - 1
	rightToLeft := false
	list := make([][]rune, len(labels))
	for i, label := range labels {
		text, length, ok := read(label)
		if total += length; !ok || length > maxLabel || total > maxName {
			return false
		}
		list[i] = text
		rightToLeft = rightToLeft || slices.ContainsFunc(text, isRightToLeft)
	}
	return !rightToLeft || !slices.ContainsFunc(list, func(label []rune) bool { return !ordered(label) })
}

// read returns what a label stands for, and how long it is in ASCII.
func read(label string) (text []rune, length int, ok bool) {
	if !isASCII(label) {
		text = []rune(label)
		code, ok := encode(text)
		return text, len(prefix) + len(code), ok && beyond(text)
	}
	label = strings.ToLower(label)
	if code, is := strings.CutPrefix(label, prefix); is {
		text, ok := decode(code)
		if !ok || isASCII(string(text)) || !beyond(text) {
			return nil, 0, false
		}
		again, _ := encode(text)
		return text, len(label), again == code
	}
	text = []rune(label)
	for _, r := range text {
		if !isLDH(r) {
			return nil, 0, false
		}
	}
	return text, len(label), hyphens(text)
}

// isLDH says whether a code point is one of a label of ASCII.
func isLDH(r rune) bool { return r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' }

// hyphens says whether they stand where they may.
func hyphens(label []rune) bool {
	n := len(label)
	return n > 0 && label[0] != '-' && label[n-1] != '-' && !(n > 3 && label[2] == '-' && label[3] == '-')
}

// beyond says whether a label beyond ASCII is valid, but for the order of its letters.
func beyond(label []rune) bool {
	if !hyphens(label) || unicode.Is(unicode.M, label[0]) || !norm.NFC.IsNormalString(string(label)) {
		return false
	}
	for i, r := range label {
		switch rule, some := contexts[r]; {
		case some:
			if !rule(label, i) {
				return false
			}
		case !allowed(r):
			return false
		}
	}
	return true
}

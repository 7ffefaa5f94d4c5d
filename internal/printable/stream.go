package printable

import (
	"strings"
	"unicode"
)

// Stream returns a part of a text that comes piece by piece, such as a model's answer, without what a
// terminal would act on: control characters but tabs and line ends, and marks that turn the
// direction of text.
func Stream(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, s)
}

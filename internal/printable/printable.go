// Package printable makes what others wrote fit for a terminal: metadata of models,
// names in plans, what drivers call their devices.
package printable

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The longest name and line that are shown, in runes.
const (
	maxName = 80
	maxLine = 1000
)

// Name returns s as one line of at most 80 runes that a terminal only shows: no control
// characters, escape sequences, marks that turn the direction of text, or bytes that are
// no UTF-8.
func Name(s string) string { return clean(s, maxName) }

// Line is Name for a whole line, of at most 1000 runes.
func Line(s string) string { return clean(s, maxLine) }

// Text is Line for each line of s, but cuts none: an instruction may have thousands of characters.
func Text(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		text, newline := strings.CutSuffix(line, "\n")
		b.WriteString(clean(text, len(text)))
		if newline {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func clean(s string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n++; n > most {
			return b.String() + "..."
		}
		switch {
		case unicode.IsPrint(r):
		case unicode.IsSpace(r):
			r = ' '
		default:
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
	return b.String()
}

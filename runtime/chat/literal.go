package chat

import "strings"

// literalReader writes a value as JSON as far as it goes. Its methods, and those of what embeds it, return false
// when the text ends first or makes no sense.
type literalReader struct {
	in   string
	at   int
	out  strings.Builder
	bad  bool
	text *quoter
}

func (l *literalReader) rest() string { return l.in[l.at:] }

func (l *literalReader) fail() bool {
	l.bad = true
	return false
}

// items reads the items up to the closing bracket end, and writes them between JSON's brackets.
func (l *literalReader) items(end byte, brackets string, item func() bool) bool {
	l.out.WriteByte(brackets[0])
	l.at++
	for n := 0; ; n++ {
		if l.at = skip(l.in, l.at); l.at == len(l.in) {
			return false
		}
		if l.in[l.at] == end {
			l.out.WriteByte(brackets[1])
			l.at++
			return true
		}
		if n > 0 {
			if l.in[l.at] != ',' {
				return l.fail()
			}
			if l.at = skip(l.in, l.at+1); l.at == len(l.in) {
				return false
			}
			l.out.WriteString(", ")
		}
		if !item() {
			return false
		}
	}
}

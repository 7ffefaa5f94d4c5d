package lineedit

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// text is what is edited. The cursor is a byte offset between two characters as people see them (grapheme clusters).
type text struct {
	s      string
	at     int
	killed string // what was deleted last, for yank
}

func (t *text) set(s string) { t.s, t.at = s, len(s) }

func (t *text) insert(s string) {
	t.s = t.s[:t.at] + s + t.s[t.at:]
	t.at += len(s)
}

// before is where the character in front of the cursor begins.
func (t *text) before() int {
	start := t.lineStart()
	if start == t.at {
		return max(t.at-1, 0) // a line break
	}
	last := start
	for at := start; at < t.at; at = (&text{s: t.s, at: at}).after() {
		last = at
	}
	return last
}

// after is where the character behind the cursor ends.
func (t *text) after() int {
	cluster, _, _, _ := uniseg.FirstGraphemeClusterInString(t.s[t.at:], -1)
	return t.at + len(cluster)
}

func isWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}

// wordBefore is where the word in front of the cursor begins.
func (t *text) wordBefore() int {
	at := t.at
	for inside := false; at > 0; {
		r, n := utf8.DecodeLastRuneInString(t.s[:at])
		if !isWord(r) && inside {
			break
		}
		inside = inside || isWord(r)
		at -= n
	}
	return at
}

// wordAfter is where the word behind the cursor ends.
func (t *text) wordAfter() int {
	at := t.at
	for inside := false; at < len(t.s); {
		r, n := utf8.DecodeRuneInString(t.s[at:])
		if !isWord(r) && inside {
			break
		}
		inside = inside || isWord(r)
		at += n
	}
	return at
}

// lineStart and lineEnd are the ends of the line that the cursor is in.
func (t *text) lineStart() int { return strings.LastIndexByte(t.s[:t.at], '\n') + 1 }

func (t *text) lineEnd() int {
	if n := strings.IndexByte(t.s[t.at:], '\n'); n >= 0 {
		return t.at + n
	}
	return len(t.s)
}

// cut deletes what lies between the cursor and the offset to. keep puts it where yank finds it.
func (t *text) cut(to int, keep bool) {
	from, end := min(t.at, to), max(t.at, to)
	if keep && from < end {
		t.killed = t.s[from:end]
	}
	t.s, t.at = t.s[:from]+t.s[end:], from
}

package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// wordwrap breaks lines as Python's textwrap.wrap does. Tabs and other white
// space within a line stay; white space at a break goes.
func wordwrap(st *state, a []Value) Value {
	w := wrapping{st: st, width: int(st.intArg(given(a[1], int64(79)))), long: truth(given(a[2], true)), hyphens: truth(given(a[4], true))}
	with := own("\n")
	if s := given(a[3], nil); s != nil {
		with = st.onlyStr(s, "the string to wrap with")
	}
	var parts []Str
	for _, line := range st.lines(st.onlyStr(a[0], "what is wrapped"), false) {
		line.safe = false
		if w.width <= 0 {
			st.fail("ValueError: invalid width %d (must be > 0)", w.width)
		}
		parts = append(parts, st.joined(with, w.wrap(line)))
	}
	return st.joined(with, parts)
}

type wrapping struct {
	st            *state
	width         int  // of a line, in code points
	long, hyphens bool // break words longer than a line; break behind hyphens
}

// piece is what no line break falls into, and its length in code points.
type piece struct {
	s Str
	n int
}

func (p piece) blank() bool { return strings.TrimFunc(p.s.s, isSpace) == "" }

// wrap returns the lines of one line.
func (w *wrapping) wrap(line Str) []Str {
	pieces := w.pieces(line)
	var out []Str
	for len(pieces) > 0 {
		if len(out) > 0 && pieces[0].blank() {
			pieces = pieces[1:]
		}
		used, n := 0, 0
		for used < len(pieces) && n+pieces[used].n <= w.width {
			n += pieces[used].n
			used++
		}
		now := append([]piece{}, pieces[:used]...)
		pieces = pieces[used:]
		if len(pieces) > 0 && pieces[0].n > w.width {
			if w.long {
				head, tail := w.cut(pieces[0], w.width-n)
				now = append(now, head)
				pieces[0] = tail
			} else if used == 0 {
				now = append(now, pieces[0])
				pieces = pieces[1:]
			}
		}
		if last := len(now) - 1; last >= 0 && now[last].blank() {
			now = now[:last]
		}
		b := builder{st: w.st}
		for _, p := range now {
			b.add(p.s)
		}
		if len(now) > 0 {
			w.st.step()
			out = append(out, b.str())
		}
	}
	return out
}

// cut divides a piece that is longer than a line at n code points, or behind
// the last hyphen before that if something else stands before the hyphen.
func (w *wrapping) cut(p piece, n int) (head, tail piece) {
	at := 0
	for range n {
		_, size := utf8.DecodeRuneInString(p.s.s[at:])
		at += size
	}
	if w.hyphens {
		if i := strings.LastIndexByte(p.s.s[:at], '-'); i > 0 && strings.Trim(p.s.s[:i], "-") != "" {
			at = i + 1
			n = utf8.RuneCountInString(p.s.s[:at])
		}
	}
	w.st.work(at + 8*len(p.s.flips))
	return piece{p.s.slice(0, at), n}, piece{p.s.slice(at, len(p.s.s)), p.n - n}
}

// pieces divides a line: white space, words, and if lines break behind
// hyphens also parts of words and dashes between words.
func (w *wrapping) pieces(line Str) []piece {
	at := w.st.offsets(line)
	text := []rune(line.s)
	var out []piece
	for i := 0; i < len(text); {
		end := w.pieceEnd(text, i)
		w.st.step()
		out = append(out, piece{line.slice(at[i], at[end]), end - i})
		i = end
	}
	return out
}

// pieceEnd returns where the piece ends that begins at i.
func (w *wrapping) pieceEnd(text []rune, i int) int {
	end := i + 1
	if wrapSpace(text[i]) {
		for end < len(text) && wrapSpace(text[end]) {
			end++
		}
		return end
	}
	if w.hyphens {
		if n := dash(text, i); n > 0 {
			return i + n
		}
	}
	for ; end < len(text) && !wrapSpace(text[end]); end++ {
		switch {
		case !w.hyphens || text[end] != '-':
		case hyphen(text, end):
			return end + 1
		case dash(text, end) > 0:
			return end
		}
	}
	return end
}

func hasAt(text []rune, i int, is func(rune) bool) bool {
	return i >= 0 && i < len(text) && is(text[i])
}

// dash returns the length of the dash at i: two and more hyphens between words.
func dash(text []rune, i int) int {
	if !hasAt(text, i-1, wordOrPoint) {
		return 0
	}
	n := 0
	for hasAt(text, i+n, isHyphen) {
		n++
	}
	if n < 2 || !hasAt(text, i+n, wordRune) {
		return 0
	}
	return n
}

// hyphen says whether a line may break behind the hyphen at i: on either
// side stand two letters, or a letter, a hyphen and a letter.
func hyphen(text []rune, i int) bool {
	before := hasAt(text, i-1, wordLetter) && hasAt(text, i-2, wordLetter) ||
		hasAt(text, i-1, wordLetter) && hasAt(text, i-2, isHyphen) && hasAt(text, i-3, wordLetter)
	after := hasAt(text, i+2, wordLetter) || hasAt(text, i+2, isHyphen) && hasAt(text, i+3, wordLetter)
	return before && hasAt(text, i+1, wordLetter) && after
}

func isHyphen(r rune) bool    { return r == '-' }
func wrapSpace(r rune) bool   { return strings.ContainsRune("\t\n\v\f\r ", r) }
func wordRune(r rune) bool    { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }
func wordLetter(r rune) bool  { return wordRune(r) && !unicode.IsDigit(r) }
func wordOrPoint(r rune) bool { return wordRune(r) || strings.ContainsRune(`!"'&.,?`, r) }

package jinja

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Str is a string that knows of each byte whether the template wrote it or the
// data. Its origin changes at the offsets of flips; it begins as the template's.
//
// A safe one is what Python's Markup is: whatever is added to it is escaped for
// HTML. Templates make it with the filter safe and mostly do not mean it.
type Str struct {
	s     string
	flips []int
	safe  bool
}

// Own returns a string that is as good as written in the template.
func Own(s string) Value { return own(s) }

// Data returns a string that somebody else wrote: none of it may be taken for
// a control token.
func Data(s string) Value { return data(s) }

// Join puts strings together. Each byte keeps who wrote it.
func Join(parts ...Value) Value {
	var all Str
	byUser := false
	for _, p := range parts {
		for text, user := range p.(Str).runs() {
			if user != byUser {
				all.flips, byUser = append(all.flips, len(all.s)), user
			}
			all.s += text
		}
	}
	return all
}

func own(s string) Str { return Str{s: s} }

func data(s string) Str {
	if s == "" {
		return Str{}
	}
	if !utf8.ValidString(s) { // which takes less time to see than to mend
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return Str{s: s, flips: []int{0}}
}

func (s Str) String() string { return s.s }

// size is the bytes that a copy takes.
func (s Str) size() int { return len(s.s) + 8*len(s.flips) }

// runs yields the parts of one origin.
func (s Str) runs() iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		start, user := 0, false
		for _, f := range s.flips {
			if f > start && !yield(s.s[start:f], user) {
				return
			}
			start, user = f, !user
		}
		if start < len(s.s) {
			yield(s.s[start:], user)
		}
	}
}

// slice returns the bytes from i to j.
func (s Str) slice(i, j int) Str {
	if i >= j {
		return Str{safe: s.safe}
	}
	if i == 0 && j == len(s.s) {
		return s
	}
	out := Str{s: s.s[i:j], safe: s.safe}
	if len(s.flips) == 0 {
		return out
	}
	// Flips at or before i make up the origin of byte i.
	first, _ := slices.BinarySearch(s.flips, i+1)
	if first%2 == 1 {
		out.flips = append(out.flips, 0)
	}
	for _, f := range s.flips[first:] {
		if f >= j {
			break
		}
		out.flips = append(out.flips, f-i)
	}
	return out
}

func (s Str) ascii() bool {
	for i := range len(s.s) {
		if s.s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// A builder puts a string together.
type builder struct {
	st    *state
	b     []byte
	flips []int
}

func (b *builder) write(s string, user bool) {
	if s == "" {
		return
	}
	if len(b.b)+len(s) > maxText {
		b.st.fail("a text grows beyond %d MiB", maxText>>20)
	}
	b.st.work(len(s))
	if user != (len(b.flips)%2 == 1) {
		b.st.work(8)
		b.flips = append(b.flips, len(b.b))
	}
	b.b = append(b.b, s...)
}

func (b *builder) own(s string) { b.write(s, false) }

func (b *builder) add(s Str) {
	for part, user := range s.runs() {
		b.write(part, user)
	}
}

func (b *builder) str() Str { return Str{s: string(b.b), flips: b.flips} }

// like returns what was put together, as safe as s.
func (b *builder) like(s Str) Str {
	out := b.str()
	out.safe = s.safe
	return out
}

// plus is a + b: if one of them is safe the other one is escaped.
func (st *state) plus(a, b Str) Str {
	if a.safe || b.safe {
		a, b = st.escape(a), st.escape(b)
	}
	out := st.concat(a, b)
	out.safe = a.safe
	return out
}

var htmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

// escape makes s safe.
func (st *state) escape(s Str) Str {
	if !s.safe {
		s = st.mapped(s, htmlEscapes.Replace)
		s.safe = true
	}
	return s
}

// escapeFor makes a value that is put into s as safe as s.
func (st *state) escapeFor(s Str, v Value) Value {
	if text, ok := v.(Str); ok && s.safe {
		return st.escape(text)
	}
	return v
}

func (st *state) concat(parts ...Str) Str {
	b := builder{st: st}
	for _, p := range parts {
		b.add(p)
	}
	return b.str()
}

func (st *state) repeat(s Str, n int64) Str {
	if n <= 0 || s.s == "" {
		return Str{safe: s.safe}
	}
	if n > int64(maxText/len(s.s)) {
		st.fail("a text grows beyond %d MiB", maxText>>20)
	}
	b := builder{st: st}
	if user := len(s.flips) == 1 && s.flips[0] == 0; user || len(s.flips) == 0 {
		b.write(strings.Repeat(s.s, int(n)), user)
		return b.like(s)
	}
	for range n {
		b.add(s)
	}
	return b.like(s)
}

func (st *state) joinStrs(sep Str, parts []Str) Str {
	b := builder{st: st}
	for i, p := range parts {
		if i > 0 {
			b.add(sep)
		}
		b.add(p)
	}
	return b.str()
}

// joined puts sep between parts, which become as safe as sep.
func (st *state) joined(sep Str, parts []Str) Str {
	if sep.safe {
		for i, p := range parts {
			parts[i] = st.escape(p)
		}
	}
	out := st.joinStrs(sep, parts)
	out.safe = sep.safe
	return out
}

// mapped changes every part of one origin on its own.
func (st *state) mapped(s Str, change func(string) string) Str {
	b := builder{st: st}
	for part, user := range s.runs() {
		b.write(change(part), user)
	}
	return b.like(s)
}

// length counts code points.
func (st *state) length(s Str) int {
	st.work(len(s.s))
	return utf8.RuneCountInString(s.s)
}

// chars yields the code points as strings.
func (st *state) chars(s Str) iter.Seq[Str] {
	return func(yield func(Str) bool) {
		for i := 0; i < len(s.s); {
			_, n := utf8.DecodeRuneInString(s.s[i:])
			st.work(n)
			c := s.slice(i, i+n)
			c.safe = false
			if !yield(c) {
				return
			}
			i += n
		}
	}
}

// offsets returns the byte offsets of the code points and of the end.
func (st *state) offsets(s Str) []int {
	st.work(8 * len(s.s))
	at := make([]int, 0, len(s.s)+1)
	for i := range s.s {
		at = append(at, i)
	}
	return append(at, len(s.s))
}

// isSpace is Python's str.isspace.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1C <= r && r <= 0x1F }

// stripped cuts code points off the ends as long as cut holds.
func (st *state) stripped(s Str, left, right bool, cut func(rune) bool) Str {
	st.work(len(s.s))
	i, j := 0, len(s.s)
	if left {
		i = len(s.s) - len(strings.TrimLeftFunc(s.s, cut))
	}
	if right {
		j = len(strings.TrimRightFunc(s.s, cut))
	}
	return s.slice(i, j)
}

// replace puts to in place of from, at most n times; -1: everywhere.
func (st *state) replace(s, from, to Str, n int) Str {
	b := builder{st: st}
	if from.s == "" {
		for c := range st.chars(s) {
			if n != 0 {
				b.add(to)
				n--
			}
			b.add(c)
		}
		if n != 0 {
			b.add(to)
		}
		return b.like(s)
	}
	at := 0
	for ; n != 0; n-- {
		i := strings.Index(s.s[at:], from.s)
		if i < 0 {
			break
		}
		b.add(s.slice(at, at+i))
		b.add(to)
		at += i + len(from.s)
	}
	b.add(s.slice(at, len(s.s)))
	return b.like(s)
}

// split cuts at sep, at most n times; -1: everywhere.
func (st *state) split(s, sep Str, n int) []Str {
	if sep.s == "" {
		st.fail("ValueError: empty separator")
	}
	st.work(len(s.s))
	var out []Str
	at := 0
	for ; n != 0; n-- {
		i := strings.Index(s.s[at:], sep.s)
		if i < 0 {
			break
		}
		st.step()
		out = append(out, s.slice(at, at+i))
		at += i + len(sep.s)
	}
	return append(out, s.slice(at, len(s.s)))
}

// rsplit is split from the right.
func (st *state) rsplit(s, sep Str, n int) []Str {
	if sep.s == "" {
		st.fail("ValueError: empty separator")
	}
	st.work(len(s.s))
	var out []Str
	end := len(s.s)
	for ; n != 0; n-- {
		i := strings.LastIndex(s.s[:end], sep.s)
		if i < 0 {
			break
		}
		st.step()
		out = append(out, s.slice(i+len(sep.s), end))
		end = i
	}
	out = append(out, s.slice(0, end))
	slices.Reverse(out)
	return out
}

// fields cuts at runs of white space, at most n times from the left or right.
func (st *state) fields(s Str, n int, fromRight bool) []Str {
	st.work(len(s.s))
	var out []Str
	i, j := 0, len(s.s)
	for ; ; n-- {
		if fromRight {
			j = len(strings.TrimRightFunc(s.s[:j], isSpace))
		} else {
			i = j - len(strings.TrimLeftFunc(s.s[i:j], isSpace))
		}
		if i >= j {
			break
		}
		st.step()
		cut := -1
		switch {
		case n == 0:
		case fromRight:
			if cut = strings.LastIndexFunc(s.s[:j], isSpace); cut >= 0 {
				_, w := utf8.DecodeRuneInString(s.s[cut:])
				out = append(out, s.slice(cut+w, j))
				j = cut
			}
		default:
			if cut = strings.IndexFunc(s.s[i:], isSpace); cut >= 0 {
				out = append(out, s.slice(i, i+cut))
				i += cut
			}
		}
		if cut < 0 {
			if fromRight {
				out = append(out, s.slice(0, j))
			} else {
				out = append(out, s.slice(i, len(s.s)))
			}
			break
		}
	}
	if fromRight {
		slices.Reverse(out)
	}
	return out
}

// lines cuts where Python's str.splitlines does.
func (st *state) lines(s Str, keep bool) []Str {
	st.work(len(s.s))
	var out []Str
	start := 0
	for i, r := range s.s {
		if i < start {
			continue // the \n of a \r\n
		}
		switch r {
		case '\n', '\r', '\v', '\f', 0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029:
		default:
			continue
		}
		end := i + utf8.RuneLen(r)
		if r == '\r' && strings.HasPrefix(s.s[end:], "\n") {
			end++
		}
		st.step()
		if keep {
			out = append(out, s.slice(start, end))
		} else {
			out = append(out, s.slice(start, i))
		}
		start = end
	}
	if start < len(s.s) {
		out = append(out, s.slice(start, len(s.s)))
	}
	return out
}

package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

const white = " \t\r\n"

// value finds the end of the JSON value at s[i:]. If the text may go on, end is the
// length of s and whole is false; ok is false if it cannot be JSON.
func value(s string, i int) (end int, whole, ok bool) {
	r := &jsonReader{s: s, i: i}
	for r.i < len(s) {
		if strings.IndexByte(white, s[r.i]) >= 0 {
			r.i++
			continue
		}
		ended, whole, ok := r.next(s[r.i])
		switch {
		case !ok || !whole:
			return r.i, false, ok
		case !ended:
			continue
		}
		if r.expect = ','; len(r.open) == 0 {
			return r.i, true, true
		}
	}
	return len(s), false, true
}

// jsonReader is in the middle of a value.
type jsonReader struct {
	s      string
	i      int
	open   []byte // brackets to be closed
	expect byte   // ':' or ',' before the next value, 'k' for a key; 0: a value
}

// next reads what begins with c: a bracket, a separator, a key or a scalar. A value has ended behind it, or not; it is
// whole unless the text ends in it.
func (r *jsonReader) next(c byte) (ended, whole, ok bool) {
	inside := len(r.open) > 0
	switch {
	case c == '{' || c == '[':
		return false, true, r.enter(c)
	case c == '}' || c == ']':
		if !inside || r.open[len(r.open)-1] != c || r.expect != ',' {
			return false, false, false
		}
		r.open = r.open[:len(r.open)-1]
		r.i++
		return true, true, true
	case c == ',' && r.expect == ',' && inside:
		r.i++
		if r.expect = 0; r.open[len(r.open)-1] == '}' {
			r.expect = 'k'
		}
		return false, true, true
	case c == ':' && r.expect == ':':
		r.i++
		r.expect = 0
		return false, true, true
	case r.expect == 'k':
		if c != '"' {
			return false, false, false
		}
		if r.i, whole, ok = str(r.s, r.i); whole {
			r.expect = ':'
		}
		return false, whole, ok
	case r.expect != 0:
		return false, false, false
	}
	r.i, whole, ok = scalar(r.s, r.i)
	return true, whole, ok
}

// enter opens an object or an array, which may end at once.
func (r *jsonReader) enter(c byte) bool {
	if r.expect != 0 || len(r.open) > 100 {
		return false
	}
	closing := c + 2
	r.open = append(r.open, closing)
	r.i++
	if r.i, r.expect = skip(r.s, r.i), 0; c == '{' {
		r.expect = 'k'
	}
	if r.i < len(r.s) && r.s[r.i] == closing {
		r.expect = ','
	}
	return true
}

// skip passes white space.
func skip(s string, i int) int {
	for i < len(s) && strings.IndexByte(white, s[i]) >= 0 {
		i++
	}
	return i
}

// str finds the end of the JSON string at s[i:].
func str(s string, i int) (end int, whole, ok bool) {
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1, true, true
		}
	}
	return len(s), false, true
}

// scalar finds the end of a string, number or word. A number at the end of s may
// go on.
func scalar(s string, i int) (end int, whole, ok bool) {
	if s[i] == '"' {
		return str(s, i)
	}
	for _, word := range []string{"true", "false", "null"} {
		n := 0
		for n < len(word) && i+n < len(s) && s[i+n] == word[n] {
			n++
		}
		if n > 0 {
			return i + n, n == len(word), n == len(word) || i+n == len(s)
		}
	}
	end = i
	for end < len(s) && strings.IndexByte("+-.0123456789eE", s[end]) >= 0 {
		end++
	}
	if end == i {
		return i, false, false
	}
	return end, end < len(s), true
}

// jsonCall reads {"name": N, "arguments": {..}} with the names that models use
// for the two. A bare one must name a tool.
func jsonCall(bare bool) func(in string, final bool, e *env) reading {
	return func(in string, final bool, e *env) (r reading) {
		i := skip(in, 0)
		if bare {
			i = skip(in, len(in)-len(strings.TrimPrefix(in[i:], "<|python_tag|>")))
		}
		if i == len(in) {
			return r
		}
		if in[i] != '{' {
			return reading{state: bad}
		}
		i = skip(in, i+1)
		for first := true; ; first = false {
			if i < len(in) && in[i] == '}' {
				return r.finish(i + 1)
			}
			key, at, whole, ok := member(in, i, first)
			switch {
			case !ok || whole && bare && callKeys[key] == "":
				return r.broken(at)
			case !whole:
				return r
			}
			end, whole, ok := value(in, at)
			r.take(callKeys[key], in[at:end], whole)
			if _, known := e.tools[r.name]; bare && r.named && !known {
				return reading{state: bad}
			}
			if !ok {
				return r.broken(end)
			}
			if !whole {
				return r
			}
			i = skip(in, end)
		}
	}
}

// callKeys are the names that models use for the members of a call.
var callKeys = map[string]string{
	"name": "name", "tool_name": "name", "function": "name",
	"arguments": "arguments", "parameters": "arguments",
	"id": "id", "tool_call_id": "id",
	"type": "type",
}

// member finds the key of an object's member at s[i:], and where its value begins. whole is false where the text ends
// before; ok is false, and at is where, if it cannot be JSON.
func member(s string, i int, first bool) (key string, at int, whole, ok bool) {
	if !first && i < len(s) {
		if s[i] != ',' {
			return "", i, false, false
		}
		i = skip(s, i+1)
	}
	if i == len(s) {
		return "", i, false, true
	}
	if s[i] != '"' {
		return "", i, false, false
	}
	end, whole, _ := str(s, i)
	if !whole {
		return "", end, false, true
	}
	key = s[i+1 : end-1]
	if i = skip(s, end); i == len(s) {
		return key, i, false, true
	}
	return key, skip(s, i+1), true, s[i] == ':'
}

// take takes a member of a call, one of callKeys, with its JSON text.
func (r *reading) take(key, text string, whole bool) {
	switch {
	case key == "arguments":
		r.args = arguments(text, whole)
	case key == "name" && !r.named && whole && json.Unmarshal([]byte(text), &r.name) == nil:
		r.named = r.name != ""
	case key == "id" && whole:
		_ = json.Unmarshal([]byte(text), &r.id)
	}
}

// arguments returns the JSON of a call's arguments, which some models write as a
// string. White space at the end waits for what follows.
func arguments(text string, whole bool) string {
	if !strings.HasPrefix(text, `"`) {
		return text
	}
	var s string
	if whole && json.Unmarshal([]byte(text), &s) == nil {
		return s
	}
	return ""
}

// finish ends a call at n bytes; one without a name is none.
func (r reading) finish(n int) reading {
	if !r.named {
		return reading{state: bad}
	}
	r.state, r.n = done, n
	if r.args == "" {
		r.args = "{}"
	}
	return r
}

// broken ends a call where it stops making sense.
func (r reading) broken(n int) reading {
	if !r.named {
		return reading{state: bad}
	}
	r.state, r.n = done, n
	return r
}

// quoted is s as a JSON string without the quotes, as Python writes it. A code
// point that is cut off at the end is left out.
func quoted(s string) string { return new(quoter).quote(0, s) }

// quoter quotes a text that grows, each part of it once: arguments can be whole
// files, and are read again with every token.
type quoter struct {
	at, n int // where the text begins, and how much of it is in out
	out   []byte
}

// quote returns the text that begins at a place as quoted does. The next text of
// that place must begin with this one.
func (q *quoter) quote(at int, s string) string {
	if at != q.at || len(s) < q.n {
		*q = quoter{at: at}
	}
	for q.n < len(s) {
		r, n := utf8.DecodeRuneInString(s[q.n:])
		if r == utf8.RuneError && n == 1 && !utf8.FullRuneInString(s[q.n:]) {
			break
		}
		q.n += n
		if esc, ok := escapes[r]; ok {
			q.out = append(q.out, esc...)
		} else if r < ' ' {
			q.out = fmt.Appendf(q.out, `\u%04x`, r)
		} else {
			q.out = utf8.AppendRune(q.out, r)
		}
	}
	return string(q.out)
}

var escapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\f': `\f`, '\b': `\b`}

// literal returns a value that is not text as JSON: as it is, or as Python's
// words for it, or else as a string.
func literal(s string) string {
	s = strings.TrimSpace(s)
	if word, ok := map[string]string{"True": "true", "False": "false", "None": "null"}[s]; ok {
		return word
	}
	if json.Valid([]byte(s)) {
		return s
	}
	return `"` + quoted(s) + `"`
}

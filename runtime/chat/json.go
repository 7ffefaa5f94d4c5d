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
	var open []byte   // brackets to be closed
	expect := byte(0) // ':' or ',' before the next value; 0: a value
	for i < len(s) {
		c := s[i]
		if strings.IndexByte(white, c) >= 0 {
			i++
			continue
		}
		inObject := len(open) > 0 && open[len(open)-1] == '}'
		switch {
		case c == '{' || c == '[':
			if expect != 0 || len(open) > 100 {
				return i, false, false
			}
			open = append(open, c+2)
			i++
			if i, expect = skip(s, i), 0; c == '{' {
				expect = 'k'
			}
			if i < len(s) && s[i] == open[len(open)-1] {
				expect = ','
			}
			continue
		case c == '}' || c == ']':
			if len(open) == 0 || open[len(open)-1] != c || expect != ',' {
				return i, false, false
			}
			open = open[:len(open)-1]
			i++
		case c == ',' && expect == ',' && len(open) > 0:
			i++
			if expect = 0; inObject {
				expect = 'k'
			}
			continue
		case c == ':' && expect == ':':
			i++
			expect = 0
			continue
		case expect == 'k':
			if c != '"' {
				return i, false, false
			}
			if i, whole, ok = str(s, i); !whole {
				return i, false, ok
			}
			expect = ':'
			continue
		case expect != 0:
			return i, false, false
		default:
			if i, whole, ok = scalar(s, i); !whole {
				return i, false, ok
			}
		}
		if expect = ','; len(open) == 0 {
			return i, true, true
		}
	}
	return len(s), false, true
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
			if i == len(in) {
				return r
			}
			if in[i] == '}' {
				return r.finish(i + 1)
			}
			if !first {
				if in[i] != ',' {
					return r.broken(i)
				}
				if i = skip(in, i+1); i == len(in) {
					return r
				}
			}
			if in[i] != '"' {
				return r.broken(i)
			}
			end, whole, _ := str(in, i)
			if !whole {
				return r
			}
			key := in[i+1 : end-1]
			if i = skip(in, end); i == len(in) {
				return r
			}
			if in[i] != ':' {
				return r.broken(i)
			}
			i = skip(in, i+1)
			end, whole, ok := value(in, i)
			text := in[i:end]
			switch key {
			case "name", "tool_name", "function":
				if !r.named && whole && json.Unmarshal([]byte(text), &r.name) == nil {
					r.named = r.name != ""
				}
				if _, known := e.tools[r.name]; bare && r.named && !known {
					return reading{state: bad}
				}
			case "arguments", "parameters":
				r.args = arguments(text, whole)
			case "id", "tool_call_id":
				if whole {
					_ = json.Unmarshal([]byte(text), &r.id)
				}
			default:
				if bare && key != "type" {
					return r.broken(i)
				}
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

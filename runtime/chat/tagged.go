package chat

import (
	"strings"
)

// partial is the length of the longest end of s that begins one of marks without
// being all of it.
func partial(s string, marks ...string) int {
	longest := 0
	for _, m := range marks {
		for n := min(len(m)-1, len(s)); n > longest; n-- {
			if strings.HasSuffix(s, m[:n]) {
				longest = n
				break
			}
		}
	}
	return longest
}

// begins says whether s begins with mark, or may when more follows.
func begins(s, mark string) (yes, maybe bool) {
	return strings.HasPrefix(s, mark), len(s) < len(mark) && strings.HasPrefix(mark, s)
}

// named is a form with the name and the JSON of the arguments side by side:
//
//	open NAME [id ID] sep {..} end
type named struct {
	open, sep, end string
	id             string // "": the form has none
	numbered       bool   // the name is functions.NAME:NUMBER, and the id
	// fence: the name may be a constant, and the real one stands behind sep on a
	// line of its own, with the JSON in a Markdown fence.
	fence bool
}

func (f named) read(in string, final bool, _ *env) (r reading) {
	if yes, maybe := begins(in, f.open); !yes {
		if maybe && !final {
			return r
		}
		return reading{state: bad}
	}
	head, tail, ok := strings.Cut(in[len(f.open):], f.sep)
	if r.name = head; f.id != "" {
		r.name, r.id, _ = strings.Cut(head, f.id)
	}
	if !ok { // the end of the head may begin a mark
		held := partial(head, f.sep, f.id)
		if r.id != "" {
			r.id = r.id[:len(r.id)-min(held, len(r.id))]
		} else {
			r.name = r.name[:len(r.name)-min(held, len(r.name))]
		}
	}
	const never = "\n{}[]<>\""
	if strings.ContainsAny(r.name, never) || strings.ContainsAny(r.id, never) || len(r.name)+len(r.id) > 300 || ok && strings.TrimSpace(r.name) == "" {
		return reading{state: bad}
	}
	if !ok {
		return reading{}
	}
	if r.name = strings.TrimSpace(r.name); f.numbered && !r.unnumber() {
		return reading{state: bad}
	}
	at, fenced := skip(tail, 0), false
	if f.fence && (at == len(tail) || tail[at] != '{') {
		r.name, tail, fenced, ok = inFence(tail[at:])
		if !ok {
			return reading{}
		}
		at = skip(tail, 0)
		if r.name == "" || strings.ContainsAny(r.name, never) {
			return reading{state: bad}
		}
	}
	r.named = true
	if at == len(tail) {
		return r
	}
	end, whole, ok := value(tail, at)
	r.args = tail[at:end]
	if !ok {
		return r.broken(len(in) - len(tail) + end)
	}
	if !whole {
		return r
	}
	return f.close(r, in, tail[end:], fenced, final)
}

// unnumber makes NAME of functions.NAME:NUMBER, which is the id; false if there is no name.
func (r *reading) unnumber() bool {
	r.id = r.name
	r.name = strings.TrimPrefix(r.name, "functions.")
	if i := strings.LastIndexByte(r.name, ':'); i >= 0 {
		r.name = r.name[:i]
	}
	return r.name != ""
}

// inFence reads a name on a line of its own, and the mark that opens a fence behind it, if there is one. ok is false
// where the text ends before it is clear.
func inFence(in string) (name, body string, fenced, ok bool) {
	line, body, ok := strings.Cut(in, "\n")
	if !ok {
		return "", "", false, false
	}
	name = strings.TrimSpace(line)
	body = body[skip(body, 0):]
	yes, maybe := begins(body, "```json")
	if yes {
		body = body[len("```json"):]
	}
	return name, body, yes, yes || !maybe
}

// close reads what ends the call, as far as it is there.
func (f named) close(r reading, in, rest string, fenced, final bool) reading {
	marks := []string{}
	if fenced {
		marks = append(marks, "```")
	}
	if f.end != "" {
		marks = append(marks, f.end)
	}
	r = r.finish(len(in) - len(rest))
	for _, m := range marks {
		i := skip(rest, 0)
		yes, maybe := begins(rest[i:], m)
		switch {
		case yes:
			rest = rest[i+len(m):]
			r.n = len(in) - len(rest)
		case (maybe || i == len(rest)) && !final:
			r.state = more
			return r
		default:
			return r
		}
	}
	return r
}

// params is a form with each argument between marks:
//
//	open NAME named  (param KEY key [val] VALUE value)*  end
type params struct {
	open, named     string
	param, key, val string
	value, end      string
	kind            string // between key and value: whether the value is text, "true" or "false"
	line            bool   // a name may also end at the end of its line, or of the call
	lined           bool   // a newline on each side of a value belongs to the marks
	keepEnd         bool   // end belongs to the section
}

func (f params) read(in string, final bool, e *env) (r reading) {
	at := skip(in, 0)
	if yes, maybe := begins(in[at:], f.open); !yes {
		if maybe && !final {
			return r
		}
		return reading{state: bad}
	}
	at += len(f.open)
	stops := []string{f.named}
	if f.line {
		at = skip(in, at)
		stops = append(stops, "\n", f.end)
	}
	end, stop := find(in, at, stops)
	if end < 0 {
		if strings.ContainsAny(in[at:len(in)-partial(in[at:], stops...)], "\n{<") {
			return reading{state: bad}
		}
		return r
	}
	r.name = strings.TrimSpace(in[at:end])
	if r.name == "" || strings.ContainsAny(r.name, "\n{}<>\"") {
		return reading{state: bad}
	}
	if at = end; stop == f.named && f.named != f.param {
		at += len(stop)
	}
	for {
		at = skip(in, at)
		rest := in[at:]
		isEnd, mayEnd := begins(rest, f.end)
		isParam, mayBeParam := begins(rest, f.param)
		switch {
		case !isEnd && !isParam && (mayEnd || mayBeParam) && !final:
			return r
		case isEnd && !f.keepEnd:
			at += len(f.end)
		}
		if isEnd || isParam {
			r.named = true
		}
		if r.args == "" {
			r.args = "{"
		}
		whole, ok := false, false
		if isParam {
			at, whole, ok = f.argument(in, at+len(f.param), &r, e)
		}
		if !ok {
			r.args += "}"
			return r.finish(at)
		}
		if !whole {
			return r
		}
	}
}

// argument reads one argument and adds it to r.args. Text is added as it comes.
func (f params) argument(in string, at int, r *reading, e *env) (end int, whole, ok bool) {
	i, _ := find(in, at, []string{f.key})
	if i < 0 {
		return at, false, true
	}
	key := strings.TrimSpace(in[at:i])
	text := e.tools.isText(r.name, key)
	if f.kind != "" {
		if k, kind, ok := strings.Cut(key, f.kind); ok {
			key, text = k, kind == "true"
		}
	}
	at = i + len(f.key)
	if f.val != "" {
		at = skip(in, at)
		if yes, maybe := begins(in[at:], f.val); !yes {
			return at, false, maybe
		}
		at += len(f.val)
	}
	i, _ = find(in, at, []string{f.value})
	if whole = i >= 0; !whole {
		i = len(in)
	}
	v := in[at:i]
	if f.lined {
		v = strings.TrimPrefix(v, "\n")
		if whole {
			v = strings.TrimSuffix(v, "\n")
		}
	}
	lead := `"` + quoted(key) + `": `
	if len(r.args) > 1 {
		lead = ", " + lead
	}
	switch {
	case text && whole:
		r.args += lead + `"` + quoted(v) + `"`
	case text:
		r.args += lead + `"` + e.text.quote(at, v[:len(v)-partial(v, "\n"+f.value, f.value)])
	case whole:
		r.args += lead + literal(v)
	}
	return i + len(f.value), whole, true
}

// find returns where the first of marks occurs at or behind at, and which.
func find(s string, at int, marks []string) (int, string) {
	best, which := -1, ""
	for _, m := range marks {
		if i := strings.Index(s[at:], m); i >= 0 && (best < 0 || at+i < best) {
			best, which = at+i, m
		}
	}
	return best, which
}

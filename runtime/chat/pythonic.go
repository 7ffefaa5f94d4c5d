package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/zincc-dev/zincc/runtime/chat/jinja"
)

// pythonicName is the form whose calls are Python's: [NAME(key="text", other=1)].
const pythonicName = "pythonic"

const pythonicOpen, pythonicClose = "<|tool_call_start|>", "<|tool_call_end|>"

// pythonCall reads NAME(key=value, ..), whose values are Python's literals or JSON, and writes JSON.
func pythonCall(in string, final bool, e *env) (r reading) {
	name, rest, ok := strings.Cut(in, "(")
	if strings.ContainsAny(name, "\n<>{}[]\"'=,)") || len(name) > 300 || ok && strings.TrimSpace(name) == "" || !ok && final {
		return reading{state: bad}
	}
	if !ok {
		return r
	}
	r.name, r.named = strings.TrimSpace(name), true
	p := pythonReader{literalReader{in: "(" + rest, text: &e.text}, final}
	whole := p.items(')', "{}", p.argument)
	r.args = p.out.String()
	switch {
	case p.bad:
		return r.broken(len(in) - len(p.in) + p.at)
	case whole:
		return r.finish(len(in) - len(p.in) + p.at)
	}
	return r
}

// pythonReader is a literalReader of Python's values.
type pythonReader struct {
	literalReader
	final bool
}

// argument reads key=value.
func (p *pythonReader) argument() bool {
	key, _, ok := strings.Cut(p.rest(), "=")
	if strings.ContainsAny(key, "{}[](),\n\"'") {
		return p.fail()
	}
	if !ok {
		return false
	}
	p.at += len(key) + 1
	p.out.WriteString(`"` + quoted(strings.TrimSpace(key)) + `": `)
	return p.value(0)
}

func (p *pythonReader) value(depth int) bool {
	if p.at = skip(p.in, p.at); p.at == len(p.in) {
		return false
	}
	c := p.in[p.at]
	if depth > 100 {
		return p.fail()
	}
	inner := func() bool { return p.value(depth + 1) }
	switch c {
	case '"', '\'':
		return p.str(c)
	case '{':
		return p.items('}', "{}", func() bool { return p.pair(depth + 1) })
	case '[':
		return p.items(']', "[]", inner)
	case '(':
		return p.items(')', "[]", inner)
	}
	end := strings.IndexAny(p.rest(), ",)}]")
	if end < 0 {
		return false
	}
	if strings.Contains(p.rest()[:end], "(") {
		return p.fail()
	}
	p.out.WriteString(literal(p.rest()[:end]))
	p.at += end
	return true
}

// pair reads "key": value.
func (p *pythonReader) pair(depth int) bool {
	if c := p.in[p.at]; c != '"' && c != '\'' {
		return p.fail()
	}
	text, n, whole := p.unquoted(p.in[p.at])
	if !whole {
		return false
	}
	at := skip(p.in, p.at+n)
	if at == len(p.in) {
		return false
	}
	if p.at = at + 1; p.in[at] != ':' {
		return p.fail()
	}
	p.out.WriteString(`"` + quoted(text) + `": `)
	return p.value(depth)
}

// str reads a string, as far as it is there.
func (p *pythonReader) str(quote byte) bool {
	text, n, whole := p.unquoted(quote)
	p.out.WriteByte('"')
	if !whole {
		p.out.WriteString(p.text.quote(p.at+1, text))
		return false
	}
	p.out.WriteString(quoted(text) + `"`)
	p.at += n
	return true
}

// unquoted returns the text of the string that begins here, and how long it is with its quotes. A quote ends it where a
// value may end: some templates write texts as they are between quotes.
func (p *pythonReader) unquoted(quote byte) (text string, n int, whole bool) {
	s := p.rest()
	var b strings.Builder
	for i := 1; i < len(s); {
		switch c := s[i]; {
		case c == quote:
			j := skip(s, i+1)
			if j == len(s) && !p.final {
				return b.String(), 0, false
			}
			if j == len(s) || strings.IndexByte(",)]}:", s[j]) >= 0 {
				return b.String(), i + 1, true
			}
			b.WriteByte(c)
			i++
		case c == '\\':
			r, size := escaped(s[i:])
			if size == 0 {
				return b.String(), 0, false
			}
			b.WriteString(r)
			i += size
		default:
			_, size := utf8.DecodeRuneInString(s[i:])
			if !utf8.FullRuneInString(s[i:]) {
				return b.String(), 0, false
			}
			b.WriteString(s[i : i+size])
			i += size
		}
	}
	return b.String(), 0, false
}

// escaped reads what begins with a backslash, as JSON and Python have it; 0: more text is needed. Anything but an
// escape is text.
func escaped(s string) (text string, size int) {
	if len(s) < 2 {
		return "", 0
	}
	if i := strings.IndexByte(`"'\/ntrbf`, s[1]); i >= 0 {
		return string("\"'\\/\n\t\r\b\f"[i]), 2
	}
	if s[1] != 'u' {
		return s[:1], 1
	}
	size = 6
	if len(s) >= 6 {
		if r, err := strconv.ParseUint(s[2:6], 16, 16); err == nil && r>>10 == 0xd800>>10 { // the first half of a pair
			size = 12
		}
	}
	if len(s) < size {
		return "", 0
	}
	if json.Unmarshal([]byte(`"`+s[:size]+`"`), &text) != nil {
		return s[:1], 1
	}
	return text, size
}

// withCalls writes calls behind a message's content, for templates that leave them out.
func withCalls(content string, calls []Call) (jinja.Value, error) {
	parts := []jinja.Value{jinja.Data(content), jinja.Own(pythonicOpen + "[")}
	for i, c := range calls {
		if i > 0 {
			parts = append(parts, jinja.Own(", "))
		}
		args, err := pythonArguments(c.Arguments)
		if err != nil {
			return nil, fmt.Errorf("arguments of %s: %w", c.Name, err)
		}
		parts = append(parts, jinja.Data(c.Name+"("+args+")"))
	}
	return jinja.Join(append(parts, jinja.Own("]"+pythonicClose))...), nil
}

// pythonArguments writes a JSON object as arguments.
func pythonArguments(object string) (string, error) {
	if strings.TrimSpace(object) == "" {
		return "", nil
	}
	d := json.NewDecoder(strings.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return "", errors.New("want a JSON object")
	}
	var list []string
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return "", err
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return "", err
		}
		text := string(v)
		if word, ok := map[string]string{"true": "True", "false": "False", "null": "None"}[text]; ok {
			text = word
		}
		list = append(list, fmt.Sprint(key)+"="+text)
	}
	return strings.Join(list, ", "), nil
}

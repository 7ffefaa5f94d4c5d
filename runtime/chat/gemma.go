package chat

import "strings"

// gemmaQuote is the mark on both sides of a string.
const gemmaQuote = `<|"|>`

// gemmaCall reads <|tool_call>call:NAME{key:value,..}<tool_call|>, in which keys
// have no quotes and strings those of gemmaQuote, and writes JSON.
func gemmaCall(in string, final bool, e *env) (r reading) {
	const open, end = "<|tool_call>", "<tool_call|>"
	rest, ok := strings.CutPrefix(in, open)
	if !ok {
		if strings.HasPrefix(open, in) && !final {
			return r
		}
		return reading{state: bad}
	}
	rest = rest[skip(rest, 0):]
	if yes, maybe := begins(rest, "call:"); !yes {
		if maybe && !final {
			return r
		}
		return reading{state: bad}
	}
	name, rest, ok := strings.Cut(rest[len("call:"):], "{")
	if strings.ContainsAny(name, "\n<}\"") || len(name) > 300 || ok && strings.TrimSpace(name) == "" {
		return reading{state: bad}
	}
	if !ok {
		return r
	}
	r.name, r.named = strings.TrimSpace(name), true
	g := gemmaReader{literalReader{in: "{" + rest, text: &e.text}}
	whole := g.object(0)
	r.args = g.out.String()
	if g.bad {
		return r.broken(len(in) - len(g.in) + g.at)
	}
	if !whole {
		return r
	}
	tail := g.in[g.at:]
	i := skip(tail, 0)
	yes, maybe := begins(tail[i:], end)
	r = r.finish(len(in) - len(tail))
	switch {
	case yes:
		r.n = len(in) - len(tail) + i + len(end)
	case (maybe || i == len(tail)) && !final:
		r.state = more
	}
	return r
}

// gemmaReader is a literalReader of values in which strings stand between marks.
type gemmaReader struct{ literalReader }

func (g *gemmaReader) object(depth int) bool {
	if depth > 100 {
		return g.fail()
	}
	return g.items('}', "{}", func() bool {
		key := ""
		if yes, maybe := begins(g.rest(), gemmaQuote); yes {
			text, _, ok := strings.Cut(g.rest()[len(gemmaQuote):], gemmaQuote)
			if !ok {
				return false
			}
			key = text
			g.at += len(text) + 2*len(gemmaQuote)
		} else if maybe {
			return false
		}
		text, _, ok := strings.Cut(g.rest(), ":")
		if strings.ContainsAny(text, "{}[],\n") {
			return g.fail()
		}
		if !ok {
			return false
		}
		g.at += len(text) + 1
		if key == "" {
			key = strings.TrimSpace(text)
		}
		g.out.WriteString(`"` + quoted(key) + `": `)
		return g.value(depth + 1)
	})
}

func (g *gemmaReader) value(depth int) bool {
	if g.at = skip(g.in, g.at); g.at == len(g.in) {
		return false
	}
	yes, maybe := begins(g.rest(), gemmaQuote)
	switch {
	case maybe:
		return false
	case yes:
		return g.str()
	case g.in[g.at] == '{':
		return g.object(depth)
	case g.in[g.at] == '[':
		if depth > 100 {
			return g.fail()
		}
		return g.items(']', "[]", func() bool { return g.value(depth + 1) })
	}
	end := strings.IndexAny(g.rest(), ",}]")
	if end < 0 {
		return false
	}
	g.out.WriteString(literal(g.rest()[:end]))
	g.at += end
	return true
}

func (g *gemmaReader) str() bool {
	g.at += len(gemmaQuote)
	text, _, ok := strings.Cut(g.rest(), gemmaQuote)
	g.out.WriteByte('"')
	if !ok {
		g.out.WriteString(g.text.quote(g.at, text[:len(text)-partial(text, gemmaQuote)]))
		return false
	}
	g.out.WriteString(quoted(text) + `"`)
	g.at += len(text) + len(gemmaQuote)
	return true
}

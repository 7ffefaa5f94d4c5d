package chat

import (
	"encoding/json"
	"slices"
	"strings"
)

// CallForm is how the template writes calls of one tool:
//
//	Open Prefix ARGUMENTS After Between Prefix ARGUMENTS After Close
//
// A CallID in a text of it stands for an id of the call.
type CallForm struct {
	Open, Close   string // once
	Prefix, After string // around the arguments of each call
	Between       string
	Args          *ArgForm // nil: the arguments are JSON, or in a notation
	Notation      string   // "gemma" or "pythonic": how the arguments are written, if not as JSON
	Parallel      bool     // the template writes several calls
	Mark          string   // what begins a call wherever it stands in an answer; "": nothing, a call is the whole answer
}

// CallID stands for the id of a call, of nine letters and digits, which the model makes up.
const CallID = "\x00"

// formCalls have arguments that are told from all that is around them.
var formCalls = []Call{
	{ID: "zq0000001", Name: probeCall + "a", Arguments: `{"ka": "zqargs"}`},
	{ID: "zq0000002", Name: probeCall + "a", Arguments: `{"ka": "zqmore"}`},
}

// CallForm returns how calls of the tool of this name are written. It returns false where arguments are neither JSON
// nor stand between marks, or where the template does not show it.
func (t *Template) CallForm(name string) (CallForm, bool) {
	var f CallForm
	if t.dialect.Calls == "" || t.dialect.Calls == harmonyName || !callName.MatchString(name) {
		return f, false
	}
	p := probe{t: t, d: t.dialect}
	var args *ArgForm
	if tags := formOf(t.dialect.Calls).tags; tags != nil {
		if args = p.argForm(tags); args == nil {
			return f, false
		}
	}
	if notations[t.dialect.Calls] != nil {
		f.Notation = t.dialect.Calls
	}
	before, _, tail, ok := p.formOf(1, args)
	if !ok {
		return f, false
	}
	end := ""
	c := Conversation{Tools: probeTools, Messages: []Message{ask, {Role: "assistant", Content: probeAnswer}}}
	if out, ok := p.render(c); ok {
		_, end, _ = strings.Cut(out, probeAnswer)
	}
	// What ends every answer is no part of the calls, nor is what calls alone end with.
	close, found := strings.CutSuffix(tail, end)
	if !found {
		close = tail
		for _, mark := range t.dialect.Ends {
			if i := strings.LastIndex(close, mark); i >= 0 {
				close = close[:i]
			}
		}
	}
	single := CallForm{Prefix: before, After: close, Notation: f.Notation}
	if _, middle, tail2, ok := p.formOf(2, args); ok && tail2 == tail {
		n := 0
		for n < len(middle) && n < len(before) && middle[len(middle)-1-n] == before[len(before)-1-n] {
			n++
		}
		prefix := before[len(before)-n:]
		prefix = prefix[max(0, strings.IndexAny(prefix, "<[{")):] // not within a mark
		n = len(prefix)
		n = common(middle[:len(middle)-n], close)
		if strings.Contains(prefix, probeCall+"a") {
			f.Parallel = true
			f.Open, f.Prefix = before[:len(before)-len(prefix)], prefix
			f.After, f.Close = close[:n], close[n:]
			f.Between = middle[n : len(middle)-len(prefix)]
		}
	}
	for _, f := range []CallForm{f, single} {
		f.Args = args
		all := f.Open + f.Prefix + f.After + f.Between + f.Close
		if strings.Count(f.Prefix, probeCall+"a") != 1 || strings.Contains(strings.Replace(all, probeCall+"a", "", 1), "zq") {
			continue
		}
		if f.Prefix = strings.Replace(f.Prefix, probeCall+"a", name, 1); t.readsForm(f, name) {
			f.Mark = t.mark(f)
			return f, true
		}
	}
	return f, false
}

// mark returns the mark that calls of a form begin with.
func (t *Template) mark(f CallForm) string {
	form := formOf(t.dialect.Calls)
	text := strings.TrimSpace(f.Open + f.Prefix)
	for _, mark := range slices.Concat(form.opens, form.starts) {
		if strings.HasPrefix(text, mark) {
			return mark
		}
	}
	return ""
}

// readsForm says whether calls of a form are read back.
func (t *Template) readsForm(f CallForm, name string) bool {
	args := `{"a": [1, {"b": "}"}]}`
	written := args
	if n := notations[f.Notation]; n != nil {
		written = n.written
	}
	if f.Args != nil {
		args = `{"a": "b\nc", "d": "{}"}`
		written = f.Args.write("a", "b\nc") + f.Args.write("d", "{}")
	}
	text, n := f.Open+f.Prefix+written+f.After, 1
	if f.Parallel {
		text, n = text+f.Between+f.Prefix+written+f.After, 2
	}
	tools := []json.RawMessage{json.RawMessage(`{"function": {"name": "` + name + `"}}`)}
	text = strings.ReplaceAll(text+f.Close, CallID, "a1B2c3D4e")
	m := Collect(t.dialect.Parser(false, tools), text)
	if len(m.Calls) != n || strings.TrimSpace(m.Content+m.Reasoning) != "" {
		return false
	}
	return !slices.ContainsFunc(m.Calls, func(c Call) bool { return c.Name != name || c.Arguments != args })
}

// notation is how arguments are written that are neither JSON nor stand between marks.
type notation struct {
	texts   func(value string) []string // {"ka": VALUE} in it, in each of its ways
	written string                      // {"a": [1, {"b": "}"}]} in it
}

var notations = map[string]*notation{
	"gemma": {func(value string) []string { return []string{"{ka:" + gemmaQuote + value + gemmaQuote + "}"} },
		"{a:[1,{b:" + gemmaQuote + "}" + gemmaQuote + "}]}"},
	pythonicName: {func(value string) []string { return []string{"ka='" + value + "'", `ka="` + value + `"`} }, `a=[1, {"b": '}'}]`},
}

// formOf renders an answer with n calls, and cuts it where the arguments stand: what is before those of the first,
// between them, and behind those of the last.
func (p *probe) formOf(n int, args *ArgForm) (before, between, behind string, ok bool) {
	c := Conversation{Tools: probeTools, Messages: []Message{ask, {Role: "assistant", Calls: formCalls[:n]}}}
	out, ok := p.render(c)
	if !ok {
		return "", "", "", false
	}
	head := p.head(out, c)
	rest := out[len(head):]
	for _, call := range formCalls {
		rest = strings.ReplaceAll(rest, call.ID, CallID)
	}
	parts := make([]string, 0, 3)
	for i, call := range formCalls[:n] {
		at, length := strings.Index(rest, call.Arguments), len(call.Arguments)
		if args != nil {
			text := args.write("ka", map[bool]string{true: "zqargs", false: "zqmore"}[i == 0])
			at, length = strings.Index(rest, text), len(text)
		} else if n := notations[p.d.Calls]; n != nil {
			for _, text := range n.texts(map[bool]string{true: "zqargs", false: "zqmore"}[i == 0]) {
				if at < 0 {
					at, length = strings.Index(rest, text), len(text)
				}
			}
		} else if at < 0 { // without the space
			compact := strings.Replace(call.Arguments, ": ", ":", 1)
			at, length = strings.Index(rest, compact), len(compact)
		}
		if at < 0 || at > 0 && rest[at-1] == '"' {
			return "", "", "", false
		}
		parts = append(parts, rest[:at])
		rest = rest[at+length:]
	}
	return parts[0], parts[len(parts)-1], rest, true
}

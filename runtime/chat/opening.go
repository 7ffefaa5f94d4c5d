package chat

import (
	"regexp"
	"strings"
)

// Opening is how an answer begins that calls a tool.
type Opening struct {
	Plain  string // at the beginning of the answer
	Behind string // behind what closes reasoning; "" if answers of this model have none
}

// callName are names of tools that are no part of a form's marks, and need no escape in any.
var callName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// CallOpening returns how an answer begins that calls the tool of this name, up to where the tool is
// certain: what the template writes of such calls. It returns false if the template does not show it.
func (t *Template) CallOpening(name string) (Opening, bool) {
	var o Opening
	if t.dialect.Calls == "" || !callName.MatchString(name) {
		return o, false
	}
	p := probe{t: t, d: t.dialect}
	on := true
	var ok bool
	if o.Plain, ok = p.opening(Conversation{}, ""); !ok {
		return o, false
	}
	if p.d.ReasoningClose != "" {
		for _, thinking := range []*bool{nil, &on} {
			if o.Behind, ok = p.opening(Conversation{Thinking: thinking}, probeReason); ok {
				break
			}
		}
		if !ok { // templates that leave out reasoning before calls: as before answers
			_, space, found := strings.Cut(p.d.Closing, p.d.ReasoningClose)
			if !found || strings.TrimSpace(space) != "" {
				return o, false
			}
			o.Behind = space + o.Plain
		}
	}
	o.Plain = strings.Replace(o.Plain, probeCall+"a", name, 1)
	o.Behind = strings.Replace(o.Behind, probeCall+"a", name, 1)
	return o, true
}

// opening is what two answers with different calls of one tool begin with, behind their reasoning if they
// have some.
func (p *probe) opening(c Conversation, reasoning string) (string, bool) {
	calls := []Call{
		{ID: "a00000000", Name: probeCall + "a", Arguments: `{}`},
		{ID: "b11111111", Name: probeCall + "a", Arguments: `{"ka": "v"}`},
	}
	c.Tools = probeTools
	var text [2]string
	for i, call := range calls {
		c.Messages = []Message{ask, {Role: "assistant", Reasoning: reasoning, Calls: []Call{call}}}
		out, ok := p.render(c)
		if !ok {
			return "", false
		}
		text[i] = out
	}
	both := text[0][:common(text[0], text[1])]
	name := strings.LastIndex(both, probeCall+"a")
	if name < 0 {
		return "", false
	}
	end := name + len(probeCall+"a")
	if end == len(both) {
		return "", false // what ends the name depends on the arguments
	}
	// A bracket may be one token with what follows it, so the model writes it. One byte of the text
	// that ends the name is forced, unless a mark begins with it.
	if both[end] != '<' {
		end++
	}
	both = both[:max(end, len(strings.TrimRight(both, "<[{"+white)))]
	if reasoning == "" {
		head := p.head(text[0], c)
		return both[min(len(head), name):], strings.HasPrefix(both, head)
	}
	_, behind, ok := strings.Cut(both, reasoning)
	if !ok {
		return "", false
	}
	_, behind, ok = strings.Cut(behind, p.d.ReasoningClose)
	return behind, ok
}

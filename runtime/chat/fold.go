package chat

import (
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/runtime/chat/jinja"
)

// places are what a template writes at other places than most: what it does not, it leaves out,
// moves, or fails on.
type places struct {
	systems    bool // a system message behind the one that begins
	middle     bool // a system message between turns
	users      bool // a user's message behind another
	assistants bool // an assistant's behind another
	behindTool bool // a user's message behind what a tool answers
}

// probePlaces renders conversations in which the messages stand at such places.
func (t *Template) probePlaces() places {
	p := probe{t: t, d: t.dialect, budget: jinja.Limit(0)}
	user := func(s string) Message { return Message{Role: "user", Content: s} }
	system := func(s string) Message { return Message{Role: "system", Content: s} }
	answer := func(s string) Message { return Message{Role: "assistant", Content: s} }
	call := Message{Role: "assistant", Calls: probeCalls[:1]}
	tool := Message{Role: "tool", ToolCallID: probeCalls[0].ID, Name: probeCalls[0].Name, Content: "zqthree"}
	writes := func(m ...Message) bool {
		c := Conversation{Messages: m, Tools: probeTools}
		return p.inOrder(c) && (slices.ContainsFunc(m, func(m Message) bool { return len(m.Calls) > 0 }) || p.inOrder(Conversation{Messages: m}))
	}
	return places{
		systems:    writes(system("zqone"), system("zqtwo"), user("zqthree")),
		middle:     writes(system("zqone"), user("zqtwo"), system("zqthree"), answer("zqfour"), system("zqfive"), user("zqsix")),
		users:      writes(user("zqone"), user("zqtwo"), answer("zqthree"), user("zqfour"), user("zqfive")),
		assistants: writes(user("zqone"), answer("zqtwo"), answer("zqthree"), user("zqfour")),
		behindTool: writes(user("zqone"), call, tool, user("zqfour"), answer("zqfive"), user("zqsix")),
	}
}

// inOrder says whether the text of all messages is written, each once and in their order.
func (p *probe) inOrder(c Conversation) bool {
	out, ok := p.render(c)
	for _, m := range c.Messages {
		_, behind, found := strings.Cut(out, m.Content)
		if !found || m.Content != "" && strings.Contains(behind, m.Content) {
			return false
		}
		out = behind
	}
	return ok
}

// fold puts messages that the template has no place for into those next to them: a system message between
// turns becomes text of the user's message before it, or of the next one. No text is lost.
func (t *Template) fold(in []Message) []Message {
	p := t.places()
	d := t.dialect
	instructs := func(m Message) bool {
		return m.Role == "system" || m.Role == "developer"
	}
	begin := 0
	for begin < len(in) && instructs(in[begin]) {
		begin++
	}
	var out []Message
	for i, m := range in[:begin] {
		if i > 0 && (!p.systems || in[0].Role != m.Role && !d.lacks("developer")) {
			out[len(out)-1] = out[len(out)-1].with(m)
			continue
		}
		out = append(out, m)
	}
	turns := len(out)
	for _, m := range in[begin:] {
		if instructs(m) && (!p.middle || m.Role == "developer" && !d.lacks("developer")) {
			m = Message{Role: "user", Content: m.Text()}
			if n := len(out); n > turns && out[n-1].Role == "user" {
				out[n-1] = out[n-1].with(m)
				continue
			}
			m.folded = true
		}
		if n := len(out); n > turns && p.joins(out[n-1], m) {
			out[n-1] = out[n-1].with(m)
			continue
		}
		out = append(out, m)
	}
	return out
}

// joins says whether a message must be a part of the one before it.
func (p places) joins(before, m Message) bool {
	switch {
	case m.Role == "user" && before.Role == "user":
		return !p.users || before.folded
	case m.Role == "user" && before.Role == "tool":
		return !p.behindTool
	case m.Role == "assistant" && before.Role == "assistant":
		return !p.assistants && len(before.Calls) == 0
	}
	return false
}

// with is a message with the text and the calls of another behind its own.
func (m Message) with(other Message) Message {
	texts := slices.DeleteFunc([]string{m.Text(), other.Text()}, func(s string) bool { return s == "" })
	m.Content, m.Parts = strings.Join(texts, "\n\n"), nil
	m.Reasoning += other.Reasoning
	m.Calls = slices.Concat(m.Calls, other.Calls)
	m.folded = false
	return m
}

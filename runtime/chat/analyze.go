package chat

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/chat/jinja"
)

// marks are the pairs that known models put around reasoning. Others are found
// by their form, <X> .. </X> or [X] .. [/X].
var marks = []struct{ open, close string }{
	{"<think>", "</think>"},
	{"[THINK]", "[/THINK]"},
	{"<|channel>thought", "<channel|>"},
	{"<|channel|>analysis<|message|>", "<|end|>"},
	{"<|START_THINKING|>", "<|END_THINKING|>"},
	{"<seed:think>", "</seed:think>"},
	{"<reasoning>", "</reasoning>"},
	{"Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"},
}

// Words that no template has.
const (
	probeAsk    = "zqask"
	probeReason = "zqreason"
	probeAnswer = "zqanswer"
	probeCall   = "zqcall"
	probeSystem = "zqsystem"
)

// probe renders conversations to see what the template makes of them.
type probe struct {
	t      *Template
	d      Dialect
	budget *jinja.Budget // of all renders
}

// probeText is how long a text may be that a probe looks at, in bytes: probes say little, and so do the tools that come
// with them.
const probeText = 64 << 10

var probeTools = []json.RawMessage{
	json.RawMessage(`{"type": "function", "function": {"name": "zqcalla", "description": "zqtool", "parameters": {"type": "object", "properties": {"ka": {"type": "string", "description": "x"}, "kb": {"type": "integer", "description": "x"}}, "required": ["ka"]}}}`),
	json.RawMessage(`{"type": "function", "function": {"name": "zqcallb", "description": "zqtool", "parameters": {"type": "object", "properties": {"kc": {"type": "string", "description": "x"}}, "required": ["kc"]}}}`),
}

var probeCalls = []Call{
	{ID: "call00001", Name: probeCall + "a", Arguments: `{"ka": "v 1", "kb": 2}`},
	{ID: "call00002", Name: probeCall + "b", Arguments: `{"kc": "w"}`},
}

var ask = Message{Role: "user", Content: probeAsk}

func (p probe) render(c Conversation) (string, bool) {
	c.Now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	spans, err := p.t.render(context.Background(), c, p.d, p.budget)
	if s := Text(spans); err == nil && len(s) <= probeText {
		return s, true
	}
	return "", false
}

// messages renders messages that are to be followed by nothing.
func (p probe) messages(m ...Message) (string, bool) { return p.render(Conversation{Messages: m}) }

// prompt renders a question that the model is to answer.
func (p probe) prompt(c Conversation) string {
	c.Messages, c.Generate = []Message{ask}, true
	s, _ := p.render(c)
	return s
}

// analyze finds out the dialect of the template. What it cannot find is left out:
// then answers are content. It fails if the template takes more than a conversation could be rendered with.
func (t *Template) analyze(v plans.Vocab) (Dialect, error) {
	p := probe{t: t, budget: jinja.Limit(0)}
	p.reasoning()
	p.switches()
	p.content()
	p.roles()
	p.ends(v)
	if p.d.ReasoningOpen != "" {
		p.d.PromptOpens = p.d.Thinks(p.prompt(Conversation{}))
	}
	p.calls(v)
	p.d.Name = p.d.Calls
	if p.d.Name == "" {
		p.d.Name = contentName
	}
	if p.budget.Steps == 0 || p.budget.Bytes == 0 {
		return Dialect{}, errors.New("chat template: it takes too many steps, or too much text, to find out what it writes")
	}
	return p.d, nil
}

// reasoning looks at an answer with reasoning before it, then at what prompts
// open, then at the source.
func (p *probe) reasoning() {
	on := true
	for _, thinking := range []*bool{nil, &on} {
		for _, name := range []string{"enable_thinking", "thinking"} {
			p.d.Switch = name
			out, _ := p.render(Conversation{Messages: []Message{ask, {Role: "assistant", Reasoning: probeReason, Content: probeAnswer}}, Thinking: thinking})
			before, rest, ok1 := strings.Cut(out, probeReason)
			between, _, ok2 := strings.Cut(rest, probeAnswer)
			if p.d.Switch = ""; !ok1 || !ok2 || strings.TrimSpace(between) == "" {
				continue
			}
			if p.around(before, between) {
				return
			}
		}
	}
	prompt := strings.TrimSpace(p.prompt(Conversation{}))
	for _, m := range marks {
		if strings.HasSuffix(prompt, m.open) || strings.HasSuffix(prompt, m.close) || strings.Contains(p.t.source, m.open) && strings.Contains(p.t.source, m.close) {
			p.d.ReasoningOpen, p.d.ReasoningClose, p.d.Closing = m.open, m.close, m.close
			if strings.HasPrefix(m.close, "</") {
				p.d.Closing = "\n" + m.close + "\n\n"
			}
			return
		}
	}
}

// around takes what stands before reasoning, and between it and the answer.
func (p *probe) around(before, between string) bool {
	end := strings.TrimSpace(between)
	for _, m := range marks {
		if strings.HasPrefix(end, m.close) {
			p.d.ReasoningOpen, p.d.ReasoningClose, p.d.Closing = m.open, m.close, between
			return true
		}
	}
	open := strings.Replace(end, "/", "", 1)
	if open != end && !strings.ContainsAny(end, " \n") && strings.HasSuffix(strings.TrimSpace(before), open) {
		p.d.ReasoningOpen, p.d.ReasoningClose, p.d.Closing = open, end, between
		return true
	}
	return false
}

// switches finds the variable that changes the prompt.
func (p *probe) switches() {
	on, off := true, false
	for _, name := range []string{"enable_thinking", "thinking"} {
		p.d.Switch = name
		if p.prompt(Conversation{Thinking: &on}) != p.prompt(Conversation{Thinking: &off}) {
			break
		}
		p.d.Switch = ""
	}
	low, high := Conversation{Effort: "low"}, Conversation{Effort: "high"}
	if p.d.Switch != "" {
		low.Thinking, high.Thinking = &on, &on
	}
	p.d.Effort = p.prompt(low) != p.prompt(high)
}

// content looks whether content may be parts, and whether it may be text.
func (p *probe) content() {
	written := func(m Message) bool {
		out, ok := p.messages(m)
		return ok && strings.Contains(out, probeAsk) && !strings.Contains(out, "'"+probeAsk) && !strings.Contains(out, `"`+probeAsk)
	}
	p.d.Parts = written(Message{Role: "user", Parts: []string{probeAsk}})
	p.d.OnlyParts = p.d.Parts && !written(ask)
}

// roles finds the roles whose text is written.
func (p *probe) roles() {
	roles := []string{}
	for _, role := range []string{"system", "developer"} {
		if out, _ := p.messages(Message{Role: role, Content: probeSystem}, ask); strings.Contains(out, probeSystem) && strings.Contains(out, probeAsk) {
			roles = append(roles, role)
		}
	}
	p.d.Roles = roles
}

// ends finds what stands behind an answer.
func (p *probe) ends(v plans.Vocab) {
	out, ok := p.messages(ask, Message{Role: "assistant", Content: probeAnswer})
	if _, end, found := strings.Cut(out, probeAnswer); ok && found {
		p.end(end, v)
	}
}

// end adds the first token of a text to the ends: the longest one that is a
// control token, or else what looks like one.
func (p *probe) end(text string, v plans.Vocab) {
	text = strings.TrimSpace(text)
	best := ""
	for i, token := range v.Tokens {
		const control, userDefined = 3, 4
		if i < len(v.Types) && (v.Types[i] == control || v.Types[i] == userDefined) && len(token) > len(best) && strings.HasPrefix(text, token) {
			best = token
		}
	}
	if i := strings.IndexAny(text, ">]"); best == "" && i > 0 && strings.ContainsAny(text[:1], "<[") && !strings.ContainsAny(text[:i], white) {
		best = text[:i+1]
	}
	for _, end := range p.d.Ends {
		if end == best {
			return
		}
	}
	if best != "" {
		p.d.Ends = append(p.d.Ends, best)
	}
}

// calls finds the form that reads back what the template writes.
func (p *probe) calls(v plans.Vocab) {
	for _, n := range []int{2, 1} {
		for _, text := range []bool{false, true} {
			p.d.TextCalls = text
			c := Conversation{Messages: []Message{ask, {Role: "assistant", Calls: probeCalls[:n]}}, Tools: probeTools}
			out, ok := p.render(c)
			if !ok || !strings.Contains(out, probeCall+"a") {
				continue
			}
			out = out[len(p.head(out, c)):]
			for _, f := range forms {
				if rest, ok := p.readsBack(f.name, out, probeCalls[:n]); ok {
					p.d.Calls, p.d.OneCall = f.name, n == 1
					p.end(rest, v)
					p.toolRole()
					return
				}
			}
		}
	}
	p.d.TextCalls = false
	if p.t.leavesOut() && strings.Contains(p.t.source, "tools") && isMark(pythonicOpen, v) { // LFM2
		p.d.Calls = pythonicName
		p.toolRole()
	}
}

// leavesOut says that the template writes no calls.
func (t *Template) leavesOut() bool { return !strings.Contains(t.source, "tool_calls") }

// isMark says whether a text is a token that is shown only where it is asked for.
func isMark(text string, v plans.Vocab) bool {
	const control, userDefined = 3, 4
	i := slices.Index(v.Tokens, text)
	return i >= 0 && i < len(v.Types) && (v.Types[i] == control || v.Types[i] == userDefined)
}

// head returns the part of a text with calls that stands before them: what it
// shares with a text that answers instead, which goes on with a letter.
func (p *probe) head(out string, c Conversation) string {
	c.Messages = []Message{c.Messages[0], {Role: "assistant", Content: probeAnswer}}
	answer, _ := p.render(c)
	head := out[:common(out, answer)]
	if i := strings.LastIndexAny(head, "<["); i >= 0 && !strings.ContainsAny(head[i:], ">]") {
		head = head[:i] // the two go on with different marks
	}
	return head
}

func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// readsBack says whether a form reads calls in a text, and what follows them.
func (p *probe) readsBack(form, text string, calls []Call) (rest string, ok bool) {
	d := p.d
	d.Calls = form
	m := Collect(d.Parser(false, probeTools), text)
	rest = strings.TrimSpace(m.Content)
	if close := p.d.ReasoningClose; close != "" { // without reasoning some templates write its end alone
		rest = strings.TrimSpace(strings.TrimPrefix(rest, close))
	}
	if strings.Contains(rest, "zq") || strings.ContainsAny(rest, " \n") || strings.TrimSpace(m.Reasoning) != "" || len(m.Calls) != len(calls) {
		return "", false
	}
	for i, c := range calls {
		if m.Calls[i].Name != c.Name || !sameJSON(m.Calls[i].Arguments, c.Arguments) {
			return "", false
		}
	}
	return rest, true
}

func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	s, _ := json.Marshal(x)
	t, _ := json.Marshal(y)
	return string(s) == string(t)
}

// toolRole looks whether the answer of a tool is written.
func (p *probe) toolRole() {
	out, ok := p.render(Conversation{Tools: probeTools, Messages: []Message{
		ask, {Role: "assistant", Calls: probeCalls[:1]},
		{Role: "tool", ToolCallID: probeCalls[0].ID, Name: probeCalls[0].Name, Content: probeAnswer},
	}})
	if ok && strings.Contains(out, probeAnswer) {
		p.d.Roles = append(p.d.Roles, "tool")
	}
}

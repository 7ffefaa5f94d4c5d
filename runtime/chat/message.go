// Package chat turns conversations into what a model reads, by its chat template,
// and what the model writes into messages. How a model marks reasoning and calls
// of tools is its dialect: Analyze finds it by rendering the template, the plan
// keeps it, a Parser goes by it.
package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/runtime/chat/jinja"
)

// Message is one message of a conversation.
type Message struct {
	Role       string // system, developer, user, assistant or tool
	Content    string
	Parts      []string // the text parts, if the content came as parts
	Reasoning  string   // of an assistant
	Name       string   // of the tool that answers, or of who speaks
	ToolCallID string   // the call that a tool answers
	Calls      []Call
	folded     bool // a system message that became a user's: the next user's message belongs to it
}

// Call is a call of a tool.
type Call struct {
	ID, Name  string
	Arguments string // JSON text
}

// Conversation is what a template renders.
type Conversation struct {
	Messages []Message
	Tools    []json.RawMessage // the API's tool objects; the order of their keys is kept
	Generate bool              // the model is to go on as the assistant
	Thinking *bool             // nil: as the template has it
	Effort   string            // reasoning_effort; "": as the template has it
	Kwargs   map[string]json.RawMessage
	Now      time.Time
}

// roles are names that templates build control tokens of, such as <|user|>. They
// are as good as the template's own text; any other role is data.
var roles = map[string]bool{"system": true, "developer": true, "user": true, "assistant": true, "tool": true, "function": true}

func role(name string) jinja.Value {
	if roles[name] {
		return jinja.Own(name)
	}
	return jinja.Data(name)
}

// context returns the variables of the template.
func (t *Template) context(c Conversation, d Dialect) (*jinja.Dict, error) {
	ctx := jinja.NewDict()
	messages := jinja.NewList()
	for _, m := range d.fit(c.Messages) {
		v, err := m.value(d)
		if err != nil {
			return nil, err
		}
		if len(m.Calls) > 0 && d.Calls == pythonicName && t.leavesOut() {
			content, err := withCalls(m.Text(), m.Calls)
			if err != nil {
				return nil, err
			}
			v.Set("content", content)
		}
		messages.Append(v)
	}
	ctx.Set("messages", messages)
	if len(c.Tools) > 0 {
		tools := jinja.NewList()
		for i, raw := range c.Tools {
			v, err := jinja.FromJSON(raw)
			if err != nil {
				return nil, fmt.Errorf("tool %d: %w", i, err)
			}
			tools.Append(v)
		}
		ctx.Set("tools", tools)
	}
	ctx.Set(asks, c.Generate)
	ctx.Set("bos_token", jinja.Own(t.bos))
	ctx.Set("eos_token", jinja.Own(t.eos))
	if c.Effort != "" {
		ctx.Set("reasoning_effort", jinja.Data(c.Effort))
	}
	if c.Thinking != nil && d.Switch != "" {
		ctx.Set(d.Switch, *c.Thinking)
	}
	for name, raw := range c.Kwargs {
		v, err := jinja.FromJSON(raw)
		if err != nil {
			return nil, fmt.Errorf("chat_template_kwargs: %s: %w", name, err)
		}
		ctx.Set(name, v)
	}
	return ctx, nil
}

// value returns a message as templates get it.
func (m Message) value(d Dialect) (*jinja.Dict, error) {
	v := jinja.NewDict()
	v.Set("role", role(m.Role))
	texts := m.Parts
	if d.OnlyParts && texts == nil {
		texts = []string{m.Content}
	}
	if texts == nil || d.Roles != nil && !d.Parts {
		v.Set("content", jinja.Data(m.Text()))
	} else {
		parts := jinja.NewList()
		for _, text := range texts {
			part := jinja.NewDict()
			part.Set("type", jinja.Own("text"))
			part.Set("text", jinja.Data(text))
			parts.Append(part)
		}
		v.Set("content", parts)
	}
	if m.Name != "" {
		v.Set("name", jinja.Data(m.Name))
	}
	if m.ToolCallID != "" {
		v.Set("tool_call_id", jinja.Data(m.ToolCallID))
	}
	// The harmony form has no place for both beside a call.
	if m.Reasoning != "" && !(d.Calls == harmonyName && len(m.Calls) > 0 && m.Content != "") {
		v.Set("reasoning_content", jinja.Data(m.Reasoning))
		v.Set("reasoning", jinja.Data(m.Reasoning))
		v.Set("thinking", jinja.Data(m.Reasoning)) // gpt-oss
	}
	if len(m.Calls) > 0 {
		calls := jinja.NewList()
		for i, c := range m.Calls {
			call, err := c.value(d)
			if err != nil {
				return nil, fmt.Errorf("call %d: %w", i, err)
			}
			calls.Append(call)
		}
		v.Set("tool_calls", calls)
	}
	return v, nil
}

func (c Call) value(d Dialect) (*jinja.Dict, error) {
	arguments := jinja.Data(c.Arguments)
	if strings.TrimSpace(c.Arguments) == "" {
		arguments = jinja.Data("{}")
	}
	if !d.TextCalls {
		text := c.Arguments
		if strings.TrimSpace(text) == "" {
			text = "{}"
		}
		v, err := jinja.FromJSON([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("arguments of %s: %w", c.Name, err)
		}
		arguments = v
	}
	function := jinja.NewDict()
	function.Set("name", jinja.Data(c.Name))
	function.Set("arguments", arguments)
	v := jinja.NewDict()
	v.Set("id", jinja.Data(c.ID))
	v.Set("type", jinja.Own("function"))
	v.Set("function", function)
	return v, nil
}

// fit changes messages into those that the template writes: roles that it does
// not know become others, answers of tools get the tool's name, and a message with
// several calls becomes several messages if the template takes one call at a time.
func (d Dialect) fit(in []Message) []Message {
	var out []Message
	names := map[string]string{}
	pending := "" // system text for the next user
	for i := 0; i < len(in); i++ {
		m := in[i]
		if m.Role == "developer" && d.lacks("developer") {
			m.Role = "system"
		}
		if m.Role == "system" && d.lacks("system") {
			pending += m.Text() + "\n\n"
			continue
		}
		if m.Role == "user" && pending != "" {
			m.Content, m.Parts = pending+m.Text(), nil
			pending = ""
		}
		for _, c := range m.Calls {
			names[c.ID] = c.Name
		}
		if m.Role == "tool" && m.Name == "" {
			m.Name = names[m.ToolCallID]
		}
		if d.OneCall && len(m.Calls) > 1 {
			var answers []Message
			for i+1 < len(in) && in[i+1].Role == "tool" {
				i++
				answers = append(answers, in[i])
			}
			out = append(out, deal(m, answers)...)
			continue
		}
		out = append(out, m)
	}
	if pending != "" {
		out = append(out, Message{Role: "user", Content: strings.TrimSpace(pending)})
	}
	return out
}

// lacks says whether the template is known not to write a role.
func (d Dialect) lacks(role string) bool { return d.Roles != nil && !slices.Contains(d.Roles, role) }

// Text is the content, however it came.
func (m Message) Text() string {
	if m.Parts != nil {
		return strings.Join(m.Parts, "\n")
	}
	return m.Content
}

// deal makes a message of each call and puts its answer behind it.
func deal(m Message, answers []Message) []Message {
	var out []Message
	used := map[int]bool{}
	for i, c := range m.Calls {
		one := Message{Role: m.Role, Calls: []Call{c}}
		if i == 0 {
			one = m
			one.Calls = []Call{c}
		}
		out = append(out, one)
		for j, a := range answers {
			if !used[j] && (a.ToolCallID == c.ID && c.ID != "" || a.ToolCallID == "" && j == i) {
				used[j] = true
				if a.Name == "" {
					a.Name = c.Name
				}
				out = append(out, a)
			}
		}
	}
	for j, a := range answers {
		if !used[j] {
			out = append(out, a)
		}
	}
	return out
}

package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/talk"
)

// A talkRequest is a conversation to be continued, whatever API it came by.
type talkRequest struct {
	model     string
	messages  []chat.Message
	tools     []json.RawMessage // in the form of chat completions
	choice    toolChoice
	parallel  *bool
	sampling  *sampling
	max       *int
	maxParam  string // what the API calls max
	top       int    // log probabilities of so many tokens; -1: none
	thinking  *bool
	effort    string
	reasoning *int // tokens of reasoning, at most
	format    string
	kwargs    map[string]json.RawMessage
}

// prepare returns the prompt of a conversation and the model, which is loaded for it.
func (c *call) prepare(q *talkRequest) (*Model, *chat.Conversation, error) {
	if len(q.messages) == 0 {
		return nil, nil, badParam("messages", "messages: there are none")
	}
	if len(q.messages) > maxMessages {
		return nil, nil, badParam("messages", "messages: %d, at most %d", len(q.messages), maxMessages)
	}
	if err := checkTools(q.tools); err != nil {
		return nil, nil, err
	}
	rest, thinking, err := kwargs(q.kwargs)
	if err != nil {
		return nil, nil, err
	}
	if q.thinking == nil {
		q.thinking = thinking
	}
	m, err := c.model(q.model)
	if err != nil {
		return nil, nil, err
	}
	tools := q.tools
	if q.choice.mode == "none" {
		tools = nil
	}
	return m, &chat.Conversation{
		Messages: q.messages, Tools: tools, Generate: true,
		Thinking: q.thinking, Effort: q.effort, Kwargs: rest, Now: time.Now(),
	}, nil
}

// converse makes the sequences that answer a conversation.
func (c *call) converse(q *talkRequest) (*conversation, error) {
	if err := c.work(); err != nil {
		return nil, err
	}
	m, conv, err := c.prepare(q)
	if err != nil {
		return nil, err
	}
	if err := m.predicts(); err != nil {
		return nil, err
	}
	call, err := q.choice.forced(q.tools)
	if err != nil {
		return nil, err
	}
	r, err := q.sampling.request(m, c.raw)
	if err != nil {
		return nil, err
	}
	turn, err := m.turn(*conv, talk.Options{Sampling: r.Sampling, Stops: r.Stops, Reasoning: q.reasoning, Call: call})
	if err != nil {
		return nil, err
	}
	r.Prompt, r.Turn, r.Special, r.Reasoning, r.Opening = turn.Request.Prompt, turn.Request.Turn, turn.Request.Special, turn.Request.Reasoning, turn.Request.Opening
	if err := budget(m, &r, q.max, q.maxParam); err != nil {
		return nil, err
	}
	r.TopLogprobs = q.top
	r.StopTokens = append(r.StopTokens, turn.Request.StopTokens...)
	t := &conversation{parser: turn.Parser, single: q.parallel != nil && !*q.parallel || q.choice.mode == "named"}
	if q.format == "none" {
		t.parser = func() *chat.Parser { return turn.Parser().Inline() }
	}
	t.run = run{call: c, model: m, reqs: spread(r, q.sampling.choices())}
	if c.s.o.LogText {
		c.log.prompt = turn.Text
	}
	if c.user != nil && t.reqs[0].Priority > c.user.Priority {
		for i := range t.reqs {
			t.reqs[i].Priority = c.user.Priority
		}
	}
	return t, nil
}

// spread makes n requests of one, which differ in their seeds.
func spread(r engine.Request, n int) []engine.Request {
	all := slices.Repeat([]engine.Request{r}, n)
	for i := range all {
		all[i].Sampling.Seed += uint64(i)
	}
	return all
}

// checkTools looks at tools in the form of chat completions.
func checkTools(tools []json.RawMessage) error {
	if len(tools) > maxTools {
		return badParam("tools", "tools: %d, at most %d", len(tools), maxTools)
	}
	for i, raw := range tools {
		at := fmt.Sprintf("tools[%d]", i)
		var t struct {
			Type     string `json:"type"`
			Function *struct {
				Name       string          `json:"name"`
				Parameters json.RawMessage `json:"parameters"`
			} `json:"function"`
		}
		d := decoder{ignored: func(string) {}}
		if err := d.into(raw, &t, at); err != nil {
			return err
		}
		switch {
		case t.Type != "function":
			return unsupported(at+".type", "%s.type: want function, have %q", at, t.Type)
		case t.Function == nil || t.Function.Name == "":
			return badParam(at+".function.name", "%s.function.name is missing", at)
		case t.Function.Parameters != nil && t.Function.Parameters[0] != '{':
			return wrongType(at+".function.parameters", "an object", t.Function.Parameters)
		}
	}
	return nil
}

// A toolChoice says which tools the model may or must call.
type toolChoice struct {
	mode string // "" and auto, none, required, or named
	name string
}

func (t *toolChoice) decode(d *decoder, raw []byte, path string) error {
	if raw[0] == '"' {
		var mode string
		json.Unmarshal(raw, &mode)
		if !slices.Contains([]string{"auto", "none", "required"}, mode) {
			return wrongType(path, "auto, none, required or a function", raw)
		}
		t.mode = mode
		return nil
	}
	var named struct {
		Type     string `json:"type"`
		Name     string `json:"name"` // of the Responses API
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if err := d.into(raw, &named, path); err != nil {
		return err
	}
	if named.Name == "" {
		named.Name = named.Function.Name
	}
	if named.Type != "function" || named.Name == "" {
		return unsupported(path, "%s: want auto, none, required or a function with its name", path)
	}
	*t = toolChoice{"named", named.Name}
	return nil
}

// forced returns the names of the tools of which the answer must call one; none if it need not.
func (t toolChoice) forced(tools []json.RawMessage) ([]string, error) {
	if t.mode != "required" && t.mode != "named" {
		return nil, nil
	}
	var names []string
	for _, raw := range tools {
		var tool struct{ Function struct{ Name string } }
		if json.Unmarshal(raw, &tool) == nil && (t.mode == "required" || tool.Function.Name == t.name) {
			names = append(names, tool.Function.Name)
		}
	}
	switch {
	case len(tools) == 0:
		return nil, badParam("tool_choice", "tool_choice: there are no tools")
	case len(names) == 0:
		return nil, badParam("tool_choice", "tool_choice: there is no tool %q", t.name)
	}
	return names, nil
}

// flatTool makes of a tool of another API one in the form of chat completions, with
// the order of its keys kept.
func flatTool(name, description string, parameters json.RawMessage) json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"type": "function", "function": {"name": ` + quote(name))
	if description != "" {
		b.WriteString(`, "description": ` + quote(description))
	}
	if len(parameters) > 0 {
		b.WriteString(`, "parameters": ` + string(parameters))
	}
	b.WriteString("}}")
	return json.RawMessage(b.String())
}

// quote returns s as JSON, with nothing escaped that needs no escape.
func quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}

package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/engine"
)

// messagesRequest is the body of Anthropic's POST /v1/messages.
type messagesRequest struct {
	sampling
	Model         string                     `json:"model"`
	System        blocks                     `json:"system"`
	Messages      []anthropicMessage         `json:"messages"`
	Tools         []anthropicTool            `json:"tools"`
	ToolChoice    anthropicChoice            `json:"tool_choice"`
	MaxTokens     *int                       `json:"max_tokens"`
	StopSequences []string                   `json:"stop_sequences"`
	Stream        bool                       `json:"stream"`
	Thinking      anthropicThinking          `json:"thinking"`
	Kwargs        map[string]json.RawMessage `json:"chat_template_kwargs"`
	Output        struct {
		Effort string         `json:"effort"`
		Format responseFormat `json:"format"`
	} `json:"output_config"`
	Format  responseFormat    `json:"output_format"` // its name before output_config
	Context contextManagement `json:"context_management"`
	Servers []json.RawMessage `json:"mcp_servers"`
	Holder  json.RawMessage   `json:"container"`
}

// contextManagement says what of a conversation a service would take out before the model reads it.
type contextManagement struct {
	Edits []struct {
		Type string          `json:"type"`
		Keep json.RawMessage `json:"keep"`
	} `json:"edits"`
}

type anthropicMessage struct {
	Role    string `json:"role"`
	Content blocks `json:"content"`
}

// blocks is a text or an array of blocks.
type blocks []block

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   blocks          `json:"content"`
	IsError   bool            `json:"is_error"`
	Title     string          `json:"title"`     // of documents and search results
	ToolName  string          `json:"tool_name"` // of references to tools
	Source    json.RawMessage `json:"source"`    // of documents and images
}

func (b *blocks) decode(d *decoder, raw []byte, path string) error {
	if raw[0] == '"' {
		one := block{Type: "text"}
		json.Unmarshal(raw, &one.Text)
		*b = blocks{one}
		return nil
	}
	if raw[0] != '[' {
		return wrongType(path, "a string or an array of blocks", raw)
	}
	var all []block
	if err := d.into(raw, &all, path); err != nil {
		return err
	}
	*b = all
	return nil
}

// text joins blocks that may hold text only.
func (b blocks) text(at string) (string, error) {
	var parts []string
	for i, x := range b {
		text, err := x.text(fmt.Sprintf("%s[%d]", at, i))
		if err != nil {
			return "", err
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n"), nil
}

// text returns what a block says, if that is text.
func (b block) text(at string) (string, error) {
	titled := func(text string) string { return strings.TrimSpace(b.Title + "\n" + text) }
	switch b.Type {
	case "text":
		return b.Text, nil
	case "tool_reference":
		return "The tool " + b.ToolName + " can be called.", nil
	case "search_result":
		text, err := b.Content.text(at + ".content")
		return titled(text), err
	case "document":
		var source struct {
			Type    string `json:"type"`
			Data    string `json:"data"`
			Content blocks `json:"content"`
		}
		d := decoder{ignored: func(string) {}}
		if len(b.Source) > 0 {
			if err := d.into(b.Source, &source, at+".source"); err != nil {
				return "", err
			}
		}
		switch source.Type {
		case "text":
			return titled(source.Data), nil
		case "content":
			text, err := source.Content.text(at + ".source.content")
			return titled(text), err
		}
	}
	return "", notText(at, b.Type)
}

type anthropicTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
	Strict      bool            `json:"strict"`
}

type anthropicChoice struct {
	Type     string `json:"type"`
	Name     string `json:"name"`
	Parallel *bool  `json:"disable_parallel_tool_use"`
}

type anthropicThinking struct {
	Type   string `json:"type"`
	Budget *int   `json:"budget_tokens"`
}

// conversation returns the messages as templates get them.
func (q *messagesRequest) conversation(s *toolset) ([]chat.Message, error) {
	var out []chat.Message
	if len(q.System) > 0 {
		text, err := q.System.text("system")
		if err != nil {
			return nil, err
		}
		out = append(out, chat.Message{Role: "system", Content: text})
	}
	for i, m := range q.Messages {
		at := fmt.Sprintf("messages[%d]", i)
		if m.Role != "user" && m.Role != "assistant" && m.Role != "system" {
			return nil, badParam(at+".role", "%s.role: want user, assistant or system, have %q", at, m.Role)
		}
		said := turn{msg: chat.Message{Role: m.Role}}
		for j := range m.Content {
			if err := said.add(&m.Content[j], fmt.Sprintf("%s.content[%d]", at, j), s); err != nil {
				return nil, err
			}
		}
		out = append(out, said.results...)
		if said.told || len(m.Content) == 0 {
			out = append(out, said.msg)
		}
	}
	return out, nil
}

// turn is a message while its blocks are read.
type turn struct {
	msg     chat.Message
	told    bool           // msg holds something
	results []chat.Message // of tools; they stand before msg
}

// add adds the block that stands at where.
func (t *turn) add(b *block, where string, s *toolset) error {
	assistant := t.msg.Role == "assistant"
	switch {
	case b.Type == "thinking" && assistant:
		t.msg.Reasoning += b.Thinking
		t.told = true
	case b.Type == "redacted_thinking" && assistant:
	case b.Type == "tool_use" && assistant:
		if b.Name == "" || b.ID == "" {
			return badParam(where, "%s: a tool_use needs id and name", where)
		}
		arguments := string(b.Input)
		if arguments == "" {
			arguments = "{}"
		}
		t.msg.Calls = append(t.msg.Calls, chat.Call{ID: b.ID, Name: b.Name, Arguments: arguments})
		t.told = true
	case b.Type == "tool_result" && t.msg.Role == "user":
		text, err := b.Content.text(where + ".content")
		if err != nil {
			return err
		}
		if b.IsError {
			text = "Error: " + text
		}
		t.results = append(t.results, chat.Message{Role: "tool", ToolCallID: b.ToolUseID, Content: text})
	case served(b.Type) && assistant:
		s.leave(b.Type)
	case b.Type == "tool_use" || b.Type == "tool_result" || b.Type == "thinking":
		return unsupported(where+".type", "%s.type: %q is not supported in a message of role %s", where, b.Type, t.msg.Role)
	default:
		text, err := b.text(where)
		if err != nil {
			return err
		}
		if t.told && t.msg.Content != "" && !assistant {
			t.msg.Content += "\n"
		}
		t.msg.Content += text
		t.told = true
	}
	return nil
}

// served says whether a block tells what a tool of a service did. The text behind it has what came of it.
func served(kind string) bool {
	return kind == "server_tool_use" || kind == "mcp_tool_use" || strings.HasSuffix(kind, "_tool_result")
}

// toolset returns the tools of a request.
func (q *messagesRequest) toolset() (toolset, error) {
	var s toolset
	for i, tool := range q.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		switch {
		case tool.Type != "" && tool.Type != "custom":
			if !s.own(tool.Type, tool.Name) {
				s.leaveOut(tool.Type)
			}
		case tool.Name == "":
			return s, badParam(at+".name", "%s.name is missing", at)
		case tool.Schema != nil && tool.Schema[0] != '{':
			return s, wrongType(at+".input_schema", "an object", tool.Schema)
		default:
			s.function(tool.Name, tool.Description, tool.Schema)
			s.tools[len(s.tools)-1].strict = tool.Strict
		}
	}
	if len(q.Servers) > 0 {
		s.leave("mcp")
	}
	if q.Holder != nil {
		s.leave("container")
	}
	for _, e := range q.Context.Edits {
		if !strings.HasPrefix(e.Type, "clear_thinking") || string(e.Keep) != `"all"` {
			s.leave("context_management")
		}
	}
	return s, nil
}

func (q *messagesRequest) talk() (*talkRequest, error) {
	if len(q.Messages) == 0 {
		return nil, badParam("messages", "messages: there are none")
	}
	format, err := q.Output.Format.format("output_config.format")
	if format == nil && err == nil {
		format, err = q.Format.format("output_format")
	}
	if err != nil {
		return nil, err
	}
	tools, err := q.toolset()
	if err != nil {
		return nil, err
	}
	all, err := q.conversation(&tools)
	if err != nil {
		return nil, err
	}
	q.Stop = slices.Concat(q.Stop, q.StopSequences)
	t := &talkRequest{model: q.Model, messages: all, tools: tools, sampling: &q.sampling, max: q.MaxTokens, maxParam: "max_tokens", top: -1, kwargs: q.Kwargs, format: format}
	// An assistant's message at the end is the beginning of the answer.
	if n := len(all); n > 0 && all[n-1].Role == "assistant" {
		if t.resume = true; len(all[n-1].Calls) > 0 {
			at := fmt.Sprintf("messages[%d]", len(q.Messages)-1)
			return nil, badParam(at, "%s: the conversation ends with a tool_use; its tool_result must follow", at)
		}
	}
	t.setEffort(q.Output.Effort)
	switch q.ToolChoice.Type {
	case "", "auto", "none":
		t.choice.mode = q.ToolChoice.Type
	case "any":
		t.choice.mode = "required"
	case "tool":
		t.choice = toolChoice{mode: "named", name: q.ToolChoice.Name}
	default:
		return nil, badParam("tool_choice.type", "tool_choice.type: want auto, any, tool or none, have %q", q.ToolChoice.Type)
	}
	if off := q.ToolChoice.Parallel; off != nil {
		on := !*off
		t.parallel = &on
	}
	switch q.Thinking.Type {
	case "", "adaptive":
	case "enabled", "disabled":
		on := q.Thinking.Type == "enabled"
		t.thinking, t.reasoning = &on, q.Thinking.Budget
	default:
		return nil, badParam("thinking.type", "thinking.type: want enabled, adaptive or disabled, have %q", q.Thinking.Type)
	}
	return t, nil
}

// messageJSON is a reply, and what message_start tells.
type messageJSON struct {
	ID           string         `json:"id"`
	Type         string         `json:"type"`
	Role         string         `json:"role"`
	Model        string         `json:"model"`
	Content      []any          `json:"content"`
	StopReason   *string        `json:"stop_reason"`
	StopSequence *string        `json:"stop_sequence"`
	Usage        anthropicUsage `json:"usage"`
	Timings      *timings       `json:"timings,omitempty"`
}

type anthropicUsage struct {
	Input   int `json:"input_tokens"`
	Created int `json:"cache_creation_input_tokens"`
	Cached  int `json:"cache_read_input_tokens"`
	Output  int `json:"output_tokens"`
}

func anthropicUsageOf(u engine.Usage) anthropicUsage {
	return anthropicUsage{Input: u.Prompt - u.Cached, Cached: u.Cached, Output: u.Completion}
}

// Blocks of a reply.
type (
	textBlock struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	thinkingBlock struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}
	toolBlock struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
)

// stopReason returns Anthropic's reason for the end of an answer, and the text that ended it.
func stopReason(done engine.Done, calls int) (reason, sequence *string) {
	switch {
	case *finish(done, 0, false) == "length":
		reason = orNull("max_tokens")
	case calls > 0:
		reason = orNull("tool_use")
	case done.Stop != "":
		return orNull("stop_sequence"), &done.Stop
	default:
		reason = orNull("end_turn")
	}
	return reason, nil
}

func handleMessages(c *call) error {
	var q messagesRequest
	if err := c.body(&q); err != nil {
		return err
	}
	switch {
	case q.MaxTokens == nil:
		return badParam("max_tokens", "max_tokens is missing")
	case *q.MaxTokens < 1:
		return badParam("max_tokens", "max_tokens: want 1 or more, have %d", *q.MaxTokens)
	}
	one := 1
	q.N = &one
	tq, err := q.talk()
	if err != nil {
		return err
	}
	t, err := c.converse(tq)
	if err != nil {
		return err
	}
	reply := messageJSON{ID: "msg_" + random(12), Type: "message", Role: "assistant", Model: c.asked, Content: []any{}}
	if q.Stream {
		return c.streamMessages(t, reply)
	}
	answers, err := t.whole()
	if err != nil {
		return err
	}
	a := &answers[0]
	if a.reasoning.Len() > 0 {
		reply.Content = append(reply.Content, thinkingBlock{"thinking", a.reasoning.String(), ""})
	}
	if a.content.Len() > 0 {
		reply.Content = append(reply.Content, textBlock{"text", a.content.String()})
	}
	for _, call := range a.calls {
		input := json.RawMessage(call.Arguments)
		if !json.Valid(input) { // cut off, or the model's mistake
			input = json.RawMessage("{}")
		}
		reply.Content = append(reply.Content, toolBlock{"tool_use", call.ID, call.Name, input})
	}
	reply.StopReason, reply.StopSequence = stopReason(a.done, a.whole)
	reply.Usage, reply.Timings = anthropicUsageOf(a.done.Usage), timingsOf(a.done.Usage)
	return c.reply(reply)
}

// A blockStream writes the events of a message.
type blockStream struct {
	out   *stream
	err   error
	kind  string // of the block that is open
	index int    // of it, or of the next
	call  int    // index of the call that is open
}

func (b *blockStream) event(kind string, v any) {
	if b.err == nil {
		b.err = b.out.data(kind, v)
	}
}

type indexed struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
	Block any    `json:"content_block,omitempty"`
	Delta any    `json:"delta,omitempty"`
}

// open begins a block of that kind, unless it is open.
func (b *blockStream) open(kind string, block any) {
	if b.kind == kind {
		return
	}
	b.close()
	b.kind = kind
	b.event("content_block_start", indexed{Type: "content_block_start", Index: b.index, Block: block})
}

func (b *blockStream) close() {
	if b.kind == "" {
		return
	}
	b.kind = ""
	b.event("content_block_stop", indexed{Type: "content_block_stop", Index: b.index})
	b.index++
}

// delta tells more of the block that is open; pairs are its type and its text.
func (b *blockStream) delta(kind, field, text string) {
	b.event("content_block_delta", indexed{Type: "content_block_delta", Index: b.index, Delta: map[string]string{"type": kind, field: text}})
}

func (b *blockStream) take(d chat.Delta) {
	if d.Reasoning != "" {
		b.open("thinking", thinkingBlock{Type: "thinking"})
		b.delta("thinking_delta", "thinking", d.Reasoning)
	}
	if d.Content != "" {
		b.open("text", textBlock{Type: "text"})
		b.delta("text_delta", "text", d.Content)
	}
	if d.Call != nil {
		if b.kind == "tool_use" && b.call != d.Call.Index {
			b.close()
		}
		b.call = d.Call.Index
		b.open("tool_use", toolBlock{"tool_use", d.Call.ID, d.Call.Name, json.RawMessage("{}")})
		if d.Call.Arguments != "" {
			b.delta("input_json_delta", "partial_json", d.Call.Arguments)
		}
	}
}

func (c *call) streamMessages(t *conversation, reply messageJSON) error {
	b := &blockStream{out: newStream(c.w)}
	begun := false
	for u, err := range t.updates() {
		if err != nil {
			if e := errorOf(err); b.out.begun && e.Kind != clientGone {
				b.event("error", c.form.body(e, c.id))
			}
			return err
		}
		if u.idle {
			if begun {
				b.event("ping", map[string]string{"type": "ping"})
			} else if err := b.out.comment(); err != nil {
				return gone(err)
			}
			continue
		}
		if !begun {
			begun = true
			reply.Usage.Input = len(t.reqs[0].Prompt)
			b.event("message_start", struct {
				Type    string      `json:"type"`
				Message messageJSON `json:"message"`
			}{"message_start", reply})
			b.event("ping", map[string]string{"type": "ping"})
		}
		for _, d := range u.deltas {
			b.take(d)
		}
		if u.done != nil {
			b.close()
			var end struct {
				Type  string `json:"type"`
				Delta struct {
					Reason   *string `json:"stop_reason"`
					Sequence *string `json:"stop_sequence"`
				} `json:"delta"`
				Usage   anthropicUsage `json:"usage"`
				Timings *timings       `json:"timings"`
			}
			end.Type = "message_delta"
			end.Delta.Reason, end.Delta.Sequence = stopReason(*u.done, u.calls)
			end.Usage, end.Timings = anthropicUsageOf(u.done.Usage), timingsOf(u.done.Usage)
			b.event("message_delta", end)
			b.event("message_stop", map[string]string{"type": "message_stop"})
		}
		if b.err != nil {
			return gone(b.err)
		}
	}
	return nil
}

// handleCount counts the tokens of a conversation.
func handleCount(c *call) error {
	var q messagesRequest
	if err := c.body(&q); err != nil {
		return err
	}
	tq, err := q.talk()
	if err != nil {
		return err
	}
	if err := c.admit(); err != nil {
		return err
	}
	ids, err := c.prompt(tq)
	if err != nil {
		return err
	}
	return c.reply(struct {
		Tokens int `json:"input_tokens"`
	}{len(ids)})
}

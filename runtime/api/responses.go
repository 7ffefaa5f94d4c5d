package api

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/engine"
)

// responsesRequest is the body of POST /v1/responses. Nothing is kept between requests.
type responsesRequest struct {
	sampling
	Model        string                     `json:"model"`
	Input        input                      `json:"input"`
	Instructions string                     `json:"instructions"`
	Tools        []responseTool             `json:"tools"`
	ToolChoice   toolChoice                 `json:"tool_choice"`
	Parallel     *bool                      `json:"parallel_tool_calls"`
	Stream       bool                       `json:"stream"`
	MaxOutput    *int                       `json:"max_output_tokens"`
	TopLogprobs  *int                       `json:"top_logprobs"`
	Include      []string                   `json:"include"`
	Previous     string                     `json:"previous_response_id"`
	Conversation json.RawMessage            `json:"conversation"`
	Background   bool                       `json:"background"`
	Metadata     map[string]string          `json:"metadata"`
	Kwargs       map[string]json.RawMessage `json:"chat_template_kwargs"`
	Budget       *int                       `json:"thinking_budget_tokens"`
	Text         struct {
		Format responseFormat `json:"format"`
	} `json:"text"`
	Reasoning struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	Store *bool `json:"store"` // read and not kept to: nothing is stored
}

type responseTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

// input is a text of the user, or items.
type input struct {
	items []inputItem
	given bool
}

type inputItem struct {
	Type      string   `json:"type"`
	Role      string   `json:"role"`
	Content   content  `json:"content"`
	CallID    string   `json:"call_id"`
	Name      string   `json:"name"`
	Arguments jsonText `json:"arguments"`
	Output    content  `json:"output"`
	Summary   content  `json:"summary"`
}

func (in *input) decode(d *decoder, raw []byte, path string) error {
	in.given = true
	if raw[0] == '"' {
		item := inputItem{Type: "message", Role: "user"}
		json.Unmarshal(raw, (*string)(&item.Content))
		in.items = []inputItem{item}
		return nil
	}
	if raw[0] != '[' {
		return wrongType(path, "a string or an array of items", raw)
	}
	return d.into(raw, &in.items, path)
}

// messages makes one message of what the model said in a row: reasoning, text and calls.
func (in *input) messages(instructions string) ([]chat.Message, error) {
	var out []chat.Message
	if instructions != "" {
		out = append(out, chat.Message{Role: "system", Content: instructions})
	}
	turn := func() *chat.Message {
		if n := len(out); n > 0 && out[n-1].Role == "assistant" {
			return &out[n-1]
		}
		out = append(out, chat.Message{Role: "assistant"})
		return &out[len(out)-1]
	}
	for i, item := range in.items {
		at := fmt.Sprintf("input[%d]", i)
		switch item.Type {
		case "", "message":
			switch item.Role {
			case "system", "developer", "user":
				out = append(out, chat.Message{Role: item.Role, Content: string(item.Content)})
			case "assistant":
				turn().Content += string(item.Content)
			default:
				return nil, badParam(at+".role", "%s.role: want system, developer, user or assistant, have %q", at, item.Role)
			}
		case "reasoning":
			text := string(item.Content)
			if text == "" {
				text = string(item.Summary)
			}
			// Reasoning begins a turn.
			if n := len(out); n > 0 && out[n-1].Role == "assistant" && (out[n-1].Content != "" || len(out[n-1].Calls) > 0) {
				out = append(out, chat.Message{Role: "assistant"})
			}
			turn().Reasoning += text
		case "function_call":
			if item.Name == "" || item.CallID == "" {
				return nil, badParam(at, "%s: a function_call needs name and call_id", at)
			}
			m := turn()
			m.Calls = append(m.Calls, chat.Call{ID: item.CallID, Name: item.Name, Arguments: string(item.Arguments)})
		case "function_call_output":
			if item.CallID == "" {
				return nil, badParam(at+".call_id", "%s.call_id is missing", at)
			}
			out = append(out, chat.Message{Role: "tool", ToolCallID: item.CallID, Content: string(item.Output)})
		default:
			return nil, unsupported(at+".type", "%s.type: %q is not supported", at, item.Type)
		}
	}
	return out, nil
}

func (q *responsesRequest) talk() (*talkRequest, error) {
	switch {
	case !q.Input.given:
		return nil, badParam("input", "input is missing")
	case q.Previous != "":
		return nil, unsupported("previous_response_id", "previous_response_id: nothing is kept between requests; send the whole conversation as input")
	case q.Conversation != nil:
		return nil, unsupported("conversation", "conversation: nothing is kept between requests; send the whole conversation as input")
	case q.Background:
		return nil, unsupported("background", "background: nothing is kept between requests")
	case q.TopLogprobs != nil && (*q.TopLogprobs < 0 || *q.TopLogprobs > maxTop):
		return nil, badParam("top_logprobs", "top_logprobs: want 0 to %d, have %d", maxTop, *q.TopLogprobs)
	}
	if err := q.Text.Format.check("text.format"); err != nil {
		return nil, err
	}
	all, err := q.Input.messages(q.Instructions)
	if err != nil {
		return nil, err
	}
	t := &talkRequest{
		model: q.Model, messages: all, choice: q.ToolChoice, parallel: q.Parallel, sampling: &q.sampling,
		max: q.MaxOutput, maxParam: "max_output_tokens", top: -1, reasoning: q.Budget, kwargs: q.Kwargs,
	}
	t.setEffort(q.Reasoning.Effort)
	if q.withLogprobs() {
		t.top = 0
		if q.TopLogprobs != nil {
			t.top = *q.TopLogprobs
		}
	}
	for i, tool := range q.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		if tool.Type != "function" {
			return nil, unsupported(at+".type", "%s.type: only function is supported, not %q", at, tool.Type)
		}
		if tool.Name == "" {
			return nil, badParam(at+".name", "%s.name is missing", at)
		}
		t.tools = append(t.tools, flatTool(tool.Name, tool.Description, tool.Parameters))
	}
	return t, nil
}

func (q *responsesRequest) withLogprobs() bool {
	for _, s := range q.Include {
		if s == "message.output_text.logprobs" {
			return true
		}
	}
	return q.TopLogprobs != nil
}

// responseJSON is a response, whole or on its way.
type responseJSON struct {
	ID          string            `json:"id"`
	Object      string            `json:"object"`
	CreatedAt   int64             `json:"created_at"`
	CompletedAt *int64            `json:"completed_at,omitempty"`
	Status      string            `json:"status"`
	Error       *responseError    `json:"error"`
	Incomplete  *incomplete       `json:"incomplete_details"`
	Instruct    *string           `json:"instructions"`
	MaxOutput   *int              `json:"max_output_tokens"`
	Model       string            `json:"model"`
	Output      []any             `json:"output"`
	Parallel    bool              `json:"parallel_tool_calls"`
	Previous    *string           `json:"previous_response_id"`
	Store       bool              `json:"store"`
	Temperature float64           `json:"temperature"`
	TopP        float64           `json:"top_p"`
	Text        any               `json:"text"`
	ToolChoice  any               `json:"tool_choice"`
	Tools       []any             `json:"tools"`
	Truncation  string            `json:"truncation"`
	Metadata    map[string]string `json:"metadata"`
	Usage       *responseUsage    `json:"usage,omitempty"`
	Timings     *timings          `json:"timings,omitempty"`
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type incomplete struct {
	Reason string `json:"reason"`
}

type responseUsage struct {
	Input        int `json:"input_tokens"`
	InputDetails struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	Output        int `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total int `json:"total_tokens"`
}

func responseUsageOf(u engine.Usage) *responseUsage {
	o := &responseUsage{Input: u.Prompt, Output: u.Completion, Total: u.Prompt + u.Completion}
	o.InputDetails.Cached = u.Cached
	o.InputDetails.Written = u.Prompt - u.Cached
	o.OutputDetails.Reasoning = u.Reasoning
	return o
}

// textPart is a part of the content of an item.
type textPart struct {
	Type        string         `json:"type"`
	Text        string         `json:"text"`
	Annotations []struct{}     `json:"annotations,omitzero"` // of output_text
	Logprobs    []tokenLogprob `json:"logprobs,omitzero"`
}

// The items of a response.
type (
	reasoningItem struct {
		Type    string     `json:"type"`
		ID      string     `json:"id"`
		Status  string     `json:"status"`
		Summary []struct{} `json:"summary"`
		Content []textPart `json:"content"`
	}
	messageItem struct {
		Type    string     `json:"type"`
		ID      string     `json:"id"`
		Status  string     `json:"status"`
		Role    string     `json:"role"`
		Content []textPart `json:"content"`
	}
	callItem struct {
		Type      string `json:"type"`
		ID        string `json:"id"`
		Status    string `json:"status"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
)

func (q *responsesRequest) reply(c *call, t *conversation) *responseJSON {
	r := &responseJSON{
		ID: "resp_" + random(16), Object: "response", CreatedAt: time.Now().Unix(), Status: "in_progress", Instruct: orNull(q.Instructions),
		MaxOutput: q.MaxOutput, Model: c.log.model, Output: []any{}, Parallel: q.Parallel == nil || *q.Parallel,
		Temperature: t.reqs[0].Sampling.Temp, TopP: t.reqs[0].Sampling.TopP, ToolChoice: "auto", Tools: []any{}, Truncation: "disabled",
		Metadata: q.Metadata, Text: map[string]any{"format": map[string]string{"type": "text"}},
	}
	if q.ToolChoice.mode != "" {
		r.ToolChoice = q.ToolChoice.mode
	}
	if r.Metadata == nil {
		r.Metadata = map[string]string{}
	}
	for _, tool := range q.Tools {
		r.Tools = append(r.Tools, struct {
			Type        string          `json:"type"`
			Name        string          `json:"name"`
			Description *string         `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
			Strict      *bool           `json:"strict"`
		}{"function", tool.Name, orNull(tool.Description), tool.Parameters, tool.Strict})
	}
	return r
}

// A builder makes a response's items from what the model says, and sends the events.
type builder struct {
	r        *responseJSON
	logprobs bool
	sequence int
	emit     func(event map[string]any) error // nil: nobody listens
	err      error

	reasoning *reasoningItem // what is open, at most one of these
	message   *messageItem
	call      *callItem
	callIndex int
}

// event sends an event; extra are pairs of a name and a value.
func (b *builder) event(kind string, extra ...any) {
	if b.emit == nil || b.err != nil {
		return
	}
	e := map[string]any{"type": kind, "sequence_number": b.sequence}
	b.sequence++
	for i := 0; i < len(extra); i += 2 {
		e[extra[i].(string)] = extra[i+1]
	}
	b.err = b.emit(e)
}

// at is the place of the item that is open.
func (b *builder) at() int { return len(b.r.Output) }

func (b *builder) take(d chat.Delta, tokens []engine.Token) {
	if d.Reasoning != "" {
		if b.reasoning == nil {
			b.close("completed")
			b.reasoning = &reasoningItem{Type: "reasoning", ID: "rs_" + random(12), Status: "in_progress", Summary: []struct{}{}, Content: []textPart{}}
			b.event("response.output_item.added", "output_index", b.at(), "item", *b.reasoning)
			b.reasoning.Content = []textPart{{Type: "reasoning_text"}}
			b.event("response.content_part.added", "item_id", b.reasoning.ID, "output_index", b.at(), "content_index", 0, "part", b.reasoning.Content[0])
		}
		b.reasoning.Content[0].Text += d.Reasoning
		b.event("response.reasoning_text.delta", "item_id", b.reasoning.ID, "output_index", b.at(), "content_index", 0, "delta", d.Reasoning)
	}
	if d.Content != "" {
		b.open()
		part := &b.message.Content[0]
		part.Text += d.Content
		lp := []tokenLogprob{}
		if b.logprobs {
			for _, t := range tokens {
				lp = append(lp, logprobOf(t))
			}
			part.Logprobs = append(part.Logprobs, lp...)
		}
		b.event("response.output_text.delta", "item_id", b.message.ID, "output_index", b.at(), "content_index", 0, "delta", d.Content, "logprobs", lp)
	}
	if d.Call != nil {
		if b.call == nil || b.callIndex != d.Call.Index {
			b.close("completed")
			b.callIndex = d.Call.Index
			b.call = &callItem{Type: "function_call", ID: "fc_" + random(12), Status: "in_progress", CallID: d.Call.ID, Name: d.Call.Name}
			b.event("response.output_item.added", "output_index", b.at(), "item", *b.call)
		}
		if d.Call.Arguments != "" {
			b.call.Arguments += d.Call.Arguments
			b.event("response.function_call_arguments.delta", "item_id", b.call.ID, "output_index", b.at(), "delta", d.Call.Arguments)
		}
	}
}

// open begins a message, if none is open.
func (b *builder) open() {
	if b.message != nil {
		return
	}
	b.close("completed")
	b.message = &messageItem{Type: "message", ID: "msg_" + random(12), Status: "in_progress", Role: "assistant", Content: []textPart{}}
	b.event("response.output_item.added", "output_index", b.at(), "item", *b.message)
	b.message.Content = []textPart{{Type: "output_text", Annotations: []struct{}{}, Logprobs: []tokenLogprob{}}}
	b.event("response.content_part.added", "item_id", b.message.ID, "output_index", b.at(), "content_index", 0, "part", b.message.Content[0])
}

// close ends the item that is open.
func (b *builder) close(status string) {
	var item any
	switch {
	case b.reasoning != nil:
		x := b.reasoning
		x.Status = status
		b.event("response.reasoning_text.done", "item_id", x.ID, "output_index", b.at(), "content_index", 0, "text", x.Content[0].Text)
		b.event("response.content_part.done", "item_id", x.ID, "output_index", b.at(), "content_index", 0, "part", x.Content[0])
		item, b.reasoning = *x, nil
	case b.message != nil:
		x := b.message
		x.Status = status
		b.event("response.output_text.done", "item_id", x.ID, "output_index", b.at(), "content_index", 0, "text", x.Content[0].Text, "logprobs", x.Content[0].Logprobs)
		b.event("response.content_part.done", "item_id", x.ID, "output_index", b.at(), "content_index", 0, "part", x.Content[0])
		item, b.message = *x, nil
	case b.call != nil:
		x := b.call
		x.Status = status
		b.event("response.function_call_arguments.done", "item_id", x.ID, "output_index", b.at(), "name", x.Name, "arguments", x.Arguments)
		item, b.call = *x, nil
	default:
		return
	}
	b.event("response.output_item.done", "output_index", b.at(), "item", item)
	b.r.Output = append(b.r.Output, item)
}

// finish completes the response.
func (b *builder) finish(done engine.Done) {
	status, event := "completed", "response.completed"
	if *finish(done, 0) == "length" {
		status, event = "incomplete", "response.incomplete"
		b.r.Incomplete = &incomplete{"max_output_tokens"}
	}
	if len(b.r.Output) == 0 && b.reasoning == nil && b.call == nil {
		b.open() // an empty answer is one, too
	}
	b.close(status)
	now := time.Now().Unix()
	if status == "completed" {
		b.r.CompletedAt = &now
	}
	b.r.Status = status
	b.r.Usage, b.r.Timings = responseUsageOf(done.Usage), timingsOf(done.Usage)
	b.event(event, "response", *b.r)
}

func handleResponses(c *call) error {
	var q responsesRequest
	if err := c.body(&q); err != nil {
		return err
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
	b := &builder{r: q.reply(c, t), logprobs: q.withLogprobs()}
	var out *stream
	if q.Stream {
		out = newStream(c.w, c.s.o.Stall)
		b.emit = func(e map[string]any) error { return out.data(e["type"].(string), e) }
	}
	begun := false
	for u, err := range t.updates() {
		if err != nil {
			return b.fail(c, out, begun, err)
		}
		if u.idle {
			if out != nil {
				b.err = out.comment()
			}
		} else {
			if !begun {
				begun = true
				b.event("response.created", "response", *b.r)
				b.event("response.in_progress", "response", *b.r)
			}
			for i, d := range u.deltas {
				tokens := u.tokens
				if i > 0 {
					tokens = nil
				}
				b.take(d, tokens)
			}
			if u.done != nil {
				b.finish(*u.done)
			}
		}
		if b.err != nil {
			return gone(b.err)
		}
	}
	if out != nil {
		return nil
	}
	return c.reply(b.r)
}

// fail tells of an error once events were sent.
func (b *builder) fail(c *call, out *stream, begun bool, err error) error {
	e := errorOf(err)
	if out == nil || !out.begun || e.Kind == clientGone {
		return err
	}
	message := e.public(c.id)
	if begun {
		b.close("incomplete")
		b.r.Status = "failed"
		b.r.Error = &responseError{"server_error", message}
		b.event("response.failed", "response", *b.r)
	} else {
		b.event("error", "code", e.Code, "message", message, "param", orNull(e.Param))
	}
	return err
}

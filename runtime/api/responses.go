package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/engine"
)

// responsesRequest is the body of POST /v1/responses.
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
	Store      *bool           `json:"store"` // nil: true
	Truncation string          `json:"truncation"`
	Prompt     json.RawMessage `json:"prompt"`
	MaxCalls   *int            `json:"max_tool_calls"` // of tools that a service runs: there are none
}

// key is what an answer or an item is kept under: others cannot refer to it.
func (c *call) key(id string) string { return c.user.name() + "/" + id }

// past are the items of the answer that the request refers to, and of all before it.
func (q *responsesRequest) past(c *call) ([]inputItem, error) {
	if q.Previous == "" {
		return nil, nil
	}
	k := c.s.store.get(c.key(q.Previous))
	if k == nil {
		return nil, &Error{Kind: invalid, Param: "previous_response_id", Code: "previous_response_not_found", Message: fmt.Sprintf(
			"previous_response_id: there is no response %q: the server keeps those of late, in memory; send the whole conversation as input", q.Previous)}
	}
	return k.items, nil
}

// talk returns the conversation to answer, and its items.
func (q *responsesRequest) talk(c *call) (*talkRequest, []inputItem, error) {
	switch {
	case !q.Input.given && q.Previous == "":
		return nil, nil, badParam("input", "input is missing")
	case q.Conversation != nil:
		return nil, nil, unsupported("conversation", "conversation: there are none on this server; send the whole conversation as input, or previous_response_id")
	case q.Background:
		return nil, nil, unsupported("background", "background: answers come with their request only")
	case q.Prompt != nil:
		return nil, nil, unsupported("prompt", "prompt: there are no stored prompts on this server; send input and instructions")
	case q.Truncation != "" && q.Truncation != "disabled" && q.Truncation != "auto":
		return nil, nil, badParam("truncation", "truncation: want disabled or auto, have %q", q.Truncation)
	case q.TopLogprobs != nil && (*q.TopLogprobs < 0 || *q.TopLogprobs > maxTop):
		return nil, nil, badParam("top_logprobs", "top_logprobs: want 0 to %d, have %d", maxTop, *q.TopLogprobs)
	}
	format, err := q.Text.Format.format("text.format")
	if err != nil {
		return nil, nil, err
	}
	t := &talkRequest{
		model: q.Model, choice: q.ToolChoice, parallel: q.Parallel, sampling: &q.sampling,
		max: q.MaxOutput, maxParam: "max_output_tokens", top: -1, reasoning: q.Budget, kwargs: q.Kwargs, format: format, trim: q.Truncation == "auto",
	}
	if err := addTools(&t.tools, q.Tools, "tools"); err != nil {
		return nil, nil, err
	}
	past, err := q.past(c)
	if err != nil {
		return nil, nil, err
	}
	r := &reading{tools: &t.tools, kept: func(id string) (inputItem, bool) {
		k := c.s.store.get(c.key(id))
		if k == nil || len(k.items) != 1 || k.reply != nil {
			return inputItem{}, false
		}
		return k.items[0], true
	}}
	if q.Instructions != "" {
		r.out = append(r.out, chat.Message{Role: "system", Content: q.Instructions})
	}
	if err := r.take(past, "previous_response_id"); err != nil {
		return nil, nil, err
	}
	if err := r.take(q.Input.items, "input"); err != nil {
		return nil, nil, err
	}
	t.messages = r.out
	if len(t.messages) > maxMessages { // of which a reference may bring more than the request has
		return nil, nil, badParam("input", "input: %d messages, at most %d", len(t.messages), maxMessages)
	}
	t.setEffort(q.Reasoning.Effort)
	if q.withLogprobs() {
		t.top = 0
		if q.TopLogprobs != nil {
			t.top = *q.TopLogprobs
		}
	}
	return t, slices.Concat(past, q.Input.items), nil
}

func (q *responsesRequest) includes(what string) bool { return slices.Contains(q.Include, what) }

func (q *responsesRequest) withLogprobs() bool {
	return q.includes("message.output_text.logprobs") || q.TopLogprobs != nil
}

// keeps says whether the answer can be referred to later.
func (q *responsesRequest) keeps() bool { return q.Store == nil || *q.Store }

// keep keeps an answer behind the items that it answers.
func (q *responsesRequest) keep(c *call, r *responseJSON, items []inputItem) {
	k := kept{key: c.key(r.ID)}
	var err error
	if k.reply, err = json.Marshal(r); err != nil {
		return
	}
	for _, item := range r.Output {
		raw, err := json.Marshal(item)
		if err != nil {
			return
		}
		var one inputItem
		if decode(raw, &one, nil) != nil || itemKinds[one.Type].take == nil {
			continue
		}
		items = append(items, one)
		k.own = append(k.own, c.key(one.ID))
		c.s.store.put(kept{key: c.key(one.ID), items: []inputItem{one}})
	}
	k.items = items
	c.s.store.put(k)
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
		Type      string     `json:"type"`
		ID        string     `json:"id"`
		Status    string     `json:"status"`
		Summary   []struct{} `json:"summary"`
		Content   []textPart `json:"content"`
		Encrypted string     `json:"encrypted_content,omitempty"`
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
		Namespace string `json:"namespace,omitempty"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	customItem struct {
		Type      string `json:"type"`
		ID        string `json:"id"`
		Status    string `json:"status"`
		CallID    string `json:"call_id"`
		Namespace string `json:"namespace,omitempty"`
		Name      string `json:"name"`
		Input     string `json:"input"`
		texting
	}
)

func (q *responsesRequest) reply(c *call, t *conversation) *responseJSON {
	r := &responseJSON{
		ID: "resp_" + random(16), Object: "response", CreatedAt: time.Now().Unix(), Status: "in_progress", Instruct: orNull(q.Instructions),
		MaxOutput: q.MaxOutput, Model: c.asked, Output: []any{}, Parallel: q.Parallel == nil || *q.Parallel,
		Temperature: t.reqs[0].Sampling.Temp, TopP: t.reqs[0].Sampling.TopP, ToolChoice: "auto", Tools: []any{}, Truncation: cmp.Or(q.Truncation, "disabled"),
		Metadata: q.Metadata, Previous: orNull(q.Previous), Store: q.keeps(), Text: map[string]any{"format": map[string]string{"type": "text"}},
	}
	if q.ToolChoice.mode != "" {
		r.ToolChoice = q.ToolChoice.mode
	}
	if r.Metadata == nil {
		r.Metadata = map[string]string{}
	}
	for _, tool := range q.Tools {
		switch tool.Type {
		case "function":
			r.Tools = append(r.Tools, struct {
				Type        string          `json:"type"`
				Name        string          `json:"name"`
				Description *string         `json:"description"`
				Parameters  json.RawMessage `json:"parameters"`
				Strict      *bool           `json:"strict"`
			}{"function", tool.Name, orNull(tool.Description), tool.Parameters, tool.Strict})
		case "custom", "namespace":
			r.Tools = append(r.Tools, tool.raw)
		}
	}
	return r
}

// A builder makes a response's items from what the model says, and sends the events.
type builder struct {
	r        *responseJSON
	tools    *toolset
	logprobs bool
	seal     bool // reasoning comes in encrypted_content, too
	sequence int
	emit     func(event map[string]any) error // nil: nobody listens
	err      error

	reasoning *reasoningItem // what is open, at most one of these
	message   *messageItem
	call      *callItem
	custom    *customItem
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
		b.takeCall(d.Call)
	}
}

func (b *builder) takeCall(c *chat.CallDelta) {
	if b.call == nil && b.custom == nil || b.callIndex != c.Index {
		b.close("completed")
		b.callIndex = c.Index
		tool, _ := b.tools.find(c.Name)
		if tool.custom {
			b.custom = &customItem{Type: "custom_tool_call", ID: "ctc_" + random(12), Status: "in_progress", CallID: c.ID, Namespace: tool.space, Name: tool.own}
			b.event("response.output_item.added", "output_index", b.at(), "item", *b.custom)
		} else {
			b.call = &callItem{Type: "function_call", ID: "fc_" + random(12), Status: "in_progress", CallID: c.ID, Namespace: tool.space, Name: tool.own}
			b.event("response.output_item.added", "output_index", b.at(), "item", *b.call)
		}
	}
	if b.custom != nil {
		b.customText(b.custom.add(c.Arguments))
	} else if c.Arguments != "" {
		b.call.Arguments += c.Arguments
		b.event("response.function_call_arguments.delta", "item_id", b.call.ID, "output_index", b.at(), "delta", c.Arguments)
	}
}

func (b *builder) customText(text string) {
	if text != "" {
		b.custom.Input += text
		b.event("response.custom_tool_call_input.delta", "item_id", b.custom.ID, "output_index", b.at(), "delta", text)
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
		if b.seal {
			x.Encrypted = seal(x.Content[0].Text)
		}
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
	case b.custom != nil:
		x := b.custom
		b.customText(x.close())
		x.Status = status
		b.event("response.custom_tool_call_input.done", "item_id", x.ID, "output_index", b.at(), "input", x.Input)
		item, b.custom = *x, nil
	default:
		return
	}
	b.event("response.output_item.done", "output_index", b.at(), "item", item)
	b.r.Output = append(b.r.Output, item)
}

// finish completes the response.
func (b *builder) finish(done engine.Done) {
	status, event := "completed", "response.completed"
	if *finish(done, 0, false) == "length" {
		status, event = "incomplete", "response.incomplete"
		b.r.Incomplete = &incomplete{"max_output_tokens"}
	}
	if len(b.r.Output) == 0 && b.reasoning == nil && b.call == nil && b.custom == nil {
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
	tq, items, err := q.talk(c)
	if err != nil {
		return err
	}
	t, err := c.converse(tq)
	if err != nil {
		return err
	}
	b := &builder{r: q.reply(c, t), tools: &t.tools, logprobs: q.withLogprobs(), seal: q.includes("reasoning.encrypted_content")}
	var out *stream
	if q.Stream {
		out = newStream(c.w)
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
				if q.keeps() {
					q.keep(c, b.r, items)
				}
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

// handleInputTokens counts the tokens of an input.
func handleInputTokens(c *call) error {
	var q responsesRequest
	if err := c.body(&q); err != nil {
		return err
	}
	tq, _, err := q.talk(c)
	if err != nil {
		return err
	}
	ids, err := c.prompt(tq)
	if err != nil {
		return err
	}
	return c.reply(struct {
		Object string `json:"object"`
		Tokens int    `json:"input_tokens"`
	}{"response.input_tokens", len(ids)})
}

package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/engine"
)

// chatRequest is the body of POST /v1/chat/completions.
type chatRequest struct {
	sampling
	Model           string                     `json:"model"`
	Messages        []chatMessage              `json:"messages"`
	Tools           []chatTool                 `json:"tools"`
	ToolChoice      toolChoice                 `json:"tool_choice"`
	Functions       []chatFunction             `json:"functions"` // what tools were once
	FunctionCall    functionCall               `json:"function_call"`
	Parallel        *bool                      `json:"parallel_tool_calls"`
	Stream          bool                       `json:"stream"`
	StreamOptions   streamOptions              `json:"stream_options"`
	MaxTokens       *int                       `json:"max_tokens"`
	MaxCompletion   *int                       `json:"max_completion_tokens"`
	Predict         *int                       `json:"n_predict"` // llama-server's name
	Logprobs        bool                       `json:"logprobs"`
	TopLogprobs     *int                       `json:"top_logprobs"`
	ResponseFormat  responseFormat             `json:"response_format"`
	Effort          string                     `json:"reasoning_effort"`
	ReasoningFormat string                     `json:"reasoning_format"`
	ThinkingBudget  *int                       `json:"thinking_budget_tokens"`
	Kwargs          map[string]json.RawMessage `json:"chat_template_kwargs"`
	Generation      *bool                      `json:"add_generation_prompt"` // of /apply-template
	Continue        bool                       `json:"continue_final_message"`
	Modalities      []string                   `json:"modalities"`
	Audio           json.RawMessage            `json:"audio"`
	WebSearch       json.RawMessage            `json:"web_search_options"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatMessage struct {
	Role             string     `json:"role"`
	Content          *content   `json:"content"`
	Name             string     `json:"name"`
	ToolCallID       string     `json:"tool_call_id"`
	ToolCalls        []chatCall `json:"tool_calls"`
	ReasoningContent string     `json:"reasoning_content"`
	Reasoning        string     `json:"reasoning"`
	Refusal          string     `json:"refusal"`
	FunctionCall     *called    `json:"function_call"`
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function called `json:"function"`
	Custom   struct {
		Name  string `json:"name"`
		Input string `json:"input"`
	} `json:"custom"`
}

// called is a call of a function.
type called struct {
	Name      string   `json:"name"`
	Arguments jsonText `json:"arguments"`
}

// chatTool is a function, or a tool that takes a text.
type chatTool struct {
	Type     string        `json:"type"`
	Function *chatFunction `json:"function"`
	Custom   *struct {
		Name        string     `json:"name"`
		Description string     `json:"description"`
		Format      chatFormat `json:"format"`
	} `json:"custom"`
	raw json.RawMessage
}

type chatFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

type chatFormat struct {
	Type    string       `json:"type"`
	Grammar customFormat `json:"grammar"`
}

func (t *chatTool) decode(d *decoder, raw []byte, path string) error {
	type plain chatTool
	t.raw = bytes.Clone(raw)
	return (&decoder{ignored: func(string) {}}).into(raw, (*plain)(t), path)
}

// toolset returns the tools and functions of a request.
func (q *chatRequest) toolset() (toolset, error) {
	var s toolset
	for i, t := range q.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		switch {
		case t.Type == "custom" && t.Custom != nil && t.Custom.Name != "":
			s.custom(t.Custom.Name, t.Custom.Description, t.Custom.Format.Grammar)
		case t.Type == "custom":
			return s, badParam(at+".custom.name", "%s.custom.name is missing", at)
		case t.Type != "function":
			if _, ok := service(t.Type); !ok {
				return s, unsupported(at+".type", "%s.type: want function or custom, have %q", at, t.Type)
			}
			s.leaveOut(t.Type)
		case t.Function == nil || t.Function.Name == "":
			return s, badParam(at+".function.name", "%s.function.name is missing", at)
		case t.Function.Parameters != nil && t.Function.Parameters[0] != '{':
			return s, wrongType(at+".function.parameters", "an object", t.Function.Parameters)
		default:
			s.tools = append(s.tools, tool{name: t.Function.Name, own: t.Function.Name, raw: t.raw, schema: t.Function.Parameters, strict: t.Function.Strict})
		}
	}
	for i, f := range q.Functions {
		at := fmt.Sprintf("functions[%d]", i)
		if f.Name == "" {
			return s, badParam(at+".name", "%s.name is missing", at)
		}
		if f.Parameters != nil && f.Parameters[0] != '{' {
			return s, wrongType(at+".parameters", "an object", f.Parameters)
		}
		s.function(f.Name, f.Description, f.Parameters)
	}
	if q.WebSearch != nil {
		s.leaveOut("web_search")
	}
	return s, nil
}

// legacy says that calls are answered as function_call.
func (q *chatRequest) legacy() bool { return len(q.Functions) > 0 }

// jsonText is JSON in a string, as the API has it, or as it is.
type jsonText string

func (t *jsonText) decode(_ *decoder, raw []byte, path string) error {
	switch raw[0] {
	case '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return wrongType(path, "a string", raw)
		}
		*t = jsonText(s)
	case '{':
		*t = jsonText(raw)
	default:
		return wrongType(path, "a string", raw)
	}
	return nil
}

// messages returns the messages as templates get them.
func messages(in []chatMessage) ([]chat.Message, error) {
	out := make([]chat.Message, len(in))
	for i, m := range in {
		at := fmt.Sprintf("messages[%d]", i)
		switch m.Role {
		case "system", "developer", "user", "assistant", "tool":
		case "function":
			m.Role, m.ToolCallID = "tool", legacyID(m.Name)
		default:
			return nil, badParam(at+".role", "%s.role: want system, developer, user, assistant or tool, have %q", at, m.Role)
		}
		if m.Role == "user" && m.Content == nil {
			return nil, badParam(at+".content", "%s.content is missing", at)
		}
		out[i] = chat.Message{Role: m.Role, Name: m.Name, ToolCallID: m.ToolCallID,
			Reasoning: m.ReasoningContent + m.Reasoning}
		if m.Content != nil {
			out[i].Content = string(*m.Content)
		}
		if m.ReasoningContent != "" {
			out[i].Reasoning = m.ReasoningContent
		}
		if f := m.FunctionCall; f != nil {
			if f.Name == "" {
				return nil, badParam(at+".function_call.name", "%s.function_call.name is missing", at)
			}
			out[i].Calls = append(out[i].Calls, chat.Call{ID: legacyID(f.Name), Name: f.Name, Arguments: string(f.Arguments)})
		}
		for j, c := range m.ToolCalls {
			if c.Custom.Name != "" {
				c.Function = called{c.Custom.Name, jsonText(textCall(c.Custom.Input))}
			}
			if c.Function.Name == "" {
				return nil, badParam(fmt.Sprintf("%s.tool_calls[%d].function.name", at, j), "%s.tool_calls[%d].function.name is missing", at, j)
			}
			out[i].Calls = append(out[i].Calls, chat.Call{ID: c.ID, Name: c.Function.Name, Arguments: string(c.Function.Arguments)})
		}
	}
	return out, nil
}

// legacyID is the id of the call of a function before calls had ids.
func legacyID(name string) string { return "call_" + name }

// resume says whether the last message is the beginning of the answer, as vLLM has it.
func (q *chatRequest) resume() (bool, error) {
	n := len(q.Messages)
	switch {
	case !q.Continue:
		return false, nil
	case q.Generation != nil && *q.Generation:
		return false, badParam("continue_final_message", "continue_final_message: not with add_generation_prompt, which begins a new answer")
	case n == 0 || q.Messages[n-1].Role != "assistant":
		return false, badParam("continue_final_message", "continue_final_message: the last message is none of the assistant")
	}
	return true, nil
}

func (q *chatRequest) talk() (*talkRequest, error) {
	format, err := q.ResponseFormat.format("response_format")
	if err != nil {
		return nil, err
	}
	if q.Audio != nil || slices.ContainsFunc(q.Modalities, func(m string) bool { return m != "text" }) {
		return nil, unsupported("modalities", "modalities: this model answers with text only")
	}
	all, err := messages(q.Messages)
	if err != nil {
		return nil, err
	}
	tools, err := q.toolset()
	if err != nil {
		return nil, err
	}
	resume, err := q.resume()
	if err != nil {
		return nil, err
	}
	choice, parallel := q.ToolChoice, q.Parallel
	if q.legacy() {
		parallel = new(bool)
		if choice.mode == "" {
			choice = q.FunctionCall.toolChoice
		}
	}
	switch q.ReasoningFormat {
	case "", "auto", "deepseek", "none":
	default:
		return nil, badParam("reasoning_format", "reasoning_format: want auto, deepseek or none, have %q", q.ReasoningFormat)
	}
	t := &talkRequest{
		model: q.Model, messages: all, resume: resume, tools: tools, choice: choice, parallel: parallel, sampling: &q.sampling,
		max: q.MaxTokens, maxParam: "max_tokens", top: -1, reasoning: q.ThinkingBudget, inline: q.ReasoningFormat == "none", kwargs: q.Kwargs, format: format,
	}
	t.setEffort(q.Effort)
	switch {
	case q.MaxCompletion != nil:
		t.max, t.maxParam = q.MaxCompletion, "max_completion_tokens"
	case t.max == nil:
		t.max, t.maxParam = q.Predict, "n_predict"
	}
	if q.TopLogprobs != nil {
		if *q.TopLogprobs < 0 || *q.TopLogprobs > maxTop {
			return nil, badParam("top_logprobs", "top_logprobs: want 0 to %d, have %d", maxTop, *q.TopLogprobs)
		}
		if !q.Logprobs {
			return nil, badParam("top_logprobs", "top_logprobs needs logprobs")
		}
	}
	if q.Logprobs {
		t.top = 0
		if q.TopLogprobs != nil {
			t.top = *q.TopLogprobs
		}
	}
	return t, nil
}

// setEffort takes how much to reason: none turns it off.
func (t *talkRequest) setEffort(effort string) {
	if effort == "none" {
		off := false
		t.thinking = &off
		return
	}
	t.effort = effort
}

// chatReply is a reply, and each event of a streamed one.
type chatReply struct {
	ID          string       `json:"id"`
	Object      string       `json:"object"`
	Created     int64        `json:"created"`
	Model       string       `json:"model"`
	Fingerprint string       `json:"system_fingerprint"`
	Choices     []chatChoice `json:"choices"`
	Usage       *usage       `json:"usage,omitempty"`
	Timings     *timings     `json:"timings,omitempty"`
	Drained     bool         `json:"drained,omitempty"`
}

type chatChoice struct {
	Index    int         `json:"index"`
	Message  *chatAnswer `json:"message,omitempty"`
	Delta    *chatDelta  `json:"delta,omitempty"`
	Logprobs *logprobs   `json:"logprobs"`
	Finish   *string     `json:"finish_reason"`
	Tokens   []int32     `json:"token_ids,omitempty"`
}

type chatAnswer struct {
	Role         string         `json:"role"`
	Content      *string        `json:"content"`
	Reasoning    string         `json:"reasoning_content,omitempty"`
	Refusal      *string        `json:"refusal"`
	Calls        []chatCallJSON `json:"tool_calls,omitempty"`
	FunctionCall *functionJSON  `json:"function_call,omitempty"`
}

type chatDelta struct {
	Role         string         `json:"role,omitempty"`
	Content      *string        `json:"content,omitempty"`
	Reasoning    string         `json:"reasoning_content,omitempty"`
	Calls        []chatCallJSON `json:"tool_calls,omitempty"`
	FunctionCall *functionJSON  `json:"function_call,omitempty"`
}

type chatCallJSON struct {
	Index    *int          `json:"index,omitempty"` // in streams only
	ID       string        `json:"id,omitempty"`
	Type     string        `json:"type,omitempty"`
	Function *functionJSON `json:"function,omitempty"`
	Custom   *customJSON   `json:"custom,omitempty"`
}

type functionJSON struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type customJSON struct {
	Name  string `json:"name,omitempty"`
	Input string `json:"input"`
}

// callJSON is a whole call.
func callJSON(s *toolset, c chat.Call) chatCallJSON {
	if tool, _ := s.find(c.Name); tool.custom {
		return chatCallJSON{ID: c.ID, Type: "custom", Custom: &customJSON{c.Name, textOf(c.Arguments)}}
	}
	return chatCallJSON{ID: c.ID, Type: "function", Function: &functionJSON{c.Name, c.Arguments}}
}

// finish returns OpenAI's reason for the end of an answer with so many whole calls.
func finish(done engine.Done, calls int, legacy bool) *string {
	reason := "stop"
	switch {
	case done.Reason == "length" || done.Reason == "context":
		reason = "length"
	case calls > 0 && legacy:
		reason = "function_call"
	case calls > 0:
		reason = "tool_calls"
	}
	return &reason
}

func handleChat(c *call) error {
	var q chatRequest
	if err := c.body(&q); err != nil {
		return err
	}
	tq, err := q.talk()
	if err != nil {
		return err
	}
	t, err := c.converse(tq)
	if err != nil {
		return err
	}
	reply := chatReply{ID: "chatcmpl-" + random(12), Object: "chat.completion", Created: time.Now().Unix(), Model: c.asked, Fingerprint: t.model.fingerprint()}
	if q.Stream {
		return c.streamChat(&q, t, reply)
	}
	answers, err := t.whole()
	if err != nil {
		return err
	}
	var total engine.Usage
	for i := range answers {
		a := &answers[i]
		m := &chatAnswer{Role: "assistant", Reasoning: a.reasoning.String()}
		for _, call := range a.calls {
			if q.legacy() {
				m.FunctionCall = &functionJSON{call.Name, call.Arguments}
				continue
			}
			m.Calls = append(m.Calls, callJSON(&t.tools, call))
		}
		if text := a.content.String(); text != "" || len(a.calls) == 0 {
			m.Content = &text
		}
		ch := chatChoice{Index: i, Message: m, Finish: finish(a.done, a.whole, q.legacy())}
		if q.Logprobs {
			ch.Logprobs = logprobsOf(a.tokens)
		}
		if q.ReturnTokens {
			ch.Tokens = ids(a.tokens)
		}
		reply.Choices = append(reply.Choices, ch)
		total = sumChoice(total, a.done.Usage, i == 0)
		reply.Drained = reply.Drained || a.done.Drained
	}
	reply.Usage, reply.Timings = usageOf(total), timingsOf(total)
	return c.reply(reply)
}

func (c *call) streamChat(q *chatRequest, t *conversation, reply chatReply) error {
	out := newStream(c.w)
	reply.Object = "chat.completion.chunk"
	send := func(ch chatChoice) error {
		reply.Choices = []chatChoice{ch}
		return out.data("", reply)
	}
	begun := make([]bool, len(t.reqs))
	texts := make([]map[int]*texting, len(t.reqs)) // of the calls of custom tools
	var total engine.Usage
	for u, err := range t.updates() {
		if err != nil {
			return c.breakOff(out, err)
		}
		if u.idle {
			if err := out.comment(); err != nil {
				return gone(err)
			}
			continue
		}
		if !begun[u.choice] {
			begun[u.choice] = true
			texts[u.choice] = map[int]*texting{}
			empty := ""
			if err := send(chatChoice{Index: u.choice, Delta: &chatDelta{Role: "assistant", Content: &empty}}); err != nil {
				return gone(err)
			}
		}
		// The log probabilities of an update go with the first of its deltas, or with one of their own.
		deltas := make([]*chatDelta, 0, len(u.deltas)+1)
		for _, d := range u.deltas {
			deltas = append(deltas, q.delta(&t.tools, d, texts[u.choice]))
		}
		if len(deltas) == 0 && len(u.tokens) > 0 && (q.Logprobs || q.ReturnTokens) {
			deltas = append(deltas, &chatDelta{})
		}
		for i, d := range deltas {
			ch := chatChoice{Index: u.choice, Delta: d}
			if i == 0 && q.Logprobs && len(u.tokens) > 0 {
				ch.Logprobs = logprobsOf(u.tokens)
			}
			if i == 0 && q.ReturnTokens {
				ch.Tokens = ids(u.tokens)
			}
			if err := send(ch); err != nil {
				return gone(err)
			}
		}
		if u.done != nil {
			total = sumChoice(total, u.done.Usage, u.choice == 0)
			reply.Timings = timingsOf(u.done.Usage)
			reply.Drained = u.done.Drained
			err := send(chatChoice{Index: u.choice, Delta: rest(texts[u.choice]), Finish: finish(*u.done, u.calls, q.legacy())})
			reply.Timings = nil
			if err != nil {
				return gone(err)
			}
		}
	}
	if q.StreamOptions.IncludeUsage {
		reply.Choices = []chatChoice{}
		reply.Usage, reply.Timings = usageOf(total), timingsOf(total)
		if err := out.data("", reply); err != nil {
			return gone(err)
		}
	}
	return gone(out.end())
}

// delta is what a stream tells of a delta. texts are the calls of custom tools that have begun.
func (q *chatRequest) delta(s *toolset, d chat.Delta, texts map[int]*texting) *chatDelta {
	x := &chatDelta{Reasoning: d.Reasoning}
	if d.Content != "" {
		x.Content = &d.Content
	}
	if d.Call == nil {
		return x
	}
	f := functionJSON{d.Call.Name, d.Call.Arguments}
	if q.legacy() {
		x.FunctionCall = &f
		return x
	}
	j := chatCallJSON{Index: &d.Call.Index, ID: d.Call.ID}
	if tool, _ := s.find(d.Call.Name); tool.custom {
		texts[d.Call.Index] = &texting{}
	}
	kind := "function"
	if t := texts[d.Call.Index]; t != nil {
		kind, j.Custom = "custom", &customJSON{d.Call.Name, t.add(d.Call.Arguments)}
	} else {
		j.Function = &f
	}
	if j.ID != "" {
		j.Type = kind
	}
	x.Calls = []chatCallJSON{j}
	return x
}

// rest is what is only certain at the end of the calls of custom tools.
func rest(texts map[int]*texting) *chatDelta {
	x := &chatDelta{}
	for _, i := range slices.Sorted(maps.Keys(texts)) {
		if text := texts[i].close(); text != "" {
			x.Calls = append(x.Calls, chatCallJSON{Index: &i, Custom: &customJSON{Input: text}})
		}
	}
	return x
}

// breakOff reports an error: as the reply while there is none yet, else as the last event.
func (c *call) breakOff(out *stream, err error) error {
	e := errorOf(err)
	if out.begun && e.Kind != clientGone {
		out.data("", c.form.body(e, c.id))
		out.end()
	}
	return err
}

// gone says of a write that failed that the client is gone.
func gone(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: clientGone, Message: "the client went away: " + err.Error()}
}

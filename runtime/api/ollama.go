package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/grammar"
)

// ollamaVersion is the version of Ollama's API that is spoken: clients refuse old ones.
const ollamaVersion = "0.17.4"

// ollamaRequest is the body of Ollama's POST /api/chat and /api/generate.
type ollamaRequest struct {
	Model     string          `json:"model"`
	Messages  []ollamaMessage `json:"messages"` // of chat
	Tools     []chatTool      `json:"tools"`
	Prompt    string          `json:"prompt"` // of generate, as what follows
	Suffix    string          `json:"suffix"`
	System    string          `json:"system"`
	Template  string          `json:"template"`
	Raw       bool            `json:"raw"` // the prompt goes to the model as it is
	Context   []int32         `json:"context"`
	Images    []string        `json:"images"`
	Stream    *bool           `json:"stream"` // nil: true
	Format    json.RawMessage `json:"format"`
	Options   json.RawMessage `json:"options"`
	Think     json.RawMessage `json:"think"`
	KeepAlive keepAlive       `json:"keep_alive"`
	Logprobs  bool            `json:"logprobs"`
	Top       int             `json:"top_logprobs"`
}

type ollamaMessage struct {
	Role       string       `json:"role"`
	Content    string       `json:"content"`
	Thinking   string       `json:"thinking"`
	Images     []string     `json:"images"`
	Calls      []ollamaCall `json:"tool_calls"`
	ToolName   string       `json:"tool_name"`
	ToolCallID string       `json:"tool_call_id"`
}

type ollamaCall struct {
	ID       string `json:"id,omitempty"`
	Function struct {
		Index     int      `json:"index"`
		Name      string   `json:"name"`
		Arguments jsonText `json:"arguments"`
	} `json:"function"`
}

// ollamaOptions are the options of a request that are not about sampling.
type ollamaOptions struct {
	sampling
	Predict  *int     `json:"num_predict"` // -1 and -2: as many as there is room for
	Ctx      int      `json:"num_ctx"`
	Mirostat *float64 `json:"mirostat"`
}

// startOptions are options that are settled when a server starts.
var startOptions = []string{"num_gpu", "num_thread", "num_batch", "num_keep", "main_gpu", "use_mmap", "use_mlock", "low_vram", "numa", "f16_kv", "vocab_only"}

// options reads the options; the fields of sampling stand in there as they do in other bodies.
func (q *ollamaRequest) options(c *call, s *toolset) (*ollamaOptions, error) {
	o := &ollamaOptions{}
	raw := q.Options
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := (&decoder{ignored: func(name string) {
		if slices.Contains(startOptions, name[len("options."):]) {
			s.leave(name[len("options."):])
		} else {
			c.s.metrics.ignored.Inc()
		}
	}}).into(raw, o, "options"); err != nil {
		return nil, err
	}
	if o.Mirostat != nil && *o.Mirostat != 0 {
		return nil, unsupported("options.mirostat", "options.mirostat: there is no such sampler")
	}
	if p := o.Predict; p != nil && *p == -2 {
		*p = -1
	}
	o.sampling.N = nil
	c.raw = raw // of which the sampler's values are read
	return o, nil
}

// thinking sets whether to reason, and how much.
func (q *ollamaRequest) thinking(t *talkRequest) error {
	if len(q.Think) == 0 {
		return nil
	}
	var on bool
	if json.Unmarshal(q.Think, &on) == nil {
		t.thinking = &on
		return nil
	}
	var effort string
	if json.Unmarshal(q.Think, &effort) != nil {
		return wrongType("think", "true, false, low, medium or high", q.Think)
	}
	on, t.thinking = true, &on
	t.setEffort(effort)
	return nil
}

// messages returns the conversation: that of chat, or the one turn of generate.
func (q *ollamaRequest) messages() ([]chat.Message, error) {
	if len(q.Images) > 0 {
		return nil, notText("images", "image")
	}
	if q.Messages == nil {
		var out []chat.Message
		if q.System != "" {
			out = append(out, chat.Message{Role: "system", Content: q.System})
		}
		return append(out, chat.Message{Role: "user", Content: q.Prompt}), nil
	}
	var out []chat.Message
	for i, m := range q.Messages {
		at := fmt.Sprintf("messages[%d]", i)
		switch m.Role {
		case "system", "user", "assistant", "tool":
		default:
			return nil, badParam(at+".role", "%s.role: want system, user, assistant or tool, have %q", at, m.Role)
		}
		if len(m.Images) > 0 {
			return nil, notText(at+".images", "image")
		}
		one := chat.Message{Role: m.Role, Content: m.Content, Reasoning: m.Thinking, Name: m.ToolName, ToolCallID: m.ToolCallID}
		for j, call := range m.Calls {
			if call.Function.Name == "" {
				return nil, badParam(at, "%s.tool_calls[%d].function.name is missing", at, j)
			}
			id := call.ID
			if id == "" {
				id = fmt.Sprintf("call%05d", 100*i+j)
			}
			one.Calls = append(one.Calls, chat.Call{ID: id, Name: call.Function.Name, Arguments: string(call.Function.Arguments)})
		}
		out = append(out, one)
	}
	answered(out)
	return out, nil
}

// answered gives answers of tools the ids of the calls, which they follow in order where they say none.
func answered(all []chat.Message) {
	var open []chat.Call
	for i := range all {
		m := &all[i]
		switch {
		case m.Role == "assistant":
			open = slices.Clone(m.Calls)
		case m.Role == "tool" && m.ToolCallID == "":
			at := slices.IndexFunc(open, func(c chat.Call) bool { return m.Name == "" || c.Name == m.Name })
			if at >= 0 {
				m.ToolCallID = open[at].ID
				open = slices.Delete(open, at, at+1)
			}
		}
	}
}

// check refuses what there is not.
func (q *ollamaRequest) check() error {
	switch {
	case q.Model == "":
		return badParam("model", "model is missing")
	case q.Template != "":
		return unsupported("template", "template: the chat template is the model's: zincrun serve --chat-template takes another")
	case len(q.Context) > 0:
		return unsupported("context", "context: send the conversation to /api/chat")
	case q.Top < 0 || q.Top > maxTop:
		return badParam("top_logprobs", "top_logprobs: want 0 to %d, have %d", maxTop, q.Top)
	}
	return nil
}

// format returns what the answer is to be: "json" or a schema; nil: text.
func (q *ollamaRequest) format() (*format, error) {
	switch {
	case len(q.Format) == 0 || string(q.Format) == `""`:
		return nil, nil
	case string(q.Format) == `"json"`:
		return &format{"format", grammar.AnyObject()}, nil
	case q.Format[0] == '{':
		return &format{"format", grammar.Source{Kind: grammar.JSONSchema, Text: string(q.Format)}}, nil
	}
	return nil, wrongType("format", `"json" or a schema`, q.Format)
}

// ollamaReply is a reply, and each line of a streamed one.
type ollamaReply struct {
	Model     string         `json:"model"`
	Created   string         `json:"created_at"`
	Message   *ollamaSaid    `json:"message,omitempty"`  // of chat
	Response  *string        `json:"response,omitempty"` // of generate
	Thinking  string         `json:"thinking,omitempty"`
	Done      bool           `json:"done"`
	Reason    string         `json:"done_reason,omitempty"`
	Total     int64          `json:"total_duration,omitempty"` // nanoseconds, as all durations
	Load      int64          `json:"load_duration,omitempty"`
	Prompt    int            `json:"prompt_eval_count,omitempty"`
	PromptFor int64          `json:"prompt_eval_duration,omitempty"`
	Eval      int            `json:"eval_count,omitempty"`
	EvalFor   int64          `json:"eval_duration,omitempty"`
	Logprobs  []tokenLogprob `json:"logprobs,omitempty"`
}

type ollamaSaid struct {
	Role     string       `json:"role"`
	Content  string       `json:"content"`
	Thinking string       `json:"thinking,omitempty"`
	Calls    []ollamaCall `json:"tool_calls,omitempty"`
}

// An ollamaTeller writes the lines of an answer, or gathers them into one.
type ollamaTeller struct {
	c      *call
	chat   bool
	stream *stream // nil: one reply at the end
	whole  ollamaSaid
	logs   []tokenLogprob
	calls  []chat.Call
	given  int // calls handed out
}

func (t *ollamaTeller) line(s ollamaSaid) ollamaReply {
	r := ollamaReply{Model: t.c.asked, Created: time.Now().UTC().Format(time.RFC3339Nano)}
	if t.chat {
		s.Role = "assistant"
		r.Message = &s
	} else {
		r.Response, r.Thinking = &s.Content, s.Thinking
	}
	return r
}

func (t *ollamaTeller) say(s ollamaSaid, logs []tokenLogprob) error {
	t.whole.Content += s.Content
	t.whole.Thinking += s.Thinking
	t.whole.Calls = append(t.whole.Calls, s.Calls...)
	t.logs = append(t.logs, logs...)
	if t.stream == nil || s.Content == "" && s.Thinking == "" && len(s.Calls) == 0 && len(logs) == 0 {
		return nil
	}
	r := t.line(s)
	r.Logprobs = logs
	return gone(t.stream.line(r))
}

// ready hands out the calls that are whole: all but the last, or all at the end.
func (t *ollamaTeller) ready(end bool) (calls []ollamaCall) {
	n := len(t.calls)
	if !end {
		n--
	}
	for ; t.given < n; t.given++ {
		one := t.calls[t.given]
		var c ollamaCall
		c.ID, c.Function.Index, c.Function.Name, c.Function.Arguments = one.ID, t.given, one.Name, "{}"
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(one.Arguments), &object) == nil { // else cut off, or the model's mistake
			c.Function.Arguments = jsonText(one.Arguments)
		}
		calls = append(calls, c)
	}
	return calls
}

// MarshalJSON writes the arguments as the object that they are.
func (t jsonText) MarshalJSON() ([]byte, error) { return []byte(t), nil }

func (t *ollamaTeller) take(u update, logprobs bool) error {
	for i, d := range u.deltas {
		s := ollamaSaid{Content: d.Content, Thinking: d.Reasoning}
		if d.Call != nil {
			for len(t.calls) <= d.Call.Index {
				t.calls = append(t.calls, chat.Call{})
			}
			c := &t.calls[d.Call.Index]
			c.ID, c.Name, c.Arguments = c.ID+d.Call.ID, c.Name+d.Call.Name, c.Arguments+d.Call.Arguments
			s.Calls = t.ready(false)
		}
		var logs []tokenLogprob
		if i == 0 && logprobs {
			logs = logprobsOf(u.tokens).Content
		}
		if err := t.say(s, logs); err != nil {
			return err
		}
	}
	return nil
}

// end writes the last line, with what the answer took.
func (t *ollamaTeller) end(done engine.Done) error {
	if err := t.say(ollamaSaid{Calls: t.ready(true)}, nil); err != nil {
		return err
	}
	s := ollamaSaid{}
	if t.stream == nil {
		s = t.whole
	}
	r, u := t.line(s), done.Usage
	if t.stream == nil {
		r.Logprobs = t.logs
	}
	r.Done, r.Reason = true, *finish(done, 0, false)
	r.Total, r.Load = int64(time.Since(t.c.log.start)), int64(t.c.loading)
	r.Prompt, r.PromptFor, r.Eval, r.EvalFor = u.Prompt, int64(u.Prefill), u.Completion, int64(u.Decode)
	if t.stream == nil {
		return t.c.reply(r)
	}
	return gone(t.stream.line(r))
}

// ollamaBody reads the body of a request. curl says that it is a form unless told otherwise, and Ollama's users
// do not tell it; pages of other origins are refused before.
func (c *call) ollamaBody(v any) error {
	if c.r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" || c.r.Header.Get("Content-Type") == "" {
		c.r.Header.Set("Content-Type", "application/json")
	}
	return c.body(v)
}

func (q *ollamaRequest) teller(c *call, chat bool) *ollamaTeller {
	t := &ollamaTeller{c: c, chat: chat}
	if q.Stream == nil || *q.Stream {
		t.stream = newStream(c.w)
		t.stream.media = "application/x-ndjson"
	}
	return t
}

func handleOllamaChat(c *call) error {
	var q ollamaRequest
	if err := c.ollamaBody(&q); err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	if len(q.Messages) == 0 {
		return q.load(c, true)
	}
	return q.talk(c, true)
}

func handleOllamaGenerate(c *call) error {
	var q ollamaRequest
	if err := c.ollamaBody(&q); err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	switch {
	case q.Prompt == "" && q.Suffix == "":
		return q.load(c, false)
	case q.Raw || q.Suffix != "":
		return q.complete(c)
	}
	q.Messages = nil
	return q.talk(c, false)
}

// load loads the model, or says that it may go, as a request without a prompt asks for.
func (q *ollamaRequest) load(c *call, chat bool) error {
	if _, err := c.model(q.Model); err != nil {
		return err
	}
	t := &ollamaTeller{c: c, chat: chat}
	r := t.line(ollamaSaid{})
	r.Done, r.Reason = true, "load"
	if c.keep(q.KeepAlive); q.KeepAlive.d != nil && *q.KeepAlive.d == 0 {
		r.Reason = "unload"
	}
	return c.reply(r)
}

// talk answers a conversation.
func (q *ollamaRequest) talk(c *call, isChat bool) error {
	all, err := q.messages()
	if err != nil {
		return err
	}
	t := &talkRequest{model: q.Model, messages: all, top: -1, maxParam: "options.num_predict"}
	inner := chatRequest{Tools: q.Tools}
	if t.tools, err = inner.toolset(); err != nil {
		return err
	}
	o, err := q.options(c, &t.tools)
	if err != nil {
		return err
	}
	t.sampling, t.max = &o.sampling, o.Predict
	if err := q.thinking(t); err != nil {
		return err
	}
	if q.Logprobs {
		t.top = q.Top
	}
	if t.format, err = q.format(); err != nil {
		return err
	}
	last := all[len(all)-1]
	t.resume = last.Role == "assistant" && len(last.Calls) == 0
	conv, err := c.converse(t)
	if err != nil {
		return err
	}
	c.keep(q.KeepAlive)
	if t.thinking != nil && *t.thinking && conv.model.Template.Dialect().ReasoningClose == "" {
		return unsupported("think", "%q does not support thinking", c.asked)
	}
	if o.Ctx > conv.model.Header.Ctx {
		c.leaveOut([]string{"num_ctx"})
	}
	teller := q.teller(c, isChat)
	for u, err := range conv.updates() {
		if err != nil {
			return teller.fail(err)
		}
		if u.idle {
			continue
		}
		if err := teller.take(u, q.Logprobs); err != nil {
			return err
		}
		if u.done != nil {
			if err := teller.end(*u.done); err != nil {
				return err
			}
		}
	}
	return nil
}

// complete continues a prompt as it is, or fills the gap before a suffix.
func (q *ollamaRequest) complete(c *call) error {
	var left toolset
	o, err := q.options(c, &left)
	if err != nil {
		return err
	}
	if err := c.admit(); err != nil {
		return err
	}
	m, err := c.model(q.Model)
	if err != nil {
		return err
	}
	if err := m.predicts(); err != nil {
		return err
	}
	c.leaveOut(left.left)
	c.keep(q.KeepAlive)
	format, err := q.format()
	if err != nil {
		return err
	}
	var r engine.Request
	err = c.text(func(ctx context.Context) error {
		if r, err = o.sampling.request(m, c.raw); err != nil {
			return err
		}
		if r.Format, err = o.sampling.held(format); err != nil {
			return err
		}
		if q.Suffix != "" {
			r.Prompt, err = (&gap{prefix: q.Prompt, suffix: q.Suffix}).tokens(ctx, m, m.Header.Ctx/2)
		} else {
			r.Prompt, err = prompt{text: q.Prompt}.tokens(ctx, m, "prompt", true)
		}
		return err
	})
	c.forget()
	if err != nil {
		return err
	}
	if err := budget(m, &r, o.Predict, "options.num_predict"); err != nil {
		return err
	}
	teller := q.teller(c, false)
	for p := range (&run{call: c, model: m, reqs: []engine.Request{r}}).parts() {
		switch {
		case p.err != nil:
			return teller.fail(p.err)
		case p.idle:
			continue
		}
		if err := teller.say(ollamaSaid{Content: p.event.Text}, nil); err != nil {
			return err
		}
		if p.event.Done != nil {
			return teller.end(*p.event.Done)
		}
	}
	return nil
}

// fail tells of an error: as the reply while there is none yet, else as the last line.
func (t *ollamaTeller) fail(err error) error {
	if e := errorOf(err); t.stream != nil && t.stream.begun && e.Kind != clientGone {
		t.stream.line(ollama.body(e, t.c.id))
	}
	return err
}

func handleOllamaEmbed(c *call) error {
	var q struct {
		Model      string          `json:"model"`
		Input      texts           `json:"input"`
		Prompt     *string         `json:"prompt"` // of /api/embeddings
		Truncate   *bool           `json:"truncate"`
		Dimensions *int            `json:"dimensions"`
		Options    json.RawMessage `json:"options"`
		KeepAlive  keepAlive       `json:"keep_alive"`
	}
	if err := c.ollamaBody(&q); err != nil {
		return err
	}
	e := embeddingsRequest{Model: q.Model, Dimensions: q.Dimensions, truncate: q.Truncate == nil || *q.Truncate}
	if q.Prompt != nil {
		q.Input = texts{*q.Prompt}
	}
	for _, text := range q.Input {
		e.Input = append(e.Input, prompt{text: text})
	}
	vectors, tokens, err := e.vectors(c)
	if err != nil {
		return err
	}
	c.keep(q.KeepAlive)
	if q.Prompt != nil {
		return c.reply(map[string]any{"embedding": vectors[0]})
	}
	return c.reply(struct {
		Model      string      `json:"model"`
		Embeddings [][]float32 `json:"embeddings"`
		Total      int64       `json:"total_duration"`
		Load       int64       `json:"load_duration"`
		Prompt     int         `json:"prompt_eval_count"`
	}{c.asked, vectors, int64(time.Since(c.log.start)), int64(c.loading), tokens})
}

func handleOllamaVersion(c *call) error {
	return c.reply(map[string]string{"version": ollamaVersion, "zincrun": c.s.o.Version})
}

// handleOllamaNone is for what Ollama makes of models, and this server does not.
func handleOllamaNone(c *call) error {
	return &Error{Kind: kind{http.StatusNotImplemented, "invalid_request_error", "invalid_request_error"}, Message: c.r.URL.Path + " is not supported: this server serves model files as they are"}
}

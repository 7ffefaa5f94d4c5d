package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/talk"
	"github.com/zincc-dev/zincc/runtime/text"
)

// Model is a model that is loaded.
type Model struct {
	Header    plans.Header
	Hash      string // hex, of the plan: same hash, request and seed, same answer
	Device    string
	Tokenizer *text.Tokenizer
	Template  *chat.Template // nil: the model only continues text
	NoChat    string         // why there is no template
	Rank      string         // what a model that ranks texts reads of {query} and {document}; "" of others
	Defaults  sample.Params
	Engine    Engine
	Memory    Memory
	Close     func() error // frees all but the engine, which is closed before
}

// Memory is what a model takes, in bytes.
type Memory struct {
	Weights int64 `json:"weights"`
	KV      int64 `json:"kv"`
	State   int64 `json:"state"`
	Work    int64 `json:"work"`
}

func (m Memory) total() int64 { return m.Weights + m.KV + m.State + m.Work }

// MemoryOf returns what a plan takes on its device.
func MemoryOf(p *plans.Plan) Memory {
	sum := func(regions []plans.Region) (n int64) {
		for _, r := range regions {
			n += r.Bytes
		}
		return n
	}
	m := Memory{KV: sum(p.Memory.KV), State: sum(p.Memory.State), Work: p.Memory.Arena + sum(p.Memory.Tables) + sum(p.Memory.Step) + sum(p.Memory.IO)}
	for _, w := range p.Weights {
		m.Weights += w.Bytes
	}
	return m
}

// Engine generates: *engine.Engine, or, as an Embedder, makes vectors: *engine.Vectors.
type Engine interface {
	Generate(ctx context.Context, r engine.Request) iter.Seq2[engine.Event, error]
	Stats() engine.Stats
	Failed() <-chan struct{} // closed when the device has failed
	Err() error              // with what
	Drain(ctx context.Context) error
	Close() error
}

// fingerprint is what replies say they were made by.
func (m *Model) fingerprint() string { return "zincc-" + m.Hash[:min(12, len(m.Hash))] }

// turn makes the request that answers a conversation.
func (m *Model) turn(ctx context.Context, c chat.Conversation, o talk.Options) (*talk.Turn, error) {
	t, err := m.talker().Turn(ctx, c, o)
	return t, m.refusal(err)
}

// render returns the text that the model reads of a conversation.
func (m *Model) render(ctx context.Context, c chat.Conversation) (string, error) {
	spans, err := m.talker().Render(ctx, c)
	return chat.Text(spans), m.refusal(err)
}

func (m *Model) talker() *talk.Model {
	return &talk.Model{Tokenizer: m.Tokenizer, Template: m.Template, Ctx: m.Header.Ctx}
}

// refusal says why there is no prompt of a conversation.
func (m *Model) refusal(err error) error {
	var template *talk.TemplateError
	var call *talk.CallError
	var long *talk.TooLongError
	switch {
	case errors.Is(err, talk.ErrNoTemplate):
		return &Error{Kind: invalid, Param: "messages", Code: "template_error", Message: m.NoChat + ": use /v1/completions"}
	case errors.Is(err, talk.ErrNoTools):
		return unsupported("tools", "tools: the chat template of this model has none")
	case errors.As(err, &call):
		return unsupported("tool_choice", "tool_choice: %s", err)
	case errors.As(err, &long):
		return longPrompt(fmt.Sprintf("at least %d", (long.Bytes+long.Longest-1)/long.Longest), long.Ctx)
	case errors.As(err, &template):
		return &Error{Kind: invalid, Param: "messages", Code: "template_error", Message: err.Error()}
	}
	return err
}

// kwargs returns the arguments of a template but for the switch of reasoning, which is
// told apart.
func kwargs(all map[string]json.RawMessage) (rest map[string]json.RawMessage, thinking *bool, err error) {
	raw, ok := all["enable_thinking"]
	if !ok {
		return all, nil, nil
	}
	var on bool
	if json.Unmarshal(raw, &on) != nil {
		return nil, nil, wrongType("chat_template_kwargs.enable_thinking", "true or false", raw)
	}
	rest = map[string]json.RawMessage{}
	for k, v := range all {
		if k != "enable_thinking" {
			rest[k] = v
		}
	}
	return rest, &on, nil
}

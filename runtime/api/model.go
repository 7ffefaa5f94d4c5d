package api

import (
	"context"
	"encoding/json"
	"iter"
	"strings"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// Model is a model that is loaded.
type Model struct {
	Header    plans.Header
	Hash      string // hex, of the plan: same hash, request and seed, same answer
	Device    string
	Tokenizer *text.Tokenizer
	Template  Template // nil: the model has none, and only continues text
	Source    string   // of the template
	NoChat    string   // why there is no template
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

// Template is what a model wants of a conversation: *chat.Template.
type Template interface {
	Render(chat.Conversation) ([]text.Span, error)
	Dialect() chat.Dialect
}

// Engine generates: *engine.Engine.
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

// render returns the tokens of a conversation.
func (m *Model) render(c chat.Conversation) ([]int32, error) {
	spans, err := m.spans(c)
	if err != nil {
		return nil, err
	}
	return m.Tokenizer.EncodeSpans(spans), nil
}

// mark returns the tokens of what opens or closes reasoning, without the white space around it: that
// may be part of tokens of the text.
func (m *Model) mark(s string) []int32 {
	return m.Tokenizer.Encode(strings.TrimSpace(s), encodeSpecial)
}

// turn returns how many tokens of a conversation's prompt come before what asks for the answer: the
// next turn begins with these.
func (m *Model) turn(c chat.Conversation, prompt []int32) int {
	c.Generate = false
	before, err := m.render(c)
	if err != nil {
		return 0
	}
	n := 0
	for n < min(len(before), len(prompt)) && before[n] == prompt[n] {
		n++
	}
	return n
}

func (m *Model) spans(c chat.Conversation) ([]text.Span, error) {
	if m.Template == nil {
		return nil, &Error{Kind: invalid, Param: "messages", Code: "template_error", Message: m.NoChat + ": use /v1/completions"}
	}
	if len(c.Tools) > 0 && m.Template.Dialect().Calls == "" {
		return nil, unsupported("tools", "tools: the chat template of this model has no tools")
	}
	spans, err := m.Template.Render(c)
	if err != nil {
		return nil, &Error{Kind: invalid, Param: "messages", Code: "template_error", Message: "the chat template: " + err.Error()}
	}
	return spans, nil
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

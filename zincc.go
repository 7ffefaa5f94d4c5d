// Package zincc runs language models in Go programs: the same plans, the same numbers and the same
// speed as zincrun has.
//
//	m, err := zincc.Open(ctx, "qwen3-8b.gguf", zincc.Options{})
//	...
//	defer m.Close()
//	for part, err := range m.Chat(ctx, []zincc.Message{{Role: "user", Content: "Why is the sky blue?"}}) {
//		...
//		fmt.Print(part.Content)
//	}
//
// A path is a plan that zincc compiled, or a model file: of that, the program zincc, which has to be
// beside this one or in PATH, makes a plan once, which the user's cache folder keeps.
//
// # Stability
//
// What this package exports stays as it is within version 0 but for additions, and a change that
// breaks programs is announced one release before. All other packages of the module may change at any
// time. Plans are read by the version that made them; a plan of another version is refused by name.
package zincc

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/grammar"
	"github.com/zincc-dev/zincc/runtime/model"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/talk"
	"github.com/zincc-dev/zincc/runtime/text"
)

// Options say how to open a model. The zero value takes the best device of this computer.
type Options struct {
	Device string // auto, cuda, cuda:I, vulkan, vulkan:I, cpu or host; "": auto
	Model  string // of a plan: its model file, where that is no longer where it was
	// Compile are flags of `zincc compile` for a model file, such as --ctx=8k or --slots=4. Without them the
	// context is the largest that fits the memory, for one answer at a time.
	Compile []string
	// Said gets a line about what takes time or is not as it could be; nil: nobody does.
	Said func(line string)
}

// Model is a model on a device. Its methods may be called by several goroutines: as many
// answers as the plan has slots are generated side by side, further ones wait.
type Model struct {
	opened   *model.Opened
	talk     *talk.Model
	defaults sample.Params
}

// Open opens a plan or a model file.
func Open(ctx context.Context, path string, o Options) (*Model, error) {
	opened, err := model.Open(ctx, path, model.Options{Device: o.Device, Model: o.Model, Compile: o.Compile, Said: o.Said})
	if err != nil {
		return nil, err
	}
	tok, err := opened.Tokenizer()
	if err != nil {
		opened.Close()
		return nil, err
	}
	var engineOptions engine.Options
	if opened.Plan.Header.Slots == 1 { // nobody waits for a token while another's prompt is read
		engineOptions.ITL = engine.Unhurried
	}
	t, err := talk.New(opened.Plan, opened.Exec, tok, engineOptions)
	if err != nil {
		opened.Close()
		return nil, err
	}
	return &Model{opened, t, sample.Defaults(opened.Plan.Vocab.Sampling)}, nil
}

// Close ends all answers and frees the device.
func (m *Model) Close() error {
	err := m.talk.Engine.Close()
	m.opened.Close()
	return err
}

// Device is the name of the device.
func (m *Model) Device() string { return m.opened.Exec.Device() }

// Name is the model's name as its file has it, which may be anything.
func (m *Model) Name() string { return m.opened.Plan.Header.Model.Name }

// Context is how many tokens a sequence has, at most.
func (m *Model) Context() int { return m.talk.Ctx }

// Message is a message of a conversation.
type Message = chat.Message

// Call is a call of a tool.
type Call = chat.Call

// Part is a part of an answer. The last one has Usage.
type Part struct {
	Content   string
	Reasoning string
	Call      *chat.CallDelta // a part of a call of a tool: its name first, then its arguments as they come
	Usage     *Usage
}

// Usage is what an answer took.
type Usage struct {
	Stopped    string // stop, length, context or cancelled
	Prompt     int    // tokens
	Cached     int    // of these, tokens that were kept from before
	Completion int    // tokens of the answer
	Prefill    time.Duration
	Decode     time.Duration
}

// Option changes how an answer is generated.
type Option func(*settings)

type settings struct {
	talk.Options
	conv chat.Conversation
}

// Temperature flattens (above 1) or sharpens (below) what is drawn from; 0 takes the most likely token.
func Temperature(t float64) Option { return func(s *settings) { s.Sampling.Temp = t } }

// TopK draws from the k most likely tokens only; 0: from all.
func TopK(k int) Option { return func(s *settings) { s.Sampling.TopK = k } }

// TopP draws from the most likely tokens that have this probability together; 1: from all.
func TopP(p float64) Option { return func(s *settings) { s.Sampling.TopP = p } }

// MinP draws from the tokens that have this share of the top probability; 0: from all.
func MinP(p float64) Option { return func(s *settings) { s.Sampling.MinP = p } }

// Seed makes the draws repeatable: the same model, prompt, options and seed give the same answer.
func Seed(seed uint64) Option { return func(s *settings) { s.Sampling.Seed = seed } }

// MaxTokens bounds the answer; 0: as many as fit the context.
func MaxTokens(n int) Option { return func(s *settings) { s.Max = n } }

// Stop ends the answer before one of these texts.
func Stop(texts ...string) Option { return func(s *settings) { s.Stops = append(s.Stops, texts...) } }

// Thinking switches the reasoning of a model that can be told.
func Thinking(on bool) Option { return func(s *settings) { s.conv.Thinking = &on } }

// ThinkingTokens bounds the reasoning.
func ThinkingTokens(n int) Option { return func(s *settings) { s.Reasoning = &n } }

// Tools offers tools, each a JSON object {"type": "function", "function": {"name", "description", "parameters"}}.
func Tools(tools ...json.RawMessage) Option {
	return func(s *settings) { s.conv.Tools = append(s.conv.Tools, tools...) }
}

// JSON holds the answer to a JSON schema. With a schema that is not supported, Chat and Generate fail with an error
// that names keyword and path.
func JSON(schema []byte) Option {
	return format(grammar.Source{Kind: grammar.JSONSchema, Text: string(schema)})
}

// Grammar holds the answer to a grammar in GBNF, as llama.cpp has it.
func Grammar(gbnf string) Option { return format(grammar.Source{Kind: grammar.GBNFText, Text: gbnf}) }

// Pattern holds the answer to a regular expression of ECMAScript, which matches all of it.
func Pattern(regex string) Option { return format(grammar.Source{Kind: grammar.Pattern, Text: regex}) }

// Choice lets the answer be one of these texts.
func Choice(texts ...string) Option {
	return format(grammar.Source{Kind: grammar.Choices, Texts: texts})
}

func format(s grammar.Source) Option { return func(o *settings) { o.Format = &s } }

func (m *Model) settings(list []Option) *settings {
	s := &settings{Options: talk.Options{Sampling: m.defaults}}
	s.Sampling.Seed = sample.Defaults(nil).Seed // another one each time
	for _, o := range list {
		o(s)
	}
	return s
}

// Chat answers a conversation. The parts of the answer come as they are generated; an error is the last
// of them. Leaving the loop or cancelling ctx ends the answer.
func (m *Model) Chat(ctx context.Context, messages []Message, list ...Option) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		s := m.settings(list)
		s.conv.Messages, s.conv.Now = messages, time.Now()
		turn, err := m.talk.Turn(text.Remember(ctx, ""), s.conv, s.Options)
		if err != nil {
			yield(Part{}, err)
			return
		}
		for p, err := range m.talk.Answer(ctx, turn) {
			part := Part{Content: p.Content, Reasoning: p.Reasoning, Call: p.Call}
			if p.Done != nil {
				part.Usage = usage(p.Done)
			}
			if !yield(part, err) || err != nil {
				return
			}
		}
	}
}

// Generate continues a text, special tokens as the vocabulary writes them included. Parts and errors
// are as those of Chat.
func (m *Model) Generate(ctx context.Context, prompt string, list ...Option) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		s := m.settings(list)
		r := engine.Request{
			Prompt: m.talk.Tokenizer.Encode(prompt, text.EncodeOptions{AddSpecial: true, ParseSpecial: true}),
			Max:    s.Max, Sampling: s.Sampling, Stops: s.Stops, TopLogprobs: -1,
		}
		if s.Max == 0 {
			r.Max = -1
		}
		if s.Format != nil {
			var err error
			if r.Format, err = grammar.Make(*s.Format); err != nil {
				yield(Part{}, err)
				return
			}
		}
		for e, err := range m.talk.Engine.Generate(ctx, r) {
			part := Part{Content: e.Text}
			if e.Done != nil {
				part.Usage = usage(e.Done)
			}
			if !yield(part, err) || err != nil {
				return
			}
		}
	}
}

func usage(d *engine.Done) *Usage {
	u := d.Usage
	return &Usage{Stopped: d.Reason, Prompt: u.Prompt, Cached: u.Cached, Completion: u.Completion, Prefill: u.Prefill, Decode: u.Decode}
}

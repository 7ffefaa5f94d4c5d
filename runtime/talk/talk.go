// Package talk holds conversations with a model: it makes the prompt of a conversation by the
// model's chat template, and takes answers apart into reasoning, text and tool calls.
package talk

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/grammar"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// New makes a model of a plan that runs on exec. The engine must be closed.
func New(plan *plans.Plan, exec runtime.Executor, tok *text.Tokenizer, o engine.Options) (*Model, error) {
	m := &Model{Tokenizer: tok, Ctx: plan.Header.Ctx}
	var err error
	if plan.Vocab.ChatTemplate != "" {
		if m.Template, err = chat.Open(plan.Vocab, plan.Dialect); err != nil {
			return nil, err
		}
	}
	m.Engine, err = engine.New(plan, exec, tok, o)
	return m, err
}

// Model is what a conversation needs of a model that is loaded.
type Model struct {
	Tokenizer *text.Tokenizer
	Template  *chat.Template // nil: the model only continues text
	Engine    *engine.Engine
	Ctx       int // positions of a sequence
}

// Options of an answer.
type Options struct {
	Sampling  sample.Params
	Max       int // tokens; 0: as many as fit the context
	Stops     []string
	Reasoning *int // tokens of reasoning, at most; nil: without end
	// Call has the names of the tools of which the answer is to call one; none: it may call any, or none.
	Call []string
	// Single: the answer has at most one call.
	Single bool
	// Format is what the answer is a text of; nil: anything.
	Format *grammar.Source
	// Tools are those of the conversation, as far as more is known of them than the model reads.
	Tools []Tool
	// Resume takes the last message, an assistant's, as the beginning of the answer.
	Resume bool
}

// Turn is an answer that is to be generated.
type Turn struct {
	Request engine.Request
	Text    string // the prompt
	dialect chat.Dialect
	opened  bool // the prompt has opened the reasoning
	resumed bool // the prompt has begun the answer
	tools   []json.RawMessage
}

// ErrNoTemplate says that a model cannot converse.
var ErrNoTemplate = ir.Unsupported("the model has no chat template: it only continues text")

// ErrNoTools says that the chat template has no place for tools.
var ErrNoTools = errors.New("the chat template has no tools")

// ErrNoBeginning says that the last message is not the beginning of an answer.
var ErrNoBeginning = errors.New("the last message must be text of the assistant, without calls, to be continued")

// TemplateError is what the chat template fails with.
type TemplateError struct{ Err error }

func (e *TemplateError) Error() string { return e.Err.Error() }
func (e *TemplateError) Unwrap() error { return e.Err }

var special = text.EncodeOptions{ParseSpecial: true}

// Render returns what the model reads of a conversation. Errors are ErrNoTemplate, ErrNoTools, a TemplateError or that
// of ctx.
func (m *Model) Render(ctx context.Context, c chat.Conversation) ([]text.Span, error) {
	if err := m.takes(c); err != nil {
		return nil, err
	}
	spans, err := m.Template.Render(ctx, c)
	return spans, failed(ctx, err)
}

// takes returns why the template has no place for a conversation; nil if it has.
func (m *Model) takes(c chat.Conversation) error {
	if m.Template == nil {
		return ErrNoTemplate
	}
	if len(c.Tools) > 0 && m.Template.Dialect().Calls == "" {
		return ErrNoTools
	}
	return nil
}

// failed is the error of a template, or that of ctx behind it.
func failed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return cmp.Or(ctx.Err(), error(&TemplateError{err}))
}

// TooLongError says that a text cannot fit the context, however its tokens fall: it has more bytes than Ctx tokens of
// Longest bytes.
type TooLongError struct{ Bytes, Ctx, Longest int }

func (e *TooLongError) Error() string {
	return fmt.Sprintf("the prompt has %d bytes, and the context of this model is %d tokens of at most %d bytes", e.Bytes, e.Ctx, e.Longest)
}

// Fits returns a TooLongError of a text of so many bytes, or nil.
func (m *Model) Fits(bytes int) error {
	if longest := m.Tokenizer.Longest(); bytes > m.Ctx*longest {
		return &TooLongError{bytes, m.Ctx, longest}
	}
	return nil
}

// Turn makes the request that answers a conversation. Errors are those of Render and Fits, a CallError, a FormatError
// or a StrictError.
func (m *Model) Turn(ctx context.Context, c chat.Conversation, o Options) (*Turn, error) {
	var spans, begun []text.Span
	var err error
	past := c
	if o.Resume {
		spans, past, err = m.resume(ctx, c)
	} else {
		spans, begun, err = m.renderTurn(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	d := m.Template.Dialect()
	written := chat.Text(spans)
	if err := m.Fits(len(written)); err != nil {
		return nil, err
	}
	prompt, err := m.Tokenizer.EncodeSpans(ctx, spans)
	if err != nil {
		return nil, err
	}
	if begun == nil {
		begun = m.Template.Begun(ctx, past)
	}
	turn, err := m.before(ctx, begun, prompt)
	if err != nil {
		return nil, err
	}
	t := &Turn{Text: written, dialect: d, tools: c.Tools, opened: d.Thinks(written), resumed: o.Resume, Request: engine.Request{
		Prompt: prompt, Max: o.Max, Sampling: o.Sampling, Stops: o.Stops, TopLogprobs: -1, Turn: turn,
		Special: d.ShowsControl(m.Tokenizer), StopTokens: d.EndTokens(m.Tokenizer),
	}}
	if o.Max == 0 {
		t.Request.Max = -1
	}
	if d.ReasoningClose != "" {
		b := &engine.Budget{Limit: -1, Open: t.opened, Hidden: true,
			Begin: m.Tokenizer.Encode(d.ReasoningOpen, special), Close: m.Tokenizer.Encode(d.ReasoningClose, special),
			Force: m.Tokenizer.Encode(cmp.Or(d.Closing, d.ReasoningClose), special)}
		if o.Reasoning != nil {
			b.Limit = *o.Reasoning
		}
		t.Request.Reasoning = b
	}
	if t.Request.Format, err = m.format(&o); err != nil {
		return nil, err
	}
	t.Request.AtOnce = c.Thinking != nil && !*c.Thinking && !t.opened
	if len(o.Call) > 0 && t.Request.Format == nil {
		if t.Request.Opening, err = m.opening(c, o.Call); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// resume renders a conversation up to the end of what its last message says so far. past is the conversation before
// that message.
func (m *Model) resume(ctx context.Context, c chat.Conversation) (spans []text.Span, past chat.Conversation, err error) {
	n := len(c.Messages) - 1
	if n < 0 || c.Messages[n].Role != "assistant" || len(c.Messages[n].Calls) > 0 {
		return nil, past, ErrNoBeginning
	}
	mark := rand.Text() // no text has it
	past = c
	past.Messages = c.Messages[:n]
	c.Messages = slices.Clone(c.Messages)
	last := &c.Messages[n]
	last.Content, last.Parts = last.Text()+mark, nil
	c.Generate = false
	if spans, err = m.Render(ctx, c); err != nil {
		return nil, past, err
	}
	end := strings.LastIndex(chat.Text(spans), mark)
	if end < 0 {
		return nil, past, &TemplateError{errors.New("the chat template does not write the last message as it is, so that it cannot be continued")}
	}
	for i := range spans {
		if len(spans[i].Text) >= end {
			spans[i].Text = spans[i].Text[:end]
			return spans[:i+1], past, nil
		}
		end -= len(spans[i].Text)
	}
	return spans, past, nil
}

// opening is what an answer begins with that calls one of the tools.
func (m *Model) opening(c chat.Conversation, names []string) (*engine.Opening, error) {
	o := &engine.Opening{}
	for _, name := range names {
		call, ok := m.Template.CallOpening(name)
		if !ok {
			return nil, &CallError{name}
		}
		o.Plain = append(o.Plain, m.Tokenizer.Encode(call.Plain, special))
		if call.Behind != "" && (c.Thinking == nil || *c.Thinking) {
			o.Behind = append(o.Behind, m.Tokenizer.Encode(call.Behind, special))
		}
	}
	return o, nil
}

// CallError says that no call of a tool can be forced.
type CallError struct{ Tool string }

func (e *CallError) Error() string {
	return fmt.Sprintf("a call of %q cannot be forced: the chat template does not show how it begins", e.Tool)
}

// Parser starts to take an answer apart.
func (t *Turn) Parser() *chat.Parser {
	p := t.dialect.Parser(t.opened, t.tools)
	if t.resumed && !t.opened {
		p.Resume()
	}
	return p
}

// renderTurn is RenderTurn of the template, for a conversation that the model takes.
func (m *Model) renderTurn(ctx context.Context, c chat.Conversation) (spans, begun []text.Span, err error) {
	if err := m.takes(c); err != nil {
		return nil, nil, err
	}
	spans, begun, err = m.Template.RenderTurn(ctx, c)
	return spans, begun, failed(ctx, err)
}

// before returns how many tokens of the prompt come before what asks for the answer: the next turn begins with these.
func (m *Model) before(ctx context.Context, begun []text.Span, prompt []int32) (int, error) {
	if begun == nil {
		return 0, ctx.Err()
	}
	ids, err := m.Tokenizer.EncodeSpans(ctx, begun)
	n := 0
	for n < len(ids) && n < len(prompt) && prompt[n] == ids[n] {
		n++
	}
	return n, err
}

// Piece is a part of an answer. The last one has Done.
type Piece struct {
	chat.Delta
	Done *engine.Done
}

// Answer generates the answer of a turn. The last piece has Done, with the error if there is one.
func (m *Model) Answer(ctx context.Context, t *Turn) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		p := t.Parser()
		for e, err := range m.Engine.Generate(ctx, t.Request) {
			deltas := p.Push(e.Text)
			if e.Done != nil {
				deltas = append(deltas, p.Close()...)
			}
			for _, d := range deltas {
				if !yield(Piece{Delta: d}, nil) {
					return
				}
			}
			if e.Done != nil {
				yield(Piece{Done: e.Done}, err)
				return
			}
		}
	}
}

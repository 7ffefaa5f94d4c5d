package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/chat/jinja"
	"github.com/zincc-dev/zincc/runtime/text"
)

// Template is the chat template of a model. It is safe for use by several
// goroutines.
type Template struct {
	jinja    *jinja.Template
	source   string
	bos, eos string
	dialect  Dialect
	note     string
	places   func() places // of messages
}

// chatML is the template that is taken for a model without a usable one whose
// vocabulary has the tokens of ChatML.
const chatML = `{%- for message in messages -%}
    {{- '<|im_start|>' + message.role + '\n' -}}
    {%- if message.content is string -%}
        {{- message.content -}}
    {%- else -%}
        {%- for part in message.content -%}
            {{- part.text -}}
        {%- endfor -%}
    {%- endif -%}
    {{- '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|im_start|>assistant\n' -}}
{%- endif -%}`

// New reads the template of a vocabulary and finds out its dialect. If there is
// none, or it cannot be read, and the vocabulary has the tokens of ChatML, that
// is taken, and Note says so.
func New(v plans.Vocab) (*Template, error) {
	t, err := read(v)
	if err != nil {
		return nil, err
	}
	t.dialect, err = t.analyze(v)
	return t, err
}

// Open is New with the dialect that a plan has.
func Open(v plans.Vocab, d plans.Dialect) (*Template, error) {
	if d.Name == "" {
		return New(v)
	}
	t, err := read(v)
	if err != nil {
		return nil, err
	}
	t.dialect = Dialect(d)
	return t, nil
}

func read(v plans.Vocab) (*Template, error) {
	t := &Template{source: v.ChatTemplate, bos: tokenText(v, v.BOS), eos: tokenText(v, v.EOS)}
	t.places = sync.OnceValue(t.probePlaces)
	why := errors.New("the model has no chat template")
	if strings.TrimSpace(v.ChatTemplate) != "" {
		if t.jinja, why = jinja.Parse(v.ChatTemplate); why == nil {
			return t, nil
		}
		why = fmt.Errorf("chat template: %w", why)
	}
	has := map[string]bool{}
	for _, token := range v.Tokens {
		has[token] = true
	}
	if !has["<|im_start|>"] || !has["<|im_end|>"] {
		return nil, why
	}
	t.source = chatML
	t.note = why.Error() + ": its vocabulary has the tokens of ChatML, so that is used"
	t.jinja, why = jinja.Parse(chatML)
	return t, why
}

func tokenText(v plans.Vocab, id *int32) string {
	if id == nil || *id < 0 || int(*id) >= len(v.Tokens) {
		return ""
	}
	return v.Tokens[*id]
}

// Dialect returns what the template takes and the model writes.
func (t *Template) Dialect() Dialect { return t.dialect }

// Note says what is out of the ordinary: that the template is not the model's
// own. It is empty otherwise.
func (t *Template) Note() string { return t.note }

// Tokens returns the texts of the tokens that begin and end a text, "" where there is none.
func (t *Template) Tokens() (bos, eos string) { return t.bos, t.eos }

// Source returns the text of the template.
func (t *Template) Source() string { return t.source }

// Render returns what the model reads. Messages that the template has no place for become parts of others. It ends with
// the error of ctx.
func (t *Template) Render(ctx context.Context, c Conversation) ([]text.Span, error) {
	c.Messages = t.fold(c.Messages)
	return t.render(ctx, c, t.dialect, nil)
}

// asks is the variable by which templates know whether the text is to ask for an answer.
const asks = "add_generation_prompt"

// RenderTurn is Render of a conversation that asks for an answer, and Begun of the same where one render is enough for
// both; else begun is nil.
func (t *Template) RenderTurn(ctx context.Context, c Conversation) (spans, begun []text.Span, err error) {
	c.Generate = true
	if _, given := c.Kwargs[asks]; given {
		spans, err = t.Render(ctx, c)
		return spans, nil, err
	}
	c.Messages = t.fold(c.Messages)
	vars, err := t.context(c, t.dialect)
	if err != nil {
		return nil, nil, err
	}
	if c.Now.IsZero() {
		c.Now = time.Now()
	}
	spans, begun, err = t.jinja.RenderBoth(ctx, asks, vars, c.Now)
	if err != nil {
		return nil, nil, fmt.Errorf("chat template: %w", err)
	}
	return spans, begun, nil
}

// Begun returns what the model reads of a conversation before what asks for an answer; nil where the template fails on
// that.
func (t *Template) Begun(ctx context.Context, c Conversation) []text.Span {
	c.Generate = false
	spans, err := t.Render(ctx, c)
	if err != nil {
		return nil
	}
	return append([]text.Span{}, spans...)
}

func (t *Template) render(ctx context.Context, c Conversation, d Dialect, b *jinja.Budget) ([]text.Span, error) {
	vars, err := t.context(c, d)
	if err != nil {
		return nil, err
	}
	if c.Now.IsZero() {
		c.Now = time.Now()
	}
	spans, err := t.jinja.Render(ctx, vars, c.Now, b)
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	return spans, nil
}

// RenderJSON renders with the variables of a JSON object: those that the template
// names, such as messages and tools. Of its strings the roles of messages and
// variables that end in _token are as good as the template's own; bos_token and
// eos_token are the model's unless it gives others.
func (t *Template) RenderJSON(ctx context.Context, raw []byte, now time.Time) ([]text.Span, error) {
	v, err := jinja.FromJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("context: %w", err)
	}
	given, ok := v.(*jinja.Dict)
	if !ok {
		return nil, errors.New("context: it must be a JSON object")
	}
	vars := jinja.NewDict()
	vars.Set("bos_token", jinja.Own(t.bos))
	vars.Set("eos_token", jinja.Own(t.eos))
	for name, v := range given.All() {
		if s, ok := v.(jinja.Str); ok && strings.HasSuffix(name, "_token") {
			v = jinja.Own(s.String())
		}
		vars.Set(name, v)
	}
	if messages, ok := given.Get("messages"); ok {
		if list, ok := messages.(*jinja.List); ok {
			for m := range list.All() {
				if m, ok := m.(*jinja.Dict); ok {
					if s, ok := m.Get("role"); ok {
						if s, ok := s.(jinja.Str); ok {
							m.Set("role", role(s.String()))
						}
					}
				}
			}
		}
	}
	spans, err := t.jinja.Render(ctx, vars, now, nil)
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	return spans, nil
}

// Text puts spans together.
func Text(spans []text.Span) string {
	all := make([]string, len(spans))
	for i, s := range spans {
		all[i] = s.Text
	}
	return strings.Join(all, "")
}

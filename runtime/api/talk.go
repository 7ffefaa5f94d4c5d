package api

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/talk"
)

// A talkRequest is a conversation to be continued, whatever API it came by.
type talkRequest struct {
	model     string
	messages  []chat.Message
	tools     toolset
	choice    toolChoice
	parallel  *bool
	sampling  *sampling
	max       *int
	maxParam  string // what the API calls max
	top       int    // log probabilities of so many tokens; -1: none
	thinking  *bool
	effort    string
	reasoning *int // tokens of reasoning, at most
	inline    bool // reasoning is a part of the content
	format    *format
	kwargs    map[string]json.RawMessage
	// resume: the last message is the beginning of the answer.
	resume bool
	// trim: turns at the beginning go if the conversation does not fit.
	trim bool
}

// prepare returns the prompt of a conversation and the model, which is loaded for it.
func (c *call) prepare(q *talkRequest) (*Model, *chat.Conversation, error) {
	if len(q.messages) == 0 {
		return nil, nil, badParam("messages", "messages: there are none")
	}
	if len(q.messages) > maxMessages {
		return nil, nil, badParam("messages", "messages: %d, at most %d", len(q.messages), maxMessages)
	}
	if err := q.tools.check(); err != nil {
		return nil, nil, err
	}
	rest, thinking, err := kwargs(q.kwargs)
	if err != nil {
		return nil, nil, err
	}
	if q.thinking == nil {
		q.thinking = thinking
	}
	m, err := c.model(q.model)
	if err != nil {
		return nil, nil, err
	}
	if s := c.s.o.System; s != "" && !slices.ContainsFunc(q.messages, func(m chat.Message) bool { return m.Role == "system" || m.Role == "developer" }) {
		q.messages = slices.Concat([]chat.Message{{Role: "system", Content: s}}, q.messages)
	}
	c.leaveOut(q.tools.left)
	return m, &chat.Conversation{
		Messages: q.messages, Tools: raws(q.choice.visible(q.tools)), Generate: true,
		Thinking: q.thinking, Effort: q.effort, Kwargs: rest, Now: time.Now(),
	}, nil
}

// prompt returns the tokens of a conversation.
func (c *call) prompt(q *talkRequest) (ids []int32, err error) {
	m, conv, err := c.prepare(q)
	if err != nil {
		return nil, err
	}
	err = c.text(func(ctx context.Context) error {
		turn, err := m.turn(ctx, *conv, talk.Options{Resume: q.resume})
		if err == nil {
			ids = turn.Request.Prompt
		}
		return err
	})
	c.forget()
	return ids, err
}

// converse makes the sequences that answer a conversation.
func (c *call) converse(q *talkRequest) (*conversation, error) {
	if err := c.admit(); err != nil {
		return nil, err
	}
	m, conv, err := c.prepare(q)
	if err != nil {
		return nil, err
	}
	if err := m.predicts(); err != nil {
		return nil, err
	}
	call, err := q.choice.forced(q.tools)
	if err != nil {
		return nil, err
	}
	answer, err := q.sampling.format(q.format)
	if err != nil {
		return nil, err
	}
	if q.resume && (call != nil || answer != nil) {
		return nil, unsupported("tool_choice", "tool_choice: the answer has begun with the last message, so that neither a call nor a format can be forced")
	}
	single := q.parallel != nil && !*q.parallel || q.choice.mode == "named"
	o := talk.Options{Reasoning: q.reasoning, Call: call, Single: single, Resume: q.resume}
	if !q.resume {
		o.Tools = q.rules()
	}
	if answer != nil {
		o.Format = &answer.source
	}
	var r engine.Request
	var turn *talk.Turn
	err = c.text(func(ctx context.Context) error {
		if r, err = q.sampling.request(m, c.raw); err != nil {
			return err
		}
		o.Sampling, o.Stops = r.Sampling, r.Stops
		turn, err = q.turn(ctx, m, conv, o)
		return err
	})
	c.forget()
	if err != nil {
		return nil, answer.within(err)
	}
	r.Format, r.AtOnce = turn.Request.Format, turn.Request.AtOnce
	r.Prompt, r.Turn, r.Special, r.Reasoning, r.Opening = turn.Request.Prompt, turn.Request.Turn, turn.Request.Special, turn.Request.Reasoning, turn.Request.Opening
	if err := budget(m, &r, q.max, q.maxParam); err != nil {
		return nil, err
	}
	r.TopLogprobs = q.top
	r.StopTokens = append(r.StopTokens, turn.Request.StopTokens...)
	t := &conversation{parser: turn.Parser, tools: q.tools, single: single}
	if q.inline {
		t.parser = func() *chat.Parser { return turn.Parser().Inline() }
		if r.Reasoning != nil {
			r.Reasoning.Hidden = false
		}
	}
	t.run = run{call: c, model: m, reqs: spread(r, q.sampling.choices())}
	if c.s.o.LogText {
		c.log.prompt = turn.Text
	}
	if c.user != nil && t.reqs[0].Priority > c.user.Priority {
		for i := range t.reqs {
			t.reqs[i].Priority = c.user.Priority
		}
	}
	return t, nil
}

// rules returns the tools of a request as far as answers are held to them.
func (q *talkRequest) rules() (list []talk.Tool) {
	for _, t := range q.choice.visible(q.tools) {
		list = append(list, talk.Tool{Name: t.name, Schema: t.schema, Strict: t.strict})
	}
	return list
}

// leaveOut says in a header, in the log and in a counter what of the request was left out.
func (c *call) leaveOut(left []string) {
	if len(left) == 0 {
		return
	}
	c.log.left = append(c.log.left, left...)
	c.w.Header().Set("X-Zincrun-Left-Out", strings.Join(c.log.left, ", "))
	for _, what := range left {
		kind, known := service(what)
		if !known {
			kind, _, _ = strings.Cut(what, " ")
			if kind != "grammar" {
				kind = "other"
			}
		}
		c.s.metrics.leftOut.WithLabelValues(kind).Inc()
	}
}

// spread makes n requests of one, which differ in their seeds.
func spread(r engine.Request, n int) []engine.Request {
	all := slices.Repeat([]engine.Request{r}, n)
	for i := range all {
		all[i].Sampling.Seed += uint64(i)
	}
	return all
}

package api

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/text"
)

// encodePlain takes text for text only, encodeSpecial sees special tokens in it.
var (
	encodePlain   = text.EncodeOptions{}
	encodeSpecial = text.EncodeOptions{ParseSpecial: true}
)

// A part is what comes of one of the sequences that answer a request.
type part struct {
	choice int
	event  engine.Event
	err    error
	idle   bool // nothing came for a while; the rest is empty
}

// A run is what answers a request: sequences side by side.
type run struct {
	call  *call
	model *Model
	reqs  []engine.Request
	cuts  []context.CancelCauseFunc // end single sequences, as if they had stopped
}

// parts yields what comes of the sequences, in the order in which it comes. When the caller stops, or an
// error was yielded, all of them end. It measures for the log and the metrics.
func (g *run) parts() iter.Seq[part] {
	return func(yield func(part) bool) {
		if e := g.call.user.charge(g.prompts()); e != nil {
			yield(part{err: e})
			return
		}
		ctx, cancel := context.WithCancelCause(g.call.r.Context())
		parts := make(chan part, len(g.reqs))
		g.cuts = make([]context.CancelCauseFunc, len(g.reqs))
		ctxs := make([]context.Context, len(g.reqs))
		for i, r := range g.reqs {
			r.Owner = g.call.user.owner()
			ctxs[i], g.cuts[i] = context.WithCancelCause(ctx)
			go func() {
				for event, err := range g.model.Engine.Generate(ctxs[i], r) {
					parts <- part{choice: i, event: event, err: err}
				}
				parts <- part{choice: -1}
			}()
		}
		left := len(g.reqs)
		// Wait for what still runs: only then may its model be unloaded.
		defer func() {
			cancel(errAbandoned)
			for left > 0 {
				if p := <-parts; p.choice < 0 {
					left--
				}
			}
		}()
		meter := newMeter(g.call, g.model, len(g.reqs))
		defer meter.close()
		keepAlive := g.call.s.o.KeepAlive
		idle := time.NewTicker(keepAlive)
		defer idle.Stop()
		for left > 0 {
			var p part
			select {
			case p = <-parts:
				idle.Reset(keepAlive)
			case <-idle.C:
				p.idle = true
			}
			if p.choice < 0 {
				left--
				continue
			}
			if !p.idle {
				settle(ctxs[p.choice], &p)
				meter.take(p)
			}
			if !yield(p) || p.err != nil {
				return
			}
		}
	}
}

// prompts is how many tokens the prompts have; those of several answers to one count once.
func (g *run) prompts() (tokens int) {
	for i, r := range g.reqs {
		if i == 0 || &r.Prompt[0] != &g.reqs[i-1].Prompt[0] {
			tokens += len(r.Prompt)
		}
	}
	return tokens
}

var (
	errAbandoned = errors.New("no longer wanted")
	errCut       = errors.New("all that was asked for is there")
)

// settle finds out why a sequence ended other than by itself. One that was cut has stopped.
func settle(ctx context.Context, p *part) {
	done := p.event.Done
	if p.err == nil && done != nil && done.Reason == engine.Cancelled {
		p.err = context.Canceled
		if ctx.Err() == nil {
			p.err = engine.ErrClosed
		}
	}
	if p.err == nil || ctx.Err() == nil {
		return
	}
	if p.err = context.Cause(ctx); p.err == errCut {
		done.Reason, p.err = engine.Stopped, nil
	}
}

// A conversation is on its way through a model.
type conversation struct {
	run
	parser func() *chat.Parser // makes what tells the parts of an answer apart
	tools  toolset
	single bool // at most one call in an answer
}

// An update is what is new of an answer.
type update struct {
	choice int
	deltas []chat.Delta
	tokens []engine.Token
	done   *engine.Done
	calls  int // with done: calls whose arguments are whole JSON
	idle   bool
}

// updates yields the answers as they come. Every answer has one update with done, its
// last, unless an error ends all.
func (t *conversation) updates() iter.Seq2[update, error] {
	return func(yield func(update, error) bool) {
		answers := make([]answerState, len(t.reqs))
		for i := range answers {
			answers[i] = answerState{talk: t, parser: t.parser()}
		}
		for p := range t.parts() {
			if p.err != nil {
				yield(update{}, p.err)
				return
			}
			if p.idle {
				if !yield(update{idle: true}, nil) {
					return
				}
				continue
			}
			a := &answers[p.choice]
			u := update{choice: p.choice, done: p.event.Done}
			if !a.cut {
				u.tokens = p.event.Tokens
				u.deltas = a.push(p.event.Text)
			}
			if u.done != nil && !a.cut {
				u.deltas = append(u.deltas, a.close()...)
			}
			u.calls = a.calls()
			if a.cut && u.done == nil {
				t.cuts[p.choice](errCut)
			}
			if !yield(u, nil) {
				return
			}
		}
	}
}

// answerState follows one answer.
type answerState struct {
	talk   *conversation
	parser *chat.Parser
	args   []strings.Builder // of its calls
	cut    bool              // a second call began, and only one was asked for
}

// calls is how many calls are whole. One that the end of the answer cut off, or whose arguments are no
// JSON object, is none that a client can make.
func (a *answerState) calls() (n int) {
	for i := range a.args {
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(a.args[i].String()), &object) == nil {
			n++
		}
	}
	return n
}

func (a *answerState) push(text string) []chat.Delta {
	if text == "" {
		return nil
	}
	return a.adapt(a.parser.Push(text))
}

func (a *answerState) close() []chat.Delta { return a.adapt(a.parser.Close()) }

// adapt gives calls their ids, and ends an answer that may have one call only.
func (a *answerState) adapt(deltas []chat.Delta) []chat.Delta {
	var out []chat.Delta
	for _, x := range deltas {
		if x.Call != nil {
			if a.talk.single && x.Call.Index > 0 {
				a.cut = true
				break
			}
			call := *x.Call
			if call.Index == len(a.args) {
				a.args = append(a.args, strings.Builder{})
				if call.ID == "" {
					call.ID = "call_" + random(12)
				}
			}
			a.args[call.Index].WriteString(call.Arguments)
			x.Call = &call
		}
		out = append(out, x)
	}
	return out
}

// An answer is one that is complete.
type answer struct {
	reasoning strings.Builder
	content   strings.Builder
	calls     []chat.Call
	tokens    []engine.Token
	done      engine.Done
	whole     int // calls whose arguments are whole JSON
}

// take adds an update.
func (a *answer) take(u update) {
	for _, d := range u.deltas {
		a.reasoning.WriteString(d.Reasoning)
		a.content.WriteString(d.Content)
		if d.Call != nil {
			for len(a.calls) <= d.Call.Index {
				a.calls = append(a.calls, chat.Call{})
			}
			c := &a.calls[d.Call.Index]
			c.ID += d.Call.ID
			c.Name += d.Call.Name
			c.Arguments += d.Call.Arguments
		}
	}
	a.tokens = append(a.tokens, u.tokens...)
	if u.done != nil {
		a.done, a.whole = *u.done, u.calls
	}
}

// whole waits for all answers.
func (t *conversation) whole() ([]answer, error) {
	answers := make([]answer, len(t.reqs))
	for u, err := range t.updates() {
		if err != nil {
			return nil, err
		}
		if !u.idle {
			answers[u.choice].take(u)
		}
	}
	return answers, nil
}

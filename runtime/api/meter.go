package api

import (
	"time"

	"github.com/zincc-dev/zincc/runtime/engine"
)

// A meter measures the sequences of a request as its client sees them.
type meter struct {
	c    *call
	m    *Model
	last []time.Time // by choice, of its latest tokens
}

func newMeter(c *call, m *Model, choices int) *meter {
	c.log.key = c.user.name()
	return &meter{c: c, m: m, last: make([]time.Time, choices)}
}

func (t *meter) take(p part) {
	log := &t.c.log
	now := time.Now()
	if n := len(p.event.Tokens); n > 0 {
		if log.first.IsZero() {
			log.first = now
			t.c.s.metrics.firstToken(log.model, now.Sub(log.start))
		}
		if last := t.last[p.choice]; !last.IsZero() {
			gap := now.Sub(last)
			log.gaps = append(log.gaps, gap)
			t.c.s.metrics.gap(log.model, gap)
		}
		t.last[p.choice] = now
		t.c.user.spend(n)
	}
	if done := p.event.Done; done != nil {
		u := done.Usage
		if log.finish == "" {
			log.usage = u
		} else {
			log.usage = sum(log.usage, u)
		}
		log.finish = done.Reason
		t.c.s.metrics.done(log.model, done.Reason, u, now.Sub(log.start))
	}
	if p.err != nil {
		log.finish = "error"
		t.c.s.metrics.failed(log.model, errorOf(p.err))
	}
	if t.c.s.o.LogText {
		log.answer += p.event.Text
	}
}

// close counts a request whose reader left.
func (t *meter) close() {
	if t.c.log.finish == "" {
		t.c.log.finish = "cancelled"
		t.c.s.metrics.failed(t.c.log.model, &Error{Kind: clientGone})
	}
}

// sum adds up what several sequences took; those of the same prompt share its tokens.
func sum(a, b engine.Usage) engine.Usage {
	a.Prompt += b.Prompt
	a.Cached += b.Cached
	a.Completion += b.Completion
	a.Reasoning += b.Reasoning
	a.Guessed += b.Guessed
	a.Held += b.Held
	a.Queue = max(a.Queue, b.Queue)
	a.Prefill += b.Prefill
	a.Decode = max(a.Decode, b.Decode)
	return a
}

package engine

import (
	"github.com/zincc-dev/zincc/runtime"
)

// slot is a sequence slot of the plan and what it holds.
type slot struct {
	index  int
	seq    *seq    // nil: idle
	owner  string  // of the request that wrote it
	tokens []int32 // those at positions 0, 1, ...
	// whole is how many tokens lie in whole pieces that prompts have written, as a run without
	// cache writes them.
	whole int
	// turn is where a later request can go on, with the recurrent state that is kept of it: a cut; 0: nowhere. With
	// Options.ReuseAnswers it is where the next turn of the conversation begins to differ. Its prompt was read from
	// start on; turnExact says that all before turn was written as by a run without cache.
	turn, start int
	turnExact   bool
	state       runtime.State // recurrent state at turn; nil for models without
	end         int           // how far it was written, at most
	at          int           // where the slot's own recurrent state is
	used        int64         // when a request left it, by the loop's clock
}

// match is how many tokens of the prompt the slot has, leaving one to compute.
func (l *slot) match(r *Request) int {
	if l.owner != r.Owner {
		return 0
	}
	n := min(len(l.tokens), len(r.Prompt)-1)
	for i, t := range l.tokens[:n] {
		if t != r.Prompt[i] {
			return i
		}
	}
	return n
}

// hit returns how many tokens of the prompt need no computing in this slot, and whether the
// answer has the same bits as if they were computed. Caches that are rings may have lost what the next row sees: then
// all is computed anew.
func (e *Engine) hit(l *slot, r *Request) (tokens int, exact bool) {
	if r.NoCache {
		return 0, true
	}
	known := e.known
	if e.o.ReuseAnswers {
		known = e.knownAnswer
	}
	if tokens, exact = known(l, r); !e.plan.Memory.Hold(l.end, tokens) {
		return 0, true
	}
	return tokens, exact
}

// known is hit for caches that lose nothing.
func (e *Engine) known(l *slot, r *Request) (tokens int, exact bool) {
	m := l.match(r)
	switch {
	case !e.recurrent:
		return e.prompts.cutBefore(min(m, l.whole)), true
	case l.turn <= m:
		return l.turn, true
	}
	return 0, true
}

// knownAnswer is known with Options.ReuseAnswers.
func (e *Engine) knownAnswer(l *slot, r *Request) (tokens int, exact bool) {
	m := l.match(r)
	known := l.turn > 0 && m >= l.turn
	switch {
	case e.recurrent && !known:
		return 0, true
	case e.recurrent && l.turn != r.Turn && m == l.at:
		return m, false
	case e.recurrent:
		return l.turn, l.turn == r.Turn && l.turnExact
	case known && l.turn != r.Turn:
		return min(m, r.Turn), false
	case known && !l.turnExact: // the same turn again
		return l.start, false
	}
	return e.prompts.cutBefore(min(m, l.whole)), true
}

// checkpoint is where a sequence leaves what a later request goes on from, which must be known to begin as this one
// does up to its Turn.
func (e *Engine) checkpoint(r *Request) int {
	if e.o.ReuseAnswers {
		return r.Turn
	}
	return e.prompts.cutBefore(min(r.Turn, len(r.Prompt)-1))
}

// place chooses the idle slot that spares most, unless that would throw away more, and makes it
// ready for the request.
func (e *Engine) place(r *Request) (l *slot, hit int, exact bool) {
	for _, c := range e.slots {
		if c.seq != nil {
			continue
		}
		h, x := e.hit(c, r)
		if 2*h < e.worth(c) && x { // most of it is another conversation
			h = 0
		}
		if l == nil || h > hit || h == hit && c.used < l.used {
			l, hit, exact = c, h, x
		}
	}
	if l != nil && hit == 0 {
		hit, exact = e.hit(l, r)
	}
	return l, hit, exact
}

// worth is how many tokens of a slot a later request may reuse.
func (e *Engine) worth(l *slot) int {
	switch {
	case e.o.ReuseAnswers:
		return len(l.tokens)
	case e.recurrent:
		return l.turn
	}
	return l.whole
}

// begin gives the slot to a request that reuses its first n tokens.
func (l *slot) begin(s *seq, n int) {
	l.seq, l.owner = s, s.req.Owner
	l.tokens, l.whole = l.tokens[:n], min(l.whole, n)
	if n == 0 {
		l.end = 0
	}
	if l.turn > n {
		l.forget()
	}
}

// forget drops the place of the next turn.
func (l *slot) forget() {
	l.turn, l.start, l.turnExact = 0, 0, false
	if l.state != nil {
		l.state.Free()
		l.state = nil
	}
}

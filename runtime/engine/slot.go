package engine

import (
	"github.com/zincc-dev/zincc/runtime"
)

// slot is a sequence slot of the plan and what it holds.
type slot struct {
	index  int
	seq    *seq    // nil: idle
	tokens []int32 // those at positions 0, 1, ...
	// whole is how many tokens lie in whole pieces that prompts have written, as a run without
	// cache writes them.
	whole int
	// turn is where the next turn of the conversation begins to differ; 0: nowhere. Its prompt was read from
	// start on; turnExact says that all before turn was written as by a run without cache.
	turn, start int
	turnExact   bool
	state       runtime.State // recurrent state at turn; nil for models without
	low         int           // first position that the caches hold that are rings
	at          int           // where the slot's own recurrent state is
	used        int64         // when a request left it, by the loop's clock
}

// match is how many tokens of the prompt the slot has, leaving one to compute.
func (l *slot) match(prompt []int32) int {
	n := min(len(l.tokens), len(prompt)-1)
	for i, t := range l.tokens[:n] {
		if t != prompt[i] {
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
	if tokens, exact = e.known(l, r); !e.rings.Hold(l.low, tokens) {
		return 0, true
	}
	return tokens, exact
}

// known is hit for caches that lose nothing.
func (e *Engine) known(l *slot, r *Request) (tokens int, exact bool) {
	m := l.match(r.Prompt)
	known := l.turn > 0 && m >= l.turn && (l.turnExact && l.turn == r.Turn || !e.o.Exact)
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

// place chooses the idle slot that spares most, unless that would throw away more, and makes it
// ready for the request.
func (e *Engine) place(r *Request) (l *slot, hit int, exact bool) {
	for _, c := range e.slots {
		if c.seq != nil {
			continue
		}
		h, x := e.hit(c, r)
		if 2*h < len(c.tokens) && x { // most of it is another conversation
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

// cut drops what the slot holds behind its first n tokens.
func (l *slot) cut(n int) {
	l.tokens, l.whole = l.tokens[:n], min(l.whole, n)
	if n == 0 {
		l.low = 0
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

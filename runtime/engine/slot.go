package engine

import (
	"github.com/zincc-dev/zincc/runtime"
)

// slot is a sequence slot of the plan and what it holds. What prompts left in it as a run without cache would have
// written it, the tree knows.
type slot struct {
	index    int
	seq      *seq     // nil: idle
	owner    string   // of the request that wrote it
	tokens   []int32  // those at positions 0, 1, ...
	read     int      // how many of them were written as prompts that go on behind write them, at most
	end      int      // how far it was written, at most
	at       int      // where the slot's own recurrent state is, or nowhere
	windows  int      // caches of a window do not hold all that a row before it sees
	used     int64    // when a request left it, by the loop's clock
	decision Decision // of the request that has it, or had it last
	names    []string // of the pieces of the prompt, until all that is to be kept is
	parts    []part   // that are left of these; nil: nobody has looked
	anew     bool     // what is kept of it was not what it should be
	places   [2]int   // where prompts will go on, maybe: in its turn, and where it parted from others
	answered
}

// nowhere is where a recurrent state is that is of other tokens than the slot's.
const nowhere = -1

// answered is where the next turn of a conversation begins to differ, with Options.ReuseAnswers.
type answered struct {
	turn      int           // 0: nowhere
	start     int           // where the prompt was read from
	turnExact bool          // all before turn was written as by a run without cache
	state     runtime.State // recurrent state at turn; nil for models without
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

// known returns how many tokens of the prompt need no computing in this slot with Options.ReuseAnswers, and whether the
// answer has the same bits as if they were computed. Caches that are rings may have lost what the next row sees: then
// all is computed anew.
func (e *Engine) known(l *slot, r *Request) (tokens int, exact bool) {
	if r.NoCache || !e.o.ReuseAnswers {
		return 0, true
	}
	if tokens, exact = e.knownOf(l, r); !e.sound(l.index, tokens) {
		return 0, true
	}
	return tokens, exact
}

// knownOf is known for caches that lose nothing.
func (e *Engine) knownOf(l *slot, r *Request) (tokens int, exact bool) {
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
	return e.prompts.cutBefore(min(m, e.tree.At(l.index), e.prompts.last(len(r.Prompt)))), true
}

// forget drops the place of the next turn.
func (a *answered) forget() {
	if a.state != nil {
		a.state.Free()
	}
	*a = answered{}
}

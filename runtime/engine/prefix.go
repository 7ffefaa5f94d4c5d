package engine

import (
	"context"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cache"
)

// every is how far apart recurrent states of a long prompt are kept, in positions, at most about.
const every = 4096

// statesPerSlot bounds the recurrent states that are kept.
const statesPerSlot = 2

// copying is how many times as long a prompt takes to compute as to copy; it is more on all devices.
const copying = 100

func newTree(plan *plans.Plan, p *prompts, w cache.Watcher) *cache.Tree {
	state := int64(0)
	for _, s := range plan.Memory.Checkpoint(0, plan.Header.Ctx-1) {
		state += s.Bytes
	}
	return cache.New(cache.Options{Cuts: p.cuts, Costs: p.costs, Holders: plan.Header.Slots,
		Recurrent: plan.Memory.Recurrent(), StateBytes: statesPerSlot * int64(plan.Header.Slots) * state, Watch: w})
}

// now is the time of the tree.
func (e *Engine) now() float64 { return time.Since(e.stats.Started).Seconds() }

// sound says whether the caches of a slot hold all that a row at pos sees.
func (e *Engine) sound(slot, pos int) bool {
	l := e.slots[slot]
	return pos >= l.windows && e.plan.Memory.Hold(l.end, pos) && (e.pages == nil || e.pages.Sees(slot, pos))
}

// match is what the tree has of a prompt, in slot prefer if that has it.
func (e *Engine) match(r *Request, prefer int) cache.Hit {
	if r.NoCache {
		return cache.Hit{Holder: -1}
	}
	return e.tree.Match(r.Owner, r.Prompt[:e.prompts.last(len(r.Prompt))], prefer, e.sound)
}

// place chooses the idle slot that spares most, and of those the one whose content is missed least.
func (e *Engine) place(r *Request) (best *slot, hit int, why string) {
	h, now := e.match(r, -1), e.now()
	var least float64
	idle := 0
	for _, c := range e.slots {
		if c.seq != nil {
			continue
		}
		idle++
		gain, loss := h.Pos, 0.0
		if e.o.ReuseAnswers {
			if own, exact := e.known(c, r); !exact || 2*own >= len(c.tokens) { // else most of it is another conversation
				gain = max(gain, own)
			}
		} else {
			loss = e.tree.Loss(c.index, h, now)
			if e.tree.Common(c.index, h) < h.Pos {
				loss += e.prompts.cost(h.Pos) / copying
			}
		}
		if best == nil || gain > hit || gain == hit && (loss < least || loss == least && c.used < best.used) {
			best, hit, least = c, gain, loss
		}
	}
	switch {
	case idle == 1:
		why = OnlySlot
	case hit > 0 && (hit > h.Pos || e.tree.Common(best.index, h) == hit):
		why = HoldsPrompt
	default:
		why = LeastMissed
	}
	return best, hit, why
}

// start makes the sequence's slot ready for its next step, and says whether it has the slot still. Before the first
// step the slot gets all that is known of the prompt, its own or another slot's; until then it has kept what it had.
func (e *Engine) start(s *seq) (bool, error) {
	if s.started {
		return e.supply(s, e.first(s))
	}
	l := s.slot
	forgotten := e.tree.Stats().ForgottenTokens
	if err := e.find(s); err != nil {
		return false, err
	}
	ready, err := e.supply(s, e.first(s))
	l.decision.Forgot = int(e.tree.Stats().ForgottenTokens - forgotten)
	if s.started = ready; ready {
		e.decided[l.decision.Reuse]++
	}
	return ready, err
}

// find gives the sequence's slot what is known of the prompt.
func (e *Engine) find(s *seq) error {
	l, r := s.slot, s.req
	if e.kept != nil {
		s.names = e.kept.names(e.prompts, r.Owner, r.Prompt)
		l.names, l.parts, l.anew = s.names, nil, s.below > 0
	}
	l.places = [2]int{e.turnCut(r)}
	e.headFor(s, 0)
	h := e.match(r, l.index)
	if own, exact := e.known(l, r); own > 0 && own >= h.Pos {
		if l.decision.Reuse, l.decision.From = OwnAnswer, l.index; exact {
			l.decision.Reuse = OwnSlot
		}
		return e.goOn(s, own, exact)
	}
	to := e.keptTail(s, h)
	rows := h
	if to > 0 && !e.kept.windows {
		rows = h.Rows(to, l.index)
	}
	switch l.decision.From = rows.Holder; rows.Holder {
	case -1:
		l.decision.Reuse = NoSlot
	case l.index:
		l.decision.Reuse = OwnSlot
	default:
		l.decision.Reuse = OtherSlot
	}
	if rows.Pos > 0 && rows.Holder != l.index {
		if err := e.inherit(l, e.slots[rows.Holder], e.tree.Common(l.index, rows), rows.Pos); err != nil {
			return err
		}
	}
	if to > 0 {
		l.at = nowhere
	} else if h.State != nil && (h.Holder != l.index || l.at != h.Pos) {
		if err := e.exec.RestoreState(context.Background(), h.State, e.plan.Memory.Checkpoint(l.index, h.Pos)); err != nil {
			return err
		}
		l.at = h.Pos
	}
	l.forget()
	from, known := rows.Pos, h.Pos
	if to == 0 && rows.Holder == l.index {
		from = e.between(s, from)
		known = from
	}
	e.tree.Begin(l.index, r.Owner, rows, e.now())
	l.owner, l.tokens, l.read = r.Owner, append(l.tokens[:0], r.Prompt[:from]...), from
	if rows.Pos == 0 {
		l.end, l.windows = 0, 0
	}
	e.headFor(s, to)
	e.cached(s, known)
	s.exact, s.parts, s.forks, l.places[1] = true, h.Known, h.Forks(), h.Known
	return nil
}

// between is where a prompt goes on in its own slot, which holds it up to the cut at pos and beyond: rows up to the
// next cut are there as prompts write them, but of the last grain of the one before. So a turn reads less again than
// where others hold it. Models with recurrent state go on only where a state is, and what is kept begins at a cut.
func (e *Engine) between(s *seq, pos int) int {
	i, _ := slices.BinarySearch(e.prompts.cuts, pos)
	if e.recurrent || e.o.ReuseAnswers || i < len(s.names) && e.kept.Has(s.names[i]) {
		return pos
	}
	l, r := s.slot, s.req
	n := len(r.Prompt)
	same := pos
	for end := min(l.read, len(l.tokens), e.prompts.shared(n), n-1); same < end && l.tokens[same] == r.Prompt[same]; {
		same++
	}
	if at := e.prompts.goOn(pos, same); e.sound(l.index, at) {
		return at
	}
	return pos
}

// goOn starts a sequence behind the first n tokens of its own slot, which need not be as a prompt writes them.
func (e *Engine) goOn(s *seq, n int, exact bool) error {
	l := s.slot
	e.tree.Trim(l.index, min(n, e.prompts.last(len(s.req.Prompt)))) // no further than its pieces have names
	if l.state != nil && n != l.at {
		if err := e.exec.RestoreState(context.Background(), l.state, e.plan.Memory.Checkpoint(l.index, n)); err != nil {
			return err
		}
		l.at = n
	}
	l.tokens, l.read = l.tokens[:n], min(l.read, n)
	if l.turn > n {
		l.forget()
	}
	e.cached(s, n)
	s.exact = exact
	return nil
}

// cached notes how many tokens of a prompt need no computing. What it took to read it first counts.
func (e *Engine) cached(s *seq, n int) {
	s.from, s.state = n, n
	if s.usage.Preempted == 0 {
		s.usage.Cached = n
	}
}

// inherit gives a slot positions [first, n) of another, whose positions before first it has. It shares its pages, and
// copies what does not lie in pages.
func (e *Engine) inherit(to, from *slot, first, n int) error {
	p := e.plan
	spans := func(slot int) []plans.Span { return append(p.Rows(slot, first, n), p.Rings(slot)...) }
	if e.pages != nil {
		e.pages.Share(to.index, from.index, n)
	}
	to.end, to.windows = from.end, from.windows
	return e.exec.Copy(context.Background(), spans(to.index), spans(from.index))
}

// keepsAnswers says that a prompt's steps end at its turn, where a later request goes on within the answer.
func (e *Engine) keepsAnswers() bool { return e.recurrent && e.o.ReuseAnswers }

// grow notes in the tree that a prompt has been read on to a position, as a run without cache reads it.
func (e *Engine) grow(s *seq, from, pos int) {
	l, r := s.slot, s.req
	if e.keepsAnswers() && pos > r.Turn {
		return
	}
	cuts := e.prompts.cutsIn(from, min(pos, e.prompts.shared(len(r.Prompt))))
	for _, cut := range cuts {
		e.tree.Extend(l.index, r.Prompt, e.now())
		if !e.recurrent && e.nextLeft(s, cut-1, cut) == cut {
			e.tree.Left(l.index)
		}
	}
	if !e.recurrent || len(cuts) == 0 || cuts[len(cuts)-1] != pos || !e.due(s, pos) {
		return
	}
	s.state = pos
	if e.tree.HasState(l.index) {
		return
	}
	if state := e.save(l, pos); state != nil {
		e.tree.Keep(l.index, state, e.now())
	}
}

// turnCut is the last cut within the turn of a request.
func (e *Engine) turnCut(r *Request) int {
	return e.prompts.cutBefore(min(r.Turn, e.prompts.last(len(r.Prompt))))
}

// due says whether the recurrent state of a prompt is to be kept at a cut behind the last one: where others went on
// with other tokens, so far behind that, and at the last cut within the turn if that takes no step more, or spares one.
func (e *Engine) due(s *seq, cut int) bool {
	behind := cut - s.state
	switch {
	case behind >= every, cut == s.parts && s.forks:
		return true
	case cut == s.parts, !e.o.ReuseAnswers && cut == e.turnCut(s.req):
		return behind >= e.prompts.apart(cut)
	}
	return false
}

// nextDue is the first cut behind pos, up to another one, at which a prompt's recurrent state is to be kept; 0: none.
func (e *Engine) nextDue(s *seq, pos, to int) int {
	for _, cut := range e.prompts.cutsIn(pos, min(to, e.prompts.shared(len(s.req.Prompt)))) {
		if e.due(s, cut) {
			return cut
		}
	}
	return 0
}

// nextLeft is the first cut behind pos, up to another one, at which others can go on that begin alike once a prompt has
// been read; 0: none. What they need there is a state, where the model has some, and all that a window sees.
func (e *Engine) nextLeft(s *seq, pos, to int) int {
	n := len(s.req.Prompt)
	end := e.prompts.shared(n)
	windows := e.pages != nil && e.plan.PagedIn(ir.WindowGroup) != nil
	turn, last := e.turnCut(s.req), e.prompts.cutBefore(end)
	for _, cut := range e.prompts.cutsIn(pos, min(to, end)) {
		seen := !windows || cut == turn || cut == last || cut == s.parts
		if seen && (!e.recurrent || e.due(s, cut)) && e.plan.Memory.Hold(n, cut) {
			return cut
		}
	}
	return 0
}

// turned notes that a prompt has been read behind its turn: with Options.ReuseAnswers a later request goes on there, or
// behind.
func (e *Engine) turned(s *seq, pos int) {
	l, turn := s.slot, s.req.Turn
	if pos < turn || l.turn == turn || e.recurrent && pos != turn {
		return
	}
	l.forget()
	if e.recurrent {
		if l.state = e.save(l, pos); l.state == nil {
			return
		}
	}
	l.turn, l.start, l.turnExact = turn, s.from, s.exact
}

package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cache"
	"github.com/zincc-dev/zincc/runtime/step"
)

// loop is what the goroutine that owns the device works on.
type loop struct {
	slots     []*slot
	running   []*seq // in slots, first come first
	prompts   *prompts
	tree      *cache.Tree // what slots hold of prompts
	turns     turns
	kept      *kept            // nil: nothing is kept over restarts
	decided   map[string]int64 // Stats.Decided
	waits     map[string]int64 // Stats.PromptWaits
	chosen    map[string]int64 // Stats.Chosen
	costs     costs
	drafted   costs   // of steps of drafts, whose rows are of few sequences
	draftHost average // as host, behind a step of drafts
	guessed   int64   // Stats.Guessed
	held      int64   // Stats.Held
	recurrent bool
	clock     int64
	decoding  []*seq        // of the step, in memory that is used again
	spent     time.Duration // on prompts, in this step
	forcedRun float64       // seq.forcedRun of all
	guided    *guided       // nil: no sequences are
	prepared  *prepared     // nil: no step is, or was submitted and not waited for
	crew      *crew         // nil: nobody helps
	guides    bool          // the device can choose within masks
	host      average       // seconds from the end of a step of decoding on the device until its tokens are chosen
	perRow    average       // seconds that the choice by a row of candidates takes
	pages     *cache.Pages  // that slots have; nil where caches do not lie in pages
	short     bool          // a slot is free, and there are no pages for the next request
	preempted int64         // sequences that gave their slots up
	block     step.Block
	overlaps  bool      // the executor is runtime.Overlapping, and does
	ahead     *ahead    // nil: everything that is submitted was waited for
	aheads    int64     // how often something was submitted ahead
	prepares  int64     // steps that were prepared and submitted
	taken     time.Time // when the last of these was waited for
	read      int64     // tokens of prompts
	generated int64
	// Recurrent states that could not be kept, and why the last one could not.
	unsaved    int64
	unsavedWhy error
	// Since when tokens are counted for the rates, and how many there were.
	window                      time.Time
	readBefore, generatedBefore int64
}

// run takes steps as long as there is something to do.
func (e *Engine) run() {
	defer close(e.stopped)
	for e.prepare() {
		if err := e.step(); err != nil {
			e.ahead, e.guided, e.prepared = nil, nil, nil
			e.fail(err)
		}
	}
	e.keepRest()
	for _, l := range e.slots {
		l.forget()
	}
	e.tree.Forget()
}

// prepare ends what is cancelled, lets in what waits, and waits for work; false at the end.
func (e *Engine) prepare() bool {
	for {
		e.mu.Lock()
		why := e.closing
		if e.err != nil {
			why = e.err
		}
		e.sweep(why)
		closing := e.closing
		outranked := e.outranked()
		e.mu.Unlock()
		if outranked != nil && e.ahead == nil && e.guided == nil && e.prepared == nil {
			e.putBack(outranked)
			continue
		}
		if len(e.running) > 0 || e.ahead != nil || e.guided != nil || e.prepared != nil {
			return true
		}
		e.publish()
		if closing != nil {
			return false
		}
		e.keep(e.look)
		<-e.wake
	}
}

// sweep ends sequences that were cancelled, all of them if why is not nil, and gives free slots to
// those that wait. It runs under the lock.
func (e *Engine) sweep(why error) {
	e.requeue()
	e.running = slices.DeleteFunc(e.running, func(s *seq) bool { return e.over(s, why) })
	e.waiting = slices.DeleteFunc(e.waiting, func(s *seq) bool { return e.over(s, why) })
	e.short = false
	for len(e.waiting) > 0 && len(e.running) < len(e.slots) {
		e.turns.forget(e.waiting, e.running)
		i := e.turns.next(e.waiting)
		s := e.waiting[i]
		if e.short = !e.admit(s); e.short {
			break
		}
		e.waiting = slices.Delete(e.waiting, i, i+1)
		e.running = append(e.running, s)
	}
	// Prompts of a higher priority are read first.
	slices.SortStableFunc(e.running, func(a, b *seq) int { return b.req.Priority - a.req.Priority })
}

// over ends a sequence if there is a reason to, and says so.
func (e *Engine) over(s *seq, why error) bool {
	switch {
	case s.ended:
	case errors.Is(why, errDrained):
		d := s.done(Length, nil)
		d.Drained = true
		e.end(s, d)
	case errors.Is(why, ErrClosed):
		e.end(s, s.done(Cancelled, nil))
	case why != nil:
		e.end(s, s.done(Failed, why))
	case context.Cause(s.ctx) == errStopped:
		e.end(s, s.done(Stopped, nil))
	case s.ctx.Err() != nil:
		e.end(s, s.done(Cancelled, nil))
	case s.admitted.IsZero() && e.o.Patience > 0 && time.Since(s.arrived) >= e.o.Patience:
		e.end(s, s.done(Failed, ErrQueueTimeout))
	default:
		return false
	}
	return true
}

// end gives the slot back and tells the reader. It runs under the lock.
func (e *Engine) end(s *seq, d *Done) {
	s.ended = true
	if s.slot != nil {
		e.leave(s.slot)
	}
	e.stats.count(d)
	e.active--
	if e.active == 0 && e.idle != nil {
		close(e.idle)
		e.idle = nil
	}
	s.out.end(d)
}

// admit gives a sequence a slot, if there are pages for what it begins with.
func (e *Engine) admit(s *seq) bool {
	l, cached, why := e.place(s.req)
	if !e.room(s, l) {
		return false
	}
	e.clock++
	e.turns[s.req.Owner] = e.clock
	s.slot, l.seq, l.decision = l, s, Decision{Why: why, From: -1}
	if s.admitted.IsZero() {
		s.usage.Cached, s.admitted, s.forcedRun = cached, time.Now(), e.forcedRun
	}
	return true
}

// fail ends everything: an executor that has failed once is not used again.
func (e *Engine) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = err
	close(e.failed)
}

// step takes pieces of prompts, as many as the bound allows, and a step of decoding.
func (e *Engine) step() error {
	if more, err := e.catchUp(); more || err != nil {
		return err
	}
	switch {
	case e.guided != nil:
		return e.follow()
	case e.prepared != nil:
		return e.takePrepared()
	}
	for e.spent = 0; ; {
		r, err := e.nextRuns()
		if err != nil {
			return err
		}
		switch {
		case r == nil: // rounds may read short prompts that come before
			e.waitFor(ForOrder)
			return e.decodeAll()
		case len(r.rows) == 0:
			e.waitFor(ForTokens)
			return e.decodeAll()
		}
		took, err := e.readRuns(r)
		if err != nil {
			return err
		}
		e.spent += took
	}
}

// meanwhile is what the host does while the device runs what hardly takes longer than that: readers wake and take their
// tokens, and Stats tells what was done.
func (e *Engine) meanwhile(next time.Duration) {
	e.tell(next)
	e.publish()
}

// tell wakes the readers of tokens that will have waited for too long behind a step of that length.
func (e *Engine) tell(next time.Duration) {
	by := time.Now().Add(next)
	for _, s := range e.running {
		s.out.tell(by)
	}
}

// aim is the part of the bound that steps are planned for: what they take beside, as a rule, has the rest.
const aim = 0.95

// fits says whether a step of a prompt and the next tokens of all others fit the bound.
func (e *Engine) fits(s *seq, entry *plans.Entry, n int) bool {
	return e.costs.most(entry, len(s.slot.tokens)) <= e.left(len(s.slot.tokens)+n == len(s.req.Prompt))
}

// left is how long steps of prompts may take before the next token of the one that has waited for longest is due; ends
// says that the first token of another is chosen, too. If nobody waits for a token, prompts have one step and no more.
func (e *Engine) left(ends bool) time.Duration {
	decoding := e.decodable()
	answering, rows := e.wanted(decoding)
	if answering == 0 {
		if e.spent > 0 {
			return -1
		}
		return 2 * e.o.ITL
	}
	_, decode := e.costs.cover(e.prompts.decode, answering+min(rows, e.widest().Rows), depth(decoding))
	return e.untilNext(decoding, ends) - decode
}

// untilNext is how long it is until the next token of the one that has waited for longest must have come from the
// device; ends as for left.
func (e *Engine) untilNext(list []*seq, ends bool) time.Duration {
	host := seconds(e.host.most())
	if ends {
		host *= 2
	}
	return e.planned() - sinceLast(list) - host
}

// planned is the time between two tokens that steps are planned for.
func (e *Engine) planned() time.Duration { return time.Duration(aim * float64(e.o.ITL)) }

// sinceLast is how long ago the one that has waited for longest got its last token, of those that answer.
func sinceLast(list []*seq) time.Duration {
	last := time.Now()
	for _, s := range list {
		if !s.reading() && s.last.Before(last) {
			last = s.last
		}
	}
	return time.Since(last)
}

// stop is where steps of the prompt must end next, beside cuts: behind a turn that answers go on from there is to be a
// checkpoint.
func (e *Engine) stop(s *seq) int {
	if turn := s.req.Turn; e.keepsAnswers() && turn > len(s.slot.tokens) {
		return turn
	}
	return len(s.req.Prompt)
}

// decodable returns the sequences that take part in rounds of decoding.
func (e *Engine) decodable() []*seq {
	e.decoding = e.decoding[:0]
	for _, s := range e.running {
		if !s.ended && (s.joined || !s.reading()) {
			e.decoding = append(e.decoding, s)
		}
	}
	return e.decoding
}

// finish ends a sequence for a reason of its own.
func (e *Engine) finish(s *seq, reason string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end(s, s.done(reason, err))
}

package engine

import (
	"context"
	"errors"
)

// Where caches lie in pages, a sequence is let in once there are pages for all that it may write: so it never waits for
// one, and no other is stopped for it. What idle slots hold for later requests goes if it is in the way, what was left
// first first.

// reach is how many positions a sequence may write.
func (e *Engine) reach(s *seq) int {
	ctx, n := e.plan.Header.Ctx, len(s.req.Prompt)
	if s.req.Max < 0 || s.req.Max > ctx-n {
		return ctx
	}
	return n + s.req.Max
}

// room says whether there are pages for a sequence in a slot, beside those for sequences that have not started.
func (e *Engine) room(s *seq, l *slot) bool {
	if e.pages == nil {
		return true
	}
	need := e.pages.Need(e.reach(s))
	for _, r := range e.running {
		if !r.started && !r.ended {
			need += e.pages.Need(e.reach(r))
		}
	}
	return need <= e.pages.Spare(func(slot int) bool { return e.slots[slot].seq == nil || slot == l.index })
}

// own gives the sequence's slot pages of its own behind what it holds.
func (e *Engine) own(s *seq) error {
	if e.pages == nil {
		return nil
	}
	l, n := s.slot, len(s.slot.tokens)
	for e.pages.Free() < e.pages.Lacks(l.index, n, e.reach(s)) {
		idle := e.oldest()
		if idle == nil {
			return errors.New("a sequence was let in without pages for it")
		}
		e.empty(idle)
	}
	within := n % e.pages.Table().Page
	from := e.pages.Table().At(l.index, n)
	moved := e.pages.Own(l.index, n, e.reach(s))
	e.block.Pages = e.pages.Table().Entries
	if !moved {
		return nil
	}
	to := e.pages.Table().At(l.index, n)
	return e.exec.Copy(context.Background(), e.plan.PageRows(to, within), e.plan.PageRows(from, within))
}

// oldest returns the idle slot with pages that was left first.
func (e *Engine) oldest() *slot {
	var oldest *slot
	for _, l := range e.slots {
		if l.seq == nil && e.pages.Table().At(l.index, 0) > 0 && (oldest == nil || l.used < oldest.used) {
			oldest = l
		}
	}
	return oldest
}

// empty takes from an idle slot all that it holds.
func (e *Engine) empty(l *slot) {
	l.forget()
	e.tree.Trim(l.index, 0)
	l.owner, l.tokens, l.end = "", l.tokens[:0], 0
	e.pages.Drop(l.index, 0)
}

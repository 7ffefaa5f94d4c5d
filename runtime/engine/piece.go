package engine

import (
	"context"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// Pieces of prompts and steps of decoding are submitted back to back: a piece behind the one before it, a step behind a
// piece, and a piece behind a step. So the device does not wait while the host takes tokens and hands them out. One
// piece at most is open. Since a device runs one submission behind the other, what the host knows of a slot is what it
// holds behind all that is submitted. Pieces and steps are those that there would be one by one.

// piece is a step of a prompt that nobody has waited for yet. Meanwhile its sequence may end, or lose its slot.
type piece struct {
	flight      // of its sequence alone
	rows   int  // of the prompt
	last   bool // the first token of the answer is chosen behind it
	ticket runtime.Ticket
	began  time.Time
}

// prefill submits a step of a prompt, and then waits for the piece before it.
func (e *Engine) prefill(s *seq, entry *plans.Entry, n int) error {
	pos := len(s.slot.tokens)
	p := &piece{flight: flight{entry: entry}, rows: n}
	p.add(s)
	e.block.Reset()
	for i, t := range s.req.Prompt[pos : pos+n] {
		e.block.Add(t, pos+i, s.slot.index)
	}
	if err := e.settleFor(entry); err != nil {
		return err
	}
	var err error
	if p.began, p.ticket, err = e.submitBlock(entry, 1); err != nil {
		return err
	}
	if e.piece != nil {
		e.aheads++
	}
	if err := e.settle(); err != nil {
		return err
	}
	e.piece = p
	p.last = pos+n == len(s.req.Prompt) && len(s.answer) == 0 // of one that was put back what comes next is known
	s.choosing = p.last
	e.fed(s, n)
	if !e.overlaps {
		return e.settle()
	}
	return nil
}

// settle waits for the open piece, if there is one, and has the first token of its answer chosen behind the last one.
func (e *Engine) settle() error {
	p := e.piece
	if e.piece = nil; p == nil {
		return nil
	}
	s := p.group[0]
	if err := e.wait(p.ticket, p.began, p.entry, p.pos[0], p.rows, 1); err != nil {
		return err
	}
	e.read += int64(p.rows)
	if !p.has(0) {
		return nil
	}
	if s.req.Reading != nil && len(s.answer) == 0 {
		s.req.Reading(p.pos[0] + p.rows)
	}
	if !p.last {
		return nil
	}
	s.choosing = false
	if s.req.Max == 0 {
		e.finish(s, Length, nil)
		return nil
	}
	row := 0
	if p.entry.Kind == "decode" {
		row = p.rows - 1
	}
	return e.choose(p.entry, []*seq{s}, []int{row})
}

// settleFor waits for the open piece if a step of an entry would write over the logits behind it.
func (e *Engine) settleFor(entry *plans.Entry) error {
	if e.piece != nil && e.piece.last && e.piece.entry == entry {
		return e.settle()
	}
	return nil
}

// pending is how long what is open will hardly take from now on.
func (e *Engine) pending() time.Duration {
	if e.piece == nil {
		return 0
	}
	return max(0, e.costs.most(e.piece.entry, e.piece.pos[0])-time.Since(e.begun(e.piece.began)))
}

// readBehind submits the next piece of a prompt behind a step of decoding that is open, where nothing must be done
// before, and the tokens of all that decode, behind it, come in time.
func (e *Engine) readBehind(step *plans.Entry) error {
	if !e.overlaps || e.piece != nil || e.mayAdmit() {
		return nil
	}
	for _, s := range e.running {
		switch {
		case s.ended || s.slot == nil || !s.reading():
			continue
		case !s.started || s.choosing || e.pages != nil && e.pages.Lacks(s.slot.index, len(s.slot.tokens), e.first(s)).Sum() > 0:
			return nil
		}
		entry, n := e.prompts.step(len(s.slot.tokens), e.stop(s), s.exact)
		if entry == step || e.isKept(s) || !e.fits(s, entry, n, 0) {
			return nil
		}
		e.aheads++
		return e.prefill(s, entry, n)
	}
	return nil
}

// mayAdmit says whether somebody waits for a slot, and there is one.
func (e *Engine) mayAdmit() bool { return len(e.running) < len(e.slots) && e.requestWaits() }

// submitBlock submits an entry on the rows of the block, times in a row.
func (e *Engine) submitBlock(entry *plans.Entry, times int) (began time.Time, t runtime.Ticket, err error) {
	if err := e.block.Store(e.exec); err != nil {
		return began, 0, err
	}
	began = time.Now()
	t, err = e.exec.Submit(context.Background(), runtime.Launch{Entry: entry, Times: times})
	return began, t, err
}

// wait waits for a submission and takes what its steps took, if that can be told. A step is not interrupted: its
// sequences go on or end behind it.
func (e *Engine) wait(t runtime.Ticket, began time.Time, entry *plans.Entry, depth, rows, times int) error {
	waits := time.Now()
	if err := e.exec.Wait(context.Background(), t); err != nil {
		return err
	}
	ended := time.Now()
	took := ended.Sub(e.begun(began))
	if !e.overlaps || ended.Sub(waits) > took/2 { // else it may have ended before
		e.costs.measured(entry, depth, rows, times, took)
	}
	e.taken = ended
	return nil
}

// begun is when what was submitted at a time has begun, behind what was before it.
func (e *Engine) begun(submitted time.Time) time.Time {
	if e.taken.After(submitted) {
		return e.taken
	}
	return submitted
}

package engine

import (
	"context"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// A step prepared: where the host chooses tokens, the device waits for it. So what comes behind a step is decided, and
// gets its pages, shortly before that ends, if it is one more token of each sequence. Then there is nothing to be done
// between the end and the next submission but to choose. Tokens are handed out while the next step runs. With new
// sequences and those that have ended meanwhile it is as where steps are submitted ahead: the first come behind the
// step, rows of the others are run for nothing.

// prepared is a step that was prepared, and behind submitNext one that runs.
type prepared struct {
	flight
	runs   []int // how many rows each of the flight has
	depth  int
	ticket runtime.Ticket
	began  time.Time // when it was submitted
}

// comes has helpers come when the next submission is about to end, and the step behind it be prepared, if that may be.
// pos is where the last rows of the group are.
func (e *Engine) comes(group []*seq, pos []int) {
	x, ok := e.exec.(runtime.Nearing)
	if !ok {
		return
	}
	n := e.helpersFor(group)
	x.Near(func() {
		if n > 0 {
			e.crew = callHelpers(n)
		}
		e.prepareNext(group, pos)
	})
}

// prepareNext prepares the step behind the one that runs, if nothing else is to be next.
func (e *Engine) prepareNext(group []*seq, pos []int) {
	entry, depth := e.nextOf(group, pos)
	if entry == nil {
		return
	}
	for i, s := range group {
		if !e.extend(s.slot, pos[i]+1) {
			return
		}
	}
	n := len(group)
	e.prepared = &prepared{flight: flight{entry, make([]*seq, 0, n), make([]*slot, 0, n), make([]int, 0, n)}, runs: make([]int, 0, n), depth: depth}
}

// nextOf is the entry of the step behind the one that runs, if it may be prepared; else nil.
func (e *Engine) nextOf(group []*seq, pos []int) (*plans.Entry, int) {
	if !e.overlaps || len(group) != len(e.running) || len(group) < len(e.slots) && e.somebodyWaits() || e.interrupts() {
		return nil, 0
	}
	host, live, depth, guidable := 0, 0, 0, e.guides
	for i, s := range group {
		if s.ended || s.slot == nil || s.ctx.Err() != nil || pos[i]+1 >= e.plan.Header.Ctx {
			return nil, 0
		}
		guidable = guidable && s.guidable()
		if s.left() != 1 {
			live++
		}
		if s.onHost() {
			host++
		}
		depth = max(depth, pos[i]+1)
	}
	if live == 0 || host == 0 || guidable {
		return nil, 0
	}
	if drafts, _ := e.planDrafts(group, depth); drafts != nil {
		return nil, 0
	}
	entry, most := e.costs.cover(e.prompts.decode, len(group), depth)
	if len(group) > entry.Rows || 2*most > e.planned() || e.byTurns(group, depth) != nil {
		return nil, 0
	}
	return entry, depth
}

// extend gives a slot pages for the rows at a position and some behind it, if there are free ones, and says whether it
// has those that a step may write.
func (e *Engine) extend(l *slot, pos int) bool {
	if e.pages == nil {
		return true
	}
	to := min(e.maxPositions(l.seq), pos+e.stride())
	lacks := e.pages.Lacks(l.index, pos, to)
	switch {
	case lacks.Sum() == 0:
		return true
	case !lacks.Within(e.pages.Free()):
		return e.pages.Lacks(l.index, pos, min(to, pos+e.widest().Run)).Sum() == 0
	}
	e.pages.Own(l.index, pos, to)
	e.putTables()
	return true
}

// submitNext submits the step that was prepared, on the tokens that were chosen, before anybody gets them. Only tokens
// that the device may have chosen are taken before: formats say what comes behind theirs, and the next step writes over
// the logits at which inspect looks.
func (e *Engine) submitNext(entry *plans.Entry, group []*seq, rows []int, results []result) error {
	p := e.prepared
	if p == nil {
		return nil
	}
	e.block.Reset()
	more := e.widest().Rows - len(group)
	for i, s := range group {
		r, run := &results[i], 1
		if r.err != nil || !s.deviceChooses() && s.left() == 1 {
			continue
		}
		if s.deviceChooses() {
			s.ending, r.taken = e.accept(s, r.choice), true
			e.force(s)
			e.ran(s)
			if err := e.inspect(entry, s, rows[i]); err != nil {
				return err
			}
			if s.ended || s.ending != "" {
				continue
			}
			run += min(e.runOf(s)-1, more)
			more -= run - 1
		}
		pos := len(s.slot.tokens)
		e.block.Add(r.id, pos, s.slot.index)
		for k := 1; k < run; k++ {
			e.block.Add(s.next[k], pos+k, s.slot.index)
		}
		p.add(s)
		p.runs = append(p.runs, run)
		s.slot.at = pos + run
		s.slot.end = max(s.slot.end, s.slot.at)
	}
	if len(p.group) == 0 {
		e.prepared = nil
		return nil
	}
	if n := len(e.block.Rows); n > len(group) {
		if p.entry, _ = e.costs.cover(e.prompts.decode, n, p.depth); p.entry.Rows < n {
			p.entry = e.widest()
		}
	}
	if err := e.block.Store(e.exec); err != nil {
		return err
	}
	p.began = time.Now()
	e.prepares++
	var err error
	p.ticket, err = e.exec.Submit(context.Background(), runtime.Launch{Entry: p.entry, Times: 1})
	return err
}

// takePrepared takes the rows of a step that was prepared and submitted.
func (e *Engine) takePrepared() error {
	p := e.prepared
	e.prepared = nil
	n := len(p.group)
	live, runs := make([]*seq, 0, n), make([]int, 0, n)
	group, rows, pos := make([]*seq, 0, n), make([]int, 0, n), make([]int, 0, n) // of the tokens that are chosen
	end := 0
	for r, s := range p.group {
		run := p.runs[r]
		end += run
		if !p.has(r) {
			continue
		}
		live, runs = append(live, s), append(runs, run)
		if len(s.next) == run {
			group, rows, pos = append(group, s), append(rows, end-1), append(pos, p.pos[r]+run-1)
		}
	}
	e.comes(group, pos)
	defer e.dismiss()
	if err := e.exec.Wait(context.Background(), p.ticket); err != nil {
		return err
	}
	began := time.Now()
	defer e.hasChosen(began)
	defer e.measured(p.entry, p.depth, end, 1, began.Sub(p.began))
	for i, s := range live {
		e.takeRun(p.entry, s, runs[i])
	}
	if len(group) == 0 {
		return nil
	}
	return e.choose(p.entry, group, rows)
}

// hasChosen notes how long it took to choose tokens since a step ended. Readers get them while the next one runs.
func (e *Engine) hasChosen(began time.Time) {
	took := time.Since(began)
	if p := e.prepared; p != nil {
		took = p.began.Sub(began)
		e.meanwhile(e.costs.next(p.entry, p.depth))
	}
	e.host.add(took.Seconds())
}

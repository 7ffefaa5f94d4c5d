package engine

import (
	"context"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// A step ahead: where the device chooses for all, a step is submitted while the one before it runs, on the tokens that
// this one will choose. So the device does not wait while the host reads tokens and hands them out. A row whose
// sequence has ended meanwhile is run for nothing: nobody takes its tokens. A new sequence comes behind what is
// submitted; so no more is submitted than fits the bound on the time between tokens.

// flight is the rows of a step that nobody has waited for yet. Meanwhile sequences may end, or lose their slots.
type flight struct {
	entry *plans.Entry
	group []*seq // by row
	slots []*slot
	pos   []int // where the rows begin
}

// add has a sequence's next token run in a row.
func (f *flight) add(s *seq) {
	f.group, f.slots, f.pos = append(f.group, s), append(f.slots, s.slot), append(f.pos, len(s.slot.tokens))
}

// has says whether a row is that of a sequence which goes on in its slot.
func (f *flight) has(r int) bool { return !f.group[r].ended && f.group[r].slot == f.slots[r] }

// ahead is a submission that nobody has waited for yet.
type ahead struct {
	flight
	times  int
	count  int // ids that the device had chosen before, since the host wrote the step block
	ticket runtime.Ticket
}

// shortAhead is how long a submission should take at least: so long that the host gets its tokens out meanwhile, and no
// longer, since what arrives waits behind two of them.
const shortAhead = 4 * time.Millisecond

// goesAhead returns how many steps each of two submissions for a group may have, 0 if there is to be one alone.
func (e *Engine) goesAhead(entry *plans.Entry, group []*seq, depth int) int {
	if !e.overlaps || entry.Candidates == "" || len(group) != len(e.running) || e.somebodyWaits() {
		return 0
	}
	times := min(runtime.Burst, e.plan.Header.Ring/(2*len(group)))
	if one := e.costs.most(entry, depth+2*times); one > 0 {
		host := seconds(e.host.most())
		left := e.planned() - host
		times = min(times, int(max(shortAhead, 2*host)/one)+1)
		times = min(times, int(left/(2*one)), int((left-sinceLast(group))/one)) // the tokens of all come together
	}
	if slices.ContainsFunc(group, (*seq).repeats) { // the next guess may begin
		times = min(times, 1)
	}
	if times < 1 || !e.followed(group, times) {
		return 0
	}
	return times
}

func (e *Engine) somebodyWaits() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.waiting) > 0 || e.closing != nil
}

// followed says whether the device may choose the tokens of two submissions for a group, of which some are wanted.
func (e *Engine) followed(group []*seq, times int) bool {
	wanted := false
	for _, s := range group {
		end := len(s.slot.tokens) + 2*times
		if s.onHost() || len(s.next) != 1 || s.reading() || s.ending != "" || end > e.plan.Header.Ctx || s.free() >= 0 && s.free() < 2*times ||
			e.pages != nil && e.pages.Lacks(s.slot.index, len(s.slot.tokens), end).Sum() > 0 {
			return false
		}
		wanted = wanted || s.left() < 0 || s.left() > times
	}
	return wanted
}

// decodeAhead submits steps of decoding and those behind them, and takes the tokens of the first.
func (e *Engine) decodeAhead(entry *plans.Entry, group []*seq, times int) error {
	first := &ahead{flight: flight{entry: entry}, times: times}
	e.block.Reset()
	for _, s := range group {
		first.add(s)
		e.block.Add(s.next[0], len(s.slot.tokens), s.slot.index)
	}
	if err := e.block.Store(e.exec); err != nil {
		return err
	}
	if err := e.begin(first); err != nil {
		return err
	}
	if err := e.beginNext(first); err != nil {
		return err
	}
	next := time.Duration(times) * e.costs.next(entry, first.pos[0])
	e.meanwhile(next)
	if err := e.take(first); err != nil {
		return err
	}
	e.meanwhile(next)
	return nil
}

// begin submits.
func (e *Engine) begin(a *ahead) error {
	for r, l := range a.slots {
		l.at = a.pos[r] + a.times
		l.end = max(l.end, l.at)
	}
	var err error
	a.ticket, err = e.exec.Submit(context.Background(), runtime.Launch{Entry: a.entry, Times: a.times})
	return err
}

// beginNext submits what follows a submission that nobody has waited for.
func (e *Engine) beginNext(a *ahead) error {
	next := *a
	next.count += a.times * len(a.group)
	next.pos = slices.Clone(a.pos)
	for r := range next.pos {
		next.pos[r] += a.times
	}
	if err := e.begin(&next); err != nil {
		return err
	}
	e.ahead = &next
	e.aheads++
	return nil
}

// goesOn says whether a submission is to be followed by another one. Rows of sequences that have ended may go on, as
// long as a step of those that are left would be no narrower.
func (e *Engine) goesOn(a *ahead) bool {
	live := make([]*seq, 0, len(a.group))
	for r, s := range a.group {
		if a.has(r) {
			live = append(live, s)
		} else if e.pages != nil || a.slots[r].seq != nil || a.pos[r]+2*a.times > e.plan.Header.Ctx {
			return false
		}
	}
	if len(live) == 0 || len(live) != len(e.running) || e.somebodyWaits() || !e.followed(live, a.times) {
		return false
	}
	depth := depth(live)
	if drafts, _ := e.planDrafts(live, depth); drafts != nil {
		return false
	}
	entry, _ := e.costs.cover(e.prompts.decode, len(live), depth)
	return entry == a.entry && e.byTurns(live, depth) == nil && 2*time.Duration(a.times)*e.costs.most(entry, depth+2*a.times) <= e.planned()
}

// catchUp takes the tokens of what is submitted, and says whether more is then. In that case there is nothing else to
// be done.
func (e *Engine) catchUp() (more bool, err error) {
	a, began := e.ahead, time.Now()
	e.ahead = nil
	if a == nil {
		return false, nil
	}
	if e.goesOn(a) {
		if err := e.beginNext(a); err != nil {
			return false, err
		}
	}
	if err := e.take(a); err != nil || e.ahead == nil {
		return false, err
	}
	e.meanwhile(time.Since(began))
	return true, nil
}

// take waits for a submission and gives the sequences their tokens.
func (e *Engine) take(a *ahead) error {
	began := time.Now()
	if err := e.exec.Wait(context.Background(), a.ticket); err != nil {
		return err
	}
	ended := time.Now()
	if since := ended.Sub(began); since > ended.Sub(e.taken)/2 { // else it may have ended before
		took := min(ended.Sub(e.taken), since)
		if a.count > 0 {
			took = ended.Sub(e.taken)
		}
		e.measured(a.entry, a.pos[0], len(a.group), a.times, took)
	}
	e.taken = ended
	out, err := e.exec.Ints(ir.StepOut)
	if err != nil {
		return err
	}
	n := len(a.group)
	var group []*seq
	var rows []int
	for r, s := range a.group {
		if !a.has(r) || s.ending != "" {
			continue
		}
		s.slot.tokens, s.next = append(s.slot.tokens, s.next[0]), s.next[:0]
		e.takeRow(s, a.times, func(i int) int32 { return out[(a.count+i*n+r)%len(out)] })
		group, rows = append(group, s), append(rows, r)
	}
	return e.conclude(a.entry, group, rows)
}

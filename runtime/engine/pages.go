package engine

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/cache"
)

// Where caches lie in pages, a sequence takes them as it grows. It is let in once there are pages for what it begins
// with, and one more for each that runs. Where the pool is empty, idle slots give up what they hold for later requests,
// that first whose pages cost least to compute again. Then a sequence that runs goes back to the queue, as it does
// where a request of a higher priority waits for a slot, with pages or without:
//
//  1. one of the lowest priority,
//  2. of these, one of the owner that has the most pages,
//  3. of these, one whose pages cost least to compute again, each; of those that cost about as much, the youngest.
//
// Never the oldest of the highest priority: so there is always one that comes to its end. The prompt of one that comes
// back is read as any prompt, and what it had answered is fed in exact steps, so that it goes on with the bits that it
// would have had.

// stride is how many positions a sequence has pages for beyond what it holds: those of a step with a forced run, or of
// two submissions, since the next may be prepared while one runs.
func (e *Engine) stride() int {
	return max(2*runtime.Burst, e.prompts.decode[len(e.prompts.decode)-1].Run)
}

// maxPositions is how many positions a sequence may write.
func (e *Engine) maxPositions(s *seq) int {
	ctx, n := e.plan.Header.Ctx, len(s.req.Prompt)
	if s.req.Max < 0 || s.req.Max > ctx-n {
		return ctx
	}
	return n + s.req.Max
}

// first is how many positions a sequence begins with: those of its prompt and of what it had answered, and a stride.
func (e *Engine) first(s *seq) int {
	return min(e.maxPositions(s), len(s.req.Prompt)+len(s.answer)+e.stride())
}

// room says whether there are pages for what a sequence begins with in a slot, beside those for sequences that have not
// started, and one for each that grows.
func (e *Engine) room(s *seq, l *slot) bool {
	if e.pages == nil {
		return true
	}
	need := e.pages.Need(e.first(s))
	for _, r := range e.running {
		first := e.pages.Need(e.first(r))
		if r.started {
			has, most := e.pages.Has(r.slot.index), e.pages.Need(e.maxPositions(r))
			for g := range first {
				first[g] = min(1, max(0, most[g]-has[g]))
			}
		}
		need = need.Plus(first)
	}
	h := e.match(s.req, l.index)
	spare, stay := e.pages.Spare(func(slot int) bool { return e.slots[slot].seq == nil }, h.Holder, h.Pos)
	return need.Within(spare.Plus(stay))
}

// newPages is the pool of a plan whose caches lie in pages.
func (e *Engine) newPages() *cache.Pages {
	ahead := e.stride()
	for _, piece := range e.prompts.pieces {
		ahead = max(ahead, e.prompts.most(piece.widest))
	}
	var groups [ir.PageGroups]cache.Group
	for i := range groups {
		if k := e.plan.PagedIn(i); k != nil {
			groups[i] = cache.Group{Table: e.plan.OwnPages(i), Pages: k.Pages}
			if i == ir.WindowGroup {
				groups[i].Window, groups[i].Ahead = k.Window, ahead
			}
		}
	}
	return cache.NewPages(groups)
}

// putTables has the next step read the block tables as they are.
func (e *Engine) putTables() {
	for i := range e.block.Pages {
		e.block.Pages[i] = nil
		if table := e.pages.Table(i); table.Each > 0 {
			e.block.Pages[i] = table.Entries
		}
	}
}

// supply gives a sequence's slot pages of its own from what it holds up to a position, and says whether it has its slot
// still. One that has not started only waits for another. Of caches of a window it gives back what is not seen any
// more: neither by its next rows nor by a request that goes on where the tree has the end of its prompt, or its turn,
// or its last recurrent state, or where its prompt parted from others.
func (e *Engine) supply(s *seq, to int) (bool, error) {
	if e.pages == nil {
		return true, nil
	}
	l, n := s.slot, len(s.slot.tokens)
	if e.pages.GiveBack(l.index, n, e.tree.At(l.index), min(l.places[0], n), min(s.parts, n), min(l.turn, n), min(s.state, n)) {
		e.putTables()
	}
	lacks := e.pages.Lacks(l.index, n, to)
	if lacks.Sum() == 0 {
		return true, nil
	}
	for !lacks.Within(e.pages.Free()) {
		if idle := e.leastMissed(); idle != nil {
			e.empty(idle)
		} else {
			v := e.victim(s)
			if v == nil {
				return false, errors.New("the pool has too few pages for one sequence")
			}
			if e.putBack(v); v == s {
				return false, nil
			}
		}
		lacks = e.pages.Lacks(l.index, n, to) // pages that it shared may be its own now
	}
	var copies, from []plans.Span
	for g, page := range e.pages.Own(l.index, n, to) {
		if page > 0 {
			table := e.pages.Table(g)
			within := n % table.Page
			copies = append(copies, e.plan.PageRows(g, table.At(l.index, n), 0, within)...)
			from = append(from, e.plan.PageRows(g, page, 0, within)...)
		}
	}
	e.putTables()
	if len(copies) == 0 {
		return true, nil
	}
	return true, e.exec.Copy(context.Background(), copies, from)
}

// places lists what positions [from, to) of a slot take in the caches that have a row for each, none of which is of a
// window.
func (e *Engine) places(slot, from, to int) []plans.Span {
	if e.pages == nil {
		return e.plan.Rows(slot, from, to)
	}
	return e.rowsIn(ir.WholeGroup, slot, from, to)
}

// rowsIn lists what positions [from, to) of a slot take in the caches of a group.
func (e *Engine) rowsIn(group, slot, from, to int) (spans []plans.Span) {
	t := e.pages.Table(group)
	for from < to && t.Page > 0 {
		page := from / t.Page * t.Page
		end := min(to, page+t.Page)
		spans = append(spans, e.plan.PageRows(group, t.At(slot, from), from-page, end-page)...)
		from = end
	}
	return spans
}

// supplied returns the sequences that take part in rounds, with pages for the next step.
func (e *Engine) supplied() ([]*seq, error) {
	for _, s := range e.decodable() {
		if s.slot == nil { // it gave way to one before it
			continue
		}
		if _, err := e.supply(s, min(e.maxPositions(s), len(s.slot.tokens)+e.stride())); err != nil {
			return nil, err
		}
	}
	return e.decodable(), nil
}

// leastMissed returns the idle slot with pages whose content costs least to compute again, by page that comes back.
func (e *Engine) leastMissed() (best *slot) {
	least, now := 0.0, e.now()
	for _, l := range e.slots {
		if l.seq != nil || e.pages.Has(l.index).Sum() == 0 {
			continue
		}
		loss := math.Inf(1)
		if alone := e.pages.Alone(l.index); alone > 0 {
			loss = e.tree.Missed(l.index, now) / float64(alone)
		}
		if best == nil || loss < least || loss == least && l.used < best.used {
			best, least = l, loss
		}
	}
	return best
}

// empty takes from an idle slot all that it holds.
func (e *Engine) empty(l *slot) {
	l.forget()
	e.tree.Trim(l.index, 0)
	l.owner, l.tokens, l.read, l.end, l.windows = "", l.tokens[:0], 0, 0, 0
	e.pages.Drop(l.index, 0)
}

// victim is the sequence that gives its place up so that s has pages, s itself maybe; nil if there is none.
func (e *Engine) victim(s *seq) *seq {
	oldest := s
	for _, r := range e.running {
		if r.slot != nil && !r.ended && cmp.Or(cmp.Compare(r.req.Priority, oldest.req.Priority), oldest.arrived.Compare(r.arrived)) > 0 {
			oldest = r
		}
	}
	if s != oldest && !s.started {
		return s
	}
	return e.yields(func(r *seq) bool { return r != oldest })
}

// outranked is the sequence that gives its slot up for the request that waits for one next, as that is of a higher
// priority; nil if there is none. It runs under the lock.
func (e *Engine) outranked() *seq {
	if len(e.waiting) == 0 {
		return nil
	}
	next := e.waiting[e.turns.next(e.waiting)]
	return e.yields(func(r *seq) bool { return r.req.Priority < next.req.Priority })
}

// yields is, of the sequences in slots that may, the one that gives its slot up by the rules; nil if there is none.
func (e *Engine) yields(may func(r *seq) bool) *seq {
	var list []*seq
	held := map[string]int{} // pages, by owner
	for _, r := range e.running {
		if r.slot == nil || r.ended {
			continue
		}
		if e.pages != nil {
			held[r.req.Owner] += e.pages.Has(r.slot.index).Sum()
		}
		if may(r) {
			list = append(list, r)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return slices.MinFunc(list, func(a, b *seq) int {
		return cmp.Or(cmp.Compare(a.req.Priority, b.req.Priority), cmp.Compare(held[b.req.Owner], held[a.req.Owner]),
			cmp.Compare(e.again(a), e.again(b)), b.arrived.Compare(a.arrived))
	})
}

// again is how long it takes to compute what a sequence holds, by page that no other has: in steps of a half more.
func (e *Engine) again(s *seq) float64 {
	alone := 1
	if e.pages != nil {
		alone = e.pages.Alone(s.slot.index)
	}
	switch {
	case !s.started:
		return math.Inf(-1)
	case alone == 0:
		return math.Inf(1)
	}
	n := len(s.slot.tokens)
	widest := e.prompts.decode[len(e.prompts.decode)-1]
	cost := e.prompts.cost(e.prompts.cutBefore(min(n, len(s.req.Prompt))))
	cost += float64(max(0, n-len(s.req.Prompt))) / float64(widest.Run) * e.costs.mean(widest, n)
	return math.Round(math.Log(cost/float64(alone)) / math.Log(1.5))
}

// putBack takes a sequence's slot from it, and lets it wait for another. The slot keeps what was read of the prompt for
// whoever comes.
func (e *Engine) putBack(s *seq) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := s.slot
	if s.started {
		s.usage.Preempted++
		e.preempted++
		l.tokens = l.tokens[:min(len(l.tokens), e.tree.At(l.index))]
		if l.turn > len(l.tokens) {
			l.forget()
		}
	}
	e.leave(l)
	s.out.flush()
	s.slot, s.started, s.joined, s.waitsFor, s.next = nil, false, false, "", slices.Clone(s.answer)
}

// leave makes a slot idle. It runs under the lock.
func (e *Engine) leave(l *slot) {
	e.clock++
	l.seq, l.used = nil, e.clock
	if e.pages != nil {
		e.pages.Drop(l.index, len(l.tokens))
		e.putTables() // one that shared a page may write it from now on
	}
}

// requeue moves sequences that have given their slots up to those that wait, before those of their priority that came
// later. It runs under the lock.
func (e *Engine) requeue() {
	e.stats.Preempted = e.preempted
	e.running = slices.DeleteFunc(e.running, func(s *seq) bool {
		if s.slot != nil || s.ended {
			return false
		}
		at := 0
		for at < len(e.waiting) && (e.waiting[at].req.Priority > s.req.Priority ||
			e.waiting[at].req.Priority == s.req.Priority && e.waiting[at].arrived.Before(s.arrived)) {
			at++
		}
		e.waiting = slices.Insert(e.waiting, at, s)
		return true
	})
}

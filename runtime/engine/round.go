package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/plans"
)

// A round of decoding gives each sequence that answers a row for its next token, and more to one with a forced run.
// What is left of a short prompt is such a run, too: its sequence joins, beside others, with a few rows a step. Rows of
// exact steps have the bits of steps of their own, so it makes no difference which rows a step has.

const (
	// joinGain is how many times as long as in full steps of decoding a prompt takes at least in a step of its own.
	joinGain = 2
	// joinLoss is how many times as long as in a step of its own a prompt takes at most in steps of decoding that
	// nobody else is in.
	joinLoss = 1.8
)

// setJoins sets how many tokens that are left of a prompt are read in rounds: those that would have a step of decoding
// in any case, and where such steps have more rows than one sequence may have, more, if that is predicted to take much
// less time beside others, and not much more alone. What steps really take does not count: then a prompt's bits would
// depend on it.
func (p *prompts) setJoins() {
	widest := p.decode[len(p.decode)-1]
	for n := 1; n <= widest.Rows; n++ {
		own := p.own(n)
		if own == nil || own.Kind != "decode" && (widest.Run == widest.Rows || !p.joinPays(n, own, widest)) {
			return
		}
		p.joins = n
	}
}

// own is the entry of fewer rows than a part that would read what is left of a prompt; nil if there is none.
func (p *prompts) own(n int) *plans.Entry {
	for _, e := range p.entries {
		if len(p.alike) > 0 && p.several && e.Rows >= p.part {
			return nil
		}
		if e.Reach >= n {
			return e
		}
	}
	return nil
}

// joinPays compares rows of decoding for n tokens with a step of an entry. That counts as no longer than a step of
// decoding with as many rows, which reads the same weights: predictions of narrow prompts are the least exact.
func (p *prompts) joinPays(n int, own, widest *plans.Entry) bool {
	beside := float64(n) / float64(widest.Rows) * widest.Predict(0).Seconds()
	alone := 0.0
	for left := n; left > 0; left -= widest.Run {
		i := slices.IndexFunc(p.decode, func(e *plans.Entry) bool { return e.Run >= min(left, widest.Run) })
		alone += p.decode[i].Predict(0).Seconds()
	}
	i := slices.IndexFunc(p.decode, func(e *plans.Entry) bool { return e.Rows >= n })
	took := min(own.Predict(0).Seconds(), p.decode[i].Predict(0).Seconds())
	return took > 0 && joinGain*beside <= took && alone <= joinLoss*took
}

// joined says whether a round reads what is left of a prompt of n tokens from pos on, if it is to have the bits of one
// that began at position 0. Others that begin alike must not go on within it, or read it in another entry.
func (p *prompts) joined(pos, n int) bool {
	q := &p.pieces[p.pieceAt(pos)]
	return n < q.end && (!q.cuts && !alike(q.widest) || !p.wide(q, n))
}

// join has a sequence that has started take part in rounds from now on, if they read what is left of its prompt.
func (e *Engine) join(s *seq) bool {
	n, pos := len(s.req.Prompt), len(s.slot.tokens)
	if n-pos > e.prompts.joins || s.exact && !e.prompts.joined(pos, n) || e.restorable(s) {
		return false
	}
	s.joined, s.next = true, slices.Concat(s.req.Prompt[pos:], s.next)
	return true
}

// runOf is how many rows of a sequence a step may have. They end where the state behind a turn is kept.
func (e *Engine) runOf(s *seq) int {
	n := min(len(s.next), e.widest().Run)
	if to := s.req.Turn - len(s.slot.tokens); e.keepsAnswers() && to > 0 {
		n = min(n, to)
	}
	return n
}

// widest is the widest entry for steps of decoding.
func (e *Engine) widest() *plans.Entry { return e.prompts.decode[len(e.prompts.decode)-1] }

// decodeAll takes a round, in as many steps as it needs.
func (e *Engine) decodeAll() error {
	all, err := e.supplied()
	if err != nil || len(all) == 0 {
		return err
	}
	depth := depth(all)
	if e.guides {
		entry, _ := e.costs.cover(e.prompts.decode, len(all), depth)
		if group := all[:min(len(all), entry.Rows)]; e.mayGuide(group) && e.guidePays(entry, group) {
			return e.guide(entry, group)
		}
	}
	full := e.byTurns(all, depth)
	if full != nil {
		slices.SortStableFunc(all, func(a, b *seq) int { return cmp.Compare(a.turn, b.turn) })
		all = all[:full.Rows]
		for _, s := range all {
			e.clock++
			s.turn = e.clock
		}
	}
	if full == nil && !slices.ContainsFunc(all, func(s *seq) bool { return s.reading() || len(s.next) != 1 }) {
		if entry, runs := e.planDrafts(all, depth); entry != nil && e.layDrafts(all, runs) {
			return e.decodeDrafts(entry, all, depth)
		}
	}
	group, rows := e.ration(all, depth)
	for left := total(rows); left > 0; left = total(rows) {
		entry := full
		if full == nil || left > full.Rows {
			entry, _ = e.costs.cover(e.prompts.decode, left, depth)
		}
		step := take(rows, entry.Rows)
		if err := e.decode(entry, group[:len(step)], step, depth); err != nil {
			return err
		}
		done := slices.IndexFunc(append(rows, 1), func(n int) bool { return n > 0 })
		group, rows = group[done:], rows[done:]
	}
	return nil
}

// byTurns is the entry in whose steps sequences have rows by turns, one after the other; nil if all
// are to have rows: while prompts are read they would wait for longer than Options.ITL.
func (e *Engine) byTurns(all []*seq, depth int) *plans.Entry {
	if len(all) != len(e.running) || slices.ContainsFunc(all, (*seq).reading) {
		return nil
	}
	full := e.costs.full(e.prompts.decode, len(all), depth, e.host.mean)
	if full == nil || time.Duration(2+len(all)/full.Rows)*e.costs.most(full, depth) > e.planned() {
		return nil
	}
	return full
}

// ration lists the sequences that have rows in a round, and how many: each that answers one, those with a forced run
// what is left of the widest step, and prompts, in their order, those of another such step, if there is time.
func (e *Engine) ration(all []*seq, depth int) (group []*seq, rows []int) {
	rows = make([]int, len(all))
	answering, wanted := e.wanted(all)
	more := max(0, e.widest().Rows-answering)
	for i, s := range all {
		if !s.reading() {
			n := min(e.runOf(s)-1, more)
			rows[i], more = 1+n, more-n
		}
	}
	had, room, why := total(rows), min(wanted, e.widest().Rows), ForOrder
	for room > e.widest().Run && e.late(all, had, room, depth) {
		room, why = max(room/2, e.widest().Run), ForTokens
	}
	for i, s := range all {
		if s.reading() {
			rows[i] = min(e.runOf(s), room)
			room -= rows[i]
			if s.waitsFor = ""; rows[i] == 0 {
				s.waitsFor = why
				e.waits[why]++
				why = ForOrder
			}
		}
		if rows[i] > 0 {
			rows[len(group)] = rows[i]
			group = append(group, s)
		}
	}
	return group, rows[:len(group)]
}

// wanted counts the sequences that answer, and the rows that others could have for their prompts.
func (e *Engine) wanted(all []*seq) (answering, rows int) {
	for _, s := range all {
		if s.reading() {
			rows += e.runOf(s)
		} else {
			answering++
		}
	}
	return answering, rows
}

// late says whether rows of prompts, beside others, have those that answer wait for longer than the bound, and take
// more than half of it, which a step of a prompt may.
func (e *Engine) late(all []*seq, others, rows, depth int) bool {
	_, took := e.costs.cover(e.prompts.decode, others+rows, depth)
	if others == 0 {
		return took > 2*e.o.ITL
	}
	_, less := e.costs.cover(e.prompts.decode, others, depth)
	return took > e.untilNext(all, true) && took-less > time.Duration(float64(e.o.ITL)/margin/2)
}

func total(rows []int) (n int) {
	for _, r := range rows {
		n += r
	}
	return n
}

// take takes up to so many rows for a step, in their order, of which the last run may have more.
func take(rows []int, most int) (step []int) {
	for i := 0; i < len(rows) && most > 0; i++ {
		n := min(rows[i], most)
		step = append(step, n)
		rows[i], most = rows[i]-n, most-n
	}
	return step
}

// decode feeds tokens of each sequence in so many rows, and chooses the next ones.
func (e *Engine) decode(entry *plans.Entry, group []*seq, rows []int, depth int) error {
	if times := e.goesAhead(entry, group, depth); times > 0 {
		return e.decodeAhead(entry, group, times)
	}
	times := e.burst(entry, group, depth)
	e.block.Reset()
	chosen, last, pos := make([]*seq, 0, len(group)), make([]int, 0, len(group)), make([]int, 0, len(group))
	for i, s := range group {
		for k, t := range s.next[:rows[i]] {
			e.block.Add(t, len(s.slot.tokens)+k, s.slot.index)
		}
		if rows[i] == len(s.next) && s.req.Max != 0 {
			chosen, last = append(chosen, s), append(last, len(e.block.Rows)-1)
			pos = append(pos, len(s.slot.tokens)+rows[i]-1)
		}
	}
	e.comes(chosen, pos)
	defer e.dismiss()
	if _, err := e.launch(entry, depth, times); err != nil {
		return err
	}
	defer e.hasChosen(time.Now())
	for i, s := range group {
		e.takeRun(entry, s, rows[i])
		s.slot.at = len(s.slot.tokens) + times - 1
		s.slot.end = max(s.slot.end, s.slot.at)
		if len(s.next) == 0 && s.req.Max == 0 {
			e.finish(s, Length, nil)
		}
	}
	switch {
	case times > 1:
		return e.takeBurst(entry, group, last, times)
	case len(chosen) > 0:
		return e.choose(entry, chosen, last)
	}
	return nil
}

// takeRun notes that the next n tokens of a sequence are in its slot.
func (e *Engine) takeRun(entry *plans.Entry, s *seq, n int) {
	rest := s.next[:n]
	if s.reading() {
		k := min(n, len(s.req.Prompt)-len(s.slot.tokens))
		e.hasRead(entry, s, k)
		rest = rest[k:]
	}
	s.slot.tokens = append(s.slot.tokens, rest...)
	s.next = append(s.next[:0], s.next[n:]...)
}

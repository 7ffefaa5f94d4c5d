package engine

import (
	"context"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/sample"
)

// Guided decoding: the device chooses the tokens of sequences with a format within masks, and feeds them itself. While
// it computes the logits behind them, the host walks them through the formats and makes the masks of the next choice.
// So the device waits for nothing, and an answer is the same as where the host chooses.

// guided is sequences whose next logits are being computed: the last token of each is fed, and not more.
type guided struct {
	flight
	fed   []int32 // the token of each row
	step  runtime.Ticket
	began time.Time
	// masked is ir.StepMasked as it was last written: while it stays, the device has the rest of the step block.
	masked []int32
}

// guidable says whether the device can choose the next tokens of the sequence, as far as is known.
func (s *seq) guidable() bool {
	if s.format == nil {
		return !s.onHost()
	}
	return s.foreseen() && (s.format.begun || s.open)
}

// mayGuide says whether the next tokens of a group are chosen within masks: if the device can, nobody could get a slot
// and nothing is read, and each of them has room for more than one token.
func (e *Engine) mayGuide(group []*seq) bool {
	if !e.guides || len(group) != len(e.running) || len(group) < len(e.slots) && e.somebodyWaits() || e.interrupts() {
		return false
	}
	formats := 0
	for i, s := range group {
		if e.running[i] != s || s.ended || s.slot == nil || s.reading() || !s.guidable() || s.left() == 1 {
			return false
		}
		n := len(s.slot.tokens)
		if e.plan.Header.Ctx-n <= 2+len(s.next) || e.pages != nil && e.pages.Lacks(s.slot.index, n, n+2).Sum() > 0 {
			return false
		}
		if s.format != nil {
			formats++
		}
	}
	return formats > 0
}

// interrupts says whether one that waits is to have the slot of one that runs.
func (e *Engine) interrupts() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.outranked() != nil
}

// guidePays compares tokens a second with those of single steps, which have tokens of forced runs beside.
func (e *Engine) guidePays(entry *plans.Entry, group []*seq) bool {
	forced, widest := 0.0, e.prompts.decode[len(e.prompts.decode)-1]
	for _, s := range group {
		forced += min(max(s.forcedRun, float64(len(s.next)-1)), float64(widest.Run-1))
	}
	n := float64(len(group))
	forced = min(forced, float64(widest.Rows)-n)
	step := e.costs.mean(entry, depth(group))
	return n*(step+e.host.mean) >= (n+forced)*max(step, e.host.mean)
}

// guide feeds the chosen tokens of the sequences.
func (e *Engine) guide(entry *plans.Entry, group []*seq) error {
	g := &guided{flight: flight{entry: entry}, began: time.Now()}
	e.block.Reset()
	for _, s := range group {
		e.block.Add(s.next[0], len(s.slot.tokens), s.slot.index)
		g.add(s)
		g.fed = append(g.fed, s.next[0])
		s.feed(s.next[0])
	}
	if err := e.block.Store(e.exec); err != nil {
		return err
	}
	var err error
	g.step, err = e.exec.Submit(context.Background(), runtime.Launch{Entry: entry, Times: 1, Part: runtime.Logits})
	if err != nil {
		return err
	}
	e.guided = g
	e.meanwhile(e.costs.next(entry, depth(group)))
	return nil
}

// feed notes that a chosen token goes into the slot.
func (s *seq) feed(id int32) {
	l := s.slot
	l.tokens = append(l.tokens, id)
	l.at, l.end = len(l.tokens), max(l.end, len(l.tokens))
	if len(s.next) > 0 {
		s.next = append(s.next[:0], s.next[1:]...)
	}
}

// follow takes the next tokens of the sequences that are guided, and lets the device go on if it may.
func (e *Engine) follow() error {
	began := time.Now()
	defer func() {
		if e.guided != nil {
			e.meanwhile(time.Since(began))
		}
	}()
	g, ctx := e.guided, context.Background()
	on := e.mayGuide(g.group) && e.guidePays(g.entry, g.group)
	if err := e.bound(g); err != nil {
		return err
	}
	choice, err := e.exec.Submit(ctx, runtime.Launch{Entry: g.entry, Times: 1, Part: runtime.Choice})
	if err != nil {
		return err
	}
	step := g.step
	if on {
		if g.step, err = e.exec.Submit(ctx, runtime.Launch{Entry: g.entry, Times: 1, Part: runtime.Logits}); err != nil {
			return err
		}
		e.aheads++
	}
	waits := time.Now()
	for _, t := range []runtime.Ticket{step, choice} {
		if err := e.exec.Wait(ctx, t); err != nil {
			return err
		}
	}
	now := time.Now()
	if took := now.Sub(g.began); now.Sub(waits) > took/2 { // else the device may have waited for the host
		e.measured(g.entry, slices.Max(g.pos), len(g.group), 1, took)
	}
	g.began = now
	if !on {
		return e.fallBack(g)
	}
	return e.takeGuided(g)
}

// takeGuided gives the sequences the tokens that the device has chosen, and feeds.
func (e *Engine) takeGuided(g *guided) error {
	ids, err := e.exec.Ints(g.entry.Next)
	if err != nil {
		return err
	}
	var chosen []*seq
	var rows []int
	for i, s := range g.group {
		id := ids[i]
		g.fed[i], g.pos[i] = id, g.pos[i]+1
		if err := s.refuses(id); err != nil {
			s.feed(id)
			e.finish(s, Failed, s.explain(err))
			continue
		}
		if len(s.next) == 0 {
			e.chosen[ByDevice]++
			e.deliver(s, choice{id: id})
			e.force(s)
			e.ran(s)
			if g.entry.Candidates != "" || id == 0 {
				chosen, rows = append(chosen, s), append(rows, i)
			} else if s.ending != "" { // its logits are written over; the one of this token was a number
				e.finish(s, s.ending, nil)
			}
		}
		s.feed(id)
	}
	return e.conclude(g.entry, chosen, rows)
}

// refuses says why the device cannot have chosen a token within its mask; nil if it may have. The device gives 0 where
// no token of the mask has a logit above -Inf.
func (s *seq) refuses(id int32) error {
	f := s.format
	switch {
	case len(s.next) > 0 && id != s.next[0]:
		return sample.ErrNotNumbers
	case len(s.next) > 0 || f == nil || !f.begun || f.Allows(id):
		return nil
	case f.matcher.Err() != nil:
		return f.matcher.Err()
	case !slices.ContainsFunc(f.Words(), func(w uint64) bool { return w != 0 }):
		return sample.ErrNothingLeft
	}
	return sample.ErrNotNumbers
}

// fallBack takes the last tokens of guided sequences. Whose next token is not known already gets one as behind a single
// step.
func (e *Engine) fallBack(g *guided) error {
	e.guided, e.block.Masked = nil, make([]int32, len(g.group))
	var open []*seq
	var rows []int
	for i, s := range g.group {
		if g.has(i) && len(s.next) == 0 {
			open, rows = append(open, s), append(rows, i)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return e.choose(g.entry, open, rows)
}

// bound writes the masks of the choice behind the logits that are being computed.
func (e *Engine) bound(g *guided) error {
	words := ir.MaskWords(e.plan.Header.Model.Vocab)
	masked, mask := make([]int32, len(g.group)), make([]int32, len(g.group)*words)
	var rows []int
	for i, s := range g.group {
		if g.has(i) && (len(s.next) > 0 || s.format != nil && s.format.begun) {
			masked[i], rows = int32(i+1), append(rows, i)
		}
	}
	each(rows, helpers(len(rows), 32*words), func(i int) {
		s, row := g.group[i], mask[i*words:(i+1)*words]
		if len(s.next) > 0 {
			row[s.next[0]/32] = 1 << (s.next[0] % 32)
			return
		}
		for k, w := range s.format.Words() {
			row[2*k] = int32(w)
			if 2*k+1 < words {
				row[2*k+1] = int32(w >> 32)
			}
		}
	})
	if slices.Equal(masked, g.masked) {
		return e.exec.Write(ir.StepMask, mask)
	}
	e.block.Reset()
	for i, l := range g.slots {
		e.block.Add(g.fed[i], g.pos[i], l.index)
	}
	g.masked, e.block.Masked, e.block.Mask = masked, masked, mask
	return e.block.Store(e.exec)
}

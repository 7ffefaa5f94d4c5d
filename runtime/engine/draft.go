package engine

import (
	"slices"
	"time"

	"github.com/zincc-dev/zincc/plans"
)

// A step of drafts has rows for the next token of a sequence and for those that are guessed to come behind it. It reads
// the weights once, and chooses behind each of them as steps of their own would: rows of exact steps have the bits of
// these. As long as the guess is what is chosen, the next row counts; what rows behind it wrote, the next step writes
// over. So answers are those of other steps, and only come sooner. Models with a recurrent state have none, since that
// can't go back.

const (
	// draftGain is how many times as many tokens a second a step of drafts must give as the one without.
	draftGain = 1.05
	// unknownDraft is how many times as long as a step without the first step of drafts of an entry counts for which
	// nothing is predicted.
	unknownDraft = 2
)

// mayDraft says whether tokens of a request are guessed: not if its answer is held to a format, or all logits are
// looked at.
func (e *Engine) mayDraft(r *Request) bool {
	return !e.recurrent && !e.o.NoDrafts && r.Format == nil && r.TopLogprobs < 0 && r.Max != 0 && r.Max != 1
}

// planDrafts chooses the entry that gives a group the most tokens a second with guesses, of those that one sequence may
// fill, and how many each sequence has in it; nil if it is better without. Wider steps are for many users.
func (e *Engine) planDrafts(group []*seq, depth int) (best *plans.Entry, bestRuns []int) {
	if len(group) != len(e.running) || !slices.ContainsFunc(group, func(s *seq) bool { return s.guess.chance() > 0 }) {
		return nil, nil
	}
	var base *plans.Entry // of steps without
	var rate float64      // that is to be exceeded
	for _, entry := range e.prompts.decode {
		if entry.Rows <= len(group) || entry.Run < entry.Rows {
			continue
		}
		runs, tokens := e.deal(entry, group)
		if tokens == float64(len(group)) {
			continue
		}
		if base == nil {
			base, _ = e.costs.cover(e.prompts.decode, len(group), depth)
			alone := e.costs.mean(base, depth)
			if len(group) > base.Rows || alone == 0 {
				return nil, nil
			}
			rate = draftGain * float64(len(group)) / alone
		}
		took, most := e.draftTime(entry, base, depth)
		if r := tokens / (took.Seconds() + max(e.host.mean, e.draftHost.mean)); r > rate && most <= e.planned() {
			best, bestRuns, rate = entry, runs, r
		}
	}
	return best, bestRuns
}

// draftTime is how long a step of drafts takes, and hardly takes more than. Until one is measured, it counts as far
// from its prediction as the entry of steps without.
func (e *Engine) draftTime(entry, base *plans.Entry, depth int) (mean, most time.Duration) {
	k := e.drafted[entry]
	if k.steps == 0 {
		k.ratio.mean = e.costs[base].ratio.mean
	}
	if s := e.drafted.mean(entry, depth); s > 0 {
		return seconds(s), e.drafted.most(entry, depth)
	}
	first := seconds(unknownDraft * e.costs.mean(base, depth))
	return first, first
}

// measured takes what steps without drafts took. An entry whose drafts were once interrupted is chosen again some time
// behind that.
func (e *Engine) measured(entry *plans.Entry, depth, rows, times int, took time.Duration) {
	e.costs.measured(entry, depth, rows, times, took)
	if entry.Kind == "decode" {
		e.drafted.nearer(e.costs[entry])
	}
}

// deal gives the rows of an entry that a group leaves empty to the guesses that hold most likely, and returns how many
// tokens are to be expected.
func (e *Engine) deal(entry *plans.Entry, group []*seq) (runs []int, tokens float64) {
	runs, tokens = make([]int, len(group)), float64(len(group))
	chances := make([]float64, len(group)) // of the next guess, if those before it hold
	for i, s := range group {
		if e.draftable(entry, s) {
			chances[i] = s.guess.chance()
		}
	}
	for range entry.Rows - len(group) {
		most := 0
		for i, c := range chances {
			if c > chances[most] {
				most = i
			}
		}
		if chances[most] == 0 {
			break
		}
		tokens += chances[most]
		chances[most] *= group[most].guess.chance()
		if runs[most]++; runs[most] == e.mostDrafted(entry, group[most]) {
			chances[most] = 0
		}
	}
	return runs, tokens
}

// draftable says whether guesses of a sequence may have rows of an entry. Where the host chooses, it does by
// candidates: all logits of a row take as long to come as a step saves.
func (e *Engine) draftable(entry *plans.Entry, s *seq) bool {
	return !s.needsLogits() && (!s.onHost() || entry.Candidates != "") && e.mostDrafted(entry, s) > 0
}

// mostDrafted is how many guesses of a sequence may have rows of an entry.
func (e *Engine) mostDrafted(entry *plans.Entry, s *seq) int {
	n := min(entry.Run-1, e.plan.Header.Ctx-1-len(s.slot.tokens))
	if left := s.left(); left >= 0 {
		n = min(n, left-1)
	}
	return n
}

// layDrafts gives the sequences of a group so many guesses each, and says whether there are any: an end of the answer
// ends them.
func (e *Engine) layDrafts(group []*seq, runs []int) (any bool) {
	for i, s := range group {
		s.draft = s.draft[:0]
		if runs[i] > 0 {
			s.draft = s.guess.next(s.draft, s.history(), runs[i])
		}
		if end := slices.IndexFunc(s.draft, func(t int32) bool { return slices.Contains(s.ends, t) }); end >= 0 {
			s.draft = s.draft[:end]
		}
		any = any || len(s.draft) > 0
	}
	return any
}

// decodeDrafts feeds the next token of each sequence and its guesses, and chooses behind each of them, as far as they
// hold.
func (e *Engine) decodeDrafts(entry *plans.Entry, group []*seq, depth int) error {
	e.block.Reset()
	rows := make([]int, len(group))
	for i, s := range group {
		rows[i] = len(e.block.Rows)
		e.block.Add(s.next[0], len(s.slot.tokens), s.slot.index)
		for k, t := range s.draft {
			e.block.Add(t, len(s.slot.tokens)+1+k, s.slot.index)
		}
		s.usage.Guessed += len(s.draft)
		e.guessed += int64(len(s.draft))
	}
	all := len(e.block.Rows)
	took, err := e.runBlock(entry, e.drafted.next(entry, depth), 1)
	if err != nil {
		return err
	}
	e.costs.counted(entry, all, 1, took)
	e.drafted.measured(entry, depth, all, 1, took)
	began := time.Now()
	defer func() { e.draftHost.add(time.Since(began).Seconds()) }()
	for _, s := range group {
		s.slot.end = max(s.slot.end, len(s.slot.tokens)+1+len(s.draft))
		e.takeRun(entry, s, 1)
		s.slot.at = len(s.slot.tokens)
	}
	for open := slices.Clone(group); len(open) > 0; {
		if err := e.choose(entry, open, rows); err != nil {
			return err
		}
		n := 0
		for i, s := range open {
			if e.holds(s) {
				open[n], rows[n] = s, rows[i]+1
				n++
			}
		}
		open, rows = open[:n], rows[:n]
	}
	return nil
}

// repeating is for how many tokens behind a draft that held the text counts as one that repeats itself.
const repeating = 64

// repeats says whether a draft of the sequence has held of late.
func (s *seq) repeats() bool { return s.lastHeld > 0 && len(s.answer)-s.lastHeld < repeating }

// holds says whether the token that was chosen for a sequence is the next one of its draft, whose row then has been
// run.
func (e *Engine) holds(s *seq) bool {
	if s.ended || s.ending != "" || len(s.draft) == 0 || len(s.next) != 1 || s.next[0] != s.draft[0] {
		s.draft = s.draft[:0]
		return false
	}
	s.usage.Held++
	s.lastHeld = len(s.answer)
	e.held++
	s.slot.tokens, s.next, s.draft = append(s.slot.tokens, s.next[0]), s.next[:0], s.draft[1:]
	return true
}

package runtime

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// tuneRounds is how often every candidate is timed at least.
const tuneRounds = 3

// CandidateTime is the time of a candidate, with a dispatch of the plan that uses it.
type CandidateTime struct {
	tuning.Timing
	Entry    string
	Dispatch int
}

// TuneOptions bound the work.
type TuneOptions struct {
	Entry    string // only this one and its copies; empty for all
	Depth    int    // positions in the KV cache, where the plan has room for them
	Budget   time.Duration
	Progress func(share float64)
}

// Tune times all candidates of a plan that was compiled with them: each entry has copies, in which some sites have
// other candidates. It profiles all entries by turns until the budget is spent. A candidate's time is the median over
// the turns of the mean over the dispatches that compute the same. Dispatches that a copy shares with its entry count
// in the entry only, between the chosen neighbours. The candidates of a site are in the order in which they were
// offered, after the candidate of the entry, which comes first.
//
// Where dispatches overlap, an event behind each would end the overlap that is to be timed. There a candidate's time is
// the time of the chosen one, plus the difference of the whole entry with the candidate at all dispatches that compute
// the same, divided by their number. After every three turns Tune drops the slower half of a site's candidates.
func Tune(ctx context.Context, plan *plans.Plan, exec Executor, o TuneOptions) ([]CandidateTime, error) {
	t := &tuner{plan: plan, exec: exec, o: o, whole: &wholeTimes{plan: plan, exec: exec},
		at: map[[2]string]*candidateTimes{}, copied: map[string]bool{}, own: map[string]int{}}
	defer t.whole.free()
	for _, e := range plan.Entries {
		if name, is := tuning.Variant(e.Name); is {
			t.copied[name] = true
		}
	}
	if len(t.copied) == 0 {
		return nil, fmt.Errorf("the plan has one kernel for each call site: compile it with --candidates")
	}
	for i := range plan.Entries {
		if err := t.add(i); err != nil {
			return nil, err
		}
	}
	if len(t.entries) == 0 {
		return nil, fmt.Errorf("the plan has no candidates of an entry %q", o.Entry)
	}
	start := time.Now()
	for round := 0; round <= tuneRounds || time.Since(start) < o.Budget; round++ {
		if err := t.round(ctx, round == 0); err != nil {
			return nil, err
		}
		if round > 0 && round%tuneRounds == 0 {
			t.whole.halve()
		}
		byTurns, byTime := float64(round+1)/(tuneRounds+1), float64(time.Since(start))/float64(max(1, o.Budget))
		o.Progress(min(1, byTurns, byTime))
	}
	var times []CandidateTime
	for _, c := range t.list {
		c.Micros = max(float64(c.median())/1e3, 0.001) // what noise makes less than nothing
		times = append(times, c.CandidateTime)
	}
	return times, nil
}

// tuner times the candidates of a plan.
type tuner struct {
	plan    *plans.Plan
	exec    Executor
	o       TuneOptions
	whole   *wholeTimes
	list    []*candidateTimes
	at      map[[2]string]*candidateTimes // by site and candidate
	copied  map[string]bool               // entries that have copies
	own     map[string]int                // entries that are no copies
	entries []int                         // whose dispatches are timed
}

// candidate names that of a dispatch.
func (t *tuner) candidate(entry, dispatch int) string {
	return t.plan.Program.Funcs[entry].Groups[dispatch].Call.Name()
}

// key is a dispatch's place among the times.
func (t *tuner) key(entry, dispatch int) [2]string {
	f := t.plan.Program.Funcs[entry]
	return [2]string{tuning.SiteOf(f, f.Groups[dispatch]), t.candidate(entry, dispatch)}
}

// add lists the candidates of an entry, if they are to be timed. Of copies whose dispatches overlap whole steps are
// timed.
func (t *tuner) add(i int) error {
	e, f := &t.plan.Entries[i], t.plan.Program.Funcs[i]
	name, isCopy := tuning.Variant(e.Name)
	if !isCopy {
		t.own[name] = i
	}
	if !t.copied[name] || t.o.Entry != "" && t.o.Entry != name {
		return nil
	}
	overlaps := t.whole.overlaps(e)
	if !isCopy || !overlaps {
		t.entries = append(t.entries, i)
	}
	for j := range e.Dispatches {
		key := t.key(i, j)
		if t.at[key] != nil {
			continue
		}
		t.at[key] = &candidateTimes{CandidateTime: CandidateTime{tuning.Timing{Site: key[0], Candidate: key[1]}, e.Name, j}}
		t.list = append(t.list, t.at[key])
		if isCopy && overlaps {
			own := t.own[name]
			if err := t.whole.add(&t.plan.Entries[own], e, f, t.at[key], t.at[[2]string{key[0], t.candidate(own, j)}]); err != nil {
				return err
			}
		}
	}
	return nil
}

// round times each candidate once. In the first round clocks rise and caches fill: it does not count.
func (t *tuner) round(ctx context.Context, first bool) error {
	for _, i := range t.entries {
		e := &t.plan.Entries[i]
		times, err := Profile(ctx, t.plan, t.exec, e.Name, 0, min(t.o.Depth, t.plan.Header.Ctx-e.Rows), 1)
		if err != nil {
			return err
		}
		if first {
			continue
		}
		name, isCopy := tuning.Variant(e.Name)
		for j, took := range times {
			if isCopy && t.candidate(i, j) == t.candidate(t.own[name], j) {
				continue
			}
			c := t.at[t.key(i, j)]
			c.sum, c.count = c.sum+took.Time, c.count+1
		}
	}
	if err := t.whole.turn(ctx, t.o.Depth); err != nil {
		return err
	}
	for _, c := range t.list {
		c.turn()
	}
	return nil
}

// candidateTimes are the times of a candidate.
type candidateTimes struct {
	CandidateTime
	sum   time.Duration // of the turn at hand
	count int
	turns []time.Duration
}

// turn ends a turn.
func (c *candidateTimes) turn() {
	if c.count > 0 {
		c.turns = append(c.turns, c.sum/time.Duration(c.count))
	}
	c.sum, c.count = 0, 0
}

// median is that of the turns.
func (c *candidateTimes) median() time.Duration {
	slices.Sort(c.turns)
	return c.turns[len(c.turns)/2]
}

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
	var list []*candidateTimes
	at := map[[2]string]*candidateTimes{} // by site and candidate
	copied := map[string]bool{}           // entries
	for _, e := range plan.Entries {
		if name, is := tuning.Variant(e.Name); is {
			copied[name] = true
		}
	}
	if len(copied) == 0 {
		return nil, fmt.Errorf("the plan has one kernel for each call site: compile it with --candidates")
	}
	var entries []int
	own := map[string]int{} // entries that are no copies
	candidate := func(entry, dispatch int) string { return plan.Program.Funcs[entry].Groups[dispatch].Call.Candidate }
	whole := &wholeTimes{plan: plan, exec: exec}
	defer whole.free()
	for i := range plan.Entries {
		e, f := &plan.Entries[i], plan.Program.Funcs[i]
		name, isCopy := tuning.Variant(e.Name)
		if !isCopy {
			own[name] = i
		}
		if !copied[name] || o.Entry != "" && o.Entry != name {
			continue
		}
		overlaps := whole.overlaps(e)
		if !isCopy || !overlaps {
			entries = append(entries, i)
		}
		for j := range e.Dispatches {
			key := [2]string{tuning.SiteOf(f, f.Groups[j]), candidate(i, j)}
			if at[key] == nil {
				at[key] = &candidateTimes{CandidateTime: CandidateTime{tuning.Timing{Site: key[0], Candidate: key[1]}, e.Name, j}}
				list = append(list, at[key])
				if isCopy && overlaps {
					if err := whole.add(&plan.Entries[own[name]], e, f, at[key], at[[2]string{key[0], candidate(own[name], j)}]); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("the plan has no candidates of an entry %q", o.Entry)
	}
	start := time.Now()
	for round := 0; round <= tuneRounds || time.Since(start) < o.Budget; round++ {
		for _, i := range entries {
			e, f := &plan.Entries[i], plan.Program.Funcs[i]
			times, err := Profile(ctx, plan, exec, e.Name, 0, min(o.Depth, plan.Header.Ctx-e.Rows), 1)
			if err != nil {
				return nil, err
			}
			if round == 0 {
				continue // clocks rise, caches fill
			}
			name, isCopy := tuning.Variant(e.Name)
			for j, t := range times {
				if isCopy && candidate(i, j) == candidate(own[name], j) {
					continue
				}
				c := at[[2]string{tuning.SiteOf(f, f.Groups[j]), candidate(i, j)}]
				c.sum, c.count = c.sum+t.Time, c.count+1
			}
		}
		if err := whole.turn(ctx, o.Depth); err != nil {
			return nil, err
		}
		for _, c := range list {
			c.turn()
		}
		if round > 0 && round%tuneRounds == 0 {
			whole.halve()
		}
		byTurns, byTime := float64(round+1)/(tuneRounds+1), float64(time.Since(start))/float64(max(1, o.Budget))
		o.Progress(min(1, byTurns, byTime))
	}
	var times []CandidateTime
	for _, c := range list {
		c.Micros = max(float64(c.median())/1e3, 0.001) // what noise makes less than nothing
		times = append(times, c.CandidateTime)
	}
	return times, nil
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

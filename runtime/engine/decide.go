package engine

import (
	"maps"
	"slices"
)

// Decision is what was decided of a request when it got a slot, and why.
type Decision struct {
	// Why it got this slot, one of OnlySlot, HoldsPrompt and LeastMissed.
	Why string
	// Reuse is where the tokens were that need no computing, one of OwnSlot, OtherSlot, OwnAnswer and NoSlot, and From
	// the slot; -1 is none.
	Reuse string
	From  int
	// Forgot is how many tokens of earlier prompts no slot holds any more since.
	Forgot int
}

// Why a request got a slot.
const (
	OnlySlot    = "only"  // no other one was free
	HoldsPrompt = "holds" // it holds what the prompt begins with
	LeastMissed = "least" // what it holds is missed least
)

// Where the tokens of a prompt were that need no computing.
const (
	OwnSlot   = "own"    // in the slot that it got
	OtherSlot = "copied" // in another slot
	OwnAnswer = "answer" // in the slot that it got, with an answer: Options.ReuseAnswers
	NoSlot    = "none"   // nowhere
)

// Why a request waits in the queue, or in its slot for the next step of its prompt.
const (
	ForSlot     = "slots"    // it is the next one; all slots are in use
	ForPages    = "pages"    // it is the next one; the pool has too few pages
	ForPriority = "priority" // requests of a higher priority go first
	ForTurn     = "turn"     // it is the turn of another owner
	ForOrder    = "order"    // others of its owner came first; of prompts: another is read first
	ForTokens   = "itl"      // those that answer would wait for longer than Options.ITL
)

// By what a token was chosen.
const (
	ByDevice     = "device"     // the device chose the likeliest
	ByCandidates = "candidates" // by the likeliest tokens, which decided, or nothing was to be decided
	ByLogits     = "logits"     // by the logits of all tokens
)

// reuses are the values of Decision.Reuse, promptWaits those of SlotStats.WaitsFor, choices those of
// Stats.Chosen and queueWaits those of Stats.WaitingFor.
var (
	reuses      = []string{OwnSlot, OtherSlot, OwnAnswer, NoSlot}
	promptWaits = []string{ForOrder, ForTokens}
	choices     = []string{ByDevice, ByCandidates, ByLogits}
	queueWaits  = []string{ForSlot, ForPages, ForPriority, ForTurn, ForOrder}
)

// zeros makes a counter of each name.
func zeros[N int | int64](names []string) map[string]N {
	m := map[string]N{}
	for _, name := range names {
		m[name] = 0
	}
	return m
}

// turns says which owner's turn it is: when each last got a slot, by the loop's clock. Owners without a request in the
// engine have none.
type turns map[string]int64

// next is the index of the request that gets the next slot: of those of the highest priority, which stand first, that
// of the owner whose last turn is the longest ago; of its requests the first.
func (t turns) next(waiting []*seq) int {
	best := 0
	for i, s := range waiting {
		if s.req.Priority < waiting[0].req.Priority {
			break
		}
		if t[s.req.Owner] < t[waiting[best].req.Owner] {
			best = i
		}
	}
	return best
}

// forget drops owners that have no request.
func (t turns) forget(lists ...[]*seq) {
	maps.DeleteFunc(t, func(owner string, _ int64) bool {
		return !slices.ContainsFunc(lists, func(list []*seq) bool {
			return slices.ContainsFunc(list, func(s *seq) bool { return s.req.Owner == owner })
		})
	})
}

// waitsFor counts requests by what they wait for; first is what the next one waits for.
func (t turns) waitsFor(waiting []*seq, first string) map[string]int {
	all := zeros[int](queueWaits)
	if len(waiting) == 0 {
		return all
	}
	next := t.next(waiting)
	before := map[string]bool{}
	for i, s := range waiting {
		why := ForTurn
		switch {
		case i == next:
			why = first
		case s.req.Priority < waiting[0].req.Priority:
			why = ForPriority
		case before[s.req.Owner]:
			why = ForOrder
		}
		before[s.req.Owner] = true
		all[why]++
	}
	return all
}

// waitFor notes why the prompts that are still to be read, but not in rounds, get no further step now; those behind the
// first of them wait for that.
func (e *Engine) waitFor(why string) {
	for _, s := range e.running {
		if s.waitsFor = ""; !s.ended && s.slot != nil && s.reading() && !s.joined {
			s.waitsFor = why
			e.waits[why]++
			why = ForOrder
		}
	}
}

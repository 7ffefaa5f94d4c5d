package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/cache"
)

// Stats is the state of the engine and its counters.
type Stats struct {
	Device  string
	Ctx     int
	Memory  plans.Memory // sizes on the device
	Started time.Time

	Waiting    int
	WaitingFor map[string]int // of these, by what they wait for: ForSlot, ForPages, ForPriority, ForTurn, ForOrder
	Slots      []SlotStats
	Cache      cache.Stats     // of prompts that slots hold
	Pages      cache.PageStats // zero where caches do not lie in pages
	Entries    []EntryStats    // that have run, in the plan's order

	// Since the start:
	Requests        map[string]int64 // by Done.Reason
	PromptTokens    int64            // computed
	CachedTokens    int64            // of prompts, found in slots
	GeneratedTokens int64
	// Decided counts requests by Decision.Reuse, PromptWaits steps in which a prompt was not read on, by why: ForOrder,
	// ForTokens.
	Decided, PromptWaits map[string]int64
	// Chosen counts tokens by what they were chosen by: ByDevice, ByCandidates, ByLogits.
	Chosen         map[string]int64
	RestoredTokens int64 // of prompts, found in what Options.Keeper keeps
	// KeptPieces of prompts, of so many bytes, are in the host's memory for later prompts.
	KeptPieces int
	KeptBytes  int64

	// Ahead is how often steps were submitted while the ones before them ran, and Prepared how many steps of decoding
	// were decided then: behind the one before they only waited for the choice of tokens.
	Ahead, Prepared int64
	// Guessed is how many tokens were guessed and had rows in steps, and Held how many of them came so.
	Guessed, Held int64
	// Preempted is how often a request gave its slot up, for the pages of others or for a higher priority.
	Preempted int64

	// Turns whose recurrent state could not be kept for the next turn, which then computes its whole
	// prompt; and the reason of the last one.
	Unsaved    int64
	UnsavedWhy error

	// Tokens a second over the last seconds.
	PromptRate, GenerateRate float64
}

// SlotStats is a sequence slot.
type SlotStats struct {
	State      string // "idle", "prompt" or "answer"
	Tokens     int    // that it holds
	Kept       int    // of these, from the beginning, what later prompts that begin alike go on from
	Pages      int    // that it has, its own and shared ones
	Prompt     int    // tokens of the request's prompt
	Cached     int    // of these, found in the slot
	Answer     int    // tokens of the answer
	Checkpoint int64  // bytes of recurrent state kept for the next turn
	Decision          // of the request that has it, or had it last
	WaitsFor   string // why its prompt is not read on: ForOrder, ForTokens; "": it is, or there is none
}

// EntryStats counts and times the steps of an entry.
type EntryStats struct {
	Name    string
	Steps   int64
	Rows    int64         // of all steps together
	Prompts int64         // of which these rows are, where steps read prompts: counted in each step
	Time    time.Duration // of all steps together
	Ratio   float64       // measured to predicted, of the last steps; 0 where nothing is predicted
}

func newStats(plan *plans.Plan, exec runtime.Executor) Stats {
	return Stats{Device: exec.Device(), Ctx: plan.Header.Ctx, Memory: plan.Memory, Started: time.Now(),
		Slots: make([]SlotStats, plan.Header.Slots), Requests: map[string]int64{}, Decided: map[string]int64{}, PromptWaits: map[string]int64{}, Chosen: map[string]int64{}}
}

// Stats returns the current state.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	first := ForSlot
	if e.short {
		first = ForPages
	}
	s.Waiting, s.WaitingFor = len(e.waiting), e.turns.waitsFor(e.waiting, first)
	s.Decided, s.PromptWaits, s.Chosen = maps.Clone(s.Decided), maps.Clone(s.PromptWaits), maps.Clone(s.Chosen)
	s.Slots, s.Requests, s.Entries = slices.Clone(s.Slots), maps.Clone(s.Requests), slices.Clone(s.Entries)
	if time.Since(e.window) > 2*rateWindow {
		s.PromptRate, s.GenerateRate = 0, 0
	}
	return s
}

// count notes an end.
func (s *Stats) count(d *Done) {
	s.Requests[d.Reason]++
	s.CachedTokens += int64(d.Usage.Cached)
}

// rateWindow is how long tokens are counted for a rate.
const rateWindow = time.Second

// publish copies what the loop knows into the stats.
func (e *Engine) publish() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := time.Now(); now.Sub(e.window) >= rateWindow {
		seconds := now.Sub(e.window).Seconds()
		e.stats.PromptRate = float64(e.read-e.readBefore) / seconds
		e.stats.GenerateRate = float64(e.generated-e.generatedBefore) / seconds
		e.window, e.readBefore, e.generatedBefore = now, e.read, e.generated
	}
	e.stats.PromptTokens, e.stats.GeneratedTokens = e.read, e.generated
	e.stats.Unsaved, e.stats.UnsavedWhy = e.unsaved, e.unsavedWhy
	e.stats.Cache = e.tree.Stats()
	if e.pages != nil {
		e.stats.Pages = e.pages.Stats()
	}
	if e.kept != nil {
		e.stats.RestoredTokens = e.kept.restored
		if h, ok := e.kept.Keeper.(Holding); ok {
			e.stats.KeptPieces, e.stats.KeptBytes = h.Held()
		}
	}
	maps.Copy(e.stats.Decided, e.decided)
	maps.Copy(e.stats.PromptWaits, e.waits)
	maps.Copy(e.stats.Chosen, e.chosen)
	e.stats.Ahead, e.stats.Prepared = e.aheads, e.prepares
	e.stats.Guessed, e.stats.Held = e.guessed, e.held
	for i, l := range e.slots {
		st := SlotStats{State: "idle", Tokens: len(l.tokens), Kept: e.tree.At(l.index), Decision: l.decision}
		if e.pages != nil {
			st.Pages = e.pages.Has(l.index).Sum()
		}
		if s := l.seq; s != nil {
			st.WaitsFor = s.waitsFor
			st.State = "answer"
			if s.reading() {
				st.State = "prompt"
			}
			st.Prompt, st.Cached, st.Answer = len(s.req.Prompt), s.usage.Cached, len(s.answer)
		}
		st.Checkpoint = e.tree.StatesOf(l.index)
		if l.state != nil {
			st.Checkpoint += l.state.Bytes()
		}
		e.stats.Slots[i] = st
	}
	e.stats.Entries = e.stats.Entries[:0]
	for i := range e.plan.Entries {
		entry := &e.plan.Entries[i]
		k := e.costs[entry]
		if k.steps == 0 {
			continue
		}
		st := EntryStats{Name: entry.Name, Steps: k.steps, Rows: k.rows, Prompts: k.prompts, Time: time.Duration(k.total * float64(time.Second))}
		if k.last > 0 {
			st.Ratio = k.ratio.mean
		}
		e.stats.Entries = append(e.stats.Entries, st)
	}
}

package engine_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/engine"
)

// TestWholeTime has users ask one request behind the other, with the step times that an H200 has for a model of 8
// billion parameters, of 64 with parts: of the tokens a second that steps without an empty row would give, the schedule
// loses no more than 3 %, from the first prompt to the last token; and nobody waits for a token for longer than the
// bound.
func TestWholeTime(t *testing.T) {
	const prompted, answered, turns, itl = 512, 128, 3, 50 * time.Millisecond
	for _, users := range []int{16, 32, 64} {
		parts, each := users == 64, 14.8e-3 // seconds of a prompt
		if parts {
			each = 26.6e-3 / 2 // two in a step, as many as there is time for
		}
		bubble(t, func(t *testing.T) {
			decode, prefill := map[int]float32{1: 1.6, 2: 2.05, 4: 2.4, 8: 2.5, 16: 3.9, 32: 5.2}, map[int]float32{16: 3.4, 128: 10.4, 256: 11.4, prompted: 14.8}
			if parts {
				decode[64], prefill[1024], prefill[2048] = 7.1, 26.6, 50.8
			}
			p := timedPlan(users, decode, prefill, parts)
			x := newFake(p)
			x.overlaps = true
			e, err := engine.New(p, x, fakeTokenizer(), engine.Options{ITL: itl})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			began := time.Now()
			var wait sync.WaitGroup
			for user := range users {
				wait.Go(func() {
					for turn := range turns {
						r := engine.Request{Prompt: prompt(user*turns+turn, prompted), Max: answered, TopLogprobs: -1, IgnoreEOG: true, NoCache: true}
						if got := ask(t.Context(), e, r); got.err != nil || len(got.tokens) != answered {
							t.Errorf("%d tokens, %v", len(got.tokens), got.err)
						}
					}
				})
			}
			wait.Wait()
			took := time.Since(began).Seconds()
			step := map[int]float64{16: 3.9e-3, 32: 5.2e-3, 64: 7.1e-3}[users] / float64(users)
			if full := float64(users*turns) * (each + step*(answered-1)); took > full/0.97 {
				t.Errorf("%d users: it took %.3f s, %.3f if steps were full", users, took, full)
			} else {
				t.Logf("%d users: %.1f %% of full steps", users, 100*full/took)
			}
			last := map[int32]time.Time{}
			for _, l := range x.log {
				for _, slot := range l.slots {
					if gap := l.end.Sub(last[slot]); l.entry.Kind == "decode" && gap > itl {
						t.Errorf("slot %d waits for %v", slot, gap)
					}
					last[slot] = l.end
				}
			}
		})
	}
}

// timedPlan has entries of so many rows that take so many milliseconds. Those of prompts have parts from 512 rows on.
func timedPlan(slots int, decode, prefill map[int]float32, parts bool) *plans.Plan {
	p := fakePlan(slots, 1024, false)
	p.Entries = nil
	for kind, entries := range map[string]map[int]float32{"decode": decode, "prefill": prefill} {
		for rows, ms := range entries {
			name := fmt.Sprintf("%s/%d", kind, rows)
			e := plans.Entry{Name: name, Kind: kind, Rows: rows, Run: rows, Logits: name + ":logits", Next: name + ":next", Candidates: name + ":candidates",
				Dispatches: []plans.Dispatch{{Cost: plans.Cost{ReadBytes: 1, Predicted: plans.Times{Bytes: ms * 1e-3}}}}}
			if kind == "decode" {
				e.Run = min(rows, 8)
			} else if parts && rows >= 512 {
				e.Part, e.Grain, e.Class = 128, fakeGrain, ir.AlikeStep.String()
			}
			e.Reach = e.Run
			p.Entries = append(p.Entries, e)
		}
	}
	return p
}

package engine_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/engine"
)

// prompts are those that a step has rows of, by slot.
func (l *launch) prompts() (slots []int32) {
	for _, s := range l.slots {
		if s != ir.NoSlot && !slices.Contains(slots, s) {
			slots = append(slots, s)
		}
	}
	return slots
}

// steps are those of prompts, up to the first of decoding behind them.
func (x *fake) steps() (list []launch) {
	for _, l := range x.log {
		if l.entry.Kind == "prefill" {
			list = append(list, l)
		}
	}
	return list
}

// atOnce asks all at once, and returns the answers.
func atOnce(t *testing.T, e *engine.Engine, list []engine.Request) []result {
	out := make([]result, len(list))
	var wait sync.WaitGroup
	for i, r := range list {
		wait.Go(func() {
			time.Sleep(time.Duration(i)) // in this order
			out[i] = ask(t.Context(), e, r)
		})
	}
	wait.Wait()
	return out
}

// TestPromptsTogether: where nobody waits for a token, a step takes the prompts of several in the order in which they
// came, each as a whole or in parts, and nobody waits for others: the first is not read with those that come later. All
// have the answers that they have alone, and the counters tell how many a step had.
func TestPromptsTogether(t *testing.T) {
	for _, k := range kinds {
		bubble(t, func(t *testing.T) {
			p := toParts(kindPlan(8, k.recurrent, k.rings, k.pages))
			x := newFake(p)
			e, err := engine.New(p, x, fakeTokenizer(), engine.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			var list []engine.Request
			for i, n := range []int{60, 50, 64, 65, 100, 21, 128, 90} {
				list = append(list, engine.Request{Prompt: prompt(i, n), Max: 1, TopLogprobs: -1, IgnoreEOG: true})
			}
			got := atOnce(t, e, list)
			for i, r := range list {
				if none := alone(p, engine.Options{}, false, r); got[i].err != nil || got[i].text != none.text {
					t.Errorf("%s: request %d: %q, alone %q; %v", k.name, i, got[i].text, none.text, got[i].err)
				}
				if i > 0 && got[i].at[0].Before(got[i-1].at[0]) {
					t.Errorf("%s: request %d is answered before the one that came before", k.name, i)
				}
			}
			var rows, have []int
			for _, l := range x.steps() {
				rows, have = append(rows, l.rows), append(have, len(l.prompts()))
			}
			// The first alone; a part, a part and two for 65 rows; two for 100, one for 21 and one for the half of 128.
			want, wantRows := []int{1, 3, 3, 2}, []int{60, 193, 256, 154}
			if !slices.Equal(have, want) || !slices.Equal(rows, wantRows) {
				t.Errorf("%s: steps of %d prompts have %d rows", k.name, have, rows)
			}
			prompts := int64(0)
			for _, entry := range e.Stats().Entries {
				prompts += entry.Prompts
			}
			if prompts != 9 {
				t.Errorf("%s: %d prompts are counted, want 9", k.name, prompts)
			}
		})
	}
}

// TestStatesOfParts: however many rows of a long prompt a step has, states are kept at the same places, from which
// other prompts go on with the bits that they have alone: at its turn and every 4,096 positions.
func TestStatesOfParts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := toParts(fakePlan(4, 10000, true))
		run := func(busy bool) (found []int) {
			x := newFake(p)
			e, err := engine.New(p, x, fakeTokenizer(), engine.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			list := []engine.Request{{Prompt: prompt(1, 9500), Turn: 9400, Max: 1, TopLogprobs: -1, IgnoreEOG: true}}
			if busy {
				list = slices.Insert(list, 0, engine.Request{Prompt: prompt(2, 30), Max: 500, TopLogprobs: -1, IgnoreEOG: true}, engine.Request{Prompt: prompt(3, 333), Max: 5, TopLogprobs: -1})
			}
			atOnce(t, e, list)
			steps := map[*plans.Entry]int{}
			for _, l := range x.steps() {
				steps[l.entry]++
			}
			if len(steps) < 2 {
				t.Errorf("steps are of %d entries", len(steps))
			}
			for _, n := range []int{9450, 9390, 9000, 5000, 4000} {
				r := engine.Request{Prompt: slices.Concat(prompt(1, 9500)[:n], []int32{13, 13}), Max: 5, TopLogprobs: -1, IgnoreEOG: true, NoCache: busy && n == 9000}
				got := ask(t.Context(), e, r)
				if none := alone(p, engine.Options{}, false, r); got.text != none.text {
					t.Errorf("busy %t, behind %d: %q, alone %q", busy, n, got.text, none.text)
				}
				if n != 9000 {
					found = append(found, got.done.Usage.Cached)
				}
			}
			return found
		}
		if quiet, busy := run(false), run(true); !slices.Equal(quiet, busy) || !slices.Equal(quiet, []int{9392, 8192, 4096, 0}) {
			t.Errorf("prompts go on at %d, beside others at %d", quiet, busy)
		}
	})
}

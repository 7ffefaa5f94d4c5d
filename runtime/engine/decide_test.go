package engine_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/runtime/engine"
)

// TestTurnsOfOwners: requests of several owners get slots in turns, within a priority, however many one of them has in
// the queue; those of one owner in the order in which they came. Stats say what each waits for.
func TestTurnsOfOwners(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := fakePlan(1, 1024, false)
		e, err := engine.New(p, newFake(p), fakeTokenizer(), engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		var mu sync.Mutex
		var order []string
		var wait sync.WaitGroup
		for i, name := range []string{"a1", "a2", "a3", "a4", "b1", "b2", "c1", "A5"} {
			r := engine.Request{Prompt: prompt(i, 40), Max: 20, TopLogprobs: -1, IgnoreEOG: true, Owner: name[:1]}
			if name == "a1" || name == "A5" { // what runs is of no lower priority, which would give way
				r.Owner, r.Priority = "a", 1
			}
			wait.Go(func() {
				if got := ask(context.Background(), e, r); got.err != nil {
					t.Error(got.err)
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
			})
			time.Sleep(time.Millisecond)
		}
		want := map[string]int{engine.ForSlot: 1, engine.ForPages: 0, engine.ForPriority: 6, engine.ForTurn: 0, engine.ForOrder: 0}
		if s := e.Stats(); s.Waiting != 7 || !maps.Equal(s.WaitingFor, want) {
			t.Errorf("%d wait, for %v, want %v", s.Waiting, s.WaitingFor, want)
		}
		time.Sleep(150 * time.Millisecond) // a1 and A5 are answered, b1 is on its way
		want = map[string]int{engine.ForSlot: 1, engine.ForPages: 0, engine.ForPriority: 0, engine.ForTurn: 2, engine.ForOrder: 2}
		if s := e.Stats(); s.Waiting != 5 || !maps.Equal(s.WaitingFor, want) {
			t.Errorf("%d wait, for %v, want %v", s.Waiting, s.WaitingFor, want)
		}
		wait.Wait()
		if want := []string{"a1", "A5", "b1", "c1", "a2", "b2", "a3", "a4"}; !slices.Equal(order, want) {
			t.Errorf("in the order %v, want %v", order, want)
		}
	})
}

// TestDecisions: slots say why a request got them, where its tokens were, and what was forgotten for it.
func TestDecisions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := fakePlan(2, 1024, false)
		e, err := engine.New(p, newFake(p), fakeTokenizer(), engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		system := prompt(1, 200)
		first := engine.Request{Prompt: slices.Concat(system, prompt(2, 130)), Max: 5, TopLogprobs: -1}
		fork := engine.Request{Prompt: slices.Concat(system, prompt(3, 30)), Max: 5, TopLogprobs: -1}
		other := engine.Request{Prompt: prompt(4, 330), Max: 5, TopLogprobs: -1}
		for i, c := range []struct {
			r    engine.Request
			slot int
			want engine.Decision
			kept int // tokens, in both slots
		}{
			{first, 0, engine.Decision{Why: engine.LeastMissed, Reuse: engine.NoSlot, From: -1}, 320},
			{fork, 1, engine.Decision{Why: engine.LeastMissed, Reuse: engine.OtherSlot, From: 0}, 320},
			{first, 0, engine.Decision{Why: engine.HoldsPrompt, Reuse: engine.OwnSlot, From: 0}, 320},
			{other, 1, engine.Decision{Why: engine.LeastMissed, Reuse: engine.NoSlot, From: -1}, 640},
			{fork, 0, engine.Decision{Why: engine.HoldsPrompt, Reuse: engine.OwnSlot, From: 0, Forgot: 128}, 512},
		} {
			ask(context.Background(), e, c.r)
			s := e.Stats()
			if have := s.Slots[c.slot].Decision; have != c.want {
				t.Errorf("request %d: %+v, want %+v", i, have, c.want)
			}
			if s.Cache.Tokens != c.kept {
				t.Errorf("request %d: slots hold %d tokens of prompts, want %d", i, s.Cache.Tokens, c.kept)
			}
		}
		s := e.Stats()
		if want := map[string]int64{engine.OwnSlot: 2, engine.OtherSlot: 1, engine.OwnAnswer: 0, engine.NoSlot: 2}; !maps.Equal(s.Decided, want) {
			t.Errorf("decided %v, want %v", s.Decided, want)
		}
		if s.Cache.ForgottenTokens != 128 || s.Slots[0].Kept != 192 || s.Slots[1].Kept != 320 {
			t.Errorf("%d tokens are forgotten, %d and %d kept", s.Cache.ForgottenTokens, s.Slots[0].Kept, s.Slots[1].Kept)
		}
	})
}

// TestPromptsThatWait: a prompt that is not read on says why.
func TestPromptsThatWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := fakePlan(4, 4096, false)
		e, err := engine.New(p, newFake(p), fakeTokenizer(), engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		var wait sync.WaitGroup
		for i, length := range []int{40, 2000, 2000} {
			wait.Go(func() {
				ask(context.Background(), e, engine.Request{Prompt: prompt(i, length), Max: 200, TopLogprobs: -1, IgnoreEOG: true})
			})
			time.Sleep(20 * time.Millisecond)
		}
		seen := map[string]int{}
		for range 100 {
			for _, l := range e.Stats().Slots {
				if l.State != "prompt" && l.WaitsFor != "" {
					t.Errorf("%+v waits", l)
				}
				seen[l.WaitsFor]++
			}
			time.Sleep(5 * time.Millisecond)
		}
		wait.Wait()
		waits := e.Stats().PromptWaits
		if seen[engine.ForTokens] == 0 || seen[engine.ForOrder] == 0 || waits[engine.ForTokens] == 0 || waits[engine.ForOrder] == 0 {
			t.Errorf("seen %v, counted %v", seen, waits)
		}
	})
}

package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
)

// biased draws from the model's distribution with a bias.
func biased(bias map[int32]float64) sample.Params {
	p := sample.Neutral()
	p.Bias = bias
	return p
}

// TestPriorityIsReadFirst: of prompts in slots that of a higher priority is read first, though it came later.
func TestPriorityIsReadFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _ := start(t, 2, engine.Options{})
		var ends [2]time.Time
		var wait sync.WaitGroup
		for i := range ends {
			wait.Go(func() {
				time.Sleep(time.Duration(i) * 20 * time.Millisecond)
				ask(context.Background(), e, engine.Request{Prompt: prompt(i, 900), Max: 1, TopLogprobs: -1, Priority: i})
				ends[i] = time.Now()
			})
		}
		wait.Wait()
		if !ends[1].Before(ends[0]) {
			t.Errorf("the one of higher priority comes %s later", ends[1].Sub(ends[0]))
		}
	})
}

// TestMinTokens: behind the tokens that must come an end may come at once.
func TestMinTokens(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _ := start(t, 1, engine.Options{})
		for least := range 6 {
			r := engine.Request{Prompt: prompt(4, 20), Max: 50, Min: least, StopTokens: []int32{3}, TopLogprobs: -1, Sampling: biased(map[int32]float64{3: 100})}
			if got := ask(context.Background(), e, r); len(got.tokens) != least || got.done.Reason != engine.Stopped {
				t.Errorf("at least %d tokens: %d, %s", least, got.tokens, got.done.Reason)
			}
		}
	})
}

// TestClosingHasBegun: where the model has begun to close its reasoning at the limit, the rest of it is forced alone.
func TestClosingHasBegun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _ := start(t, 1, engine.Options{})
		r := engine.Request{Prompt: prompt(5, 20), Max: 8, TopLogprobs: -1, IgnoreEOG: true, Sampling: biased(map[int32]float64{2: 100}),
			Reasoning: &engine.Budget{Limit: 3, Open: true, Close: []int32{2, fakeUnthink}}}
		if got := ask(context.Background(), e, r); !slices.Equal(got.tokens[:5], []int32{2, 2, 2, fakeUnthink, 2}) {
			t.Errorf("%d", got.tokens)
		}
	})
}

// TestLikeliestOpening: of several openings the one that the model likes best begins the answer.
func TestLikeliestOpening(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _ := start(t, 1, engine.Options{})
		for text := range 12 {
			r := engine.Request{Prompt: prompt(text, 20), Max: 1, TopLogprobs: 16, IgnoreEOG: true}
			var order []int32
			for ev := range e.Generate(context.Background(), r) {
				for _, tok := range ev.Tokens {
					for _, a := range tok.Top {
						order = append(order, a.ID)
					}
				}
			}
			if len(order) < 10 {
				t.Fatalf("%d alternatives", len(order))
			}
			r.TopLogprobs = -1
			for i := range 5 {
				r.Opening = &engine.Opening{Plain: [][]int32{{order[i+4]}, {order[i]}, {order[i+2]}}}
				if got := ask(context.Background(), e, r); got.tokens[0] != order[i] {
					t.Errorf("the answer begins with %d, of %d, likeliest first", got.tokens, order)
				}
			}
		}
	})
}

// TestUsageOfStop: tokens that a stop text cuts off are no part of the answer and not counted.
func TestUsageOfStop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _ := start(t, 1, engine.Options{})
		stopped := 0
		for text := range 12 {
			r := engine.Request{Prompt: prompt(text, 20), Max: 60, TopLogprobs: -1, IgnoreEOG: true, Stops: []string{"ab", "f"}}
			got := ask(context.Background(), e, r)
			if got.done.Stop == "" {
				continue
			}
			stopped++
			if got.done.Usage.Completion != len(got.tokens) {
				t.Errorf("%d tokens are counted of an answer of %d", got.done.Usage.Completion, len(got.tokens))
			}
		}
		if stopped < 3 {
			t.Errorf("%d answers have a stop", stopped)
		}
	})
}

// TestPiecesOfOthers: with ReuseAnswers, too, a prompt that continues no turn takes over only what prompts wrote as
// without a cache: not what was read behind an answer that was kept.
func TestPiecesOfOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _ := start(t, 1, engine.Options{ReuseAnswers: true})
		first := engine.Request{Prompt: prompt(1, 100), Max: 5, TopLogprobs: -1, IgnoreEOG: true}
		ask(context.Background(), e, first)
		next := first
		next.Prompt = slices.Concat(first.Prompt, prompt(2, 348)) // from 100, which is no cut, to 448, which is one
		ask(context.Background(), e, next)
		other := first
		other.Prompt = slices.Concat(next.Prompt[:440], prompt(3, 20))
		got := ask(context.Background(), e, other)
		other.NoCache = true
		if want := ask(context.Background(), e, other); got.text != want.text || got.done.Usage.Cached != 64 {
			t.Errorf("%q with %d tokens of the cache, %q without", got.text, got.done.Usage.Cached, want.text)
		}
	})
}

// TestSlotBegunAnew: what a slot held before a shorter prompt took it says nothing of what it holds then.
func TestSlotBegunAnew(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _ := start(t, 1, engine.Options{})
		r := engine.Request{Prompt: prompt(1, 500), Max: 5, TopLogprobs: -1, IgnoreEOG: true}
		ask(context.Background(), e, r)
		r.Prompt, r.Max = slices.Concat(r.Prompt[:80], prompt(2, 20)), 300
		short := ask(context.Background(), e, r)
		r.Prompt, r.Max = slices.Concat(r.Prompt, short.tokens, prompt(3, 20)), 10
		got := ask(context.Background(), e, r)
		r.NoCache = true
		if want := ask(context.Background(), e, r); got.done.Usage.Cached != 64 || got.text != want.text {
			t.Errorf("%d tokens are found, want 64; %q, want %q", got.done.Usage.Cached, got.text, want.text)
		}
	})
}

// TestRingsBegunAnew: caches that are rings hold all of a prompt that begins anew, whatever was in them before.
func TestRingsBegunAnew(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := fakePlan(1, 1024, false)
		addRings(p)
		e, err := engine.New(p, newFake(p), fakeTokenizer(), engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		ask(context.Background(), e, engine.Request{Prompt: prompt(1, 600), Max: 5, TopLogprobs: -1, IgnoreEOG: true})
		r := engine.Request{Prompt: prompt(2, 100), Max: 5, TopLogprobs: -1, IgnoreEOG: true}
		first := ask(context.Background(), e, r)
		if again := ask(context.Background(), e, r); again.done.Usage.Cached != 64 || again.text != first.text {
			t.Errorf("%d tokens are found, want 64; %q, then %q", again.done.Usage.Cached, first.text, again.text)
		}
	})
}

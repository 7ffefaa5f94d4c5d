package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/runtime/engine"
)

// TestByTurns: 9 sequences have steps of 8 rows by turns, which give more tokens a second than one row more. Each has
// its tokens as often as the others and as if alone, and while a prompt is read no later than the bound.
func TestByTurns(t *testing.T) {
	const users, tokens, itl = 9, 300, 50 * time.Millisecond
	for _, overlaps := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			p := fakePlan(12, 2048, false) // a step of 8 rows takes 3 ms, one of 1 beside it 2
			x := newFake(p)
			x.overlaps = overlaps
			e, err := engine.New(p, x, fakeTokenizer(), engine.Options{ITL: itl})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			began := time.Now()
			var ends [users]time.Time
			var wait sync.WaitGroup
			for i := range users {
				wait.Go(func() {
					r := engine.Request{Prompt: prompt(i, 16), Max: tokens, TopLogprobs: -1, IgnoreEOG: true}
					got := ask(t.Context(), e, r)
					ends[i] = time.Now()
					if want := alone(p, engine.Options{}, false, r); got.err != nil || !slices.Equal(got.tokens, want.tokens) {
						t.Errorf("request %d: %d, %v; alone %d", i, got.tokens, got.err, want.tokens)
					}
				})
			}
			wait.Go(func() {
				time.Sleep(400 * time.Millisecond)
				if got := ask(context.Background(), e, engine.Request{Prompt: prompt(11, 1000), Max: 1, TopLogprobs: -1}); got.err != nil {
					t.Error(got.err)
				}
			})
			wait.Wait()
			last, since, full := map[int32]time.Time{}, map[int32]int{}, 0
			for _, l := range x.log {
				if l.entry.Kind != "decode" {
					continue
				}
				if l.rows == 8 {
					full++
				}
				for _, slot := range l.slots {
					if gap := l.end.Sub(last[slot]); !last[slot].IsZero() && gap > itl {
						t.Errorf("slot %d waits for %v", slot, gap)
					}
					if since[slot] > 3 {
						t.Errorf("slot %d has no row in %d steps", slot, since[slot])
					}
					last[slot], since[slot] = l.end, -1
				}
				for slot := range last {
					since[slot]++
				}
			}
			first, end := slices.MinFunc(ends[:], time.Time.Compare), slices.MaxFunc(ends[:], time.Time.Compare)
			t.Logf("overlaps %t: %d full steps, the ends lie %v apart, all of it took %v", overlaps, full, end.Sub(first), end.Sub(began))
			if least := users * tokens / 8 * 8 / 10; full < least {
				t.Errorf("%d steps are full, want %d", full, least)
			}
			if apart := end.Sub(first); apart > 60*time.Millisecond {
				t.Errorf("the ends lie %v apart", apart)
			}
		})
	}
}

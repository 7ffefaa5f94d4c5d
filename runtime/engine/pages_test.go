package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/runtime/engine"
)

// inPool starts an engine of some slots over a pool of 8 pages of 128 positions, a whole context.
func inPool(t *testing.T, slots int, recurrent bool, o engine.Options) (*engine.Engine, func(r engine.Request) result) {
	p := fakePlan(slots, 1024, recurrent)
	toPages(p, 9)
	e, err := engine.New(p, newFake(p), fakeTokenizer(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e, func(r engine.Request) result { return alone(p, o, false, r) }
}

// TestPutBackAtEachStep has an older request take the pages of a younger one, whose prompt is longer from case to case:
// so it gives its slot up at another step of its answer. Both have the answers that they have alone.
func TestPutBackAtEachStep(t *testing.T) {
	for _, recurrent := range []bool{false, true} {
		cases, put := 0, 0 // in which the younger one gave its slot up
		step := 5
		if testing.Short() {
			step = 45
		}
		for n := 30; n < 500; n += step {
			cases++
			bubble(t, func(t *testing.T) {
				e, alone := inPool(t, 2, recurrent, engine.Options{ITL: 20 * time.Millisecond})
				requests := []engine.Request{{Prompt: prompt(1, 200), Max: 500, TopLogprobs: -1, IgnoreEOG: true}, {Prompt: prompt(2, n), Max: 400, TopLogprobs: 1, IgnoreEOG: true}}
				read := 0
				requests[1].Reading = func(tokens int) { read = tokens }
				var wait sync.WaitGroup
				for i, r := range requests {
					wait.Go(func() {
						time.Sleep(time.Duration(i) * 100 * time.Millisecond)
						got := ask(context.Background(), e, r)
						r.Reading = nil
						want := alone(r)
						if got.err != nil || !slices.Equal(got.tokens, want.tokens) || got.done.Usage.Cached != 0 || got.done.Usage.Prompt != len(r.Prompt) {
							t.Errorf("request %d, behind %d tokens: %d, %+v, %v; alone %d", i, n, got.tokens, got.done.Usage, got.err, want.tokens)
						}
						if times := got.done.Usage.Preempted; i == 0 && times > 0 {
							t.Errorf("the oldest has given its slot up %d times", times)
						} else if times > 0 {
							put++
						}
					})
				}
				wait.Wait()
				if read != n {
					t.Errorf("%d tokens of %d are said to be read", read, n)
				}
			})
		}
		if put < cases/2 {
			t.Errorf("in %d cases of %d the younger one has given its slot up", put, cases)
		}
	}
}

// TestWhoIsPutBack: of three requests that come one behind the other, the first to give its slot up is of the lowest
// priority, then of the owner that has the most pages, then the one that costs least to compute again by page, then the
// youngest, and never the oldest of the highest priority.
func TestWhoIsPutBack(t *testing.T) {
	type one struct {
		prompt, priority int
		owner            string
	}
	for _, c := range []struct {
		name     string
		requests []one
		want     int
	}{
		{"the youngest of equals", []one{{380, 0, ""}, {100, 0, ""}, {100, 0, ""}}, 2},
		{"of the same price, the one with more pages", []one{{200, 0, ""}, {200, 0, ""}, {200, 0, ""}}, 1},
		{"of an answer that costs more, the younger prompt", []one{{200, 0, ""}, {10, 0, ""}, {300, 0, ""}}, 2},
		{"of an answer that costs more, the prompt", []one{{200, 0, ""}, {300, 0, ""}, {10, 0, ""}}, 1},
		{"the lower priority", []one{{200, 0, ""}, {200, 1, ""}, {200, 1, ""}}, 0},
		{"of the owner with more pages", []one{{200, 0, "a"}, {200, 0, "a"}, {200, 0, "b"}}, 1},
	} {
		bubble(t, func(t *testing.T) {
			e, _ := inPool(t, 3, false, engine.Options{})
			var wait sync.WaitGroup
			for i, r := range c.requests {
				wait.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond)
					// Prompts differ in length by their number, by which slots show them.
					q := engine.Request{Prompt: prompt(1+i, r.prompt+i), Max: 500, TopLogprobs: -1, IgnoreEOG: true, Priority: r.priority, Owner: r.owner}
					if got := ask(context.Background(), e, q); got.err != nil || len(got.tokens) != 500 {
						t.Errorf("%s: %d tokens, %v", c.name, len(got.tokens), got.err)
					}
				})
			}
			for e.Stats().Preempted == 0 {
				time.Sleep(time.Millisecond)
			}
			st := e.Stats()
			for i, r := range c.requests {
				runs := slices.ContainsFunc(st.Slots, func(s engine.SlotStats) bool { return s.State != "idle" && s.Prompt == r.prompt+i })
				if runs == (i == c.want) {
					t.Errorf("%s: request %d runs: %t; %+v", c.name, i, runs, st.Slots)
				}
			}
			if st.Waiting != 1 || st.WaitingFor[engine.ForPages] != 1 {
				t.Errorf("%s: %d wait, for %v", c.name, st.Waiting, st.WaitingFor)
			}
			wait.Wait()
		})
	}
}

package engine_test

import (
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/runtime/engine"
)

// TestPriorityInterrupts has a request come to slots that are all in use, of requests with a lower priority or of its
// own: it gets one at once, or waits for an end. All have the answers that they have alone.
func TestPriorityInterrupts(t *testing.T) {
	for _, k := range kinds {
		for i := range 4 {
			overlaps, priority := i%2 > 0, i/2
			bubble(t, func(t *testing.T) {
				p := kindPlan(2, k.recurrent, k.rings, k.pages)
				x := newFake(p)
				x.overlaps = overlaps
				e, err := engine.New(p, x, fakeTokenizer(), engine.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				run := func(i int, r engine.Request) (waited time.Duration) {
					began := time.Now()
					got, want := ask(t.Context(), e, r), alone(p, engine.Options{}, false, r)
					if got.err != nil || got.text != want.text || len(got.tokens) != r.Max {
						t.Errorf("%s, request %d: %q, %v; alone %q", k.name, i, got.text, got.err, want.text)
					}
					return time.Since(began)
				}
				var wait sync.WaitGroup
				for i := range 2 {
					wait.Go(func() {
						run(i, engine.Request{Prompt: prompt(1+i, 100+50*i), Max: 300, TopLogprobs: -1, IgnoreEOG: true})
					})
				}
				time.Sleep(300 * time.Millisecond)
				took := run(2, engine.Request{Prompt: prompt(9, 30), Max: 1, TopLogprobs: -1, IgnoreEOG: true, Priority: priority})
				if first := priority > 0; first != (took < 60*time.Millisecond) || first != (e.Stats().Preempted == 1) {
					t.Errorf("%s, overlaps %t: of priority %d it took %v; %d have given their slots up", k.name, overlaps, priority, took, e.Stats().Preempted)
				}
				wait.Wait()
			})
		}
	}
}

package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/engine"
)

// stopped is a fake that stands still once, as a process does that is stopped, or a machine that sleeps: the clock then
// goes on by an hour in the middle of a step.
type stopped struct {
	*fake
	at time.Time
}

func (x *stopped) Wait(ctx context.Context, t runtime.Ticket) error {
	if !x.at.IsZero() && time.Now().After(x.at) {
		x.at = time.Time{}
		time.Sleep(time.Hour)
	}
	return x.fake.Wait(ctx, t)
}

// TestClockJumps has the clock go on by an hour while requests run: their answers are those that they have alone,
// nobody is given up, and soon behind it requests take as long as before.
func TestClockJumps(t *testing.T) {
	for _, overlaps := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			p := fakePlan(4, 1024, false)
			x := &stopped{fake: newFake(p)}
			x.overlaps = overlaps
			e, err := engine.New(p, x, fakeTokenizer(), engine.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			kind := 0
			round := func() time.Duration {
				began := time.Now()
				var wait sync.WaitGroup
				for i := range 6 {
					r := engine.Request{Prompt: prompt(kind+i, 40+100*i), Max: 60, TopLogprobs: -1, IgnoreEOG: true, NoCache: true}
					wait.Go(func() {
						got, want := ask(t.Context(), e, r), alone(p, engine.Options{}, false, r)
						if got.err != nil || !slices.Equal(got.tokens, want.tokens) {
							t.Errorf("%d, %v; alone %d", got.tokens, got.err, want.tokens)
						}
					})
				}
				wait.Wait()
				kind += 6
				return time.Since(began)
			}
			round()
			before := round()
			x.at = time.Now().Add(before / 2)
			if took := round(); took < time.Hour || took > time.Hour+2*before {
				t.Errorf("the hour took %v", took)
			}
			for range 8 {
				round()
			}
			if behind := round(); behind > before+before/10 {
				t.Errorf("requests take %v behind the hour, %v before", behind, before)
			}
		})
	}
}

package engine_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
)

// TestTogether looks at when tokens come whose steps take a tenth of a millisecond: the first one at once, further ones
// by several, of which none has waited for more than 2 ms; one by one where a text may end the answer, and where steps
// take longer than that.
func TestTogether(t *testing.T) {
	const tokens = 200
	whole := sample.Params{Temp: 1, TopP: 1, Typical: 1, Repeat: 1, Bias: map[int32]float64{7: -1e30, 8: -1e30}} // no halves of code points
	for _, c := range []struct {
		about       string
		slow        float64
		stops       []string
		least, most int // parts
	}{
		{"steps of 0.1 ms", 0.05, nil, tokens / 20, tokens / 10},
		{"with a stop", 0.05, []string{"z"}, tokens - 1, tokens + 1},
		{"steps of 4 ms", 2, nil, tokens - 1, tokens + 1},
	} {
		bubble(t, func(t *testing.T) {
			e, x := start(t, 2, engine.Options{})
			x.slow = c.slow
			var parts []int
			var at []time.Time
			for ev, err := range e.Generate(context.Background(), engine.Request{Prompt: prompt(0, 10), Max: tokens, TopLogprobs: -1, IgnoreEOG: true, Sampling: whole, Stops: c.stops}) {
				if err != nil {
					t.Fatal(err)
				}
				if len(ev.Tokens) > 0 {
					parts, at = append(parts, len(ev.Tokens)), append(at, time.Now())
				}
			}
			total := 0
			for _, n := range parts {
				total += n
			}
			if total != tokens || len(parts) < c.least || len(parts) > c.most || parts[0] != 1 {
				t.Errorf("%s: %d tokens in %d parts, %d to %d wanted: %d", c.about, total, len(parts), c.least, c.most, parts)
			}
			if first := at[0].Sub(x.log[0].end); first > 0 {
				t.Errorf("%s: the first token comes %s late", c.about, first)
			}
			chosen := 0
			for i, n := range parts { // the step whose token is the first of a part
				if wait := at[i].Sub(x.log[chosen].end); wait > 2*time.Millisecond {
					t.Errorf("%s: a token waits for %s", c.about, wait)
				}
				chosen += n
			}
		})
	}
}

// TestTogetherBesidePrompts: no token waits until a step of another's prompt has ended.
func TestTogetherBesidePrompts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, x := start(t, 2, engine.Options{})
		x.slow = 0.2 // a step takes 0.4 ms, one of a prompt up to 12
		var others sync.WaitGroup
		others.Go(func() {
			for k := range 20 {
				time.Sleep(7 * time.Millisecond)
				ask(context.Background(), e, engine.Request{Prompt: prompt(1+k, 700), Max: 1, TopLogprobs: -1, NoCache: true})
			}
		})
		drawn := sample.Params{Temp: 1, TopP: 1, Typical: 1, Repeat: 1, Bias: map[int32]float64{7: -1e30, 8: -1e30}}
		var parts []int
		var at []time.Time
		for ev, err := range e.Generate(t.Context(), engine.Request{Prompt: prompt(0, 10), Max: 600, TopLogprobs: -1, IgnoreEOG: true, Sampling: drawn}) {
			if err != nil {
				t.Fatal(err)
			}
			if len(ev.Tokens) > 0 {
				parts, at = append(parts, len(ev.Tokens)), append(at, time.Now())
			}
		}
		others.Wait()
		var ends []time.Time // of the steps that chose them, and later ones
		chosen, beside := 0, 0
		for _, l := range x.log {
			if l.slots[0] == 0 {
				ends = append(ends, l.end)
			} else if l.entry.Kind == "prefill" && l.end.Before(at[len(at)-1]) {
				beside++
			}
		}
		for i, n := range parts {
			if wait := at[i].Sub(ends[chosen]); wait > 2*time.Millisecond {
				t.Errorf("token %d waits for %s", chosen, wait)
			}
			chosen += n
		}
		if beside == 0 {
			t.Error("no prompt was read beside")
		}
	})
}

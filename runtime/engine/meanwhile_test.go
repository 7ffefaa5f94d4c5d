package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
)

// unhurried is a fake to which a submission takes a while.
type unhurried struct {
	*fake
	running atomic.Int32 // submissions
}

func (x *unhurried) Submit(ctx context.Context, l ...runtime.Launch) (runtime.Ticket, error) {
	time.Sleep(time.Microsecond)
	defer x.running.Add(1)
	return x.fake.Submit(ctx, l...)
}

func (x *unhurried) Wait(ctx context.Context, t runtime.Ticket) error {
	defer x.running.Add(-1)
	return x.fake.Wait(ctx, t)
}

// TestMeanwhile: readers get tokens while the device runs the next step, whoever chooses; beside a prompt, too. So the
// device does not wait for them.
func TestMeanwhile(t *testing.T) {
	whole := map[int32]float64{7: -1e30, 8: -1e30} // no halves of code points, which readers wait for
	for name, temp := range map[string]float64{"likeliest": 0, "drawn": 1} {
		bubble(t, func(t *testing.T) {
			p := fakePlan(2, 1024, false)
			x := &unhurried{fake: newFake(p)}
			x.overlaps = true
			e, err := engine.New(p, x, fakeTokenizer(), engine.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			time.AfterFunc(40*time.Millisecond, func() {
				ask(t.Context(), e, engine.Request{Prompt: prompt(3, 900), Max: 1, TopLogprobs: -1})
			})
			r := engine.Request{Prompt: prompt(1, 20), Max: 60, TopLogprobs: -1, IgnoreEOG: true, Sampling: sample.Neutral()}
			r.Sampling.Temp, r.Sampling.Bias = temp, whole
			tokens := 0
			for ev, err := range e.Generate(t.Context(), r) {
				if err != nil {
					t.Fatal(err)
				}
				tokens += len(ev.Tokens)
				if first := tokens == 1; !first && tokens < r.Max && x.running.Load() == 0 {
					t.Errorf("%s: the device waits while token %d is read", name, tokens)
				}
			}
			if tokens != r.Max {
				t.Errorf("%s: %d tokens", name, tokens)
			}
			time.Sleep(time.Second)
		})
	}
}

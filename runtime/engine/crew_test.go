package engine_test

import (
	"context"
	goruntime "runtime"
	"slices"
	"sync"
	"testing"

	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
)

// nearing is a fake that tells that a submission is about to end.
type nearing struct {
	*fake
	near  func()
	calls int
}

func (x *nearing) Near(f func()) { x.near = f }

func (x *nearing) Wait(ctx context.Context, t runtime.Ticket) error {
	err := x.fake.Wait(ctx, t) // no time goes by while helpers look for work
	if x.near != nil {
		x.near()
		x.near = nil
		x.calls++
	}
	return err
}

// TestCrew compares answers that helpers have chosen with those that nobody helped with; some requests end early, and
// some are chosen for otherwise. It takes real time, by which the engine knows what a choice costs.
func TestCrew(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(8))
	p := fakePlan(24, 512, false)
	wide := p.Entries[3]
	wide.Name, wide.Rows, wide.Candidates, wide.Logits, wide.Next = "decode/32", 32, "decode/32:candidates", "decode/32:logits", "decode/32:next"
	p.Entries = append(p.Entries, wide)
	run := func(users int, helped bool) (all []result, calls int) {
		x := &nearing{fake: newFake(p)}
		x.overlaps = true
		var exec runtime.Executor = x
		if !helped {
			exec = x.fake
		}
		e, err := engine.New(p, exec, fakeTokenizer(), engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		all = make([]result, users)
		var wait sync.WaitGroup
		for i := range all {
			r := engine.Request{Prompt: prompt(i, 16+i), Max: 20 + 2*i, TopLogprobs: -1, Sampling: sample.Neutral(), IgnoreEOG: i%3 > 0}
			switch r.Sampling.Seed = uint64(i); i % 4 {
			case 1:
				r.Sampling.TopK, r.Sampling.TopP = 5, 0.9
			case 2:
				r.Min = 9
			case 3:
				r.Stops = []string{"ca"}
			}
			if i == 5 {
				r.Sampling = sample.Params{}
			}
			wait.Go(func() { all[i] = ask(t.Context(), e, r) })
		}
		wait.Wait()
		return all, x.calls
	}
	want, _ := run(24, false)
	have, calls := run(24, true)
	for i := range want {
		if have[i].err != nil || !slices.Equal(have[i].tokens, want[i].tokens) || have[i].done.Reason != want[i].done.Reason {
			t.Errorf("request %d: %d, %v, want %d", i, have[i].tokens, have[i].err, want[i].tokens)
		}
	}
	if calls == 0 {
		t.Error("no helpers came")
	}
}

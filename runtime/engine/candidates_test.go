package engine_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/grammar"
	"github.com/zincc-dev/zincc/runtime/sample"
)

// withoutCandidates takes candidates out of a plan.
func withoutCandidates(p *plans.Plan) *plans.Plan {
	for i := range p.Entries {
		p.Entries[i].Candidates = ""
	}
	return p
}

// TestCandidates compares answers of plans that leave candidates with those of plans that do not: sampled with
// parameters of all kinds and greedy, with formats, openings, forced tokens and probabilities, alone and side by side.
// Most that may be chosen by candidates are.
func TestCandidates(t *testing.T) {
	free, err := grammar.Regex(`[^f]*`)
	if err != nil {
		t.Fatal(err)
	}
	draws := []func(p *sample.Params){
		func(p *sample.Params) { p.TopK = 5 }, func(p *sample.Params) { p.Temp = 0.7 }, func(p *sample.Params) { p.TopP = 0.6 },
		func(p *sample.Params) { p.MinP = 0.5 }, func(p *sample.Params) { p.TopK, p.Repeat, p.Presence = 4, 1.1, 0.2 },
		func(p *sample.Params) { p.TopK, p.Multiplier = 4, 0.8 }, func(p *sample.Params) { p.Typical = 0.9 },
		func(p *sample.Params) { p.TopK, p.Bias = 3, map[int32]float64{2: 1.5, 5: -1} }, func(p *sample.Params) { *p = sample.Params{} },
	}
	var list []engine.Request
	for i := range 45 {
		p := sample.Neutral()
		draws[i%len(draws)](&p)
		p.Seed = uint64(i)
		r := engine.Request{Prompt: prompt(i, 20+7*i), Max: 60, TopLogprobs: -1, Sampling: p, IgnoreEOG: i%3 == 0}
		switch i % 5 {
		case 0:
			r.Reasoning = &engine.Budget{Limit: 9, Open: true, Close: []int32{fakeUnthink}}
		case 1:
			r.Format = free
		case 2:
			r.Min = 20
		case 3:
			r.Opening = &engine.Opening{Plain: [][]int32{{1, 2}, {3}}}
		}
		if i%11 == 0 {
			r.TopLogprobs = 2
		}
		list = append(list, r)
	}
	bubble(t, func(t *testing.T) {
		run := func(p *plans.Plan) (all []result, stats engine.Stats) {
			e, err := engine.New(p, newFake(p), fakeTokenizer(), engine.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			all = make([]result, len(list))
			var wait sync.WaitGroup
			for i, r := range list {
				wait.Go(func() { all[i] = ask(t.Context(), e, r) })
			}
			wait.Wait()
			time.Sleep(time.Second)
			return all, e.Stats()
		}
		want, by := run(withoutCandidates(fakePlan(8, 512, false)))
		if by.Chosen[engine.ByLogits] == 0 || by.Chosen[engine.ByDevice] == 0 {
			t.Errorf("without candidates: %v", by.Chosen)
		}
		have, by := run(fakePlan(8, 512, false))
		for i, a := range have {
			if w := want[i]; a.err != nil || w.err != nil || !slices.Equal(a.tokens, w.tokens) || a.done.Reason != w.done.Reason {
				t.Errorf("request %d: %d %v, want %d %v", i, a.tokens, a.err, w.tokens, w.err)
			}
		}
		t.Logf("%v", by.Chosen)
		if by.Chosen[engine.ByCandidates] < by.Chosen[engine.ByLogits] {
			t.Errorf("%v", by.Chosen)
		}
	})
}

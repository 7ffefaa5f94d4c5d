package engine_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/grammar"
)

// TestBurstsOfFormats compares answers whose tokens come in bursts, of which some are thrown away, with answers of
// single steps: alone and side by side, with and without a format, with forced runs, up to an end of any kind, in
// caches that are rings. A read of logits takes long, so that bursts pay; tokens with probabilities have a step each.
func TestBurstsOfFormats(t *testing.T) {
	free, err := grammar.Regex(`[^f]*`)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := grammar.GBNF(`root ::= (word "abcad")+` + "\n" + `word ::= [^f]{3,12}`)
	if err != nil {
		t.Fatal(err)
	}
	ends, err := grammar.Regex(`[^f]{9,40}`)
	if err != nil {
		t.Fatal(err)
	}
	var list []engine.Request
	for i := range 24 {
		r := engine.Request{Prompt: prompt(i, 20+7*i), Max: 120, TopLogprobs: -1, Format: []*grammar.Grammar{free, runs, ends, nil}[i%4], IgnoreEOG: i%3 == 0}
		if i%5 == 0 {
			r.Reasoning = &engine.Budget{Limit: 9, Open: true, Close: []int32{fakeUnthink}}
		}
		if i%7 == 0 {
			r.Stops = []string{"ca"}
		}
		list = append(list, r)
	}
	list[5].Max = 2000 // up to the end of the context
	for _, rings := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			p := withoutCandidates(fakePlan(4, 512, false)) // these would spare the reads
			if rings {
				addRings(p)
			}
			run := func(read time.Duration, together int, top int) (all []result, bursts, thrown int) {
				x := newFake(p)
				x.read = read
				e, err := engine.New(p, x, fakeTokenizer(), engine.Options{ITL: time.Second})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				all = make([]result, len(list))
				for at := 0; at < len(list); at += together {
					var wait sync.WaitGroup
					for i := at; i < min(len(list), at+together); i++ {
						r := list[i]
						r.TopLogprobs = top
						wait.Go(func() { all[i] = ask(t.Context(), e, r) })
					}
					wait.Wait()
				}
				rows := 0
				for _, l := range x.log {
					if l.entry.Kind == "decode" {
						rows += l.rows * l.times
						if l.times > 1 {
							bursts++
						}
					}
				}
				for _, a := range all {
					rows -= len(a.tokens)
				}
				return all, bursts, rows
			}
			want, _, _ := run(0, 1, 0)
			for _, together := range []int{1, 4} {
				have, bursts, thrown := run(30*time.Millisecond, together, -1)
				t.Logf("rings %t, %d side by side: %d bursts, %d rows more than tokens", rings, together, bursts, thrown)
				for i, a := range have {
					w := want[i]
					if a.err != nil || w.err != nil || !slices.Equal(a.tokens, w.tokens) || a.text != w.text || a.done.Reason != w.done.Reason {
						t.Errorf("rings %t, %d side by side, request %d: %d %s %v, want %d %s %v", rings, together, i, a.tokens, a.done.Reason, a.err, w.tokens, w.done.Reason, w.err)
						continue
					}
					if u, v := a.done.Usage, w.done.Usage; u.Completion != v.Completion || u.Reasoning != v.Reasoning || u.Prompt != v.Prompt {
						t.Errorf("request %d counts %+v, want %+v", i, u, v)
					}
				}
				if bursts < 50 || thrown < 50 {
					t.Errorf("%d side by side: %d bursts, %d rows thrown away", together, bursts, thrown)
				}
			}
		})
	}
}

package engine_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/grammar"
)

// TestGuided compares answers whose tokens the device chooses within masks, a step ahead of the host, with answers of
// single steps: alone and side by side, with and without a format, with forced runs, behind reasoning, up to an end of
// any kind, in caches that are rings, with recurrent state. A read of logits takes long, so that it pays.
func TestGuided(t *testing.T) {
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
		if i%3 == 1 {
			r.StopTokens = []int32{4} // which the formats have as a text, too
		}
		list = append(list, r)
	}
	list[5].Max = 2000 // up to the end of the context
	for _, kind := range []string{"positions", "rings", "recurrent"} {
		bubble(t, func(t *testing.T) {
			run := func(masks bool, together int) (all []result, ahead int, took time.Duration) {
				p := withoutCandidates(fakePlan(4, 512, kind == "recurrent")) // these would spare the reads
				if kind == "rings" {
					addRings(p)
				}
				if !masks {
					p.Program.Globals = slices.DeleteFunc(p.Program.Globals, func(v *ir.Value) bool { return v.Name == ir.StepMask })
				}
				x := newFake(p)
				x.overlaps = true
				x.read = 5 * time.Millisecond
				e, err := engine.New(p, x, fakeTokenizer(), engine.Options{ITL: time.Second})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				all = make([]result, len(list))
				began := time.Now()
				for at := 0; at < len(list); at += together {
					var wait sync.WaitGroup
					for i := at; i < min(len(list), at+together); i++ {
						wait.Go(func() { all[i] = ask(t.Context(), e, list[i]) })
					}
					wait.Wait()
				}
				for _, l := range x.log {
					if l.part == runtime.Logits {
						ahead++
					}
				}
				if x.open != 0 {
					t.Errorf("%d submissions are open", x.open)
				}
				return all, ahead, time.Since(began)
			}
			for _, together := range []int{1, 4} {
				want, none, single := run(false, together)
				have, ahead, took := run(true, together)
				t.Logf("%s, %d side by side: %d steps ahead, %v where single steps take %v", kind, together, ahead, took, single)
				for i, a := range have {
					w := want[i]
					if a.err != nil || w.err != nil || !slices.Equal(a.tokens, w.tokens) || a.text != w.text || a.done.Reason != w.done.Reason {
						t.Errorf("%s, %d side by side, request %d: %d %s %v, want %d %s %v", kind, together, i, a.tokens, a.done.Reason, a.err, w.tokens, w.done.Reason, w.err)
						continue
					}
					if u, v := a.done.Usage, w.done.Usage; u.Completion != v.Completion || u.Reasoning != v.Reasoning || u.Prompt != v.Prompt {
						t.Errorf("request %d counts %+v, want %+v", i, u, v)
					}
				}
				if none != 0 || ahead < 500/together || took >= single {
					t.Errorf("%d side by side: %d steps ahead, %v where single steps take %v", together, ahead, took, single)
				}
			}
		})
	}
}

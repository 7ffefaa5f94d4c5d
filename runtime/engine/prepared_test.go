package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/grammar"
	"github.com/zincc-dev/zincc/runtime/sample"
)

// preparedRequests are the requests of TestPrepared.
func preparedRequests(t *testing.T) (list []engine.Request) {
	t.Helper()
	var formats [2]*grammar.Grammar // whose forced runs fit a step, and do not
	for i, run := range []string{"abcadab", "abcadabcadabcadabcad"} {
		var err error
		if formats[i], err = grammar.GBNF(`root ::= (word "` + run + `")+` + "\n" + `word ::= [^f]{3,12}`); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 40 {
		r := engine.Request{Prompt: prompt(i, 20+7*i), Max: 20 + 5*i, TopLogprobs: -1, IgnoreEOG: i%3 == 0, Sampling: sample.Neutral()}
		r.Sampling.Seed = uint64(i)
		switch {
		case i%5 == 0:
			r.Reasoning = &engine.Budget{Limit: 19, Open: true, Close: []int32{fakeUnthink}}
		case i%7 == 0:
			r.Stops = []string{"ca"}
		case i%11 == 0: // the device chooses for one among others
			r.Sampling = sample.Params{}
		case i%8 == 1:
			r.Sampling.TopK, r.Sampling.Repeat, r.Min = 4, 1.3, 9
		case i == 19:
			r.TopLogprobs = 2
		case i%4 == 2:
			r.Format = formats[i/4%2]
		}
		list = append(list, r)
	}
	list[13].Max = 2000 // up to the end of the context
	list[26].Max = -1
	return list
}

// TestPrepared compares answers of a device on which steps are prepared with those of one on which none are:
// requests that come together and one behind the other, sampled and not, with penalties, probabilities and formats, and
// end by any reason; with caches that are rings, or lie in pages, and with recurrent state.
func TestPrepared(t *testing.T) {
	list := preparedRequests(t)
	for _, kind := range []string{"plain", "rings", "pages", "recurrent"} {
		bubble(t, func(t *testing.T) {
			p := toWide(fakePlan(8, 512, kind == "recurrent"))
			switch kind {
			case "rings":
				addRings(p)
			case "pages":
				toPages(p, 20)
			}
			run := func(exec runtime.Executor) (all []result, stats engine.Stats) {
				e, err := engine.New(p, exec, fakeTokenizer(), engine.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				all = make([]result, len(list))
				var wait sync.WaitGroup
				for i, r := range list {
					wait.Go(func() {
						time.Sleep(time.Duration(i) * 240 * time.Millisecond)
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						if i%9 == 4 { // leaves at some time
							time.AfterFunc(time.Duration(i)*13*time.Millisecond+400*time.Millisecond, cancel)
						}
						all[i] = ask(ctx, e, r)
					})
				}
				wait.Wait()
				time.Sleep(time.Second)
				return all, e.Stats()
			}
			want, _ := run(newFake(p))
			x := &nearing{fake: newFake(p)}
			x.overlaps = true
			have, stats := run(x)
			for i, a := range have {
				w := want[i]
				if i%9 == 4 { // as far as both go
					n := min(len(a.tokens), len(w.tokens))
					a.tokens, w.tokens = a.tokens[:n], w.tokens[:n]
				} else if a.err != nil || w.err != nil || a.done.Reason != w.done.Reason || a.text != w.text || a.done.Usage.Completion != w.done.Usage.Completion {
					t.Errorf("%s: request %d ends with %+v %v, want %+v %v", kind, i, a.done, a.err, w.done, w.err)
				}
				if !slices.Equal(a.tokens, w.tokens) {
					t.Errorf("%s: request %d: %d, want %d", kind, i, a.tokens, w.tokens)
				}
			}
			t.Logf("%s: %d steps prepared of %d", kind, stats.Prepared, len(x.log))
			if stats.Prepared < 40 {
				t.Errorf("%s: %d steps prepared", kind, stats.Prepared)
			}
			if by := stats.Chosen[engine.ByLogits]; by < 100 {
				t.Errorf("%s: %d choices by logits", kind, by)
			}
		})
	}
}

// TestPreparedTurns: where a turn goes on within the answer of the one before, a row that was run for nothing behind
// that has left no recurrent state from which it could.
func TestPreparedTurns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		x := &nearing{fake: newFake(fakePlan(4, 512, true))}
		x.overlaps = true
		e, err := engine.New(x.plan, x, fakeTokenizer(), engine.Options{ReuseAnswers: true})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		var wait sync.WaitGroup
		for i := range 4 {
			wait.Go(func() {
				r := engine.Request{Prompt: prompt(i, 40), Max: 30, TopLogprobs: -1, Sampling: sample.Neutral(), Stops: []string{"b", "d"}}
				for turn := range 6 {
					r.Sampling.Seed = uint64(10*i + turn)
					a := ask(t.Context(), e, r)
					if a.err != nil {
						t.Errorf("request %d, turn %d: %v", i, turn, a.err)
						return
					}
					r.Prompt = slices.Concat(r.Prompt, a.tokens, prompt(i+turn, 5))
				}
			})
		}
		wait.Wait()
		if n := e.Stats().Prepared; n < 10 {
			t.Errorf("%d steps prepared", n)
		}
	})
}

package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
)

// TestAhead compares answers of a device on which steps are submitted ahead with those of one on which none are:
// requests that come together and one behind the other, and end by any reason, some in the middle of a submission; with
// caches that are rings, or lie in pages, and with recurrent state.
func TestAhead(t *testing.T) {
	var list []engine.Request
	for i := range 40 {
		r := engine.Request{Prompt: prompt(i, 20+7*i), Max: 20 + 5*i, TopLogprobs: -1, IgnoreEOG: i%3 == 0}
		switch {
		case i%5 == 0:
			r.Reasoning = &engine.Budget{Limit: 19, Open: true, Close: []int32{fakeUnthink}}
		case i%7 == 0:
			r.Stops = []string{"ca"}
		case i%11 == 0: // sampled, the one among others
			r.Sampling = sample.Neutral()
			r.Sampling.Seed = uint64(i)
		}
		list = append(list, r)
	}
	list[13].Max = 2000 // up to the end of the context
	list[26].Max = -1
	for _, kind := range []string{"plain", "rings", "pages", "recurrent"} {
		bubble(t, func(t *testing.T) {
			p := fakePlan(8, 512, kind == "recurrent")
			switch kind {
			case "rings":
				addRings(p)
			case "pages":
				toPages(p, 20)
			}
			run := func(overlaps bool) (all []result, x *fake, stats engine.Stats) {
				x = newFake(p)
				x.overlaps = overlaps
				e, err := engine.New(p, x, fakeTokenizer(), engine.Options{})
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
				return all, x, e.Stats()
			}
			want, one, _ := run(false)
			if one.both != 0 {
				t.Errorf("%d submissions beside another", one.both)
			}
			have, two, stats := run(true)
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
			t.Logf("%s: %d submissions ahead of %d", kind, two.both, len(two.log))
			if two.both < 40 || stats.Ahead != int64(two.both) {
				t.Errorf("%s: %d submissions ahead, %d are told", kind, two.both, stats.Ahead)
			}
		})
	}
}

// TestAheadWithin: what is submitted takes no longer than the bound on the time between tokens, nor does a new request
// wait for longer.
func TestAheadWithin(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := fakePlan(8, 4096, false)
		x := newFake(p)
		x.overlaps = true
		e, err := engine.New(p, x, fakeTokenizer(), engine.Options{ITL: 40 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		var wait sync.WaitGroup
		for i := range 7 {
			wait.Go(func() {
				if a := ask(t.Context(), e, engine.Request{Prompt: prompt(i, 20), Max: 600, TopLogprobs: -1, IgnoreEOG: true}); a.err != nil || len(a.tokens) != 600 {
					t.Errorf("%d tokens, %v", len(a.tokens), a.err)
				}
			})
		}
		time.Sleep(500 * time.Millisecond)
		began := time.Now()
		a := ask(t.Context(), e, engine.Request{Prompt: prompt(9, 16), Max: 1, TopLogprobs: -1})
		if took := time.Since(began); a.err != nil || took > 55*time.Millisecond { // what is open, and its own prompt of 6 ms
			t.Errorf("a new request took %v: %v", took, a.err)
		}
		for i := range 4 { // behind a prompt there is less time for steps
			time.Sleep(100 * time.Millisecond)
			if a := ask(t.Context(), e, engine.Request{Prompt: prompt(10+i, 128), Max: 20, IgnoreEOG: true, TopLogprobs: -1}); a.err != nil {
				t.Error(a.err)
			}
		}
		wait.Wait()
		if x.both < 50 {
			t.Errorf("%d submissions ahead", x.both)
		}
		last := x.log[len(x.log)-1].end
		for i, l := range slices.Backward(x.log) {
			if l.entry.Kind != "decode" || l.rows < 7 {
				continue
			}
			if d := last.Sub(l.end); d > 40*time.Millisecond {
				t.Errorf("%v between two tokens, behind submission %d", d, i)
			}
			last = l.end
		}
	})
}

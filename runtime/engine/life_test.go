package engine_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
)

// start makes an engine on a fake with so many slots of 1024 positions.
func start(t *testing.T, slots int, o engine.Options) (*engine.Engine, *fake) {
	t.Helper()
	p := fakePlan(slots, 1024, false)
	x := newFake(p)
	o.NoDrafts = true // they are told apart by their steps
	e, err := engine.New(p, x, fakeTokenizer(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e, x
}

// prompt is n tokens that no other kind begins with.
func prompt(kind, n int) []int32 {
	ids := []int32{int32(kind % 12)}
	for i := 1; i < n; i++ {
		ids = append(ids, int32((i*i+kind)%12))
	}
	return ids
}

// bubble runs a test in virtual time. All goroutines must have ended in the end.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// TestITL lets a sequence decode while long prompts come: no two of its tokens are further apart than the
// bound, though a prompt alone takes longer than that, and the prompts are not starved.
func TestITL(t *testing.T) {
	for _, itl := range []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond} {
		bubble(t, func(t *testing.T) {
			e, x := start(t, 4, engine.Options{ITL: itl})
			var wait sync.WaitGroup
			wait.Go(func() {
				ask(context.Background(), e, engine.Request{Prompt: prompt(0, 10), Max: 300, TopLogprobs: -1, IgnoreEOG: true})
			})
			for i := range 3 {
				wait.Go(func() {
					time.Sleep(time.Duration(40+20*i) * time.Millisecond)
					if r := ask(context.Background(), e, engine.Request{Prompt: prompt(1+i, 900), Max: 5, TopLogprobs: -1}); r.err != nil {
						t.Error(r.err)
					}
				})
			}
			wait.Wait()
			last := x.log[0].end
			for _, l := range x.log {
				if l.slots[0] == 0 { // it is in all steps of decoding, as the first row
					if d := l.end.Sub(last); d > itl {
						t.Errorf("bound %s: %s between two tokens", itl, d)
					}
					last = l.end
				}
			}
			// A gap has as much of a prompt as fits.
			rows, gaps := 0, 0
			for i, l := range x.log[1:] {
				if l.entry.Kind == "prefill" {
					rows += l.rows
					if x.log[i].entry.Kind == "decode" {
						gaps++
					}
				}
			}
			if least := map[time.Duration]int{20 * time.Millisecond: 25, 50 * time.Millisecond: 100, 100 * time.Millisecond: 200}[itl]; rows < least*gaps {
				t.Errorf("bound %s: %d rows of prompts in %d gaps", itl, rows, gaps)
			}
		})
	}
}

// TestITLMeasured: of the bound there is something left, also where steps take longer than predicted, now more
// and now less, and the host takes its time, too; of 1,000 gaps between two tokens 10 may be longer than the bound.
func TestITLMeasured(t *testing.T) {
	for _, c := range []struct {
		slow, jitter float64
		read         time.Duration
		share        float64 // of the bound, that gaps with prompts take at least
	}{
		{1, 0, 0, 0.7}, {1.15, 0, 2 * time.Millisecond, 0.7}, {1, 0.2, 0, 0.6}, {1.1, 0.3, 3 * time.Millisecond, 0.5},
	} {
		bubble(t, func(t *testing.T) {
			const itl = 50 * time.Millisecond
			e, x := start(t, 4, engine.Options{ITL: itl})
			x.slow, x.jitter, x.read = c.slow, c.jitter, c.read
			var gaps []time.Duration
			var wait sync.WaitGroup
			wait.Go(func() {
				last := time.Time{}
				drawn := sample.Params{Temp: 1, TopP: 1, Typical: 1, Repeat: 1, Bias: map[int32]float64{7: math.Inf(-1), 8: math.Inf(-1)}}
				for ev := range e.Generate(context.Background(), engine.Request{Prompt: prompt(0, 10), Max: 900, TopLogprobs: -1, IgnoreEOG: true, Sampling: drawn}) {
					if now := time.Now(); len(ev.Tokens) > 0 {
						if !last.IsZero() {
							gaps = append(gaps, now.Sub(last))
						}
						last = now
					}
				}
			})
			for i := range 3 {
				wait.Go(func() {
					for k := range 25 {
						time.Sleep(time.Duration(20+10*i) * time.Millisecond)
						ask(context.Background(), e, engine.Request{Prompt: prompt(1+i+3*k, 700), Max: 5, TopLogprobs: -1, NoCache: true})
					}
				})
			}
			wait.Wait()
			slices.Sort(gaps)
			if p99 := gaps[len(gaps)*99/100]; len(gaps) < 800 || p99 > itl {
				t.Errorf("%+v: p99 of %d gaps is %s, the longest %s", c, len(gaps), p99, gaps[len(gaps)-1])
			}
			if p90 := gaps[len(gaps)*9/10]; p90.Seconds() < c.share*itl.Seconds() {
				t.Errorf("%+v: p90 is %s: prompts have too little of the bound", c, p90)
			}
		})
	}
}

// TestITLBursts: the bound holds for tokens that the device chooses several of at once, too.
func TestITLBursts(t *testing.T) {
	for _, slow := range []float64{1, 1.3, 2, 2.05, 3, 6} {
		bubble(t, func(t *testing.T) {
			const itl = 50 * time.Millisecond
			e, x := start(t, 8, engine.Options{ITL: itl})
			x.slow, x.jitter = slow, 0.2
			var mu sync.Mutex
			var gaps []time.Duration
			var wait sync.WaitGroup
			for i := range 8 {
				wait.Go(func() {
					last, n := time.Time{}, 0
					for ev := range e.Generate(context.Background(), engine.Request{Prompt: prompt(i, 10), Max: 800, TopLogprobs: -1, IgnoreEOG: true}) {
						if now := time.Now(); len(ev.Tokens) > 0 {
							if n++; n > 20 { // from the first steps the engine learns how long they take
								mu.Lock()
								gaps = append(gaps, now.Sub(last))
								mu.Unlock()
							}
							last = now
						}
					}
				})
			}
			wait.Wait()
			slices.Sort(gaps)
			if p99 := gaps[len(gaps)*99/100]; p99 > itl {
				t.Errorf("steps of %.1f ms and more: p99 of %d gaps is %s", 3*slow, len(gaps), p99)
			}
			if mean := float64(len(gaps)) / 8; slow <= 2 && mean > 800/4 {
				t.Errorf("steps of %.1f ms and more: 800 tokens come in %.0f parts", 3*slow, mean)
			}
		})
	}
}

// TestOrder holds that requests get their slot and their first token in the order in which they
// came, those of a higher priority before others.
func TestOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _ := start(t, 2, engine.Options{})
		var mu sync.Mutex
		var order []int
		whole := sample.Params{Bias: map[int32]float64{7: math.Inf(-1), 8: math.Inf(-1)}} // no halves of code points, which are held back
		var wait sync.WaitGroup
		for i := range 12 {
			wait.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				first := true
				for ev, err := range e.Generate(context.Background(), engine.Request{Prompt: prompt(i, 40), Max: 10, TopLogprobs: -1, IgnoreEOG: true, Priority: i / 9, Sampling: whole}) {
					if err != nil {
						t.Error(err)
					}
					if first && len(ev.Tokens) > 0 {
						mu.Lock()
						order = append(order, i)
						mu.Unlock()
						first = false
					}
				}
			})
		}
		wait.Wait()
		// All have come when the first prompt is read, after 15 ms.
		if want := []int{0, 9, 10, 11, 1, 2, 3, 4, 5, 6, 7, 8}; !slices.Equal(order, want) {
			t.Errorf("first tokens in the order %d, want %d", order, want)
		}
	})
}

// TestBatch holds that sequences are decoded together, in bursts if the device chooses for all.
func TestBatch(t *testing.T) {
	for _, drawn := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			e, x := start(t, 8, engine.Options{})
			var wait sync.WaitGroup
			for i := range 8 {
				r := engine.Request{Prompt: prompt(i, 10), Max: 64, TopLogprobs: -1, IgnoreEOG: true}
				if drawn {
					r.Sampling = sample.Neutral()
				}
				wait.Go(func() { ask(context.Background(), e, r) })
			}
			wait.Wait()
			steps, submissions := 0, 0
			for _, l := range x.log {
				if l.entry.Kind == "decode" {
					steps, submissions = steps+l.times, submissions+1
				}
			}
			want := 64
			if !drawn {
				want = 64 / 8
			}
			if steps > 80 || submissions > want+14 {
				t.Errorf("drawn %v: 8 sequences of 64 tokens take %d steps in %d submissions", drawn, steps, submissions)
			}
		})
	}
}

// TestRefused holds that each bad request is refused for what is wrong with it.
func TestRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _ := start(t, 1, engine.Options{})
		hot := sample.Neutral()
		hot.Temp = -1
		for _, x := range []struct {
			r    engine.Request
			want string
		}{
			{engine.Request{}, "prompt has no tokens"},
			{engine.Request{Prompt: []int32{1, 99}}, "prompt has token 99"},
			{engine.Request{Prompt: []int32{-1}}, "prompt has token -1"},
			{engine.Request{Prompt: make([]int32, 1025)}, "1025 tokens do not fit"},
			{engine.Request{Prompt: []int32{1}, Turn: 2}, "turn is 2"},
			{engine.Request{Prompt: []int32{1}, StopTokens: []int32{16}}, "stop_token_ids has token 16"},
			{engine.Request{Prompt: []int32{1}, Sampling: hot}, "temperature is -1"},
			{engine.Request{Prompt: []int32{1}, Reasoning: &engine.Budget{Limit: 3}}, "reasoning"},
			{engine.Request{Prompt: []int32{1}, Reasoning: &engine.Budget{Limit: 3, Close: []int32{77}}}, "reasoning has token 77"},
		} {
			got := ask(context.Background(), e, x.r)
			if got.err == nil || !strings.Contains(got.err.Error(), x.want) || got.done == nil || got.done.Reason != engine.Failed {
				t.Errorf("%v, %+v, want %q", got.err, got.done, x.want)
			}
		}
	})
}

// TestQueue fills the queue, and lets some wait for too long.
func TestQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _ := start(t, 1, engine.Options{Queue: 2, Patience: 100 * time.Millisecond})
		var wait sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			wait.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				errs[i] = ask(context.Background(), e, engine.Request{Prompt: prompt(i, 8), Max: 80, TopLogprobs: -1, IgnoreEOG: true}).err
			})
		}
		wait.Wait()
		for i, want := range []error{nil, engine.ErrQueueTimeout, engine.ErrQueueTimeout, engine.ErrQueueFull} {
			if errs[i] != want {
				t.Errorf("request %d: %v, want %v", i, errs[i], want)
			}
		}
	})
}

// TestFailure breaks the executor: all requests end with its error, and later ones, too.
func TestFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, x := start(t, 2, engine.Options{})
		lost := errors.New("the device is lost")
		x.fail, x.broken = lost, time.Now().Add(100*time.Millisecond)
		var wait sync.WaitGroup
		for i := range 5 {
			wait.Go(func() {
				if got := ask(context.Background(), e, engine.Request{Prompt: prompt(i, 8), Max: 100, TopLogprobs: -1, IgnoreEOG: true}); got.err != lost || got.done.Reason != engine.Failed {
					t.Errorf("request %d: %v, %+v", i, got.err, got.done)
				}
			})
		}
		wait.Wait()
		<-e.Failed()
		if got := ask(context.Background(), e, engine.Request{Prompt: prompt(1, 8)}); got.err != lost || e.Err() != lost {
			t.Errorf("behind the end: %v, %v", got.err, e.Err())
		}
	})
}

// TestNotNumbers holds that logits that are no numbers end the request alone, whoever chooses.
func TestNotNumbers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, x := start(t, 2, engine.Options{})
		for _, p := range []sample.Params{{}, sample.Neutral()} {
			x.nan = true
			var bad *sample.NotNumbersError
			if got := ask(context.Background(), e, engine.Request{Prompt: prompt(1, 8), Max: 20, Sampling: p, TopLogprobs: -1}); !errors.As(got.err, &bad) || len(bad.Sequence) != 8 {
				t.Errorf("%v", got.err)
			}
			x.nan = false
			if got := ask(context.Background(), e, engine.Request{Prompt: prompt(1, 8), Max: 20, Sampling: p, TopLogprobs: -1}); got.err != nil {
				t.Errorf("the next request: %v", got.err)
			}
		}
	})
}

// TestDrain lets what runs come to its end, and ends it when that takes too long.
func TestDrain(t *testing.T) {
	for _, patient := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			e, _ := start(t, 2, engine.Options{})
			var wait sync.WaitGroup
			var dones [3]*engine.Done
			for i := range dones {
				wait.Go(func() {
					dones[i] = ask(context.Background(), e, engine.Request{Prompt: prompt(i, 8), Max: 100, TopLogprobs: -1, IgnoreEOG: true}).done
				})
			}
			time.Sleep(50 * time.Millisecond)
			ctx := context.Background()
			if !patient {
				var cancel func()
				ctx, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
				defer cancel()
			}
			late := make(chan error)
			go func() {
				time.Sleep(time.Millisecond)
				late <- ask(context.Background(), e, engine.Request{Prompt: prompt(1, 8)}).err
			}()
			err := e.Drain(ctx)
			if patient != (err == nil) {
				t.Errorf("drain: %v", err)
			}
			if err := <-late; err != engine.ErrDraining {
				t.Errorf("a late request: %v", err)
			}
			wait.Wait()
			for i, d := range dones {
				if d == nil || d.Reason != engine.Length || d.Drained == patient || patient && d.Usage.Completion != 100 {
					t.Errorf("request %d: %+v", i, d)
				}
			}
		})
	}
}

// TestClose ends everything at once; closing again does nothing.
func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _ := start(t, 1, engine.Options{})
		var wait sync.WaitGroup
		for i := range 3 {
			wait.Go(func() {
				if got := ask(context.Background(), e, engine.Request{Prompt: prompt(i, 8), Max: -1, TopLogprobs: -1, IgnoreEOG: true}); got.err != nil || got.done.Reason != engine.Cancelled {
					t.Errorf("request %d: %v, %+v", i, got.err, got.done)
				}
			})
		}
		time.Sleep(30 * time.Millisecond)
		e.Close()
		e.Close()
		wait.Wait()
		if got := ask(context.Background(), e, engine.Request{Prompt: prompt(1, 8)}); got.err != engine.ErrClosed {
			t.Errorf("behind the end: %v", got.err)
		}
	})
}

// TestLimits looks at each way an answer can end, and at budgets of reasoning.
func TestLimits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _ := start(t, 1, engine.Options{})
		long := engine.Request{Prompt: prompt(3, 1000), Max: -1, IgnoreEOG: true}
		if got := ask(context.Background(), e, long); got.done.Reason != engine.Context || len(got.tokens) != 25 {
			t.Errorf("%d tokens behind 1000 of 1024, %+v", len(got.tokens), got.done)
		}
		none := long
		none.Max = 0
		if got := ask(context.Background(), e, none); got.done.Reason != engine.Length || len(got.tokens) != 0 {
			t.Errorf("no tokens wanted: %d, %+v", got.tokens, got.done)
		}
		// Every token ends the answer, but for the first 5.
		ends := engine.Request{Prompt: prompt(4, 20), Max: 50, Min: 5, Sampling: sample.Neutral()}
		for id := range int32(12) {
			ends.StopTokens = append(ends.StopTokens, id)
		}
		if got := ask(context.Background(), e, ends); len(got.tokens) < 5 || got.done.Reason != engine.Stopped && got.done.Reason != engine.Length {
			t.Errorf("%d, %+v", got.tokens, got.done)
		}
		for limit := range 4 {
			r := engine.Request{Prompt: prompt(5, 20), Max: 30, TopLogprobs: -1, IgnoreEOG: true,
				Reasoning: &engine.Budget{Limit: limit, Open: true, Close: []int32{fakeUnthink, 6}}}
			got := ask(context.Background(), e, r)
			at := slices.Index(got.tokens, fakeUnthink)
			if at < 0 || at > limit || got.tokens[at+1] != 6 || got.done.Usage.Reasoning > limit+2 {
				t.Errorf("a budget of %d: %d, %+v", limit, got.tokens, got.done)
			}
		}
	})
}

// TestOpening: an answer begins with one of the openings, behind its reasoning if it has some, and goes on as
// the model likes.
func TestOpening(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _ := start(t, 2, engine.Options{})
		openings := [][]int32{{7, 8, 9}, {7, 8, 10, 11}, {7, 3}, {7, 3, 4}}
		begins := func(tokens []int32) bool {
			return slices.ContainsFunc(openings, func(o []int32) bool { return len(tokens) >= len(o) && slices.Equal(tokens[:len(o)], o) })
		}
		seen := map[int32]bool{}
		for text := range 12 {
			for _, drawn := range []bool{false, true} {
				r := engine.Request{Prompt: prompt(text, 20), Max: 20, TopLogprobs: -1, IgnoreEOG: true, Opening: &engine.Opening{Plain: openings}}
				if drawn {
					r.Sampling = sample.Neutral()
				}
				got := ask(context.Background(), e, r)
				if !begins(got.tokens) || len(got.tokens) != 20 || got.done.Usage.Completion != 20 {
					t.Errorf("an answer begins with %d, %+v", got.tokens, got.done)
				}
				seen[got.tokens[1]] = true

				// Behind reasoning, which the budget ends.
				r.Opening = &engine.Opening{Plain: [][]int32{{5}}, Behind: openings}
				r.Reasoning = &engine.Budget{Limit: 4, Open: true, Begin: []int32{fakeThink}, Close: []int32{fakeUnthink}, Force: []int32{2, fakeUnthink, 6}}
				got = ask(context.Background(), e, r)
				at := slices.Index(got.tokens, fakeUnthink)
				if at < 0 || at > 6 || !begins(got.tokens[at+1:]) {
					t.Errorf("behind reasoning: %d", got.tokens)
				}

				// The model may reason, and does not.
				r.Reasoning = &engine.Budget{Limit: -1, Begin: []int32{fakeThink}, Close: []int32{fakeUnthink}}
				got = ask(context.Background(), e, r)
				if got.tokens[0] != 5 && got.tokens[0] != fakeThink {
					t.Errorf("without reasoning: %d", got.tokens)
				}
			}
		}
		if !seen[8] || !seen[3] {
			t.Errorf("the model has no say: %v", seen)
		}
		for _, o := range []*engine.Opening{{}, {Plain: [][]int32{{}}}, {Plain: [][]int32{{5}}, Behind: [][]int32{{77}}}} {
			if got := ask(context.Background(), e, engine.Request{Prompt: prompt(1, 5), Max: 3, TopLogprobs: -1, Opening: o}); got.err == nil {
				t.Errorf("%+v is taken", o)
			}
		}
	})
}

// TestForcedClose: what is forced at the limit is the whole of Force, though a part of it closes reasoning.
func TestForcedClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _ := start(t, 1, engine.Options{})
		// The second is not to be found in what is forced: tokens may lie otherwise within a longer text.
		for _, close := range [][]int32{{fakeUnthink}, {fakeUnthink, fakeUnthink}} {
			r := engine.Request{Prompt: prompt(5, 20), Max: 30, TopLogprobs: -1, IgnoreEOG: true,
				Reasoning: &engine.Budget{Limit: 0, Open: true, Close: close, Force: []int32{2, fakeUnthink, 6, 3}}}
			got := ask(context.Background(), e, r)
			if !slices.Equal(got.tokens[:4], []int32{2, fakeUnthink, 6, 3}) || slices.Equal(got.tokens[4:8], []int32{2, fakeUnthink, 6, 3}) {
				t.Errorf("%d", got.tokens)
			}
		}
	})
}

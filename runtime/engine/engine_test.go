package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
)

// result is an answer as it came.
type result struct {
	text   string
	tokens []int32
	at     []time.Time // of each event with tokens
	done   *engine.Done
	err    error
}

// ask runs a request and checks that its events are in order.
func ask(ctx context.Context, e *engine.Engine, r engine.Request) (out result) {
	for ev, err := range e.Generate(ctx, r) {
		if out.done != nil {
			out.err = errors.New("an event behind the last one")
			return out
		}
		out.text += ev.Text
		for _, t := range ev.Tokens {
			out.tokens = append(out.tokens, t.ID)
		}
		if len(ev.Tokens) > 0 {
			out.at = append(out.at, time.Now())
		}
		out.done, out.err = ev.Done, err
	}
	return out
}

// alone is the answer of an engine that does nothing else, and guesses nothing.
func alone(p *plans.Plan, o engine.Options, alike bool, r engine.Request) result {
	one := *p
	one.Header.Slots = 1
	o.NoDrafts = true
	x := newFake(p)
	x.alike = alike
	e, err := engine.New(&one, x, fakeTokenizer(), o)
	if err != nil {
		return result{err: err}
	}
	defer e.Close()
	return ask(context.Background(), e, r)
}

func drawRequest(t *rapid.T, ctx int) engine.Request {
	n := rapid.IntRange(1, ctx).Draw(t, "prompt")
	if rapid.Bool().Draw(t, "short") {
		n = min(n, 30)
	}
	r := engine.Request{Max: rapid.IntRange(-1, 40).Draw(t, "max"), TopLogprobs: rapid.IntRange(-1, 2).Draw(t, "logprobs"),
		Min: rapid.SampledFrom([]int{0, 0, 5}).Draw(t, "min"), Priority: rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "priority")}
	// Prompts of one of a few texts, so that many begin alike.
	text := rapid.IntRange(0, 2).Draw(t, "text")
	for i := range n {
		r.Prompt = append(r.Prompt, int32((i*i*(text+1)+i/7)%12))
	}
	if rapid.Bool().Draw(t, "conversation") {
		r.Turn = max(0, n-rapid.IntRange(0, 5).Draw(t, "generation prompt"))
	}
	r.Owner = rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "owner")
	if rapid.Bool().Draw(t, "drawn") {
		r.Sampling = sample.Neutral()
		r.Sampling.TopK = rapid.IntRange(0, 6).Draw(t, "top-k")
		r.Sampling.Seed = rapid.Uint64Range(0, 3).Draw(t, "seed")
		r.Sampling.Presence = rapid.SampledFrom([]float64{0, 1}).Draw(t, "presence")
	}
	if rapid.Bool().Draw(t, "stops") {
		r.Stops = []string{"bad", "a c"}
	}
	if rapid.IntRange(0, 4).Draw(t, "reasoning") == 0 {
		r.Reasoning = &engine.Budget{Limit: rapid.IntRange(0, 6).Draw(t, "budget"), Open: rapid.Bool().Draw(t, "open"),
			Begin: []int32{fakeThink}, Close: []int32{fakeUnthink, 6}}
	}
	return r
}

// visit is a request that comes at some time and whose reader may leave.
type visit struct {
	engine.Request
	arrive, leave time.Duration
}

// TestLoad sends requests at random times, cancels some and lets some readers leave. Each answer
// is the one that the request gets alone, or its beginning; nothing is left behind in the end.
func TestLoad(t *testing.T) {
	testLoad(t, false, [2]int{1, 8}, [2]int{1, 20})
}

// TestLoadInPages is TestLoad where caches lie in a pool that is too small for all, so that some give their slots up.
func TestLoadInPages(t *testing.T) {
	if testLoad(t, true, [2]int{3, 6}, [2]int{8, 20}) == 0 {
		t.Error("no request has given its slot up")
	}
}

// testLoad is a test of at least and at most so many slots and requests, and returns how many gave their slots up.
func testLoad(t *testing.T, pages bool, slots, requests [2]int) (preempted int64) {
	rapid.Check(t, func(rt *rapid.T) {
		rings := rapid.Bool().Draw(rt, "rings")
		ctx := 300
		if rings {
			ctx = 2 * fakeRing
		}
		p := fakePlan(rapid.IntRange(slots[0], slots[1]).Draw(rt, "slots"), ctx, rapid.Bool().Draw(rt, "recurrent"))
		if rapid.Bool().Draw(rt, "repeats") {
			p.Header.Model.Name = fakeRepeats
		}
		if rings {
			addRings(p)
		}
		if parts := rapid.IntRange(0, 3).Draw(rt, "parts"); parts > 1 {
			toParts(p)
			for i := range p.Entries { // without parts entries may be alike, too
				p.Entries[i].Part *= parts - 2
			}
		}
		if rapid.Bool().Draw(rt, "wide") {
			toWide(p)
		}
		if pages {
			page := rapid.SampledFrom([]int{64, 128}).Draw(rt, "page")
			each := ir.PagesOf(ctx, page)
			toPagesOf(p, page, 1+rapid.IntRange(each, 2*each).Draw(rt, "pool"))
		}
		// Where prompts go on from answers that others have left, answers are the same only if the rows of all entries
		// are alike.
		alike := rapid.Bool().Draw(rt, "alike")
		o := engine.Options{ReuseAnswers: alike && rapid.Bool().Draw(rt, "reuse answers")}
		slow := rapid.SampledFrom([]float64{1, 0.5, 3}).Draw(rt, "slow")
		visits := make([]visit, rapid.IntRange(requests[0], requests[1]).Draw(rt, "requests"))
		for i := range visits {
			v := visit{Request: drawRequest(rt, ctx), arrive: time.Duration(rapid.IntRange(0, 300).Draw(rt, "arrives")) * time.Millisecond,
				leave: time.Duration(rapid.SampledFrom([]int{0, 0, 1, 30, 200}).Draw(rt, "leaves")) * time.Millisecond}
			if pages && rapid.Bool().Draw(rt, "long") {
				v.Max, v.IgnoreEOG = -1, true
			}
			visits[i] = v
		}
		var err error
		synctest.Test(t, func(*testing.T) {
			var st engine.Stats
			st, err = load(p, o, slow, alike, visits)
			preempted += st.Preempted
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
	return preempted
}

// load lets the visits come to an engine and compares their answers with those that they get alone.
func load(p *plans.Plan, o engine.Options, slow float64, alike bool, visits []visit) (st engine.Stats, err error) {
	x := newFake(p)
	x.slow, x.alike = slow, alike
	e, err := engine.New(p, x, fakeTokenizer(), o)
	if err != nil {
		return st, err
	}
	defer e.Close()
	var wait sync.WaitGroup
	errs := make([]error, len(visits))
	for i, v := range visits {
		wait.Go(func() {
			time.Sleep(v.arrive)
			c := context.Background()
			if v.leave > 0 {
				var cancel func()
				c, cancel = context.WithTimeout(c, v.leave)
				defer cancel()
			}
			got, want := ask(c, e, v.Request), alone(p, o, alike, v.Request)
			whole := slices.Equal(got.tokens, want.tokens) && got.text == want.text && got.done.Reason == want.done.Reason
			part := false
			if v.leave > 0 && got.done.Reason == engine.Cancelled { // what was held back for a stop comes then
				open := v.Request
				open.Stops = nil
				all := alone(p, o, alike, open)
				part = len(got.tokens) <= len(all.tokens) && slices.Equal(got.tokens, all.tokens[:len(got.tokens)])
			}
			if got.err != nil || !whole && !part {
				errs[i] = fmt.Errorf("request %d: %q %d, %+v, %v; alone %q %d, %+v", i, got.text, got.tokens, got.done, got.err, want.text, want.tokens, want.done)
			}
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return st, err
	}
	if err := e.Drain(context.Background()); err != nil {
		return st, err
	}
	st = e.Stats()
	total := int64(0)
	for _, n := range st.Requests {
		total += n
	}
	if st.Waiting != 0 || total != int64(len(visits)) {
		return st, fmt.Errorf("%d wait, %v have ended of %d", st.Waiting, st.Requests, len(visits))
	}
	for i, s := range st.Slots {
		if s.State != "idle" {
			return st, fmt.Errorf("slot %d: %+v", i, s)
		}
	}
	if p.Paged() != nil {
		held, total := 0, 0
		for group := range ir.PageGroups {
			if k := p.PagedIn(group); k != nil {
				total += k.Pages - 1
			}
		}
		for _, s := range st.Slots {
			held += s.Pages
		}
		if c := st.Pages; held < c.Held+c.Shared || c.Shared == 0 && held > c.Held || c.Held+c.Free != c.Total || c.Total != total {
			return st, fmt.Errorf("slots have %d pages, counts say %+v", held, c)
		}
	}
	e.Close()
	if x.saved != 0 {
		return st, fmt.Errorf("%d states are left", x.saved)
	}
	return st, nil
}

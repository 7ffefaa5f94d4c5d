package engine_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cache"
	"github.com/zincc-dev/zincc/runtime/engine"
)

// kinds are models whose caches hold what was read in different ways.
var kinds = []struct {
	name             string
	recurrent, rings bool
	pages            bool
}{{"dense", false, false, false}, {"pages", false, false, true}, {"recurrent", true, false, false}, {"rings", false, true, false}, {"both", true, true, false},
	{"windows", false, true, true}, {"all", true, true, true}}

func kindPlan(slots int, recurrent, rings, pages bool) *plans.Plan {
	p := fakePlan(slots, 1024, recurrent)
	if rings {
		addRings(p)
	}
	if pages {
		toPages(p, 1+slots*1024/fakePage)
	}
	return p
}

// TestSharedPrompt: conversations behind one system prompt go on from where another slot holds it, and have the answers
// that they have without a cache. Of a recurrent model the second one leaves the state where both part, and so it
// leaves pages of a window.
func TestSharedPrompt(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p := kindPlan(4, k.recurrent, k.rings, k.pages)
				x := newFake(p)
				e, err := engine.New(p, x, fakeTokenizer(), engine.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				system := prompt(1, 200)
				request := func(kind int, more ...int32) engine.Request {
					r := engine.Request{Prompt: slices.Concat(system, prompt(kind, 130), more), Max: 20, TopLogprobs: -1, IgnoreEOG: true}
					r.Turn = len(r.Prompt) - 4
					return r
				}
				want := []int{0, 192, 192}
				if k.recurrent || k.rings && k.pages {
					want[1] = 0
				}
				var turns []engine.Request
				for i, cached := range want {
					r := request(2 + i)
					got, none := ask(context.Background(), e, r), alone(p, engine.Options{}, false, r)
					if got.err != nil || got.text != none.text || got.done.Usage.Cached != cached {
						t.Errorf("conversation %d: %d tokens are found, want %d; %q, want %q; %v", i, got.done.Usage.Cached, cached, got.text, none.text, got.err)
					}
					turns = append(turns, request(2+i, append(got.tokens, prompt(9, 30)...)...))
				}
				// Each is still there for its next turn.
				for i, r := range turns {
					got, none := ask(context.Background(), e, r), alone(p, engine.Options{}, false, r)
					if got.err != nil || got.text != none.text || got.done.Usage.Cached != 320 {
						t.Errorf("next turn %d: %d tokens are found, want 320; %q, want %q", i, got.done.Usage.Cached, got.text, none.text)
					}
				}
				if x.copied == 0 {
					t.Error("no rows are copied")
				}
			})
		})
	}
}

// TestSharedAtOnce: of several prompts that come at once what all begin with is computed once, by recurrent models
// twice.
func TestSharedAtOnce(t *testing.T) {
	for i := range 2 * len(kinds) {
		k, parts := kinds[i/2], i%2 > 0
		bubble(t, func(t *testing.T) {
			p, shared := kindPlan(8, k.recurrent, k.rings, k.pages), 512
			if parts { // a step has room for another prompt beside one
				toParts(p)
				shared = 128
			}
			e, err := engine.New(p, newFake(p), fakeTokenizer(), engine.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			var wait sync.WaitGroup
			wait.Go(func() { ask(context.Background(), e, engine.Request{Prompt: prompt(99, 10), Max: 1, TopLogprobs: -1}) })
			time.Sleep(time.Millisecond) // it is being read: all others wait when the next step is made
			found := make([]int, 7)
			for i := range found {
				wait.Go(func() {
					r := engine.Request{Prompt: slices.Concat(prompt(1, shared+8), prompt(2+i, 20)), Max: 5, TopLogprobs: -1, IgnoreEOG: true}
					got, none := ask(context.Background(), e, r), alone(p, engine.Options{}, false, r)
					if found[i] = got.done.Usage.Cached; got.text != none.text {
						t.Errorf("%q, alone %q", got.text, none.text)
					}
				})
			}
			wait.Wait()
			slices.Sort(found)
			if none := slices.Index(found, shared); none < 1 || none > 2 || none == 2 && !k.recurrent {
				t.Errorf("%s, parts %t: %d tokens are found", k.name, parts, found)
			}
		})
	}
}

// TestForks goes back in a conversation and takes another way, several times: each finds what is common, and in the end
// the first one is still there.
func TestForks(t *testing.T) {
	for _, k := range kinds[:3] {
		bubble(t, func(t *testing.T) {
			p := kindPlan(4, k.recurrent, k.rings, k.pages)
			e, err := engine.New(p, newFake(p), fakeTokenizer(), engine.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			first := engine.Request{Prompt: prompt(1, 900), Max: 5, TopLogprobs: -1, IgnoreEOG: true}
			ask(context.Background(), e, first)
			for i, back := range []int{700, 700, 500} {
				r := first
				r.Prompt = slices.Concat(first.Prompt[:back], prompt(3+i, 60))
				got, none := ask(context.Background(), e, r), alone(p, engine.Options{}, false, r)
				want := back / 64 * 64
				if k.recurrent && i != 1 { // the state where it parts is left for the next one
					want = []int{0, 0, 0}[i]
				}
				if got.text != none.text || got.done.Usage.Cached != want {
					t.Errorf("%s: fork %d: %d tokens are found, want %d; %q, want %q", k.name, i, got.done.Usage.Cached, want, got.text, none.text)
				}
			}
			if again := ask(context.Background(), e, first); again.done.Usage.Cached != 896 {
				t.Errorf("%s: %d tokens of the first are found", k.name, again.done.Usage.Cached)
			}
		})
	}
}

// TestLongPromptsKeepStates: of a long prompt states are kept every 4,096 positions, so that a fork computes no more
// than that again.
func TestLongPromptsKeepStates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := fakePlan(2, 10000, true)
		x := newFake(p)
		e, err := engine.New(p, x, fakeTokenizer(), engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		first := engine.Request{Prompt: prompt(1, 9500), Max: 1, TopLogprobs: -1}
		ask(context.Background(), e, first)
		for _, c := range [][2]int{{9000, 8192}, {5000, 4096}, {4000, 0}} {
			fork := first
			fork.Prompt = slices.Concat(first.Prompt[:c[0]], []int32{13, 13})
			if got := ask(context.Background(), e, fork); got.done.Usage.Cached != c[1] {
				t.Errorf("parting at %d, %d tokens are found, want %d", c[0], got.done.Usage.Cached, c[1])
			}
		}
		if most := 2 * p.Header.Slots; x.saved > most {
			t.Errorf("%d states are kept, at most %d may be", x.saved, most)
		}
		if st := e.Stats(); st.Slots[0].Checkpoint+st.Slots[1].Checkpoint == 0 {
			t.Errorf("slots say nothing of their states: %+v", st.Slots)
		}
	})
}

// TestPool: of requests at random, more than a pool has pages for, each has the answer that it has alone, where nothing
// else has pages. Some wait, some find what others have read, and idle slots lose what they hold. In the end no page is
// lost: a request of the whole context finds all of them.
func TestPool(t *testing.T) {
	for i := range 4 {
		recurrent, parts := i%2 > 0, i/2 > 0
		bubble(t, func(t *testing.T) {
			const ctx, slots = 1024, 12
			p := fakePlan(slots, ctx, recurrent)
			toPages(p, 1+3*ctx/fakePage)
			if parts {
				toParts(p)
			}
			x := newFake(p)
			o := engine.Options{Queue: 100}
			if !recurrent { // prompts are cut within pieces, too
				o.ITL = engine.Unhurried
			}
			e, err := engine.New(p, x, fakeTokenizer(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			r := rand.New(rand.NewPCG(7, 42))
			var wait sync.WaitGroup
			var found atomic.Int32
			for range 60 {
				q := engine.Request{Prompt: slices.Concat(prompt(1+r.IntN(3), 64+r.IntN(300)), prompt(9+r.IntN(50), 1+r.IntN(400))), Max: r.IntN(60), TopLogprobs: -1}
				q.Turn = len(q.Prompt) - 1
				delay := time.Duration(r.IntN(2000)) * time.Millisecond
				wait.Go(func() {
					time.Sleep(delay)
					got, none := ask(context.Background(), e, q), alone(p, o, false, q)
					if got.err != nil || got.text != none.text {
						t.Errorf("%d tokens: %q, alone %q; %v", len(q.Prompt), got.text, none.text, got.err)
					}
					if got.done.Usage.Cached > 0 {
						found.Add(1)
					}
				})
			}
			wait.Wait()
			if found.Load() == 0 {
				t.Error("no request has found what another has read")
			}
			for i := range 3 {
				q := engine.Request{Prompt: prompt(90+i, ctx-100), Max: -1, TopLogprobs: -1, IgnoreEOG: true}
				wait.Go(func() {
					if got := ask(context.Background(), e, q); got.err != nil || got.done.Reason != engine.Context {
						t.Errorf("the whole context: %v, %v", got.done.Reason, got.err)
					}
				})
			}
			wait.Wait()
		})
	}
}

// announced is what a tree tells.
type announced struct {
	mu    sync.Mutex
	known int // tokens of pieces
}

func (a *announced) Cuts([]int)     {}
func (a *announced) Removed(uint64) {}
func (a *announced) Stored(p cache.Piece) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known += len(p.Tokens)
}

// TestAnnounced: pieces of a prompt are announced where others can go on behind them: of models that see all as they
// are read, of those with windows or a state no sooner than where these are kept.
func TestAnnounced(t *testing.T) {
	for _, k := range kinds {
		bubble(t, func(t *testing.T) {
			p := kindPlan(2, k.recurrent, k.rings, k.pages)
			var a announced
			e, err := engine.New(p, newFake(p), fakeTokenizer(), engine.Options{Watch: &a})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			early, most := 0, 0
			r := engine.Request{Prompt: prompt(1, 900), Turn: 600, Max: 5, TopLogprobs: -1, IgnoreEOG: true, Reading: func(tokens int) {
				a.mu.Lock()
				defer a.mu.Unlock()
				if most = max(most, a.known); tokens < 576 {
					early = max(early, a.known)
				}
			}}
			ask(context.Background(), e, r)
			if all := !k.recurrent && !k.rings; (early > 0) != all {
				t.Errorf("%s: while it was read %d tokens were announced", k.name, early)
			}
			if a.known < 512 || a.known > 900 {
				t.Errorf("%s: %d tokens are announced in the end, %d while it was read", k.name, a.known, most)
			}
		})
	}
}

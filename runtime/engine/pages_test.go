package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/runtime/engine"
)

// inPool starts an engine of some slots over a pool of 8 pages of 128 positions, a whole context, on a device that runs
// beside the host or not.
func inPool(t *testing.T, slots int, recurrent, overlaps bool, o engine.Options) (*engine.Engine, func(r engine.Request) result) {
	p := fakePlan(slots, 1024, recurrent)
	toPages(p, 9)
	x := newFake(p)
	x.overlaps = overlaps
	e, err := engine.New(p, x, fakeTokenizer(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e, func(r engine.Request) result { return alone(p, o, false, r) }
}

// TestPutBackAtEachStep has an older request take the pages of a younger one, whose prompt is longer from case to case:
// so it gives its slot up at another step of its answer, also where pieces and steps are submitted ahead. Both have the
// answers that they have alone.
func TestPutBackAtEachStep(t *testing.T) {
	for i := range 4 {
		recurrent, overlaps := i%2 > 0, i/2 > 0
		cases, put, ahead := 0, 0, int64(0) // in which the younger one gave its slot up
		step := 5
		if testing.Short() {
			step = 45
		}
		for n := 30; n < 500; n += step {
			cases++
			bubble(t, func(t *testing.T) {
				e, alone := inPool(t, 2, recurrent, overlaps, engine.Options{ITL: []time.Duration{10 * time.Second, 20 * time.Millisecond}[n/5%2]})
				requests := []engine.Request{{Prompt: prompt(1, 200), Max: 500, TopLogprobs: -1, IgnoreEOG: true}, {Prompt: prompt(2, n), Max: 400, TopLogprobs: []int{-1, 1}[n/5%2], IgnoreEOG: true}}
				read := 0
				requests[1].Reading = func(tokens int) { read = tokens }
				var wait sync.WaitGroup
				for i, r := range requests {
					wait.Go(func() {
						time.Sleep(time.Duration(i) * 100 * time.Millisecond)
						got := ask(context.Background(), e, r)
						r.Reading = nil
						want := alone(r)
						if got.err != nil || !slices.Equal(got.tokens, want.tokens) || got.done.Usage.Cached != 0 || got.done.Usage.Prompt != len(r.Prompt) {
							t.Errorf("request %d, behind %d tokens: %d, %+v, %v; alone %d", i, n, got.tokens, got.done.Usage, got.err, want.tokens)
						}
						if times := got.done.Usage.Preempted; i == 0 && times > 0 {
							t.Errorf("the oldest has given its slot up %d times", times)
						} else if times > 0 {
							put++
						}
					})
				}
				wait.Wait()
				ahead += e.Stats().Ahead
				if read != n {
					t.Errorf("%d tokens of %d are said to be read", read, n)
				}
			})
		}
		if put < cases/2 {
			t.Errorf("in %d cases of %d the younger one has given its slot up", put, cases)
		}
		if least := int64(10 * cases); overlaps && ahead < least || !overlaps && ahead > 0 {
			t.Errorf("overlaps %t: in %d cases %d submissions are ahead", overlaps, cases, ahead)
		}
	}
}

// TestWhoIsPutBack: of three requests that come one behind the other, the first to give its slot up is of the lowest
// priority, then of the owner that has the most pages, then the one that costs least to compute again by page, then the
// youngest, and never the oldest of the highest priority.
func TestWhoIsPutBack(t *testing.T) {
	type one struct {
		prompt, priority int
		owner            string
	}
	for _, c := range []struct {
		name     string
		requests []one
		want     int
	}{
		{"the youngest of equals", []one{{380, 0, ""}, {100, 0, ""}, {100, 0, ""}}, 2},
		{"of the same price, the one with more pages", []one{{200, 0, ""}, {200, 0, ""}, {200, 0, ""}}, 1},
		{"of an answer that costs more, the younger prompt", []one{{200, 0, ""}, {10, 0, ""}, {300, 0, ""}}, 2},
		{"of an answer that costs more, the prompt", []one{{200, 0, ""}, {300, 0, ""}, {10, 0, ""}}, 1},
		{"the lower priority", []one{{200, 0, ""}, {200, 1, ""}, {200, 1, ""}}, 0},
		{"of the owner with more pages", []one{{200, 0, "a"}, {200, 0, "a"}, {200, 0, "b"}}, 1},
	} {
		bubble(t, func(t *testing.T) {
			e, _ := inPool(t, 3, false, false, engine.Options{})
			var wait sync.WaitGroup
			for i, r := range c.requests {
				wait.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond)
					// Prompts differ in length by their number, by which slots show them.
					q := engine.Request{Prompt: prompt(1+i, r.prompt+i), Max: 500, TopLogprobs: -1, IgnoreEOG: true, Priority: r.priority, Owner: r.owner}
					if got := ask(context.Background(), e, q); got.err != nil || len(got.tokens) != 500 {
						t.Errorf("%s: %d tokens, %v", c.name, len(got.tokens), got.err)
					}
				})
			}
			for e.Stats().Preempted == 0 {
				time.Sleep(time.Millisecond)
			}
			st := e.Stats()
			for i, r := range c.requests {
				runs := slices.ContainsFunc(st.Slots, func(s engine.SlotStats) bool { return s.State != "idle" && s.Prompt == r.prompt+i })
				if runs == (i == c.want) {
					t.Errorf("%s: request %d runs: %t; %+v", c.name, i, runs, st.Slots)
				}
			}
			if st.Waiting != 1 || st.WaitingFor[engine.ForPages] != 1 {
				t.Errorf("%s: %d wait, for %v", c.name, st.Waiting, st.WaitingFor)
			}
			wait.Wait()
		})
	}
}

// book is what owners have sent, by owner: the model that cached tokens are held against.
type book struct {
	mu   sync.Mutex
	sent map[string][][]int32
}

// send notes a prompt.
func (b *book) send(owner string, prompt []int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent[owner] = append(b.sent[owner], prompt)
}

// known is how many tokens of a prompt, at most, others of its owner began with that were sent beside it.
func (b *book) known(owner string, prompt []int32) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	most, self := 0, false
	for _, other := range b.sent[owner] {
		if !self && slices.Equal(other, prompt) {
			self = true
			continue
		}
		n := 0
		for n < min(len(prompt)-1, len(other)) && prompt[n] == other[n] {
			n++
		}
		most = max(most, n)
	}
	return most
}

// TestConversations has a few users hold 1,000 conversations, half as many where steps have parts: new ones behind
// system prompts that all owners have, forks of earlier ones, also of another owner's, and further turns, in a pool
// that is too small for what runs at once. Each answer is the one that its request gets alone; nothing is found that
// the owner has not sent before; in the end the pool has all pages that slots do not hold. -short has a quarter of
// them.
func TestConversations(t *testing.T) {
	preempted := int64(0) // in all kinds: how many are varies with the order in which the users' requests come
	for i := range 2 * len(kinds) {
		k, parts := kinds[i/2], i%2 > 0
		if !k.pages {
			continue
		}
		bubble(t, func(t *testing.T) {
			const ctx, slots, users = 512, 8, 10
			talks := 1000
			if parts {
				talks /= 2
			}
			if testing.Short() {
				talks /= 4
			}
			p := fakePlan(slots, ctx, k.recurrent)
			if k.rings {
				addRings(p)
			}
			toPagesOf(p, 64, 1+2*ctx/64)
			if parts {
				toParts(p)
			}
			x := newFake(p)
			x.overlaps = true
			var o engine.Options
			if k.name == "windows" { // prompts are cut within pieces, too
				o.ITL = engine.Unhurried
			}
			e, err := engine.New(p, x, fakeTokenizer(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			want := map[string]string{} // answers alone, by request
			b := book{sent: map[string][][]int32{}}
			var mu sync.Mutex
			found := 0
			one := func(r *rand.Rand) error {
				var history []int32
				owner := fmt.Sprint(r.IntN(4))
				b.mu.Lock()
				all := b.sent[fmt.Sprint(r.IntN(4))] // another owner's, maybe
				if len(all) > 0 && r.IntN(2) > 0 {
					fork := all[r.IntN(len(all))]
					history = slices.Clone(fork[:1+r.IntN(len(fork))])
				} else {
					history = prompt(r.IntN(3), 100+r.IntN(100))
				}
				b.mu.Unlock()
				for range 1 + r.IntN(3) {
					history = append(history, prompt(3+r.IntN(60), 1+r.IntN(60))...)
					q := engine.Request{Prompt: slices.Clone(history[:min(len(history), ctx-40)]), Max: 1 + r.IntN(40), TopLogprobs: -1, Owner: owner}
					q.Turn = len(q.Prompt) - r.IntN(min(4, len(q.Prompt)))
					b.send(owner, q.Prompt)
					got := ask(context.Background(), e, q)
					if most := b.known(owner, q.Prompt); got.err != nil || got.done.Usage.Cached > most {
						return fmt.Errorf("owner %s: %d tokens are found, its requests have %d; %v", owner, got.done.Usage.Cached, most, got.err)
					}
					key := fmt.Sprint(q.Prompt, q.Max)
					mu.Lock()
					text, ok := want[key]
					found += min(1, got.done.Usage.Cached)
					mu.Unlock()
					if !ok {
						text = alone(p, o, false, q).text
					}
					if got.text != text {
						return fmt.Errorf("%d tokens: %q, alone %q", len(q.Prompt), got.text, text)
					}
					mu.Lock()
					want[key] = text
					mu.Unlock()
					history = append(q.Prompt, got.tokens...)
				}
				return nil
			}
			var wait sync.WaitGroup
			for user := range users {
				wait.Go(func() {
					r := rand.New(rand.NewPCG(uint64(user), 1))
					for range talks / users {
						if err := one(r); err != nil {
							t.Error(err)
						}
						time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
					}
				})
			}
			wait.Wait()
			st := e.Stats()
			if c := st.Pages; c.Free+c.Held != c.Total || found < talks/50 || st.Cache.ForgottenTokens == 0 {
				t.Errorf("%s: of %d conversations %d have found something; %+v", k.name, talks, found, st)
			}
			preempted += st.Preempted
			// A request of each owner for the whole context empties the pool: no page is lost.
			for owner := range 2 {
				q := engine.Request{Prompt: prompt(90+owner, ctx-50), Max: -1, TopLogprobs: -1, IgnoreEOG: true, Owner: fmt.Sprint("new", owner)}
				wait.Go(func() {
					if got := ask(context.Background(), e, q); got.err != nil || got.done.Reason != engine.Context || got.done.Usage.Cached > 0 {
						t.Errorf("%s: the whole context: %+v, %v", k.name, got.done, got.err)
					}
				})
			}
			wait.Wait()
			all := p.Paged().Pages - 1 // of caches of a window they have fewer
			if c := e.Stats().Pages; c.Held < all || c.Free > c.Total-all || !k.rings && c.Free > 0 {
				t.Errorf("%s: two contexts have taken all but %d pages of %d", k.name, c.Free, c.Total)
			}
		})
	}
	if preempted == 0 {
		t.Error("no request gave its slot up")
	}
}

// TestWindowPlaces: where caches of a window give pages back, a further turn goes on from its slot, and the third
// conversation behind a system prompt from where the second parted from the first. All have the answers that they have
// alone.
func TestWindowPlaces(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := kindPlan(4, false, true, true)
		e, err := engine.New(p, newFake(p), fakeTokenizer(), engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		system := prompt(1, 300)
		talk := func(history []int32, who int) engine.Request {
			return engine.Request{Prompt: append(slices.Clone(history), prompt(who, 150)...), Max: 200, TopLogprobs: -1, IgnoreEOG: true}
		}
		var first result
		for i, c := range []struct {
			r     engine.Request
			least int // cached tokens
			most  int
		}{{talk(system, 2), 0, 0}, {talk(system, 3), 0, 0}, {talk(system, 4), 256, 300}, {engine.Request{}, 384, 450}} {
			if i == 3 {
				c.r = talk(append(talk(system, 2).Prompt, first.tokens...), 5)
			}
			got := ask(context.Background(), e, c.r)
			if i == 0 {
				first = got
			}
			if n := got.done.Usage.Cached; n < c.least || n > c.most || !slices.Equal(got.tokens, alone(p, engine.Options{}, false, c.r).tokens) {
				t.Errorf("request %d: %d tokens were found, want %d to %d; %v", i, n, c.least, c.most, got.err)
			}
		}
		held, st := 0, e.Stats()
		for _, s := range st.Slots {
			held += ir.PagesOf(s.Tokens, p.Paged().Page)
		}
		if all := st.Pages.Held + st.Pages.Shared; all >= 2*held {
			t.Errorf("%d pages of both groups for %d of positions: none of a window were given back", all, held)
		}
	})
}

// TestTurnsOfWindows: a turn goes on at the last cut within the turn before it, also where that prompt went over a cut
// behind its turn, in slots and behind a restart.
func TestTurnsOfWindows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := kindPlan(1, false, true, true)
		kept := newMemoryKeeper(nil)
		turn := engine.Request{Prompt: prompt(1, 450), Turn: 440, Max: 20, TopLogprobs: -1, IgnoreEOG: true}
		next := turn
		next.Prompt, next.Turn = slices.Concat(turn.Prompt[:440], prompt(2, 60)), 0
		for i, turns := range [][]engine.Request{{turn}, {next}, {turn, next}} {
			k := kept
			if i == 2 {
				k = newMemoryKeeper(nil)
			}
			e, err := engine.New(p, newFake(p), fakeTokenizer(), engine.Options{Keeper: k})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range turns {
				got, want := ask(t.Context(), e, r), alone(p, engine.Options{}, false, r)
				cached := 0
				if len(r.Prompt) > 450 {
					cached = 384
				}
				if got.err != nil || got.text != want.text || got.done.Usage.Cached != cached {
					t.Errorf("case %d: %d tokens are found, want %d; %q, want %q, %v", i, got.done.Usage.Cached, cached, got.text, want.text, got.err)
				}
			}
			e.Close()
		}
	})
}

package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/grammar"
	"github.com/zincc-dev/zincc/runtime/sample"
)

// TestShortPrompts has 64 users whose prompts have 16 tokens ask one request behind the other, with the step times that
// an H200 has for a model of 8 billion parameters: those who answer wait for a token hardly longer than where nobody
// reads a prompt, and a prompt alone takes two steps of 8 rows.
func TestShortPrompts(t *testing.T) {
	const prompted, answered, turns, itl = 16, 256, 3, 50 * time.Millisecond
	decode := map[int]float32{1: 1.52, 2: 1.9, 4: 2.2, 8: 2.27, 16: 3.27, 32: 4.3, 64: 6.4, 128: 11.5}
	prefill := map[int]float32{16: 3.42, 48: 5.1, 128: 8, 256: 11, 512: 14.5, 1024: 26.6, 2048: 50.8}
	for users, c := range map[int]struct{ least, first time.Duration }{1: {1520 * time.Microsecond, 4540 * time.Microsecond}, 64: {6400 * time.Microsecond, 100 * time.Millisecond}} {
		bubble(t, func(t *testing.T) {
			p := timedPlan(128, decode, prefill, true)
			x := newFake(p)
			x.overlaps = true
			e, err := engine.New(p, x, fakeTokenizer(), engine.Options{ITL: itl})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			var wait sync.WaitGroup
			var mu sync.Mutex
			var first, each, most time.Duration
			for user := range users {
				wait.Go(func() {
					for turn := range turns {
						r := engine.Request{Prompt: prompt(user*turns+turn, prompted), Max: answered, TopLogprobs: -1, IgnoreEOG: true, NoCache: true}
						asked := time.Now()
						got := ask(t.Context(), e, r)
						if got.err != nil || len(got.tokens) != answered {
							t.Errorf("%d tokens, %v", len(got.tokens), got.err)
						}
						mu.Lock()
						first += got.at[0].Sub(asked)
						each += got.at[len(got.at)-1].Sub(got.at[0]) / (answered - 1)
						for i, at := range got.at[1:] {
							most = max(most, at.Sub(got.at[i]))
						}
						mu.Unlock()
					}
				})
			}
			wait.Wait()
			n := time.Duration(users * turns)
			t.Logf("%d users: %v to the first token, %v between two in the mean, %v at most", users, first/n, each/n, most)
			if first/n > c.first || each/n > c.least*104/100 || most > itl {
				t.Errorf("%d users wait for %v, want %v, and %v between two tokens, want %v and 4 %%; for %v at most", users, first/n, c.first, each/n, c.least, most)
			}
		})
	}
}

// TestRounds: short prompts that come at once, and beside others that answer or are long, are read in steps of decoding
// that several share, 8 rows of each at most. All have the answers that they have alone, and the counters tell of
// them.
func TestRounds(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p := toWide(toParts(kindPlan(24, k.recurrent, k.rings, k.pages)))
				x := newFake(p)
				e, err := engine.New(p, x, fakeTokenizer(), engine.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				var list []engine.Request
				for i := range 24 {
					r := engine.Request{Prompt: prompt(i, 1+7*i%fakeJoins), Max: i % 7, TopLogprobs: i%4 - 2, IgnoreEOG: true}
					if i%6 == 5 {
						r.Prompt = prompt(i, 40*i)
					}
					if i%2 > 0 {
						r.Sampling = sample.Neutral()
						r.Sampling.Seed = uint64(i)
					}
					list = append(list, r)
				}
				got := atOnce(t, e, list)
				var short, read int64
				for i, r := range list {
					none := alone(p, engine.Options{}, false, r)
					if got[i].err != nil || got[i].text != none.text || !slices.Equal(got[i].tokens, none.tokens) || got[i].done.Reason != none.done.Reason {
						t.Errorf("request %d: %q, alone %q; %v", i, got[i].text, none.text, got[i].err)
					}
					read += int64(len(r.Prompt) - got[i].done.Usage.Cached)
					if len(r.Prompt) <= fakeJoins {
						short += int64((len(r.Prompt) + 7) / 8)
					}
				}
				several, prompts := 0, int64(0)
				for _, l := range x.log {
					if l.entry.Kind == "decode" && l.rows > 8 && len(l.prompts()) > 1 {
						several++
					}
				}
				st := e.Stats()
				for _, entry := range st.Entries {
					if strings.HasPrefix(entry.Name, "decode") {
						prompts += entry.Prompts
					}
				}
				if several < 4 || prompts < short || st.PromptTokens != read {
					t.Errorf("%d steps have rows of several, prompts are counted %d times, want %d; %d tokens are read of %d", several, prompts, short, st.PromptTokens, read)
				}
			})
		})
	}
}

// TestRoundsAtRandom: of requests at random, short and long, of three priorities, more than there are slots and pages
// for, some of which are given up, each has the answer that it has alone, or a beginning of it, also where steps are
// prepared while others run.
func TestRoundsAtRandom(t *testing.T) {
	for seed := range uint64(14) {
		k := kinds[int(seed)%len(kinds)]
		t.Run(fmt.Sprint(k.name, " ", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T) { testRoundsAtRandom(t, seed, k.recurrent, k.rings, k.pages) })
		})
	}
}

func testRoundsAtRandom(t *testing.T, seed uint64, recurrent, rings, pages bool) {
	const ctx, slots = 1024, 12
	draw := rand.New(rand.NewPCG(seed, 42))
	maybe := func() bool { return draw.IntN(2) > 0 }
	p := kindPlan(slots, recurrent, rings, false)
	if pages {
		toPages(p, 1+2*ctx/fakePage)
	}
	if maybe() {
		toParts(p)
	}
	toWide(p)
	x := &nearing{fake: newFake(p)}
	x.overlaps = maybe()
	o := engine.Options{Queue: 100}
	if maybe() {
		o.ITL = engine.Unhurried
	}
	if o.ReuseAnswers = maybe(); o.ReuseAnswers {
		x.alike = true // so that answers are those of requests alone
	}
	bare := o
	if maybe() {
		o.Keeper = newMemoryKeeper(nil)
	}
	e, err := engine.New(p, x, fakeTokenizer(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	words, err := grammar.GBNF(`root ::= (word "abcadabcadabcadabcad")+` + "\n" + `word ::= [^f]{3,12}`)
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for i := range 80 {
		r := engine.Request{Prompt: prompt(draw.IntN(4), 1+draw.IntN(fakeJoins+4)), Max: draw.IntN(60), TopLogprobs: draw.IntN(3) - 1, IgnoreEOG: true, Priority: draw.IntN(3)}
		if maybe() {
			r.Prompt = slices.Concat(prompt(1+draw.IntN(3), draw.IntN(400)), prompt(9+draw.IntN(50), 1+draw.IntN(400)))
		}
		if maybe() {
			r.Sampling = sample.Neutral()
			r.Sampling.Seed = uint64(i)
		}
		if draw.IntN(4) == 0 {
			r.Format = words
		}
		r.Turn = draw.IntN(len(r.Prompt))
		delay, patience := time.Duration(draw.IntN(1500))*time.Millisecond, time.Hour
		if draw.IntN(3) == 0 {
			patience = time.Duration(1+draw.IntN(300)) * time.Millisecond
		}
		wait.Go(func() {
			time.Sleep(delay)
			limited, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			got, none := ask(limited, e, r), alone(p, bare, x.alike, r)
			begun := got.err == nil && got.done.Reason == engine.Cancelled && len(got.tokens) <= len(none.tokens) && slices.Equal(got.tokens, none.tokens[:len(got.tokens)])
			if got.err != nil || got.text != none.text && !begun {
				t.Errorf("request %d of %d tokens: %q, alone %q; %v", i, len(r.Prompt), got.text, none.text, got.err)
			}
		})
	}
	wait.Wait()
	time.Sleep(time.Second)
	if n := e.Stats().Prepared; x.overlaps && n == 0 {
		t.Error("no step was prepared")
	}
}

// TestRoundsInOrder: a short prompt is read before a long one that came behind it, and does not wait for the end of one
// that came before.
func TestRoundsInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, c := range []struct{ parts, before bool }{{true, false}, {true, true}, {false, true}} {
			p := toWide(fakePlan(8, 4096, false))
			if c.parts {
				toParts(p)
			}
			x, before := newFake(p), c.before
			e, err := engine.New(p, x, fakeTokenizer(), engine.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			list := []engine.Request{{Prompt: prompt(1, fakeJoins), Max: 1, TopLogprobs: -1}, {Prompt: prompt(2, 3000), Max: 1, TopLogprobs: -1}}
			if before {
				slices.Reverse(list)
			}
			atOnce(t, e, list)
			var kinds string
			for _, l := range x.log {
				kinds += fmt.Sprintf("%.1s", l.entry.Kind)
			}
			want := "ddp"
			if before {
				want = "ppdpdp" // the second step of a prompt may be begun before the short one has come
			}
			if len(kinds) < 8 || kinds[:len(want)] != want {
				t.Errorf("steps are %s, want %s before the others", kinds, want)
			}
			if waits := e.Stats().PromptWaits; !before && waits[engine.ForOrder] == 0 {
				t.Errorf("prompts wait: %v, none for %s", waits, engine.ForOrder)
			}
		}
	})
}

// TestRoundsInTime: prompts that come at once have no more rows a round than those that answer have time for, which
// the counters tell.
func TestRoundsInTime(t *testing.T) {
	const itl = 30 * time.Millisecond
	bubble(t, func(t *testing.T) {
		p := toWide(fakePlan(64, 1024, false))
		x := newFake(p)
		x.slow = 2.8 // a step of 32 rows takes 13.4 ms, two of which those that answer have
		e, err := engine.New(p, x, fakeTokenizer(), engine.Options{ITL: itl})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		began := time.Now()
		var wait sync.WaitGroup
		for i := range 64 {
			wait.Go(func() {
				r := engine.Request{Prompt: prompt(i, fakeJoins), Max: 100, TopLogprobs: -1, IgnoreEOG: true}
				if i >= 40 {
					time.Sleep(time.Second)
					r.Max = 1
				}
				if got := ask(t.Context(), e, r); got.err != nil {
					t.Error(got.err)
				}
			})
		}
		wait.Wait()
		last := map[int32]time.Time{} // of those that answer when the others come
		for _, l := range x.log {
			for _, slot := range l.prompts() {
				at, answers := last[slot]
				if gap := l.end.Sub(at); answers && l.end.Sub(began) > time.Second && gap > itl {
					t.Errorf("slot %d waits for %v", slot, gap)
				}
				if answers || l.end.Sub(began) < time.Second {
					last[slot] = l.end
				}
			}
		}
		if st := e.Stats(); st.PromptWaits[engine.ForTokens] == 0 || st.PromptWaits[engine.ForOrder] == 0 {
			t.Errorf("prompts wait: %v", st.PromptWaits)
		}
	})
}

// TestFirstAtOnce: where one row is left of prompts, the device does not go on by itself before the first tokens have
// come.
func TestFirstAtOnce(t *testing.T) {
	for _, overlaps := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			p := toWide(fakePlan(4, 1024, false))
			x := newFake(p)
			x.overlaps = overlaps
			e, err := engine.New(p, x, fakeTokenizer(), engine.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			r := engine.Request{Prompt: prompt(0, 9), Max: 40, TopLogprobs: -1, IgnoreEOG: true}
			atOnce(t, e, []engine.Request{r, r})
			first := slices.IndexFunc(x.log, func(l launch) bool { return l.rows == 2 })
			if first < 1 || x.log[first].times != 1 || x.log[first+1].times == 1 {
				t.Errorf("overlaps %t: step %d has the last row of a prompt: %+v", overlaps, first, x.log[:first+2])
			}
		})
	}
}

// TestTurnInRound: where a later request goes on behind a turn, the rows of a step end there, so that the state is
// kept, also within what rounds of decoding read.
func TestTurnInRound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for turn := 1; turn <= 14; turn++ {
			p := toWide(fakePlan(4, 1024, true))
			x := newFake(p)
			x.alike = true
			e, err := engine.New(p, x, fakeTokenizer(), engine.Options{ReuseAnswers: true})
			if err != nil {
				t.Fatal(err)
			}
			first := engine.Request{Prompt: prompt(3, 14), Turn: turn, Max: 3, TopLogprobs: -1, IgnoreEOG: true}
			second := first
			second.Prompt = append(slices.Clone(first.Prompt[:turn]), 11, 10, 9)
			second.Turn = len(second.Prompt)
			ask(t.Context(), e, first)
			got := ask(t.Context(), e, second)
			if none := alone(p, engine.Options{}, true, second); got.text != none.text || got.done.Usage.Cached != turn {
				t.Errorf("behind a turn of %d tokens: %d are found, %q, want %q; %v", turn, got.done.Usage.Cached, got.text, none.text, got.err)
			}
			e.Close()
		}
	})
}

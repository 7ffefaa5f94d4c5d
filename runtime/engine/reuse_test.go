package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/runtime/engine"
)

// TestNextTurn holds that the next turn of a conversation computes no more than it must: what lies behind the last cut
// that the prompt before was read to; with ReuseAnswers what is behind the answer. Asked for again, a turn has the same
// answer.
func TestNextTurn(t *testing.T) {
	for _, c := range []struct {
		recurrent, answers    bool
		same, next, rewritten int // tokens that are found; pieces are of 64
	}{
		{false, false, 384, 384, 384}, {true, false, 384, 384, 384},
		// All of the first turn but its last token, which was not fed; as far as both agree, or to the turn.
		{false, true, 384, 453, 414}, {true, true, 400, 453, 400},
	} {
		t.Run(fmt.Sprintf("recurrent=%v,answers=%v", c.recurrent, c.answers), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p := fakePlan(2, 1024, c.recurrent)
				x := newFake(p)
				e, err := engine.New(p, x, fakeTokenizer(), engine.Options{ReuseAnswers: c.answers})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				turn := engine.Request{Prompt: prompt(1, 404), Turn: 400, Max: 50, TopLogprobs: -1, IgnoreEOG: true}
				first := ask(context.Background(), e, turn)
				again := ask(context.Background(), e, turn)
				if again.text != first.text || again.done.Usage.Cached != c.same {
					t.Errorf("the same turn again: %d of 404 tokens are found, the answer is the same: %v", again.done.Usage.Cached, again.text == first.text)
				}
				next := turn
				next.Prompt = slices.Concat(turn.Prompt, again.tokens, prompt(2, 40), turn.Prompt[400:])
				next.Turn = len(next.Prompt) - 4
				rewritten := next                    // the template drops a part of the answer
				other := (again.tokens[10] + 1) % 12 // than the answer goes on with
				rewritten.Prompt = slices.Concat(turn.Prompt, again.tokens[:10], []int32{other}, prompt(2, 39), turn.Prompt[400:])
				rewritten.Turn = len(rewritten.Prompt) - 4
				for i, r := range []engine.Request{next, rewritten} {
					if i > 0 { // the first turn has to be there again
						ask(context.Background(), e, turn)
					}
					got := ask(context.Background(), e, r)
					if want := []int{c.next, c.rewritten}[i]; got.err != nil || got.done.Usage.Cached != want {
						t.Errorf("next turn %d: %d tokens are found, want %d; %v", i, got.done.Usage.Cached, want, got.err)
					} else if again := ask(context.Background(), e, r); again.text != got.text {
						t.Errorf("next turn %d asked for again: %q, want %q", i, again.text, got.text)
					}
					none := r
					none.NoCache = true
					if anew := ask(context.Background(), e, none); anew.done.Usage.Cached != 0 || !c.answers && anew.text != got.text {
						t.Errorf("next turn %d without a cache: %d tokens are found, %q, want %q", i, anew.done.Usage.Cached, anew.text, got.text)
					}
				}
			})
		})
	}
}

// TestTurnWithinPiece: where steps of prompts are wide, a further turn computes no more than a grain of what was read
// before, in one step with what is new, even into the next piece; and no more than a piece where the prompt before
// ended with a narrow step. Answers are those without a cache, of slots, pages and rings.
func TestTurnWithinPiece(t *testing.T) {
	for _, k := range kinds {
		if k.recurrent {
			continue
		}
		bubble(t, func(t *testing.T) {
			p := kindPlan(2, false, k.rings, k.pages)
			x := newFake(p)
			o := engine.Options{ITL: engine.Unhurried} // steps of 256
			e, err := engine.New(p, x, fakeTokenizer(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			for kind, c := range []struct{ first, next, found, steps int }{
				{200, 250, 192, 1}, {250, 375, 224, 1}, {250, 300, 224, 2}, {300, 400, 256, 1}, {500, 800, 480, 3}, {500, 700, 480, 1}, {460, 512, 448, 1}, {385, 386, 384, 1},
			} {
				r := engine.Request{Prompt: prompt(kind, c.first), Max: 1, TopLogprobs: -1, IgnoreEOG: true}
				ask(context.Background(), e, r)
				before := len(x.log)
				r.Prompt, r.Max = prompt(kind, c.next), 5
				got, none := ask(context.Background(), e, r), alone(p, o, false, r)
				steps := slices.IndexFunc(x.log[before:], func(l launch) bool { return l.entry.Kind == "decode" })
				if got.err != nil || got.text != none.text || got.done.Usage.Cached != c.found || steps != c.steps {
					t.Errorf("%s: %d behind %d: %d are found, want %d, in %d steps, want %d; %q, want %q; %v", k.name, c.next, c.first, got.done.Usage.Cached, c.found, steps, c.steps, got.text, none.text, got.err)
				}
			}
		})
	}
}

// TestTurnOfText: a plain text, which is its own turn, gives the same bits as often as it is asked for, whatever its
// length and whatever was read in between.
func TestTurnOfText(t *testing.T) {
	for _, recurrent := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			p := fakePlan(1, 1024, recurrent)
			e, err := engine.New(p, newFake(p), fakeTokenizer(), engine.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			for _, n := range []int{1, 63, 64, 65, 68, 128, 200} {
				r := engine.Request{Prompt: prompt(1, n), Max: 8, TopLogprobs: 0, IgnoreEOG: true}
				first := ask(context.Background(), e, r)
				longer := r
				longer.Prompt = slices.Concat(r.Prompt, first.tokens, prompt(2, 9))
				ask(context.Background(), e, longer)
				shorter := r
				shorter.Prompt = r.Prompt[:n/2+1]
				for range 2 {
					if again := ask(context.Background(), e, r); again.text != first.text {
						t.Errorf("recurrent %v: %d tokens: %q, then %q", recurrent, n, first.text, again.text)
					}
					ask(context.Background(), e, shorter)
				}
			}
		})
	}
}

// TestOwners: nothing that one owner's requests left is found by another's, in a slot that has room for both or for one
// alone.
func TestOwners(t *testing.T) {
	for _, slots := range []int{1, 3} {
		for _, o := range []engine.Options{{}, {ReuseAnswers: true}} {
			for _, recurrent := range []bool{false, true} {
				bubble(t, func(t *testing.T) {
					p := fakePlan(slots, 1024, recurrent)
					e, err := engine.New(p, newFake(p), fakeTokenizer(), o)
					if err != nil {
						t.Fatal(err)
					}
					defer e.Close()
					r := engine.Request{Prompt: prompt(1, 404), Turn: 400, Max: 5, TopLogprobs: -1, IgnoreEOG: true, Owner: "a"}
					first := ask(context.Background(), e, r)
					if again := ask(context.Background(), e, r); again.done.Usage.Cached < 384 {
						t.Errorf("its owner finds %d tokens", again.done.Usage.Cached)
					}
					for _, other := range []string{"b", ""} {
						r.Owner = other
						if got := ask(context.Background(), e, r); got.done.Usage.Cached != 0 || got.text != first.text {
							t.Errorf("%d slots: owner %q finds %d tokens, answer %q, want %q", slots, other, got.done.Usage.Cached, got.text, first.text)
						}
					}
				})
			}
		}
	}
}

// TestLongAnswerKeepsSlot: behind a long answer the next turn still goes on in its slot, also where others are free.
func TestLongAnswerKeepsSlot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _ := start(t, 3, engine.Options{})
		turn := engine.Request{Prompt: prompt(1, 200), Turn: 196, Max: 600, TopLogprobs: -1, IgnoreEOG: true}
		first := ask(context.Background(), e, turn)
		turn.Prompt = slices.Concat(turn.Prompt, first.tokens, prompt(2, 40))
		turn.Turn, turn.Max = len(turn.Prompt), 5
		if next := ask(context.Background(), e, turn); next.done.Usage.Cached != 192 {
			t.Errorf("%d tokens are found, want 192", next.done.Usage.Cached)
		}
	})
}

// TestTurnGivenUp cancels a turn that has its slot but not yet a step: the recurrent state is then still
// behind the answer of the turn before, and the turn is asked for again.
func TestTurnGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := fakePlan(2, 1024, true)
		x := newFake(p)
		x.alike = true
		e, err := engine.New(p, x, fakeTokenizer(), engine.Options{ReuseAnswers: true})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		turn := engine.Request{Prompt: prompt(1, 60), Turn: 50, Max: 20, TopLogprobs: -1, IgnoreEOG: true}
		ask(context.Background(), e, turn)
		next := turn
		next.Prompt = slices.Concat(turn.Prompt[:50], prompt(2, 40)) // it has none of the answer
		next.Turn = 85
		var wait sync.WaitGroup
		wait.Go(func() {
			ask(context.Background(), e, engine.Request{Prompt: prompt(3, 900), Max: 1, TopLogprobs: -1})
		})
		time.Sleep(time.Millisecond)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond) // in the second step of the other
		defer cancel()
		given := ask(ctx, e, next)
		got, want := ask(context.Background(), e, next), alone(p, engine.Options{ReuseAnswers: true}, true, next)
		wait.Wait()
		if given.done.Reason != engine.Cancelled || given.done.Usage.Cached != 50 || got.done.Usage.Cached != 50 {
			t.Errorf("%+v, then %+v", given.done, got.done)
		}
		if got.err != nil || !slices.Equal(got.tokens, want.tokens) {
			t.Errorf("%d, %v, want %d", got.tokens, got.err, want.tokens)
		}
	})
}

// TestCompletions continues a plain text with its answer and more, as clients do that know no turns.
func TestCompletions(t *testing.T) {
	for _, x := range []struct {
		recurrent, full bool
		want            int
	}{{false, false, 419}, {true, false, 419}, {true, true, 0}} {
		bubble(t, func(t *testing.T) {
			p := fakePlan(2, 1024, x.recurrent)
			f := newFake(p)
			f.full = x.full
			e, err := engine.New(p, f, fakeTokenizer(), engine.Options{ReuseAnswers: true})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			r := engine.Request{Prompt: prompt(1, 404), Max: 16, TopLogprobs: 0, IgnoreEOG: true}
			first := ask(context.Background(), e, r)
			r.Prompt = slices.Concat(r.Prompt, first.tokens, prompt(2, 16))
			next := ask(context.Background(), e, r)
			if next.err != nil || next.done.Usage.Cached != x.want {
				t.Errorf("recurrent %v, no memory %v: %d tokens are found, want %d; %v", x.recurrent, x.full, next.done.Usage.Cached, x.want, next.err)
			}
			// Two turns, and where the second prompt parts from the first.
			if st := e.Stats(); x.full != (st.Unsaved == 3) || x.full != (st.UnsavedWhy != nil) {
				t.Errorf("%d states were not kept, %v", st.Unsaved, st.UnsavedWhy)
			}
		})
	}
}

// TestRings goes back in a conversation whose caches keep the last positions only: as far as they reach, else it is
// computed anew.
func TestRings(t *testing.T) {
	for _, x := range []struct{ shared, want int }{{104, 0}, {380, 380}, {141, 141}, {140, 0}} {
		bubble(t, func(t *testing.T) {
			p := fakePlan(1, 1024, false)
			addRings(p)
			f := newFake(p)
			f.alike = true
			e, err := engine.New(p, f, fakeTokenizer(), engine.Options{ReuseAnswers: true})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			turn := engine.Request{Prompt: prompt(1, 104), Turn: 100, Max: 301, TopLogprobs: -1, IgnoreEOG: true}
			first := ask(context.Background(), e, turn) // positions 0 to 403 are written, 132 and on are in the rings
			next := turn
			next.Prompt = append(slices.Concat(turn.Prompt, first.tokens)[:x.shared:x.shared], 14, 1, 2)
			next.Turn, next.Max = len(next.Prompt), 20
			got, want := ask(context.Background(), e, next), alone(p, engine.Options{ReuseAnswers: true}, true, next)
			if got.err != nil || !slices.Equal(got.tokens, want.tokens) || got.done.Usage.Cached != x.want {
				t.Errorf("back to %d: %d tokens are found, want %d; answer %d, %v, alone %d", x.shared, got.done.Usage.Cached, x.want, got.tokens, got.err, want.tokens)
			}
		})
	}
}

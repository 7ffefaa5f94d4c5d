package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/engine"
)

// withCuts has a plan's prompts read by steps of 256 rows, in which there are cuts every 128: with parts by one of
// 1,024, too, that is alike.
func withCuts(p *plans.Plan, parts bool) *plans.Plan {
	e := &p.Entries[len(p.Entries)-1]
	if !parts {
		return p
	}
	e.Part, e.Class = 128, ir.AlikeStep.String()
	wide := *e
	wide.Rows, wide.Run, wide.Reach = 1024, 1024, 1024
	wide.Name, wide.Logits, wide.Next, wide.Candidates = "prefill/1024", "prefill/1024:logits", "prefill/1024:next", "prefill/1024:candidates"
	wide.Dispatches = slices.Clone(wide.Dispatches)
	wide.Dispatches[0].Cost.Predicted.Bytes *= 3
	p.Entries = append(p.Entries, wide)
	return p
}

// TestTurnsOfStates: prompts of models with recurrent state go on at any cut of 128 where a state is kept, within
// pieces, too: at the last one of a first turn, and of a later one if that is a step's rows behind the last state; else
// the turn has one step, and the next one goes on where it did. Where another prompt goes on otherwise one is kept. All
// have the answers that they have alone.
func TestTurnsOfStates(t *testing.T) {
	for i := range 6 {
		pages, windows, parts := i > 1, i > 3, i%2 > 0
		t.Run(fmt.Sprintf("pages %t, windows %t, parts %t", pages, windows, parts), func(t *testing.T) {
			bubble(t, func(t *testing.T) { testTurnsOfStates(t, pages, windows, parts) })
		})
	}
}

func testTurnsOfStates(t *testing.T, pages, windows, parts bool) {
	p := fakePlan(4, 2048, true)
	if windows {
		addRings(p)
	}
	if pages {
		toPages(p, 1+4*2048/fakePage)
	}
	x := newFake(withCuts(p, parts))
	o := engine.Options{ITL: engine.Unhurried}
	e, err := engine.New(p, x, fakeTokenizer(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	said := prompt(1, 700)
	for i, c := range []struct {
		more   int // tokens of the turn; or else the prompt goes another way behind 800
		cached int
		rows   []int // of steps
	}{
		{0, 0, []int{640, 60}},
		{150, 640, []int{210}},
		{40, 640, []int{250}},
		{30, 640, []int{256, 24}}, // its turn is 916, so the state at 896 is as many rows behind as a step has
		{80, 896, []int{104}},
		{-1, 640, []int{128, 72}}, // others went on at 768
		{-2, 768, []int{72}},
	} {
		if windows && c.more < 0 {
			break // what a window sees at 640 is gone
		}
		r := engine.Request{Max: 3, TopLogprobs: -1, IgnoreEOG: true}
		if c.more > 0 {
			said = append(said, prompt(2+i, c.more)...)
		}
		if r.Prompt = slices.Clone(said); c.more < 0 {
			r.Prompt = slices.Concat(said[:800], prompt(10-c.more, 40))
		}
		r.Turn = len(r.Prompt) - 4
		x.log = nil
		got, none := ask(t.Context(), e, r), alone(p, o, false, r)
		if got.err != nil || got.text != none.text || got.done.Usage.Cached != c.cached {
			t.Errorf("prompt %d: %d tokens are found, want %d; %q, want %q; %v", i, got.done.Usage.Cached, c.cached, got.text, none.text, got.err)
		}
		var rows []int
		for _, l := range x.steps() {
			rows = append(rows, l.rows)
		}
		if n := len(rows) - 1; c.cached == 0 { // without parts no step has more than 256
			for rows = rows[:]; n > 1; n-- {
				rows = append([]int{rows[0] + rows[1]}, rows[2:]...)
			}
		}
		if !slices.Equal(rows, c.rows) {
			t.Errorf("prompt %d: steps of %d rows, want %d", i, rows, c.rows)
		}
	}
}

// TestStatesToWaitFor: of prompts that begin alike the second waits for the first up to a cut where that leaves a
// state, and for nothing else: then a step has rows of both.
func TestStatesToWaitFor(t *testing.T) {
	for _, c := range []struct {
		turn, cached int
		slots        []int32 // of the second step
	}{
		{600, 0, []int32{0, 1, 2}}, // its state is at 512, behind the 450 that both have
		{390, 384, []int32{0, 1}},  // at 384
	} {
		bubble(t, func(t *testing.T) {
			p := withCuts(fakePlan(4, 2048, true), true)
			x, o := newFake(p), engine.Options{ITL: engine.Unhurried}
			e, err := engine.New(p, x, fakeTokenizer(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			var list []engine.Request
			for i := range 2 {
				list = append(list, engine.Request{Prompt: slices.Concat(prompt(1, 450), prompt(2+i, 150)), Turn: c.turn, Max: 3, TopLogprobs: -1, IgnoreEOG: true})
			}
			// A step that takes a while, so that both are there when it has ended.
			first := engine.Request{Prompt: prompt(7, 1000), Max: 1, TopLogprobs: -1, IgnoreEOG: true}
			got := atOnce(t, e, append([]engine.Request{first}, list...))[1:]
			for i, r := range list {
				if none := alone(p, o, false, r); got[i].err != nil || got[i].text != none.text {
					t.Errorf("request %d: %q, alone %q; %v", i, got[i].text, none.text, got[i].err)
				}
			}
			var steps [][]int32
			for _, l := range x.steps() {
				steps = append(steps, l.prompts())
			}
			if have := got[1].done.Usage.Cached; have != c.cached || !slices.Equal(steps[1], c.slots) {
				t.Errorf("turn at %d: the second goes on at %d, want %d; steps of slots %d", c.turn, have, c.cached, steps)
			}
		})
	}
}

// TestTurnsBetweenGrains: with ReuseAnswers a prompt of a model with recurrent state goes on behind its turn between
// multiples of the grain. What is behind the next cut has the bits that it has alone, however many rows steps have.
func TestTurnsBetweenGrains(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := withCuts(fakePlan(4, 2048, true), true)
		o := engine.Options{ITL: 100 * time.Millisecond, ReuseAnswers: true}
		e, err := engine.New(p, newFake(p), fakeTokenizer(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		busy := engine.Request{Prompt: prompt(2, 30), Max: 400, TopLogprobs: -1, IgnoreEOG: true}
		r := engine.Request{Prompt: prompt(1, 1500), Turn: 333, Max: 5, TopLogprobs: -1, IgnoreEOG: true}
		done := make(chan result, 1)
		go func() { done <- ask(context.Background(), e, busy) }()
		time.Sleep(20 * time.Millisecond)
		got := ask(t.Context(), e, r)
		if none := alone(p, o, false, r); got.err != nil || got.text != none.text {
			t.Errorf("beside another %q, alone %q; %v", got.text, none.text, got.err)
		}
		<-done
	})
}

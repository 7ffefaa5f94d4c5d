package engine_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
)

// TestDrafts: a text that repeats itself comes in fewer steps, in less time, and is the same; guesses that do not hold
// cost next to nothing. Where a recurrent state can't go back, and where nothing is to be guessed, nothing is.
func TestDrafts(t *testing.T) {
	greedy, drawn := sample.Params{}, sample.Params{Temp: 0.5, TopP: 1, Typical: 1, Repeat: 1, Seed: 7}
	for _, c := range []struct {
		about     string
		repeats   bool
		recurrent bool
		off       bool
		sampling  sample.Params
		most      float64 // of the time without
		guesses   bool
	}{
		{"greedy", true, false, false, greedy, 0.7, true},
		{"drawn", true, false, false, drawn, 0.7, true},
		{"other text", false, false, false, greedy, 1.01, false},
		{"a state", true, true, false, greedy, 1, false},
		{"off", true, false, true, greedy, 1, false},
	} {
		bubble(t, func(t *testing.T) {
			p := fakePlan(1, 1024, c.recurrent)
			if c.repeats {
				p.Header.Model.Name = fakeRepeats
			}
			r := engine.Request{Prompt: prompt(0, 50), Max: 400, TopLogprobs: -1, IgnoreEOG: true, Sampling: c.sampling}
			want := alone(p, engine.Options{}, false, r)
			x := newFake(p)
			e, err := engine.New(p, x, fakeTokenizer(), engine.Options{NoDrafts: c.off})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			got := ask(t.Context(), e, r)
			if got.err != nil || !slices.Equal(got.tokens, want.tokens) || got.done.Reason != want.done.Reason {
				t.Fatalf("%s: %v %v, want %v", c.about, got.tokens, got.err, want.tokens)
			}
			u, whole := got.done.Usage, want.done.Usage.Decode.Seconds()
			if share := u.Decode.Seconds() / whole; share > c.most {
				t.Errorf("%s: takes %.2f of the time without, at most %.2f wanted", c.about, share, c.most)
			}
			synctest.Wait() // an answer comes before it is counted
			st := e.Stats()
			if c.guesses != (u.Held > 0) || u.Held > u.Guessed || st.Guessed != int64(u.Guessed) || st.Held != int64(u.Held) || st.GeneratedTokens != 400 {
				t.Errorf("%s: %d guessed, %d held; stats %d, %d, %d tokens", c.about, u.Guessed, u.Held, st.Guessed, st.Held, st.GeneratedTokens)
			}
			chosen := st.Chosen[engine.ByDevice] + st.Chosen[engine.ByCandidates] + st.Chosen[engine.ByLogits]
			if chosen < 400 || chosen > 407 { // a burst may go on behind the end
				t.Errorf("%s: %d tokens chosen", c.about, chosen)
			}
		})
	}
}

// TestDraftsAhead: where steps are submitted ahead, drafts come as soon as where none are.
func TestDraftsAhead(t *testing.T) {
	var took [2]float64
	for i, off := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			p := fakePlan(1, 4096, false)
			p.Header.Model.Name = fakeRepeats
			p.Entries[0].Candidates = "decode/1:candidates"
			x := newFake(p)
			x.slow, x.overlaps = 0.2, true
			e, err := engine.New(p, x, fakeTokenizer(), engine.Options{NoDrafts: off})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			took[i] = ask(t.Context(), e, engine.Request{Prompt: prompt(0, 50), Max: 900, TopLogprobs: -1, IgnoreEOG: true}).done.Usage.Decode.Seconds()
			if off && e.Stats().Ahead == 0 {
				t.Error("nothing is submitted ahead")
			}
		})
	}
	if share := took[1] / took[0]; share > 0.7 {
		t.Errorf("%.2f of the time without", share)
	}
}

// TestDraftsAgain: behind a step of drafts that was interrupted there are drafts again, some time later.
func TestDraftsAgain(t *testing.T) {
	for _, slow := range []float64{20, 100} {
		bubble(t, func(t *testing.T) {
			p := fakePlan(1, 1024, false)
			p.Header.Model.Name = fakeRepeats
			p.Entries[1].Candidates, p.Entries[2].Candidates = "", "" // drafts of drawn answers have one entry
			x := newFake(p)
			e, err := engine.New(p, x, fakeTokenizer(), engine.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			r := engine.Request{Prompt: prompt(0, 50), Max: 900, TopLogprobs: -1, IgnoreEOG: true, Sampling: sample.Params{Temp: 0.3, TopP: 1, Typical: 1, Repeat: 1}}
			r.Reading = func(int) { x.slow = 1 }
			ask(t.Context(), e, r)
			synctest.Wait()
			guessed, short := e.Stats().Guessed, r
			x.slow, short.Max, short.Reading = slow, 20, nil
			ask(t.Context(), e, short)
			for range 3 {
				ask(t.Context(), e, r)
			}
			synctest.Wait()
			if again := e.Stats().Guessed - guessed; guessed == 0 || again < guessed/2 {
				t.Errorf("%d tokens were guessed, and behind steps %v times as slow %d", guessed, slow, again)
			}
		})
	}
}

// TestDraftsOfNobody: sequences that have no drafts are prepared as without, also where steps have become slower since
// there were some.
func TestDraftsOfNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := fakePlan(1, 1024, false)
		p.Header.Model.Name = fakeRepeats
		for i := range p.Entries { // those that are drawn have no drafts then
			p.Entries[i].Candidates = ""
		}
		x := &nearing{fake: newFake(p)}
		x.overlaps = true
		e, err := engine.New(p, x, fakeTokenizer(), engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		r := engine.Request{Prompt: prompt(0, 50), Max: 900, TopLogprobs: -1, IgnoreEOG: true}
		ask(t.Context(), e, r)
		synctest.Wait()
		before := e.Stats()
		x.slow, r.Sampling = 2, sample.Params{Temp: 0.5, TopP: 1, Typical: 1, Repeat: 1}
		ask(t.Context(), e, r)
		synctest.Wait()
		if st := e.Stats(); before.Guessed == 0 || st.Guessed != before.Guessed || st.Prepared-before.Prepared < 890 {
			t.Errorf("%d guesses, then %d, %d of 900 steps prepared", before.Guessed, st.Guessed-before.Guessed, st.Prepared-before.Prepared)
		}
	})
}

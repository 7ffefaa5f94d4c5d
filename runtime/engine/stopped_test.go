package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/engine"
)

// stopped is a fake that stands still once, as a process does that is stopped, or a machine that sleeps: the clock then
// goes on by an hour in the middle of a step.
type stopped struct {
	*fake
	entry string   // whose next step this is; "" for none
	begun []string // entries of all submissions
}

func (x *stopped) Submit(ctx context.Context, launches ...runtime.Launch) (runtime.Ticket, error) {
	x.begun = append(x.begun, launches[0].Entry.Name)
	return x.fake.Submit(ctx, launches...)
}

func (x *stopped) Wait(ctx context.Context, t runtime.Ticket) error {
	if x.begun[t-1] == x.entry {
		x.entry = ""
		time.Sleep(time.Hour)
	}
	return x.fake.Wait(ctx, t)
}

// usual is the entry that most steps of TestClockJumps have.
const usual = "decode/4"

// TestClockJumps has the clock go on by an hour while requests run, in a step of the usual entry or of a prompt:
// answers are those that requests have alone, nobody is given up, and soon behind it the engine chooses the usual entry
// as often as before, and requests take as long.
func TestClockJumps(t *testing.T) {
	for _, overlaps := range []bool{false, true} {
		for _, entry := range []string{usual, "prefill/64"} {
			bubble(t, func(t *testing.T) { clockJumps(t, overlaps, entry) })
		}
	}
}

func clockJumps(t *testing.T, overlaps bool, entry string) {
	p := fakePlan(4, 1024, false)
	p.Entries = slices.DeleteFunc(p.Entries, func(e plans.Entry) bool { return e.Name == "decode/8" }) // nearly as good
	x := &stopped{fake: newFake(p)}
	x.overlaps = overlaps
	e, err := engine.New(p, x, fakeTokenizer(), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var requests [6]engine.Request
	var want [len(requests)]result
	for i := range requests {
		requests[i] = engine.Request{Prompt: prompt(i, 40+30*i), Max: 100, TopLogprobs: -1, IgnoreEOG: true, NoCache: true}
		want[i] = alone(p, engine.Options{}, false, requests[i])
	}
	// round has requests come in one order, and returns how long all take and how many submissions are the usual ones.
	round := func() (time.Duration, int) {
		began, begun := time.Now(), len(x.begun)
		var wait sync.WaitGroup
		for i, r := range requests {
			wait.Go(func() {
				time.Sleep(time.Duration(i) * time.Microsecond)
				if got := ask(t.Context(), e, r); got.err != nil || !slices.Equal(got.tokens, want[i].tokens) {
					t.Errorf("%d, %v; alone %d", got.tokens, got.err, want[i].tokens)
				}
			})
		}
		wait.Wait()
		took, n := time.Since(began), 0
		synctest.Wait() // a step ahead that nobody needs ends, too
		for _, name := range x.begun[begun:] {
			if name == usual {
				n++
			}
		}
		return took, n
	}
	round()
	longest, fewest := round()
	for range 3 {
		took, n := round()
		longest, fewest = max(longest, took), min(fewest, n)
	}
	x.entry = entry
	if took, _ := round(); took < time.Hour || took > time.Hour+2*longest {
		t.Errorf("an hour in %s: requests took %v", entry, took)
	}
	slow, few := longest+longest/20, fewest/2
	took, n := round()
	for rounds := 1; (took > slow || n < few) && rounds < 30; rounds++ {
		took, n = round()
	}
	if took > slow || n < few {
		t.Errorf("long behind an hour in %s requests take %v, in %d submissions of %s; at most %v before, in %d or more",
			entry, took, n, usual, longest, fewest)
	}
}

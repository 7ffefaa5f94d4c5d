package sample

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// TestMatcher compares the places at which texts end with what strings finds.
func TestMatcher(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringMatching(`[ab]{0,6}`)
		texts := rapid.SliceOfN(letters, 0, 5).Draw(t, "texts")
		m := newMatcher(texts)
		if none := !slices.ContainsFunc(texts, func(s string) bool { return s != "" }); none != (m == nil) {
			t.Fatalf("%q: matcher %v", texts, m)
		}
		if m == nil {
			return
		}
		all, state := "", int32(0)
		for _, piece := range rapid.SliceOfN(letters, 0, 8).Draw(t, "pieces") {
			before := len(all)
			all += piece
			want := slices.ContainsFunc(texts, func(s string) bool {
				at := strings.LastIndex(all, s)
				return s != "" && at >= 0 && at+len(s) > before
			})
			var got bool
			if state, got = m.read(state, piece); got != want {
				t.Fatalf("%q in %q behind %d bytes: %v, want %v", texts, all, before, got, want)
			}
		}
	})
}

// TestBounds: what each choice would have to do again is bounded, by name.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		set  func(p *Params)
		want string
	}{
		{func(p *Params) { p.Breakers = slices.Repeat([]string{"a"}, 65) }, "dry_sequence_breakers has 65 texts, want at most 64"},
		{func(p *Params) { p.Breakers = []string{"a", strings.Repeat("b", 65)} }, "dry_sequence_breakers has a text of 65 bytes, the 2th, want at most 64"},
		{func(p *Params) { p.Samplers = slices.Repeat([]string{"top_k"}, 17) }, "samplers has 17 stages, want at most 16"},
		{func(p *Params) { p.Breakers = slices.Repeat([]string{strings.Repeat("b", 64)}, 64) }, ""},
		{func(p *Params) { p.Samplers = slices.Repeat([]string{"top_k"}, 16) }, ""},
	} {
		p := Neutral()
		c.set(&p)
		if got := p.Validate(); c.want == "" && got != nil || c.want != "" && (got == nil || got.Error() != c.want) {
			t.Errorf("%v, want %q", got, c.want)
		}
	}
}

// processor is the time that this thread has had of a processor: others of the computer do not count.
func processor(t *testing.T) time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		t.Fatal(err)
	}
	return time.Duration(at.Nano())
}

// TestCostOfChoice: a choice costs what a look at the logits costs, a few times over, whatever a request asks for:
// breakers as long and as many as are taken, penalties behind what keeps nearly all, and a long sequence that repeats
// itself.
func TestCostOfChoice(t *testing.T) {
	logits := large()
	same := make([]int32, 30_000)
	many := make([]int32, 30_000)
	for i := range many {
		many[i] = int32(i * 5 % len(logits))
	}
	cost := func(p Params, history []int32) time.Duration {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p.TopK = max(p.TopK, 40)
		s := New(p, words)
		s.Read(history)
		best := time.Duration(math.MaxInt64)
		for i := range 5 {
			s.Accept(history[i])
			began := processor(t)
			if _, err := s.Choose(logits, nil); err != nil {
				t.Fatal(err)
			}
			best = min(best, processor(t)-began)
		}
		return best
	}
	kept := Neutral()
	kept.TopK = len(logits)
	wide := Neutral()
	wide.Repeat, wide.LastN = 1.1, -1
	plain, sorted, penalized := cost(Neutral(), same), cost(kept, same), cost(wide, many)
	for _, c := range []struct {
		name    string
		set     func(p *Params)
		history []int32
		most    time.Duration
	}{
		{"breakers", func(p *Params) { p.Multiplier, p.Breakers = 0.8, manyBreakers() }, same, 8*plain + 2*time.Millisecond},
		{"breakers, many tokens", func(p *Params) { p.Multiplier, p.Breakers = 0.8, manyBreakers() }, many, 8*plain + 2*time.Millisecond},
		{"penalties of all that is left", func(p *Params) {
			p.TopK, p.Repeat, p.LastN, p.Samplers = len(logits), 1.1, -1, []string{"top_k", "penalties"}
		}, many, 4*(sorted+penalized) + 2*time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Neutral()
			c.set(&p)
			if got := cost(p, c.history); got > c.most {
				t.Errorf("%s a choice, at most %s; without it %s", got, c.most, plain)
			}
		})
	}
}

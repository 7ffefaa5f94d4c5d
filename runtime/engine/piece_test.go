package engine_test

import (
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/runtime/engine"
)

// TestPieces reads long prompts beside answers, with a host that takes 2 ms for each piece and some for each token. On a
// device that runs beside the host, it waits for the host a fifth as long at most as on one that does not; the answers
// are the same, and tokens come in time.
func TestPieces(t *testing.T) {
	const bound = 60 * time.Millisecond
	run := func(overlaps bool) (texts []string, first, idle time.Duration) {
		bubble(t, func(t *testing.T) {
			p := fakePlan(4, 2048, false)
			x := newFake(p)
			x.overlaps = overlaps
			e, err := engine.New(p, x, fakeTokenizer(), engine.Options{ITL: bound})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			texts = make([]string, 4)
			prefills := make([]time.Duration, len(texts))
			var wait sync.WaitGroup
			for i := range texts {
				r := engine.Request{Prompt: prompt(i, 20), Max: 150, TopLogprobs: -1, IgnoreEOG: true}
				if i > 1 {
					r = engine.Request{Prompt: prompt(i, 1500), Max: 20, TopLogprobs: -1, IgnoreEOG: true}
				}
				r.Reading = func(int) { time.Sleep(2 * time.Millisecond) }
				wait.Go(func() {
					time.Sleep(time.Duration(i) * 20 * time.Millisecond)
					a := ask(t.Context(), e, r)
					if a.err != nil {
						t.Errorf("request %d: %v", i, a.err)
					}
					texts[i], prefills[i] = a.text, a.done.Usage.Prefill
				})
			}
			wait.Wait()
			first, idle = prefills[2]+prefills[3], x.idle
			steps := 0
			var last time.Time
			for _, l := range x.log { // all of the two that answer, while prompts are read
				if l.entry.Kind != "decode" || l.rows < 2 {
					continue
				}
				if d := l.end.Sub(last); steps > 0 && d > bound {
					t.Errorf("overlaps %t: %v between two tokens, behind step %d", overlaps, d, steps)
				}
				last = l.end
				steps++
			}
			if steps < 40 {
				t.Errorf("overlaps %t: %d steps of two answers", overlaps, steps)
			}
		})
		return texts, first, idle
	}
	want, before, waited := run(false)
	have, after, waits := run(true)
	for i := range want {
		if have[i] != want[i] {
			t.Errorf("request %d: %q, want %q", i, have[i], want[i])
		}
	}
	t.Logf("first tokens behind %v and %v, the device waits for %v and %v", before, after, waited, waits)
	if waits > waited/5 || after >= before {
		t.Errorf("the device waits for %v and, of pieces back to back, %v; first tokens come behind %v and %v", waited, waits, before, after)
	}
}

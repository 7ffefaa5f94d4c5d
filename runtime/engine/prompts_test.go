package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zincc-dev/zincc/plans"
)

// TestPromptsOfProcessors holds that a prompt which nobody waits beside has the widest steps on a processor, whatever
// is predicted, and that the bound counts elsewhere.
func TestPromptsOfProcessors(t *testing.T) {
	for _, c := range []struct {
		backend string
		itl     time.Duration
		want    int
	}{
		{plans.CPU, Unhurried, 512},
		{plans.CPU, 50 * time.Millisecond, 48},
		{plans.Vulkan, Unhurried, 48},
	} {
		plan := &plans.Plan{Entries: []plans.Entry{{Kind: "decode", Rows: 1, Run: 1}, {Kind: "prefill", Rows: 48, Run: 48}, {Kind: "prefill", Rows: 512, Run: 512}}}
		plan.Header.Ctx, plan.Require.Backend = 1024, c.backend
		p, err := newPrompts(plan, c.itl)
		if err != nil {
			t.Fatal(err)
		}
		if rows := p.widest[0].Rows; rows != c.want {
			t.Errorf("%s within %v: steps of %d rows, want %d", c.backend, c.itl, rows, c.want)
		}
	}
}

// predicted is an entry whose steps take so long.
func predicted(kind string, rows, reach int, took time.Duration) plans.Entry {
	return plans.Entry{Name: kind, Kind: kind, Rows: rows, Run: rows, Reach: reach,
		Dispatches: []plans.Dispatch{{Cost: plans.Cost{Predicted: plans.Times{Stage: float32(took.Seconds())}}}}}
}

// TestPromptsAtBound holds that a prompt's steps are the widest that fit the bound with a step of decoding and their
// margin, to the nanosecond; and the narrowest where nothing is predicted.
func TestPromptsAtBound(t *testing.T) {
	const decode, narrow, wide = time.Second / 64, time.Second / 32, time.Second / 8 // seconds, exactly
	const bound = (wide + decode) * 5 / 4
	for _, c := range []struct {
		entries []plans.Entry
		itl     time.Duration
		want    int
	}{
		{[]plans.Entry{predicted("decode", 1, 1, decode), predicted("prefill", 48, 48, narrow), predicted("prefill", 512, 512, wide)}, bound, 512},
		{[]plans.Entry{predicted("decode", 1, 1, decode), predicted("prefill", 48, 48, narrow), predicted("prefill", 512, 512, wide)}, bound - 1, 48},
		{[]plans.Entry{predicted("decode", 1, 1, decode), predicted("prefill", 48, 48, narrow), predicted("prefill", 512, 512, wide)}, 1, 48},
		{[]plans.Entry{predicted("decode", 1, 1, decode), predicted("prefill", 48, 48, 0), predicted("prefill", 512, 512, 0)}, bound, 48},
	} {
		plan := &plans.Plan{Entries: c.entries}
		plan.Header.Ctx, plan.Require.Backend = 1024, plans.CUDA
		p, err := newPrompts(plan, c.itl)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range p.widest {
			if e.Rows != c.want {
				t.Errorf("within %v: step %d has %d rows, want %d", c.itl, i, e.Rows, c.want)
			}
		}
	}
}

// TestStepsOfPrompts holds for every position, end and cut what a step of a prompt is: its rows end with the prompt,
// and at the next cut if they are to be those of a prompt alone; its entry is the narrowest that reaches there, no
// wider than those of its piece.
func TestStepsOfPrompts(t *testing.T) {
	const ctx = 200
	plan := &plans.Plan{Entries: []plans.Entry{predicted("decode", 1, 1, 1), predicted("decode", 4, 4, 1), predicted("prefill", 16, 20, 1), predicted("prefill", 48, 48, 1), predicted("prefill", 64, 64, 1)}}
	plan.Header.Ctx, plan.Require.Backend = ctx, plans.CUDA
	p, err := newPrompts(plan, Unhurried)
	if err != nil {
		t.Fatal(err)
	}
	p.cuts, p.widest = []int{0, 48, 112, 128, 192, ctx}, []*plans.Entry{p.entries[3], p.entries[4], p.entries[2], p.entries[4], p.entries[2]}
	for pos := range ctx {
		piece := 0
		for piece+1 < len(p.widest) && p.cuts[piece+1] <= pos {
			piece++
		}
		if p.cutBefore(pos) != p.cuts[piece] || p.isCut(pos) != (p.cuts[piece] == pos) {
			t.Errorf("position %d: cut before at %d, a cut %t, want %d", pos, p.cutBefore(pos), p.isCut(pos), p.cuts[piece])
		}
		for end := pos + 1; end <= ctx; end++ {
			for _, exact := range []bool{true, false} {
				to := end
				if exact && p.cuts[piece+1] < end {
					to = p.cuts[piece+1]
				}
				want := p.widest[piece]
				for _, e := range p.entries {
					if e.Reach >= to-pos && e.Rows < want.Rows {
						want = e
						break
					}
				}
				if e, n := p.step(pos, end, exact); e != want || n != min(to-pos, want.Rows) {
					t.Fatalf("from %d to %d, exact %t: %d rows of %s/%d, want %d of %s/%d", pos, end, exact, n, e.Kind, e.Rows, min(to-pos, want.Rows), want.Kind, want.Rows)
				}
			}
		}
	}
}

// TestFits holds that a step of a prompt fits if it, a step of decoding and the host's part end within what is planned,
// to the nanosecond, and that the host chooses one token more where the prompt ends.
func TestFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const decode, prefill, host, waited = time.Second / 64, time.Second / 32, time.Second / 128, 3 * time.Millisecond
		plan := &plans.Plan{Entries: []plans.Entry{predicted("decode", 1, 1, decode), predicted("prefill", 48, 48, prefill)}}
		plan.Header.Ctx, plan.Require.Backend = 1024, plans.CUDA
		p, err := newPrompts(plan, Unhurried)
		if err != nil {
			t.Fatal(err)
		}
		prompt := make([]int32, 100)
		reading := &seq{started: true, req: &Request{Prompt: prompt}, slot: &slot{}}
		answering := &seq{started: true, req: &Request{Prompt: prompt}, slot: &slot{tokens: prompt}, last: time.Now()}
		for _, c := range []struct {
			rows int
			took time.Duration
		}{{48, decode + prefill + host + waited}, {100, decode + prefill + 2*host + waited}} {
			for over, want := range []bool{true, false} { // planned is 0.95 of the bound
				e := &Engine{loop: loop{running: []*seq{reading, answering}, prompts: p, costs: newCosts(plan), host: average{mean: host.Seconds()}}}
				e.o.ITL = time.Duration(float64(c.took)/aim) + 1
				for e.planned() > c.took {
					e.o.ITL--
				}
				if e.planned() != c.took {
					t.Fatalf("no bound plans for %v", c.took)
				}
				answering.last = time.Now().Add(-waited - time.Duration(over))
				if have := e.fits(reading, p.entries[1], c.rows); have != want {
					t.Errorf("%d rows, %d ns more than %v: fits %t", c.rows, over, c.took, have)
				}
			}
		}
		if (&Engine{loop: loop{running: []*seq{reading}, prompts: p, costs: newCosts(plan)}}).fits(reading, p.entries[1], 48) {
			t.Error("nobody waits, and a step behind another fits")
		}
	})
}

// TestPromptsInRuns holds that a step reads no more of a prompt than the entry takes of one sequence.
func TestPromptsInRuns(t *testing.T) {
	plan := &plans.Plan{Entries: []plans.Entry{{Kind: "decode", Rows: 16, Run: 8, Reach: 16}}}
	plan.Header.Ctx = 64
	p, err := newPrompts(plan, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, rows := p.step(0, 20, false); rows != 8 {
		t.Errorf("the first step takes %d rows, want 8", rows)
	}
	if !p.isCut(8) || p.isCut(12) {
		t.Errorf("pieces begin at %v", p.cuts)
	}
}

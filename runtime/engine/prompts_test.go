package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zincc-dev/zincc/ir"
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
		if rows := p.pieces[0].widest.Rows; rows != c.want {
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
// margin, to the nanosecond, or the half of it where decoding takes the other half and more; and the narrowest where
// nothing is predicted.
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
		{[]plans.Entry{predicted("decode", 128, 1, 2*wide), predicted("prefill", 48, 48, narrow), predicted("prefill", 512, 512, wide)}, 2 * wide * 5 / 4, 512},
		{[]plans.Entry{predicted("decode", 128, 1, 2*wide), predicted("prefill", 48, 48, narrow), predicted("prefill", 512, 512, wide)}, 2*wide*5/4 - 1, 48},
	} {
		plan := &plans.Plan{Entries: c.entries}
		plan.Header.Ctx, plan.Require.Backend = 1024, plans.CUDA
		p, err := newPrompts(plan, c.itl)
		if err != nil {
			t.Fatal(err)
		}
		for i, piece := range p.pieces {
			if rows := piece.widest.Rows; rows != c.want {
				t.Errorf("within %v: step %d has %d rows, want %d", c.itl, i, rows, c.want)
			}
		}
	}
}

// TestStepsOfPrompts holds for every position, end and cut what a step of a prompt is where steps begin at pieces
// alone: its rows end with the prompt, and at the next cut if they are to be those of a prompt alone; its entry is the
// narrowest that reaches there, no wider than those of its piece.
func TestStepsOfPrompts(t *testing.T) {
	const ctx = 200
	plan := &plans.Plan{Entries: []plans.Entry{predicted("decode", 1, 1, 1), predicted("decode", 4, 4, 1), predicted("prefill", 16, 20, 1), predicted("prefill", 48, 48, 1), predicted("prefill", 64, 64, 1)}}
	plan.Header.Ctx, plan.Require.Backend = ctx, plans.CUDA
	p, err := newPrompts(plan, Unhurried)
	if err != nil {
		t.Fatal(err)
	}
	p.cuts, p.pieces = []int{0, 48, 112, 128, 192, ctx}, nil
	for i, e := range []int{3, 4, 2, 4, 2} {
		p.pieces = append(p.pieces, piece{begin: p.cuts[i], end: p.cuts[i+1], widest: p.entries[e]})
	}
	for pos := range ctx {
		at := 0
		for at+1 < len(p.pieces) && p.cuts[at+1] <= pos {
			at++
		}
		if p.cutBefore(pos) != p.cuts[at] {
			t.Errorf("position %d: cut before at %d, want %d", pos, p.cutBefore(pos), p.cuts[at])
		}
		for end := pos + 1; end <= ctx; end++ {
			for _, exact := range []bool{true, false} {
				to := end
				if exact && p.cuts[at+1] < end {
					to = p.cuts[at+1]
				}
				want := p.pieces[at].widest
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

// bits says what a row's bits may depend on, beside what prompts have in common: the entry, and the rows of its grain.
type bits struct {
	entry      *plans.Entry
	from, rows int // of a whole grain 0: any step that has it gives the same
}

// taken is a step of a prompt.
type taken struct{ width, rows int }

// read returns the steps of a prompt of n tokens from a cut on, and the bits of its rows from there on.
func (p *prompts) read(t *testing.T, cut, n int) (steps []taken, rows []bits) {
	for pos := cut; pos < n; {
		e, k := p.step(pos, n, true)
		if k < 1 || k > e.Run || e.Grain > 0 && pos%e.Grain != 0 {
			t.Fatalf("a prompt of %d: a step of %d rows of %s/%d at %d", n, k, e.Kind, e.Rows, pos)
		}
		steps = append(steps, taken{e.Rows, k})
		for i := range k {
			b := bits{e, pos, k}
			if g := e.Grain; g > 0 {
				if first := i / g * g; first+g <= k {
					b.from, b.rows = 0, 0
				} else {
					b.from, b.rows = pos+first, k-first
				}
			}
			rows = append(rows, b)
		}
		pos += k
	}
	return steps, rows
}

// TestCutsWithinPieces holds of prompts of all lengths that a prompt has the steps that it has without grains, and the
// same bits from wherever it goes on behind a longer or shorter one that begins alike. A prompt whose rest takes the
// entry of whole pieces computes no more than a cell and what is new.
func TestCutsWithinPieces(t *testing.T) {
	const ctx = 1224
	for page, each := range map[int]int{0: cell, 48: 192, 256: 256} { // pages, and how far cuts are apart
		plan := &plans.Plan{Program: &ir.Program{}}
		grains := []int{1, 16, 0, 32, 32, 32}
		for i, rows := range []int{8, 16, 48, 128, 256, 512} {
			reach := []int{8, 16, 48, 128, 272, 528}[i]
			plan.Entries = append(plan.Entries, predicted([]string{"decode", "prefill"}[min(i, 1)], rows, reach, time.Millisecond))
		}
		wide := ctx
		if page > 0 { // behind 512 positions a step of 512 would take too long
			plan.Entries[5].Dispatches[0].Cost = plans.Cost{ReadBytes: 512, BytesPerPos: 1, Predicted: plans.Times{Bytes: 0.2}}
			wide = 512
		}
		plan.Header.Ctx, plan.Require.Backend = ctx, plans.CUDA
		if page > 0 {
			plan.Memory.KV = []plans.Region{{Kept: &plans.Kept{Page: page}}}
		}
		coarse, err := newPrompts(plan, Unhurried)
		if err != nil {
			t.Fatal(err)
		}
		for i, grain := range grains {
			plan.Entries[i].Grain = grain
		}
		fine, err := newPrompts(plan, Unhurried)
		if err != nil {
			t.Fatal(err)
		}
		want := []int{0, 512, 1024, ctx}
		if wide < ctx {
			want = []int{0, 512, 768, 1024, ctx}
		}
		if !slices.Equal(coarse.cuts, want) || len(fine.costs) != len(fine.cuts) || !slices.IsSorted(fine.costs) {
			t.Fatalf("pages of %d: cuts %v, costs %v; without grains %v", page, fine.cuts, fine.costs, coarse.cuts)
		}
		for _, cut := range fine.cuts {
			if page > 0 && cut%page > 0 && !slices.Contains(want, cut) {
				t.Errorf("a cut at %d is within a page of %d", cut, page)
			}
		}
		var fresh [ctx + 1][]bits
		for n := 1; n <= ctx; n += min(page+1, 3) {
			var steps []taken
			steps, fresh[n] = fine.read(t, 0, n)
			if want, _ := coarse.read(t, 0, n); !slices.Equal(steps, want) {
				t.Fatalf("a prompt of %d has steps %v, without grains %v", n, steps, want)
			}
			last := fine.last(n)
			for _, cut := range fine.cuts {
				if cut > last {
					break
				}
				if _, rows := fine.read(t, cut, n); !slices.Equal(rows, fresh[n][cut:]) {
					t.Fatalf("a prompt of %d has other bits from %d on", n, cut)
				}
			}
			if rest := (n-1)%512 + 1; last >= n || last < coarse.last(n) || rest > 272 && n <= wide && n-last > each {
				t.Fatalf("a prompt of %d goes on at %d", n, last)
			}
		}
		for n := 1; n <= ctx; n += min(page+1, 3) {
			shared := fine.cutBefore(fine.shared(n))
			for m := n; m <= ctx; m += 3 * (1 + m%29) {
				if to := min(shared, fine.last(m)); !slices.Equal(fresh[n][:to], fresh[m][:to]) {
					t.Fatalf("prompts of %d and %d tokens differ before %d", n, m, to)
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
				e := &Engine{loop: loop{running: []*seq{reading, answering}, prompts: p, costs: newCosts(plan, nil), host: average{mean: host.Seconds()}}}
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
		if (&Engine{loop: loop{running: []*seq{reading}, prompts: p, costs: newCosts(plan, nil)}}).fits(reading, p.entries[1], 48) {
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
	if want := []int{0, 8, 16, 24, 32, 40, 48, 56, 64}; !slices.Equal(p.cuts, want) {
		t.Errorf("pieces begin at %v", p.cuts)
	}
}

// TestAlikeAtBound holds that entries that are alike serve wherever a step of 128 of their rows fits the bound with its
// margin, though all rows of the narrowest do not; not where it does not fit.
func TestAlikeAtBound(t *testing.T) {
	for _, c := range []struct{ us, want int }{{800, 512}, {790, 64}} { // 632.5 us are 128 rows, and a quarter more
		plan := partedPlan(4096)
		p, err := newPrompts(plan, time.Duration(c.us)*time.Microsecond)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.pieces[0].widest.Rows; got != c.want {
			t.Errorf("within %d us prompts are read by steps of %d rows, want %d", c.us, got, c.want)
		}
	}
}

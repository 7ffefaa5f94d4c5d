package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// partedPlan has steps of 512, 1,024 and 2,048 rows in parts of 128, whose rows take a microsecond each and more behind
// other positions, and 500 beside; a step of decoding takes 2 ms.
func partedPlan(ctx int) *plans.Plan {
	plan := &plans.Plan{Entries: []plans.Entry{predicted("decode", 4, 4, 2*time.Millisecond), predicted("prefill", 64, 80, 400*time.Microsecond), predicted("prefill", 256, 272, 450*time.Microsecond)}}
	for _, rows := range []int{512, 1024, 2048} {
		e := predicted("prefill", rows, rows+16, time.Duration(500+rows)*time.Microsecond)
		e.Part, e.Grain, e.Class = 128, 32, ir.AlikeStep.String()
		plan.Entries = append(plan.Entries, e)
	}
	plan.Header.Ctx, plan.Require.Backend = ctx, plans.CUDA
	return plan
}

// TestPack: prompts have rows in their order, those that are left in whole parts if not all that they want, in the
// narrowest entry that has them, in a time that the step may take.
func TestPack(t *testing.T) {
	plan := partedPlan(4096)
	p, err := newPrompts(plan, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	costs := newCosts(plan, p.alike)
	for _, c := range []struct {
		wants []int
		us    int // that the step may take
		entry int
		rows  []int
	}{
		{[]int{512, 512, 512, 512}, 1e6, 2048, []int{512, 512, 512, 512}},
		{[]int{512, 512, 512, 512, 512}, 1e6, 2048, []int{512, 512, 512, 512}},
		{[]int{300, 300}, 1e6, 1024, []int{300, 300}}, // the second begins at row 384
		{[]int{300}, 1e6, 512, []int{300}},
		{[]int{512, 512, 512}, 2100, 2048, []int{512, 512, 512}}, // of 1,536 rows
		{[]int{512, 512, 512}, 2030, 1024, []int{512, 512}},
		{[]int{512, 513, 512}, 2100, 1024, []int{512, 512}},                   // of 2,048, and of 1,024
		{[]int{512, 513, 300}, 2100, 2048, []int{512, 513, 300}},              // all, of 1,452
		{[]int{2048, 512}, 1e6, 2048, []int{2048}},                            // none is left
		{[]int{1950, 512}, 1e6, 2048, []int{1950}},                            // 98 are left
		{[]int{1900, 512}, 1e6, 2048, []int{1900, 128}},                       // from row 1,920 on
		{[]int{2048, 512}, 1100, 512, []int{512}},                             // all that there is time for
		{[]int{5, 5, 5, 5, 5, 5}, 1100, 512, []int{5, 5, 5, 5}},               // 1,133 have 645 rows
		{[]int{5, 5, 5, 5, 5, 5}, 1e6, 1024, []int{5, 5, 5, 5, 5, 5}},         //
		{[]int{5, 5, 5, 5, 5, 5}, 1012, 512, []int{5, 5, 5, 5}},               //
		{[]int{400, 400}, 910, 512, []int{384}},                               // 0.875 of the narrowest
		{[]int{400, 400}, 600, 512, nil},                                      // not even a part
		{slices.Repeat([]int{1}, 20), 1e6, 2048, slices.Repeat([]int{1}, 16)}, // a part each
	} {
		var list []want
		for _, n := range c.wants {
			list = append(list, want{rows: n})
		}
		e, step := p.pack(list, true, func(e *plans.Entry, depth, rows int) bool {
			return costs.mostOf(e, depth, rows) <= time.Duration(c.us)*time.Microsecond
		})
		if !slices.Equal(step.rows, c.rows) || c.rows != nil && e.Rows != c.entry {
			t.Errorf("%d in %d us: %d in %d, want %d in %d", c.wants, c.us, step.rows, e.Rows, c.rows, c.entry)
		}
	}
}

// TestShare: whatever prompts want, each has all of it or whole parts, none stands behind one that has less than it
// wants, and nothing is left that the first without any could have.
func TestShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const part = 128
		parts := rapid.IntRange(0, 16).Draw(t, "parts")
		var list []want
		for _, n := range rapid.SliceOf(rapid.IntRange(1, 3000)).Draw(t, "rows") {
			list = append(list, want{rows: n})
		}
		rows, left := share(list, parts, part), parts
		for i, n := range rows {
			if n < 1 || n > list[i].rows || n < list[i].rows && (n%part != 0 || i+1 < len(rows)) {
				t.Fatalf("%d of %d", n, list[i])
			}
			left -= (n + part - 1) / part
		}
		full := len(rows) == 0 || rows[len(rows)-1] == list[len(rows)-1].rows
		if left < 0 || left > 0 && (len(rows) < len(list) || !full) {
			t.Fatalf("%d parts are left of %d: %d of %d", left, parts, rows, list)
		}
	})
}

// TestPiecesOfParts: of entries that are alike pieces are as long as the narrowest of them has rows, and where they
// have parts there is one as far as it fits the bound, with cuts within, of recurrent models, too. A rest of a prompt
// that other entries reach has one of these; where steps have parts, only if it is shorter than one. How many rows a
// step may have, and within which bound, does not matter.
func TestPiecesOfParts(t *testing.T) {
	for i := range 8 {
		itl, recurrent := []time.Duration{10 * time.Millisecond, Unhurried}[i%2], i/2%2 > 0
		plan := partedPlan(4096)
		narrow, first, pieces, part, joined := 80, taken{64, 64}, 1, 128, true
		if i/4 > 0 {
			narrow, first, pieces, part, joined = 272, taken{256, 256}, 8, 32, false
			for i := range plan.Entries {
				plan.Entries[i].Part = 0
			}
		}
		if recurrent {
			plan.Memory.State = []plans.Region{{Kept: &plans.Kept{}}}
		}
		p, err := newPrompts(plan, itl)
		if err != nil {
			t.Fatal(err)
		}
		var want []int
		for pos := 0; pos <= 4096; pos += cell {
			want = append(want, pos)
		}
		if len(p.pieces) != pieces || !slices.Equal(p.cuts, want) || !slices.IsSorted(p.costs) || len(p.costs) != len(p.cuts) || p.part != part {
			t.Errorf("%d pieces, cuts %v, costs %v, parts of %d", len(p.pieces), p.cuts, p.costs, p.part)
		}
		rest := taken{512, 512}
		if joined {
			rest.rows += narrow
		}
		for _, c := range []struct {
			pos, end int
			want     taken
		}{
			{0, narrow, first}, {0, narrow + 1, taken{512, narrow + 1}}, {0, 4000, taken{512, 2048}}, {384, 500, taken{512, 116}}, {448, 500, taken{512, 52}},
			{3712, 4000, taken{512, 288}}, {2048, 4096, taken{512, 2048}}, {512, 513 + narrow, taken{512, narrow + 1}}, {0, 513 + narrow, taken{512, 513 + narrow}}, {0, 512 + narrow, rest},
		} {
			if e, n := p.step(c.pos, c.end, true); e.Rows != c.want.width || n != c.want.rows {
				t.Errorf("from %d to %d: %d rows of %d, want %d", c.pos, c.end, n, e.Rows, c.want)
			}
		}
		if p.shared(narrow) != 0 || p.shared(narrow+1) != narrow+1 || p.last(800) != 768 {
			t.Errorf("prompts share %d of %d, %d of the next, and go on at %d of 800", p.shared(narrow), narrow, p.shared(narrow+1), p.last(800))
		}
	}
}

// TestPieceWithoutCuts: at the end of the context a piece too short for a cut is read as those before it, which it goes
// on from, in one of the entries that are alike.
func TestPieceWithoutCuts(t *testing.T) {
	plan := partedPlan(4096 + cell/2)
	for i := range plan.Entries {
		plan.Entries[i].Part = 0
	}
	p, err := newPrompts(plan, Unhurried)
	if err != nil {
		t.Fatal(err)
	}
	for pos, want := range map[int]int{4096: cell / 2, 3840: 256 + cell/2} {
		if e, n := p.step(pos, plan.Header.Ctx, true); !alike(e) || n != want {
			t.Errorf("from %d %d rows of %d, want %d", pos, n, e.Rows, want)
		}
	}
}

// TestWithinBound: while somebody waits for a token, steps with parts have what the bound leaves, the first at least a
// part of it; else the first has twice the bound, and there is no second one.
func TestWithinBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := partedPlan(4096)
		prompt := make([]int32, 600)
		answering := &seq{started: true, req: &Request{Prompt: prompt[:1]}, slot: &slot{tokens: prompt[:1]}, last: time.Now()}
		for _, c := range []struct {
			itl, since, spent time.Duration
			alone             bool
			rows              []int // that fit, and not
		}{
			{4 * time.Millisecond, 0, 0, false, []int{1299, 1301}},                    // 3.8 ms, of which decoding takes 2
			{8 * time.Millisecond, 0, 1, false, []int{2048}},                          // 5.6 ms
			{4 * time.Millisecond, 0, 1, false, []int{1024, 1400}},                    // 1.8 ms
			{4 * time.Millisecond, time.Millisecond, 1, false, []int{256, 257}},       // 0.8 ms
			{4 * time.Millisecond, 3 * time.Millisecond, 0, false, []int{1024, 1101}}, // as the first
			{time.Millisecond, 0, 0, true, []int{1500, 1501}}, {time.Millisecond, 0, 1, true, []int{0, 1}},
			{500 * time.Microsecond, 0, 0, true, []int{384, 385}},
			{100 * time.Microsecond, 0, 0, true, []int{128, 129}}, // the least
		} {
			p, err := newPrompts(plan, c.itl)
			if err != nil {
				t.Fatal(err)
			}
			e := &Engine{loop: loop{prompts: p, costs: newCosts(plan, p.alike), spent: c.spent}}
			if e.o.ITL = c.itl; !c.alone {
				e.running = []*seq{answering}
			}
			answering.last = time.Now().Add(-c.since)
			fits := e.withinBound()
			for i, n := range c.rows {
				k := slices.IndexFunc(p.alike, func(e *plans.Entry) bool { return e.Rows >= n })
				if have := n == 0 || fits(p.alike[k], 0, n); have != (i == 0) {
					t.Errorf("%+v: %d rows fit: %t", c, n, have)
				}
			}
		}
	})
}

// TestHostileParts: parts whose least multiple is above the rows of a step are refused, also if it overflows.
func TestHostileParts(t *testing.T) {
	for _, parts := range [][]int{{512, 1023, 2048}, {65521, 65519, 65497, 65479}, {65521, 65519, 65497, 65479, 65449}, {65536, 65535, 65533, 65531}, {65537, 65536, 65535, 65533}, {131071, 131070, 131069, 131067}} {
		plan := partedPlan(4096)
		plan.Entries = plan.Entries[:3]
		for _, part := range parts {
			e := predicted("prefill", 1<<17, 1<<17, time.Millisecond)
			e.Part, e.Grain, e.Class = part, 1, ir.AlikeStep.String()
			plan.Entries = append(plan.Entries, e)
		}
		if p, err := newPrompts(plan, 50*time.Millisecond); err == nil {
			t.Errorf("parts of %d rows: taken, of %d", parts, p.part)
		}
	}
}

// TestLeastFits: however many rows the narrowest entry has, the first step has some if no more than the least fit.
func TestLeastFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan, grain := partedPlan(4096), rapid.IntRange(1, 300).Draw(t, "grain")
		rows := grain * rapid.IntRange(1, 20).Draw(t, "grains")
		e := predicted("prefill", rows, rows, time.Millisecond)
		e.Grain, e.Class = grain, ir.AlikeStep.String()
		plan.Entries = append(plan.Entries[:3], e)
		p, err := newPrompts(plan, 50*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		_, step := p.pack([]want{{rows: 3000}}, true, func(_ *plans.Entry, _, rows int) bool { return rows <= p.least })
		if len(step.rows) == 0 || step.rows[0] == 0 {
			t.Fatalf("no rows of %d, of which %d fit, in parts of %d", rows, p.least, p.part)
		}
	})
}

package engine

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/plans"
)

// TestJoins: rounds of decoding read prompts that a step of decoding would read in any case, and longer ones where wide
// steps of several take half of the time at most, and steps of their own not much more.
func TestJoins(t *testing.T) {
	type steps map[int]int // microseconds, by rows
	for _, c := range []struct {
		about           string
		run             int // of the widest
		decode, prefill steps
		want            int
	}{
		{"an H200, 8B", 8, steps{1: 1628, 2: 2059, 4: 2370, 8: 2408, 16: 2742, 32: 3420, 64: 4872, 128: 9551}, steps{16: 3838, 48: 5127}, 16},
		{"an H200, 35B", 8, steps{1: 1263, 2: 1745, 4: 2657, 8: 3996, 16: 4956, 32: 6840, 64: 9573, 128: 13345}, steps{16: 7151, 48: 10462}, 24},
		{"full steps gain too little", 8, steps{8: 2000, 16: 6100, 32: 8000}, steps{16: 6100, 48: 20000}, 12},
		{"prompts seem to take longer than rows", 8, steps{8: 2000, 16: 6100, 32: 8000}, steps{16: 8000, 48: 20000}, 12},
		{"alone it takes too long", 8, steps{8: 5500, 128: 8000}, steps{16: 6000, 48: 20000}, 8},
		{"one sequence fills a step", 128, steps{8: 2000, 128: 8000}, steps{16: 6000, 48: 20000}, 8},
		{"steps have no more rows than a sequence", 8, steps{8: 1000}, steps{16: 10000, 48: 10000}, 8},
		{"nothing is predicted", 8, steps{8: 0, 128: 0}, steps{16: 0, 48: 0}, 8},
	} {
		plan := &plans.Plan{}
		for kind, entries := range map[string]steps{"decode": c.decode, "prefill": c.prefill} {
			for rows, us := range entries {
				e := predicted(kind, rows, rows, time.Duration(us)*time.Microsecond)
				if kind == "decode" {
					e.Run = min(rows, 8)
					if rows == 128 {
						e.Run = c.run
					}
					e.Reach = e.Run
				}
				plan.Entries = append(plan.Entries, e)
			}
		}
		plan.Header.Ctx = 1024
		p, err := newPrompts(plan, 50*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if p.joins != c.want {
			t.Errorf("%s: prompts of %d tokens, want %d", c.about, p.joins, c.want)
		}
	}
}

// TestJoined: a round reads no rows of a prompt behind which others go on, or that have another entry where a step
// begins elsewhere.
func TestJoined(t *testing.T) {
	plan := partedPlan(4096)
	plan.Entries = append(plan.Entries, predicted("decode", 128, 4, 3*time.Millisecond))
	for _, parts := range []int{128, 0} {
		for i := range plan.Entries {
			if plan.Entries[i].Alike() {
				plan.Entries[i].Part = parts
			}
		}
		p, err := newPrompts(plan, 50*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			pos, n int
			want   bool
		}{{0, 4, true}, {0, 80, true}, {77, 80, true}, {0, 81, parts == 0}, {128, 132, parts == 0}, {512, 516, parts == 0}, {512, 600, parts == 0}, {4092, 4096, false}} {
			if got := p.joined(c.pos, c.n); got != c.want {
				t.Errorf("parts of %d: from %d to %d: %t", parts, c.pos, c.n, got)
			}
		}
	}
	// Pieces of single entries, as wide as the bound lets them be: a whole one is left to its entry.
	plan = &plans.Plan{Entries: []plans.Entry{predicted("decode", 4, 4, time.Millisecond), predicted("prefill", 64, 64, time.Millisecond)}}
	plan.Header.Ctx = 256
	p, err := newPrompts(plan, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pos, n int
		want   bool
	}{{0, 4, true}, {64, 67, true}, {60, 64, false}, {60, 66, false}, {192, 256, false}} {
		if got := p.joined(c.pos, c.n); got != c.want {
			t.Errorf("from %d to %d: %t", c.pos, c.n, got)
		}
	}
}

// TestRation: in a round each that answers has a row, forced runs have what is left of the widest step, and prompts as
// many rows as such a step, in their order; the steps have them all, none too many, and no run is longer than it may
// be.
func TestRation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan := &plans.Plan{}
		for _, rows := range []int{1, 8, 64} {
			plan.Entries = append(plan.Entries, predicted("decode", rows, min(rows, 8), time.Duration(rows)*time.Microsecond))
			plan.Entries[len(plan.Entries)-1].Run = min(rows, 8)
		}
		plan.Header.Ctx = 1024
		p, err := newPrompts(plan, 50*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		e := &Engine{loop: loop{prompts: p, costs: newCosts(plan, nil), waits: map[string]int64{}}}
		e.o.ITL = 50 * time.Millisecond
		var all []*seq
		answering, forced, reads := 0, 0, 0
		for range rapid.IntRange(1, 150).Draw(t, "sequences") {
			s := &seq{started: true, req: &Request{Prompt: make([]int32, 20)}, slot: &slot{}, next: make([]int32, rapid.IntRange(1, 12).Draw(t, "next")), last: time.Now()}
			if rapid.Bool().Draw(t, "answers") {
				s.slot.tokens = s.req.Prompt
				answering, forced = answering+1, forced+min(8, len(s.next))-1
			} else {
				reads += min(8, len(s.next))
			}
			all = append(all, s)
		}
		group, rows := e.ration(all, 0)
		had := map[*seq]int{}
		of, prompts, skipped := 0, 0, false
		for i, s := range group {
			had[s] = rows[i]
			if s.reading() {
				prompts += rows[i]
			} else {
				of += rows[i]
			}
		}
		for _, s := range all {
			n := had[s]
			if n > min(8, len(s.next)) || n == 0 && !s.reading() || skipped && s.reading() && n > 0 || n == 0 && s.waitsFor != ForOrder {
				t.Fatalf("%d rows of %d, waits for %q", n, len(s.next), s.waitsFor)
			}
			skipped = skipped || s.reading() && n < min(8, len(s.next))
		}
		if want := answering + min(forced, max(0, 64-answering)); of != want || prompts != min(reads, 64) {
			t.Fatalf("%d rows of those that answer, want %d, and %d of prompts, want %d", of, want, prompts, min(reads, 64))
		}
		for left := total(rows); left > 0; left = total(rows) {
			most := rapid.IntRange(1, 64).Draw(t, "rows")
			before := slices.Clone(rows)
			step := take(rows, most)
			if total(step) != min(most, left) || total(rows) != left-total(step) {
				t.Fatalf("%d of %d, and %d are left", step, before, rows)
			}
			rows = rows[slices.IndexFunc(append(rows, 1), func(n int) bool { return n > 0 }):]
		}
	})
}

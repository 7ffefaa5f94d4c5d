package engine

import (
	"testing"
	"time"

	"github.com/zincc-dev/zincc/plans"
)

// TestCover: a token of each sequence takes the steps that take the least time together, as measured.
func TestCover(t *testing.T) {
	plan := &plans.Plan{}
	for i, ms := range []float32{2, 2.5, 9} { // of 1, 8 and 64 rows
		plan.Entries = append(plan.Entries, plans.Entry{Kind: "decode", Rows: []int{1, 8, 64}[i],
			Dispatches: []plans.Dispatch{{Cost: plans.Cost{Predicted: plans.Times{Stage: ms * 1e-3}}}}})
	}
	var list []*plans.Entry
	for i := range plan.Entries {
		list = append(list, &plan.Entries[i])
	}
	c := newCosts(plan, nil)
	check := func(n, rows int, ms float64) {
		t.Helper()
		entry, took := c.cover(list, n, 0)
		if want := seconds(ms / 1e3); entry.Rows != rows || (took-want).Abs() > time.Microsecond {
			t.Errorf("%d sequences begin with %d rows and take %v, want %d and %v", n, entry.Rows, took, rows, want)
		}
	}
	check(1, 1, 2)
	check(2, 8, 2.5)
	check(9, 8, 4.5)
	check(32, 64, 9)
	check(70, 64, 11.5)
	for _, ms := range []time.Duration{2, 50} { // the second one is interrupted
		c.measured(list[0], 0, 1, 1, ms*time.Millisecond)
	}
	if entry, _ := c.cover(list, 1, 0); entry.Rows != 8 {
		t.Errorf("one sequence has a step of %d rows, want 8", entry.Rows)
	}
	for range 1500 {
		c.measured(list[1], 0, 1, 1, 2500*time.Microsecond)
	}
	if entry, _ := c.cover(list, 1, 0); entry.Rows != 1 {
		t.Errorf("long behind that, one sequence has steps of %d rows, want 1", entry.Rows)
	}
	c = newCosts(plan, nil)
	for range 100 { // wide steps take longer than predicted
		c.measured(list[2], 0, 64, 1, 40*time.Millisecond)
	}
	check(64, 8, 20)
	for i := range plan.Entries {
		plan.Entries[i].Dispatches = nil
	}
	c = newCosts(plan, nil)
	check(3, 8, 0) // nothing is predicted: one step
	check(9, 64, 0)
}

// TestFull: where few are more than a step has rows for, rows by turns give more tokens a second, unless the host takes
// what they gain.
func TestFull(t *testing.T) {
	plan := &plans.Plan{}
	for i, ms := range []float32{2, 3, 9} { // of 1, 8 and 16 rows
		plan.Entries = append(plan.Entries, plans.Entry{Kind: "decode", Rows: []int{1, 8, 16}[i],
			Dispatches: []plans.Dispatch{{Cost: plans.Cost{Predicted: plans.Times{Stage: ms * 1e-3}}}}})
	}
	var list []*plans.Entry
	for i := range plan.Entries {
		list = append(list, &plan.Entries[i])
	}
	c := newCosts(plan, nil)
	for _, x := range []struct {
		n    int
		host float64 // ms
		want int     // rows; 0: a row for each
	}{
		{1, 0, 0}, {2, 0, 0}, // two steps of 1 row
		{3, 0, 0}, {8, 0, 0}, {9, 0, 8}, {9, 1, 8}, {9, 1.5, 0}, // 5 ms have 9 rows, 3 and the host's 8
		{12, 0, 8}, {16, 0, 0}, {17, 0, 8},
	} {
		have := 0
		if e := c.full(list, x.n, 0, x.host/1e3); e != nil {
			have = e.Rows
		}
		if have != x.want {
			t.Errorf("%d sequences, the host takes %v ms: steps of %d rows by turns, want %d", x.n, x.host, have, x.want)
		}
	}
	for i := range plan.Entries {
		plan.Entries[i].Dispatches = nil
	}
	if e := newCosts(plan, nil).full(list, 9, 0, 0); e != nil {
		t.Errorf("steps of %d rows by turns, of which nothing is known", e.Rows)
	}
}

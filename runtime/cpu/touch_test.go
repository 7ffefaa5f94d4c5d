package cpu_test

import (
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cpu"
)

// TestReaders compares who is said to read a weight with the chunks of workgroups that threads own: number i is of
// thread i modulo their number.
func TestReaders(t *testing.T) {
	plan, _ := compile(t)
	e := &plan.Entries[slices.IndexFunc(plan.Entries, func(e plans.Entry) bool { return e.Name == "decode/1" })]
	for _, threads := range []int{1, 2, 3, 16} {
		count := make([]int, threads)
		seen := 0
		for i := range e.Dispatches {
			d := &e.Dispatches[i]
			for _, a := range d.Args {
				if a.Space != "weight" || a.Bytes < 1<<18 || a.Offset != 0 || d.Cost.ReadBytes < a.Bytes {
					continue
				}
				seen++
				workgroups := int64(d.Grid[0])
				chunk := int64(cpu.ChunkOf(plan, d, threads))
				for w := range workgroups {
					want := int(w / chunk % int64(threads))
					first, last := a.Bytes/workgroups*w, a.Bytes/workgroups*(w+1)-1
					for _, at := range []int64{first, last} {
						if have := cpu.ReaderOf(plan, threads, a.Region, at); have != want {
							t.Fatalf("%s, workgroup %d of %d: thread %d, want %d", a.Region, w, workgroups, have, want)
						}
					}
					count[want]++
				}
			}
		}
		if seen < 15 || slices.Min(count) == 0 {
			t.Errorf("%d threads: %d weights, workgroups %d", threads, seen, count)
		}
	}
	if have := cpu.ReaderOf(plan, 4, "no weight", 5<<21); have != 1 {
		t.Errorf("a weight that nobody reads is thread %d's", have)
	}
}

// TestReadersByHand has what weights' readers are by the rule: 100 workgroups share a weight, whose dispatch takes a
// core so many microseconds.
func TestReadersByHand(t *testing.T) {
	const bytes, us = 100 << 14, 32000 // bytes that take a core a microsecond
	for _, c := range []struct {
		what    string
		entry   plans.Entry
		micros  int64
		grid    [3]int
		threads int
		want    []int // of the first byte of each tenth
	}{
		{"a chunk a thread", plans.Entry{Kind: "decode", Rows: 1}, 400, [3]int{100, 1, 1}, 2, []int{0, 0, 0, 0, 0, 1, 1, 1, 1, 1}},
		{"two chunks a thread", plans.Entry{Kind: "decode", Rows: 1}, 1000, [3]int{100, 1, 1}, 2, []int{0, 0, 0, 1, 1, 0, 0, 0, 1, 1}},
		{"work for two of four", plans.Entry{Kind: "decode", Rows: 1}, 1, [3]int{100, 1, 1}, 4, []int{0, 0, 0, 0, 0, 1, 1, 1, 1, 1}},
		{"another entry", plans.Entry{Kind: "decode", Rows: 8}, 400, [3]int{100, 1, 1}, 2, make([]int, 10)}, // all of the first 2 MiB
		{"two rows of workgroups", plans.Entry{Kind: "decode", Rows: 1}, 400, [3]int{50, 2, 1}, 2, make([]int, 10)},
	} {
		c.entry.Dispatches = []plans.Dispatch{{Grid: c.grid, Cost: plans.Cost{ReadBytes: c.micros * us},
			Args: []plans.Arg{{Space: "weight", Region: "w", Bytes: bytes}}}}
		if c.micros*us < bytes {
			c.entry.Dispatches[0].Args[0].Bytes = c.micros * us
		}
		p := &plans.Plan{Entries: []plans.Entry{c.entry}, Pipelines: []plans.Pipeline{{Shared: 1000}}}
		p.Header.Ctx = 1000
		var have []int
		for i := range int64(10) {
			have = append(have, cpu.ReaderOf(p, c.threads, "w", c.entry.Dispatches[0].Args[0].Bytes/10*i))
		}
		if !slices.Equal(have, c.want) {
			t.Errorf("%s: threads %d, want %d", c.what, have, c.want)
		}
	}
}

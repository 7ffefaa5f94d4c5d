package cpu_test

import (
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cpu"
)

// TestReaders compares who is said to read a weight with the chunks of workgroups that threads own: number i is of thread i modulo
// their number.
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

// TestOnNodes runs a plan as on two nodes, each of which has a processor of this computer: tokens are the same.
func TestOnNodes(t *testing.T) {
	plan, src := compile(t)
	want := greedy(t, plan, open(t, 2, plan, src), 9)
	for _, threads := range []int{1, 2, 5} {
		o := cpu.Options{Threads: threads}
		o.OnNodes([]int{0}, []int{1})
		x, err := cpu.New(t.Context(), plan, src, o)
		if err != nil {
			t.Fatal(err)
		}
		if have := greedy(t, plan, x, 9); !slices.Equal(have, want) {
			t.Errorf("%d threads: tokens %d, want %d", threads, have, want)
		}
		x.Close()
	}
}

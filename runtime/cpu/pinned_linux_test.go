package cpu_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zincc-dev/zincc/runtime/cpu"
)

// TestOnNodes runs a plan as on two nodes, each of which has a processor of this computer: all threads but the caller's are on their
// nodes' processors, tokens are the same, and nobody stays there afterwards.
func TestOnNodes(t *testing.T) {
	plan, src := compile(t)
	want := greedy(t, plan, open(t, 2, plan, src), 9)
	one, other := processors(t)
	free := allowed(t)
	for threads, nodes := range map[int][]int{1: {}, 2: {other}, 5: {one, other, other, other}} { // the caller is the first thread of the first
		o := cpu.Options{Threads: threads}
		o.OnNodes([]int{one}, []int{other})
		x, err := cpu.New(t.Context(), plan, src, o)
		if err != nil {
			t.Fatal(err)
		}
		if have := greedy(t, plan, x, 9); !slices.Equal(have, want) {
			t.Errorf("%d threads: tokens %d, want %d", threads, have, want)
		}
		pinned := map[string]int{}
		for _, node := range nodes {
			pinned[fmt.Sprint(node)]++
		}
		now := allowed(t)
		for _, p := range []int{one, other} {
			if list := fmt.Sprint(p); now[list]-free[list] != pinned[list] {
				t.Errorf("%d threads: %d stay on processor %d, want %d", threads, now[list]-free[list], p, pinned[list])
			}
		}
		x.Close()
		for range 1000 {
			if now = allowed(t); now[fmt.Sprint(one)] == free[fmt.Sprint(one)] && now[fmt.Sprint(other)] == free[fmt.Sprint(other)] {
				break
			}
			unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil)
		}
		for list, n := range now {
			if !strings.ContainsAny(list, ",-") && n > free[list] {
				t.Errorf("%d threads: %d stay on processor %s once the plan is closed", threads, n-free[list], list)
			}
		}
	}
}

// processors are the first and the last that this process may use.
func processors(t *testing.T) (first, last int) {
	t.Helper()
	var mask unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mask); err != nil {
		t.Fatal(err)
	}
	for first = 0; !mask.IsSet(first); first++ {
	}
	last = first
	for p := first; p < len(mask)*64; p++ {
		if mask.IsSet(p) {
			last = p
		}
	}
	return first, last
}

// allowed counts the threads of this process by the list of processors on which they may run.
func allowed(t *testing.T) map[string]int {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d threads: %v", len(files), err)
	}
	count := map[string]int{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(data), "Cpus_allowed_list:")
		list, _, _ := strings.Cut(rest, "\n")
		count[strings.TrimSpace(list)]++
	}
	return count
}

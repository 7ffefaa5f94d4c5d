package cpu_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zincc-dev/zincc/runtime/cpu"
)

// TestOnNodes runs a plan as on two nodes, each of which has a processor of this computer: all threads but the caller's
// are on their nodes' processors, tokens are the same, and nobody stays there afterwards.
func TestOnNodes(t *testing.T) {
	plan, src := compile(t)
	tokens := greedy(t, plan, open(t, 2, plan, src), 9)
	one, other := processors(t)
	for threads, nodes := range map[int][]int{1: {}, 2: {other}, 5: {one, other, other, other}} { // the caller is the first thread of the first
		o := cpu.Options{Threads: threads}
		o.OnNodes([]int{one}, []int{other})
		x, err := cpu.New(t.Context(), plan, src, o)
		if err != nil {
			t.Fatal(err)
		}
		if have := greedy(t, plan, x, 9); !slices.Equal(have, tokens) {
			t.Errorf("%d threads: tokens %d, want %d", threads, have, tokens)
		}
		want := map[int]int{}
		for _, node := range nodes {
			want[node]++
		}
		stay(t, fmt.Sprint(threads, " threads"), want)
		x.Close()
		stay(t, fmt.Sprint(threads, " threads have ended"), map[int]int{})
	}
}

// stay waits until as many threads as want says stay on each of the processors: those that have touched pages end by
// themselves, but for the process's first, which Go keeps, asleep, once a goroutine that is locked to it has ended.
func stay(t *testing.T, when string, want map[int]int) {
	t.Helper()
	var all, others map[int]int
	for range 10000 {
		if all, others = pinned(t); maps.Equal(all, want) || maps.Equal(others, want) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%s: by processor %d threads stay there, without the first %d, want %d", when, all, others, want)
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

// pinned counts the threads of this process that may run on one processor only, by its number, and those without its
// first.
func pinned(t *testing.T) (all, others map[int]int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d threads: %v", len(files), err)
	}
	first := filepath.Join("/proc/self/task", strconv.Itoa(os.Getpid()), "status")
	all, others = map[int]int{}, map[int]int{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(data), "Cpus_allowed_list:")
		list, _, _ := strings.Cut(rest, "\n")
		if p, err := strconv.Atoi(strings.TrimSpace(list)); err == nil {
			all[p]++
			if f != first {
				others[p]++
			}
		}
	}
	return all, others
}

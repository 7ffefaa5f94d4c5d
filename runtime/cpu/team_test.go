package cpu

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cpu/native"
)

// clocks is a table of kernels that look at the clock, and what they have seen.
func clocks(t testing.TB, x *Executor, n int) (*program, []uint64) {
	t.Helper()
	var stamps []uint64
	var p *program
	mem, err := layOut(func(b *builder) error {
		stamps = put[uint64](b, n)
		var rows []native.Dispatch
		for i := range n {
			rows = append(rows, b.row(native.StampAddress(), 1, []uintptr{addressOf(stamps[i:])}, nil, [3]int{1, 1, 1}))
		}
		p = b.program(rows, len(x.team.threads), each)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.team.leave(); mem.Free() })
	return p, stamps
}

func started(t testing.TB, threads int) *Executor {
	t.Helper()
	team, err := newTeam(threads, nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(team.close)
	return &Executor{team: team}
}

// TestTeam checks that every dispatch of every pass is run, each after the one before it, whether
// the threads look for work, sleep or are late.
func TestTeam(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 2 * runtime.GOMAXPROCS(0)} {
		x := started(t, threads)
		p, stamps := clocks(t, x, 20)
		for call := range 300 {
			if call%100 == 99 {
				time.Sleep(5 * spin) // all fall asleep
			}
			for i := range stamps {
				stamps[i] = 0
			}
			if err := x.run(t.Context(), p, call%4, call%3 == 0); err != nil {
				t.Fatal(err)
			}
			for i := range stamps {
				if call%4 > 0 && (stamps[i] == 0 || i > 0 && stamps[i] < stamps[i-1]) {
					t.Fatalf("%d threads, call %d: times %d", threads, call, stamps)
				}
			}
		}
	}
}

// TestSleep holds that a thread which falls asleep while a job is posted is not missed: it sees the job or is woken,
// once.
func TestSleep(t *testing.T) {
	const rounds = 20000
	th, posted := &thread{wake: make(chan struct{}, 1)}, uint64(0)
	done := make(chan error, 1)
	go func() {
		for round := range uint64(rounds) {
			post := func() {
				atomic.StoreUint64(&posted, round+1)
				if th.asleep.CompareAndSwap(true, false) {
					th.wake <- struct{}{}
				}
			}
			var poster sync.WaitGroup
			if round%2 == 0 {
				post() // before it sleeps
			} else {
				poster.Go(post)
			}
			th.sleep(&posted, round)
			poster.Wait()
			if th.asleep.Load() || len(th.wake) > 0 || atomic.LoadUint64(&posted) != round+1 {
				done <- fmt.Errorf("round %d: asleep %t, %d to wake it, %d posted", round, th.asleep.Load(), len(th.wake), posted)
				return
			}
		}
		done <- nil
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("a thread sleeps on")
	}
}

// TestCancel checks that a run which would not end leaves with its context, and that the next one works.
func TestCancel(t *testing.T) {
	x := started(t, 3)
	endless, left := clocks(t, x, 4)
	good, stamps := clocks(t, x, 4)
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
		if err := x.run(ctx, endless, 1<<40, false); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("endless run: %v", err)
		}
		cancel()
		if endless.passes != 0 {
			t.Errorf("%d passes are counted", endless.passes)
		}
		clear(left)
		if err := x.run(t.Context(), endless, 1, false); err != nil || slices.Contains(left, 0) {
			t.Errorf("the run that left, again: %v, %d", err, left)
		}
		clear(stamps)
		if err := x.run(t.Context(), good, 1, false); err != nil || stamps[3] == 0 {
			t.Errorf("the next run: %v, %d", err, stamps)
		}
	}
}

// TestRunAllocatesNothing counts allocations of a run, which is one call of generated code.
func TestRunAllocatesNothing(t *testing.T) {
	x := started(t, 2)
	p, _ := clocks(t, x, 50)
	ctx := t.Context()
	if n := testing.AllocsPerRun(200, func() {
		if err := x.run(ctx, p, 8, true); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}

func BenchmarkTeam(b *testing.B) {
	x := started(b, runtime.GOMAXPROCS(0))
	p, _ := clocks(b, x, 1)
	for b.Loop() {
		if err := x.run(b.Context(), p, 1, true); err != nil {
			b.Fatal(err)
		}
	}
}

// TestState checks that a checkpoint gives back what was there, and no more.
func TestState(t *testing.T) {
	r := []byte{0, 1, 2, 3, 4, 5, 6, 7}
	x := &Executor{memory: &memory{regions: map[place][]byte{{"state", "s"}: r}}}
	saved, err := x.SaveState(t.Context(), []plans.Span{{Region: "s", Offset: 2, Bytes: 3}})
	if err != nil || saved.Bytes() != 3 {
		t.Fatalf("%v, %v", saved, err)
	}
	for i := range r {
		r[i] = 9
	}
	if err := x.RestoreState(t.Context(), saved); err != nil || !slices.Equal(r, []byte{9, 9, 2, 3, 4, 9, 9, 9}) {
		t.Errorf("%d, %v", r, err)
	}
	for _, span := range []plans.Span{{Region: "t", Bytes: 1}, {Region: "s", Offset: 7, Bytes: 2}, {Region: "s", Offset: -1, Bytes: 2}} {
		if _, err := x.SaveState(t.Context(), []plans.Span{span}); err == nil {
			t.Errorf("%+v is saved", span)
		}
	}
}

// TestChunks checks how work is cut: a chunk a thread once that saves anything, more of what takes long, and attention
// finer.
func TestChunks(t *testing.T) {
	const ctx, us = 1000, 32000 // bytes that take a core a microsecond
	for _, c := range []struct {
		name       string
		cost       plans.Cost
		workgroups uint64
		threads    int
		shared     int
		want       uint64 // chunks
	}{
		{"next to nothing", plans.Cost{ReadBytes: us / 2}, 100, 2, 1000, 1},
		{"for two of four threads", plans.Cost{ReadBytes: us}, 100, 4, 1000, 2},
		{"next to nothing, and no shared memory", plans.Cost{ReadBytes: us / 4}, 100, 2, 0, 1},
		{"half a microsecond, and hardly any shared memory", plans.Cost{ReadBytes: us / 2}, 100, 2, 512, 2},
		{"one thread", plans.Cost{ReadBytes: 100 * us}, 100, 1, 0, 1},
		{"a chunk a thread", plans.Cost{ReadBytes: 400 * us}, 100, 2, 0, 2},
		{"half a millisecond a thread", plans.Cost{ReadBytes: 1000 * us}, 100, 2, 0, 4},
		{"a millisecond by its operations", plans.Cost{FLOPs: 2 * 1000 * 256000}, 100, 2, 0, 8},
		{"long", plans.Cost{ReadBytes: 1e6 * us}, 100, 2, 0, 15},
		{"fewer workgroups than threads", plans.Cost{ReadBytes: 1e6 * us}, 5, 16, 0, 5},
		{"long, of much shared memory", plans.Cost{ReadBytes: 1e6 * us}, 100, 2, 100e6, 4},
		{"attention", plans.Cost{BytesPerPos: us / 10}, 64, 2, 0, 16},
		{"attention of few workgroups", plans.Cost{FLOPsPerPos: 1}, 16, 4, 0, 16},
		{"attention on one thread", plans.Cost{BytesPerPos: us / 10}, 64, 1, 0, 1},
	} {
		d := &plans.Dispatch{Cost: c.cost}
		p := &plans.Plan{Header: plans.Header{Ctx: ctx}, Pipelines: []plans.Pipeline{{Shared: c.shared}}}
		chunk := chunkOf(p, d, c.workgroups, c.threads)
		if have := (c.workgroups + chunk - 1) / chunk; have != c.want {
			t.Errorf("%s: %d chunks of %d, want %d", c.name, have, chunk, c.want)
		}
	}
}

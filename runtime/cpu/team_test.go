package cpu

import (
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
	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/driver/drivertest"
)

// clocks is a table of kernels that look at the clock, and what they have seen.
func clocks(t testing.TB, d *device, n int) (*program, []uint64) {
	t.Helper()
	var stamps []uint64
	var p *program
	mem, err := layOut(func(b *builder) error {
		stamps = put[uint64](b, n)
		var rows []native.Dispatch
		for i := range n {
			rows = append(rows, b.row(native.StampAddress(), 1, []uintptr{addressOf(stamps[i:])}, nil, [3]uint32{1, 1, 1}))
		}
		p = b.program(rows, len(d.team.threads), func(int) bool { return true })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.team.leave(); mem.Free() })
	return p, stamps
}

func started(t testing.TB, threads int) *device {
	t.Helper()
	d, err := open(Options{Threads: threads}, 100)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// TestDevice holds the device to what package driver says.
func TestDevice(t *testing.T) {
	drivertest.Test(t, func(t *testing.T) driver.Device { return started(t, 2) })
}

// TestTeam checks that every dispatch of every pass is run, each after the one before it, whether
// the threads look for work, sleep or are late.
func TestTeam(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 2 * runtime.GOMAXPROCS(0)} {
		d := started(t, threads)
		p, stamps := clocks(t, d, 20)
		for call := range 300 {
			if call%100 == 99 {
				time.Sleep(5 * spin) // all fall asleep
			}
			for i := range stamps {
				stamps[i] = 0
			}
			wait(t, d, submit(t, d, slices.Repeat([]driver.Work{&work{dev: d, parts: []part{{table: p}}}}, call%4)))
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

// TestStop checks that a submission which nobody wants leaves, and that the next one works.
func TestStop(t *testing.T) {
	d := started(t, 3)
	p, left := clocks(t, d, 4)
	endless := slices.Repeat([]driver.Work{&work{dev: d, parts: []part{{table: p}}}}, 1<<20)
	good, stamps := clocks(t, d, 4)
	once := []driver.Work{endless[0], &work{dev: d, parts: []part{{table: good}}}}
	began := time.Now()
	for range 10 {
		f := submit(t, d, endless)
		if err := d.Wait(f, 2*time.Millisecond); !errors.Is(err, driver.ErrTimeout) {
			t.Errorf("endless work: %v", err)
		}
		behind := submit(t, d, endless[:1])
		d.Stop(f)
		wait(t, d, behind)
		clear(left)
		clear(stamps)
		wait(t, d, submit(t, d, once))
		if slices.Contains(left, 0) || slices.Contains(stamps, 0) {
			t.Errorf("the next works have seen %d, %d", left, stamps)
		}
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("works that are not wanted took %v", took)
	}
}

func submit(t testing.TB, d *device, works []driver.Work) driver.Fence {
	f, err := d.Submit(works...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func wait(t testing.TB, d *device, f driver.Fence) {
	if err := d.Wait(f, time.Minute); err != nil {
		t.Fatal(err)
	}
}

// TestSubmitAllocatesNothing counts allocations of a submission, which is one call of generated code.
func TestSubmitAllocatesNothing(t *testing.T) {
	d := started(t, 2)
	p, _ := clocks(t, d, 50)
	works := slices.Repeat([]driver.Work{&work{dev: d, parts: []part{{table: p}}}}, 8)
	if n := testing.AllocsPerRun(200, func() { wait(t, d, submit(t, d, works)) }); n != 0 {
		t.Errorf("%v allocations a submission", n)
	}
}

func BenchmarkSubmit(b *testing.B) {
	d := started(b, runtime.GOMAXPROCS(0))
	p, _ := clocks(b, d, 1)
	works := []driver.Work{&work{dev: d, parts: []part{{table: p}}}}
	for b.Loop() {
		wait(b, d, submit(b, d, works))
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
		p := &plans.Plan{Header: plans.Header{Ctx: ctx}, Pipelines: []plans.Pipeline{{Shared: c.shared}}}
		chunk := chunkOf(p, 0, &c.cost, c.workgroups, c.threads)
		if have := (c.workgroups + chunk - 1) / chunk; have != c.want {
			t.Errorf("%s: %d chunks of %d, want %d", c.name, have, chunk, c.want)
		}
	}
}

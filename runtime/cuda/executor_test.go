package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// counter is a plan that counts: an entry for one step adds 1 to "pos" in three of five dispatches, the second and
// third side by side, and copies it to "next".
func counter() *plans.Plan {
	step := func(name string) plans.Arg { return plans.Arg{Name: "x", Space: "step", Region: name} }
	next := plans.Arg{Name: "y", Space: "io", Region: "next"}
	dispatches := []plans.Dispatch{
		{Site: "a", Order: ir.Order{Stage: 0, Waits: 0}, Args: []plans.Arg{step("pos")}},
		{Site: "b", Order: ir.Order{Stage: 1, Waits: 1}, Args: []plans.Arg{step("pos")}},
		{Site: "c", Order: ir.Order{Stage: 1, Waits: 1}, Args: []plans.Arg{{Name: "x", Space: "arena", Offset: 256}}},
		{Site: "d", Order: ir.Order{Stage: 2, Waits: 2}, Args: []plans.Arg{step("pos")}},
		{Site: "e", Order: ir.Order{Stage: 3, Waits: 3}, Args: []plans.Arg{{Name: "x", Space: "state", Region: "state"}}},
		{Site: "f", Order: ir.Order{Stage: 4, Waits: 4}, Pipeline: 1, Args: []plans.Arg{step("pos"), next}},
	}
	for i := range dispatches {
		dispatches[i].Grid = [3]int{1, 1, 1}
	}
	dispatches[1].Queue = 1
	dispatches[4].Early, dispatches[5].Early = ir.LoadsFirst, ir.LoadsFirst // d, e and f are alone in their stages
	return &plans.Plan{
		Header:    plans.Header{Slots: 1},
		Program:   &ir.Program{},
		Modules:   []plans.Module{{Name: "inc", Format: plans.PTX, Bytes: []byte("inc\n")}, {Name: "copy", Format: plans.PTX, Bytes: []byte("copy\n")}},
		Pipelines: []plans.Pipeline{{Module: 0, Wave: 32, Workgroup: 32}, {Module: 1, Wave: 32, Workgroup: 32}},
		Memory: plans.Memory{
			Arena: 512, State: []plans.Region{{Name: "state", Bytes: 8}},
			Step: []plans.Region{{Name: "pos", Bytes: 4}, {Name: "slot", Bytes: 8}}, IO: []plans.Region{{Name: "next", Bytes: 4}, {Name: "logits", Bytes: 8}},
		},
		Entries: []plans.Entry{
			{Name: "decode/1", Kind: "decode", Rows: 1, Class: "exact", Next: "next", Logits: "logits", Dispatches: dispatches},
			{Name: "prefill/16", Kind: "prefill", Rows: 16, Class: "prompt", Next: "next", Logits: "logits", Dispatches: dispatches},
		},
		Require: plans.Requirements{Backend: plans.CUDA, Memory: 4096, CUDA: &plans.CUDARequirements{Arch: 90, Workgroup: 32}},
	}
}

func open(t *testing.T, plan *plans.Plan) *Executor {
	t.Helper()
	x, err := NewExecutor(t.Context(), -1, plan, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// ints is a region after a run, as text.
func ints(t *testing.T, x *Executor, region string) string {
	t.Helper()
	list, err := x.Ints(region)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(list)
}

// TestRun replays an entry: what the host has written arrives once, what the device counts on is not written over.
func TestRun(t *testing.T) {
	f := withFake(t)
	plan := counter()
	x := open(t, plan)
	if err := x.Write("pos", []int32{40}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"[46]", "[49]"} {
		if err := runtime.Run(t.Context(), x, &plan.Entries[0], 2-i); err != nil {
			t.Fatal(err)
		}
		if got := ints(t, x, "next"); got != want || ints(t, x, "pos") != want {
			t.Errorf("run %d: %s, want %s", i, got, want)
		}
	}
	if err := x.Write("slot", []int32{1, 2}); err != nil { // the host's copy of pos is what the host wrote last
		t.Fatal(err)
	}
	if err := runtime.Run(t.Context(), x, &plan.Entries[1], 1); err != nil {
		t.Fatal(err)
	}
	if got := ints(t, x, "slot") + ints(t, x, "next"); got != "[1 2][43]" {
		t.Errorf("%s", got)
	}
	if _, err := x.Floats("logits"); err != nil {
		t.Error(err)
	}
	for _, bad := range []error{x.Write("pos", []int32{1, 2}), x.Write("next", []int32{1}), x.Write("none", nil)} {
		if bad == nil {
			t.Error("a region of another size or kind is written")
		}
	}
	x.Close()
	if left := f.leaked(); left != nil {
		t.Errorf("left: %v", left)
	}
}

// TestGraph holds graphs against what the plan says: launches in its order, each on the stream of its queue and early
// or not, behind all that it waits for and nothing of its own stage.
func TestGraph(t *testing.T) {
	f := withFake(t)
	plan := counter()
	defer open(t, plan).Close()
	type place struct {
		space, region string
		offset        int64
	}
	places, addresses := map[uint64]place{}, map[place]uint64{}
	for n, e := range plan.Entries {
		g := f.graphs[n]
		if len(g.nodes) != len(e.Dispatches) {
			t.Fatalf("%s: %d nodes", e.Name, len(g.nodes))
		}
		streams := map[int]uintptr{0: g.nodes[0].stream}
		for i, d := range e.Dispatches {
			node := &g.nodes[i]
			if node.kernel != plan.Modules[plan.Pipelines[d.Pipeline].Module].Name {
				t.Errorf("%s: launch %d is not of %s", e.Name, i, d.Site)
			}
			for k, a := range d.Args {
				p := place{a.Space, a.Region, a.Offset}
				if addresses[p] == 0 {
					addresses[p], places[node.args[k]] = node.args[k], p
				}
				if addresses[p] != node.args[k] || places[node.args[k]] != p {
					t.Errorf("%s: argument %d of %s is at %#x, which is that of %v", e.Name, k, d.Site, node.args[k], places[node.args[k]])
				}
			}
			if streams[d.Queue] == 0 {
				streams[d.Queue] = node.stream
			}
			if node.stream != streams[d.Queue] || node.overlap != (d.Early != ir.NotEarly) {
				t.Errorf("%s: %s, %s: on another stream than its queue, or early: %t", e.Name, d.Site, d.Order, node.overlap)
			}
			for j := range e.Dispatches[:i] {
				if got, want := g.before(j, i), e.Dispatches[j].Stage < d.Waits; got != want {
					t.Errorf("%s: %s, %s, waits for %s: %t", e.Name, d.Site, d.Order, e.Dispatches[j].Site, got)
				}
			}
		}
		if len(streams) != 2 || streams[0] == streams[1] {
			t.Errorf("%s: streams %v", e.Name, streams)
		}
	}
}

// TestWaitsForLess has a dispatch wait for less than all before: where its queue lets it, it runs beside what it does
// not wait for.
func TestWaitsForLess(t *testing.T) {
	f := withFake(t)
	plan := counter()
	list := slices.Clone(plan.Entries[0].Dispatches)
	list[3].Waits, list[3].Queue = 1, 2 // d, of stage 2, behind a alone
	list[4].Early = ir.NotEarly
	plan.Entries[0].Dispatches = list
	x := open(t, plan)
	defer x.Close()
	g := f.graphs[0]
	for i, want := range [][]int{nil, {0}, {0}, {0}, {0, 1, 2, 3}, {0, 1, 2, 3, 4}} {
		for j := range i {
			if got := g.before(j, i); got != slices.Contains(want, j) {
				t.Errorf("%s waits for %s: %t", list[i].Site, list[j].Site, got)
			}
		}
	}
}

// TestState saves recurrent state and goes back to it.
func TestState(t *testing.T) {
	f := withFake(t)
	plan := counter()
	x := open(t, plan)
	run := func() {
		if err := runtime.Run(t.Context(), x, &plan.Entries[0], 1); err != nil {
			t.Fatal(err)
		}
	}
	look, err := x.Inspect()
	if err != nil {
		t.Fatal(err)
	}
	value := func() byte {
		var b [4]byte
		if err := look.Read(t.Context(), plans.Arg{Space: "state", Region: "state"}, b[:]); err != nil {
			t.Error(err)
		}
		return b[0]
	}
	spans := []plans.Span{{Region: "state", Offset: 0, Bytes: 4}}
	run()
	s, err := x.SaveState(t.Context(), spans)
	if err != nil || s.Bytes() != 4 || value() != 1 {
		t.Fatalf("%v, %v, state %d", s, err, value())
	}
	run()
	run()
	if err := x.RestoreState(t.Context(), s, spans); err != nil || value() != 1 {
		t.Errorf("state %d, %v", value(), err)
	}
	s.Free()
	s.Free()
	none, err := x.SaveState(t.Context(), nil)
	if err != nil || none.Bytes() != 0 || x.RestoreState(t.Context(), none, nil) != nil {
		t.Errorf("no state: %v", err)
	}
	if _, err := x.SaveState(t.Context(), []plans.Span{{Region: "state", Offset: 6, Bytes: 4}}); err == nil {
		t.Error("a span beyond the region is saved")
	}
	x.Close()
	if left := f.leaked(); left != nil {
		t.Errorf("left: %v", left)
	}
}

// TestInterrupt gives a step up and goes on when the device has ended it.
func TestInterrupt(t *testing.T) {
	f := withFake(t)
	plan := counter()
	x := open(t, plan)
	f.mu.Lock()
	f.busy = true
	f.mu.Unlock()
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	began := time.Now()
	if err := runtime.Run(ctx, x, &plan.Entries[0], 1); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
	time.AfterFunc(20*time.Millisecond, func() {
		f.mu.Lock()
		f.busy = false
		f.mu.Unlock()
	})
	if err := x.Write("pos", []int32{7}); err != nil {
		t.Fatal(err)
	}
	if err := runtime.Run(t.Context(), x, &plan.Entries[0], 1); err != nil || ints(t, x, "next") != "[10]" {
		t.Errorf("%s, %v", ints(t, x, "next"), err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := runtime.Run(canceled, x, &plan.Entries[0], 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := NewExecutor(canceled, -1, plan, nil, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	x.Close()
	if left := f.leaked(); left != nil {
		t.Errorf("left: %v", left)
	}
}

// TestFailures has each call of the driver fail in turn, once and for good: an error of one line names the device,
// and nothing is left on it by a process that can still free it.
func TestFailures(t *testing.T) {
	plan := counter()
	session := func() error {
		x, err := NewExecutor(t.Context(), -1, plan, nil, nil)
		if err != nil {
			return err
		}
		defer x.Close()
		if err := x.Write("pos", []int32{1}); err != nil {
			return err
		}
		if err := runtime.Run(t.Context(), x, &plan.Entries[0], 2); err != nil {
			return err
		}
		if _, err := x.Floats("logits"); err != nil {
			return err
		}
		s, err := x.SaveState(t.Context(), []plans.Span{{Region: "state", Bytes: 8}})
		if err != nil {
			return err
		}
		defer s.Free()
		if err := x.RestoreState(t.Context(), s, []plans.Span{{Region: "state", Bytes: 8}}); err != nil {
			return err
		}
		if _, err = x.Profile(t.Context(), &plan.Entries[0], 2); err != nil {
			return err
		}
		run, free, err := x.Mixed(&plan.Entries[0], func(int) *plans.Entry { return &plan.Entries[0] })
		if err != nil {
			return err
		}
		defer free()
		_, err = run(t.Context(), 2)
		return err
	}
	f := withFake(t)
	if err := session(); err != nil {
		t.Fatal(err)
	}
	// Failures of these need no notice: they free, or tell what not every driver knows.
	quiet := []int{cuCtxSetCurrent, cuDeviceGetAttribute, cuDevicePrimaryCtxRelease, cuMemFree, cuMemFreeHost, cuLinkDestroy, cuStreamQuery,
		cuStreamDestroy, cuGraphDestroy, cuGraphExecDestroy, cuEventDestroy}
	calls := f.calls
	for _, e := range []Error{outOfMemory, 700} {
		for n := 1; n <= calls; n++ {
			f := withFake(t)
			f.failAt, f.fails = n, e
			err := session()
			if err == nil {
				if !slices.Contains(quiet, f.failed) {
					t.Errorf("call %d: nobody noticed that %s failed", n, symbols[f.failed])
				}
				continue
			}
			text := err.Error()
			if strings.Contains(text, "\n") || !strings.Contains(text, "CUDA") || !strings.Contains(text, e.Error()) {
				t.Errorf("call %d, %s: %q", n, symbols[f.failed], text)
			}
			if left := f.leaked(); left != nil && e == outOfMemory {
				t.Errorf("call %d, %s: left %v", n, text, left)
			}
		}
	}
}

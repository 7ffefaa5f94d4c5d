package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// overlapping is an executor that computes nothing. Alone each dispatch takes 10 us; an entry takes 40 us, and
// with a candidate of costs more for each dispatch that has it.
type overlapping struct {
	stepRecorder
	costs map[string]time.Duration
	live  int
}

func (o *overlapping) Device() string { return "overlapping" }

func (o *overlapping) Profile(_ context.Context, e *plans.Entry, _ int) ([]time.Duration, error) {
	if e.Name != "decode/1" {
		return nil, fmt.Errorf("%s is timed dispatch by dispatch", e.Name)
	}
	return slices.Repeat([]time.Duration{10 * time.Microsecond}, len(e.Dispatches)), nil
}

func (o *overlapping) Overlaps(e *plans.Entry) bool { return e.Kind == "decode" }

func (o *overlapping) Mixed(e *plans.Entry, from func(i int) *plans.Entry) (func(context.Context, int) (time.Duration, error), func(), error) {
	total := 40 * time.Microsecond
	for i := range e.Dispatches {
		total += o.costs[from(i).Dispatches[i].Site]
	}
	o.live++
	return func(context.Context, int) (time.Duration, error) { return total, nil }, func() { o.live-- }, nil
}

// TestTuneWhole times candidates of entries whose dispatches overlap by what the whole takes with them.
func TestTuneWhole(t *testing.T) {
	// Two sites, of which the first is there twice.
	fn := func(name string, candidates ...string) *ir.Func {
		f := &ir.Func{Name: name}
		for i, op := range []string{"a", "b", "a"} {
			f.Groups = append(f.Groups, &ir.Group{Ops: []*ir.Op{{Kind: &ir.OpKind{Name: op}}}, Call: &ir.Call{Candidate: candidates[i]}})
		}
		return f
	}
	entry := func(name string, candidates ...string) plans.Entry {
		e := plans.Entry{Name: name, Kind: "decode", Rows: 1}
		for _, c := range candidates {
			e.Dispatches = append(e.Dispatches, plans.Dispatch{Site: c}) // for Mixed
		}
		return e
	}
	plan := &plans.Plan{
		Header:    plans.Header{Ctx: 64, Slots: 1, Model: plans.Model{Vocab: 8}},
		Modules:   []plans.Module{{Name: "k"}},
		Pipelines: []plans.Pipeline{{}},
		Program: &ir.Program{Funcs: []*ir.Func{fn("decode/1", "a1", "b1", "a1"), fn("decode/1+1", "a2", "b1", "a2"),
			fn("decode/1+2", "a3", "b2", "a3")}},
		Entries: []plans.Entry{entry("decode/1", "a1", "b1", "a1"), entry("decode/1+1", "a2", "b1", "a2"), entry("decode/1+2", "a3", "b2", "a3")},
	}
	x := &overlapping{costs: map[string]time.Duration{"a2": -3 * time.Microsecond, "a3": time.Microsecond, "b2": -20 * time.Microsecond}}
	times, err := runtime.Tune(t.Context(), plan, x, runtime.TuneOptions{Progress: func(float64) {}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, c := range times {
		got[c.Candidate] = c.Micros
	}
	want := map[string]float64{"a1": 10, "b1": 10, "a2": 7, "a3": 11, "b2": 0.001}
	for name, us := range want {
		if got[name] != us {
			t.Errorf("%s takes %v us, want %v", name, got[name], us)
		}
	}
	if len(got) != len(want) {
		t.Errorf("candidates: %v", got)
	}
	if x.live != 0 {
		t.Errorf("%d graphs are left", x.live)
	}
}

package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/tuning"
	"github.com/zincc-dev/zincc/runtime"
)

// overlapping is an executor that computes nothing. Alone each dispatch takes 10 us; an entry takes 40 us, and
// with a candidate of costs more for each dispatch that has it.
type overlapping struct {
	stepRecorder
	costs map[string]time.Duration
	runs  map[string]int // by candidate of the first dispatch
	live  int
}

func (o *overlapping) Device() string { return "overlapping" }

func (o *overlapping) Profile(_ context.Context, e *plans.Entry, _ int) ([]time.Duration, error) {
	if e.Name != "decode/1" {
		return nil, fmt.Errorf("%s is timed dispatch by dispatch", e.Name)
	}
	return slices.Repeat([]time.Duration{10 * time.Microsecond}, len(e.Dispatches)), nil
}

func (o *overlapping) Mixed(e *plans.Entry, from func(i int) *plans.Entry) (func(context.Context, int) (time.Duration, error), func(), error) {
	total := 40 * time.Microsecond
	for i := range e.Dispatches {
		total += o.costs[from(i).Dispatches[i].Site]
	}
	o.live++
	first := from(0).Dispatches[0].Site
	return func(ctx context.Context, _ int) (time.Duration, error) {
		o.runs[first]++
		return total, ctx.Err()
	}, func() { o.live-- }, nil
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
			e.Dispatches = append(e.Dispatches, plans.Dispatch{Site: c, Order: ir.Order{Early: ir.LoadsFirst}}) // for Mixed
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
	x := &overlapping{costs: map[string]time.Duration{"a2": -3 * time.Microsecond, "a3": time.Microsecond, "b2": -20 * time.Microsecond}, runs: map[string]int{}}
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

// TestTuneHalves times the slower half of a site's candidates no more after every three turns, until few are left.
func TestTuneHalves(t *testing.T) {
	const candidates = 13 // beside the entry's own
	plan := &plans.Plan{
		Header:  plans.Header{Ctx: 64, Slots: 1, Model: plans.Model{Vocab: 8}},
		Modules: []plans.Module{{Name: "k"}}, Pipelines: []plans.Pipeline{{}}, Program: &ir.Program{},
	}
	x := &overlapping{costs: map[string]time.Duration{}, runs: map[string]int{}}
	for i := range candidates + 1 {
		name, candidate := tuning.VariantName("decode/1", i), fmt.Sprint("a", i)
		// The slowest are in the middle.
		x.costs[candidate] = -time.Duration(max(i-candidates/2, candidates/2-i)) * time.Microsecond
		plan.Program.Funcs = append(plan.Program.Funcs, &ir.Func{Name: name, Groups: []*ir.Group{{Ops: []*ir.Op{{Kind: &ir.OpKind{Name: "a"}}}, Call: &ir.Call{Candidate: candidate}}}})
		plan.Entries = append(plan.Entries, plans.Entry{Name: name, Kind: "decode", Rows: 1, Dispatches: []plans.Dispatch{{Site: candidate, Order: ir.Order{Early: ir.LoadsFirst}}}})
	}
	turns := 0
	enough, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := runtime.Tune(enough, plan, x, runtime.TuneOptions{Budget: time.Hour, Progress: func(float64) {
		if turns++; turns == 20 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	// One turn to warm up and three of all 13, three of 6, the others of 3.
	for i, want := range map[int]int{13: 20, 12: 20, 1: 20, 11: 7, 2: 7, 10: 7, 3: 4, 6: 4, 9: 4} {
		if got := x.runs[fmt.Sprint("a", i)]; got != want {
			t.Errorf("candidate %d was timed in %d turns, want %d", i, got, want)
		}
	}
}

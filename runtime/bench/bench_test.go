package bench

import (
	"context"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/step"
)

// recorder is an executor that computes nothing, and takes takes for it.
type recorder struct {
	runtime.Executor
	runs []string
	pos  []int32 // of the first row of every run
	now  step.Block
}

func (r *recorder) Write(region string, data []int32) error { return r.now.Write(region, data) }

func (r *recorder) Submit(_ context.Context, l ...runtime.Launch) (runtime.Ticket, error) {
	r.runs, r.pos = append(r.runs, l[0].Entry.Name), append(r.pos, r.now.Rows[0].Pos)
	return 0, nil
}

func (r *recorder) Wait(context.Context, runtime.Ticket) error {
	time.Sleep(takes)
	return nil
}

const takes = 200 * time.Millisecond

// Ints chooses token 1: 0 would be looked into.
func (r *recorder) Ints(string) ([]int32, error) { return slices.Repeat([]int32{1}, 256), nil }

func (r *recorder) SaveState(context.Context, []plans.Span) (runtime.State, error) {
	return noState{}, nil
}

func (r *recorder) RestoreState(context.Context, runtime.State, []plans.Span) error { return nil }

type noState struct{}

func (noState) Bytes() int64 { return 0 }
func (noState) Free()        {}

func plan() *plans.Plan {
	cost := func(n int64) []plans.Dispatch {
		best := func(bytes int64) plans.Times { return plans.Times{Bytes: float32(bytes) * 1e-12, Stage: 1e-6} }
		return []plans.Dispatch{
			{Cost: plans.Cost{ReadBytes: n, Predicted: best(n)}},
			{Order: ir.Order{Stage: 1, Waits: 1}, Cost: plans.Cost{ReadBytes: 1, BytesPerPos: 20, Predicted: best(1)}},
		}
	}
	return &plans.Plan{
		Header:  plans.Header{Ctx: 64, Slots: 1, Ring: 256, Model: plans.Model{Vocab: 100}},
		Program: &ir.Program{},
		Entries: []plans.Entry{
			{Name: "decode/1", Kind: "decode", Rows: 1, Run: 1, Reach: 1, Dispatches: cost(999)},
			{Name: "prefill/16", Kind: "prefill", Rows: 16, Run: 16, Reach: 16, Dispatches: cost(4999)},
		},
	}
}

func TestRun(t *testing.T) { synctest.Test(t, testRun) }

func testRun(t *testing.T) {
	for _, c := range []struct {
		test  Test
		runs  []string // before the test
		pos   []int32  // of each of four runs: two that warm up, for 800 ms, and two that count
		bytes int64
	}{
		{Test{Prompt: 20}, nil, []int32{0, 16}, 2*5000 + 16*20},
		{Test{Gen: 10}, nil, []int32{0, 8}, 10*1000 + 45*20},
		{Test{Gen: 10, Depth: 30}, []string{"prefill/16", "prefill/16"}, []int32{30, 38}, 10*1000 + (45+10*30)*20},
	} {
		x := &recorder{}
		r, err := Run(t.Context(), plan(), x, c.test, 2)
		if err != nil {
			t.Fatal(err)
		}
		if r.Bytes != c.bytes || r.Rate != float64(c.test.Prompt+c.test.Gen)/(2*takes).Seconds() || r.Bandwidth <= 0 || r.Deviation != 0 {
			t.Errorf("%s: %+v, want %d bytes and 2 x %v a run", c.test, r, c.bytes, takes)
		}
		// The dispatches of two steps; bytes take 1e-12 s each at best.
		if steps := 2 * max(c.test.Gen, (c.test.Prompt+15)/16); r.Stages != steps {
			t.Errorf("%s: %d stages, want %d", c.test, r.Stages, steps)
		}
		if best := r.Bandwidth * 1e-12; math.Abs(r.Roofline-best) > 1e-4*best {
			t.Errorf("%s: %g of the roofline, want %g", c.test, r.Roofline, best)
		}
		if n := len(x.pos) - len(c.runs); n != 4*len(c.pos) {
			t.Fatalf("%s: runs %v", c.test, x.runs)
		}
		for i, p := range x.pos[len(c.runs):] {
			if p != c.pos[i%len(c.pos)] {
				t.Errorf("%s: positions %v, want %v after the depth", c.test, x.pos, c.pos)
				break
			}
		}
	}
}

func TestCheck(t *testing.T) { synctest.Test(t, testCheck) }

func testCheck(t *testing.T) {
	for _, c := range []struct {
		test Test
		want string
	}{
		{Test{Prompt: 64}, ""},
		{Test{Gen: 4, Depth: 60}, ""},
		{Test{Gen: 5, Depth: 60}, "tg5 @ d60 takes 65 positions and the plan's context is 64; compile with --ctx 65 or more"},
	} {
		err := Check(plan(), c.test)
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%s: %v, want %q", c.test, err, c.want)
		}
		if _, err := Run(t.Context(), plan(), &recorder{}, c.test, 1); (err == nil) != (c.want == "") {
			t.Errorf("%s runs: %v", c.test, err)
		}
	}
}

func TestTests(t *testing.T) {
	var names []string
	for _, x := range Tests([]int{128, 0}, []int{64}, []int{0, 1024}) {
		names = append(names, x.String())
	}
	if want := "pp128,tg64,pp128 @ d1024,tg64 @ d1024"; strings.Join(names, ",") != want {
		t.Errorf("tests %v, want %s", names, want)
	}
}

func TestMeanDeviation(t *testing.T) {
	for _, c := range []struct{ x, want []float64 }{
		{[]float64{3}, []float64{3, 0}},
		{[]float64{2, 4}, []float64{3, math.Sqrt2}},
		{[]float64{1, 2, 3}, []float64{2, 1}},
	} {
		mean, deviation := meanDeviation(c.x)
		if got := []float64{mean, deviation}; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %v, want %v", c.x, got, c.want)
		}
	}
}

package strategy_test

import (
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/plans"
)

func TestPredictAMD(t *testing.T) {
	on, err := target.Lookup("gfx1201")
	if err != nil {
		t.Fatal(err)
	}
	f := strategy.AMDKernel{Wave: on.Wave, Workgroup: 128, VGPRs: 48, Issue: 1000, Latency: 5000}
	many := f
	many.VGPRs, many.Issue = 256, 900
	for _, c := range []struct {
		name  string
		k     strategy.AMDKernel
		grid  int
		cost  plans.Cost
		bound string
		us    float64 // without the dispatch
	}{
		{"reads", f, 1, plans.Cost{ReadBytes: 32e6, WriteBytes: 32e6}, "bytes", 100},
		{"one subgroup", f, 1, plans.Cost{}, "latency", 5000 / 2920.0},
		{"one round", f, 128 * 4 / 4, plans.Cost{}, "latency", 5000 / 2920.0},
		{"16 subgroups a SIMD", f, 128 * 16 / 4, plans.Cost{}, "issue", 16 * 1000 / 2920.0},
		{"few waves", many, 128 * 16 / 4, plans.Cost{}, "latency", 4 * 5000 / 2920.0},
	} {
		c.k.Grid = [3]int{c.grid, 1, 1}
		p := strategy.PredictAMD(on, &c.k, c.cost)
		if got := 1e6 * (p.Seconds - on.Stage); p.Bound != c.bound || got < 0.999*c.us || got > 1.001*c.us {
			t.Errorf("%s: %.2f us of %s, want %.2f of %s", c.name, got, p.Bound, c.us, c.bound)
		}
	}
}

func TestRoofline(t *testing.T) {
	on := &target.Target{Units: 10, Bandwidth: 1e9, FLOPs: 1e9, MatrixFLOPs: 1e10, Stage: 1e-6}
	c := plans.Cost{ReadBytes: 900, WriteBytes: 100, FLOPs: 5000}
	for _, x := range []struct {
		grid          [3]int
		matrix, first bool
		want          plans.Times
	}{
		{[3]int{5, 2, 3}, false, true, plans.Times{Bytes: 1e-6, Operations: 5e-6, Stage: 1e-6}},
		{[3]int{10, 1, 1}, true, false, plans.Times{Bytes: 1e-6, Operations: 5e-7}},
		{[3]int{5, 1, 1}, false, false, plans.Times{Bytes: 2e-6, Operations: 1e-5}},
	} {
		if have := strategy.Roofline(&c, on, x.grid, x.matrix, x.first); have != x.want {
			t.Errorf("%v: %v, want %v", x.grid, have, x.want)
		}
	}
	if have := strategy.Roofline(&c, &target.Target{Units: 1}, [3]int{1, 1, 1}, false, true); have != (plans.Times{}) {
		t.Errorf("without figures: %v", have)
	}
}

// TestMeasured holds predictions that rows of tuning tables replace.
func TestMeasured(t *testing.T) {
	whole := plans.Cost{ReadBytes: 1000, FLOPs: 1000, Predicted: plans.Times{Bytes: 6e-6, Operations: 3e-6, Stage: 2e-6}}
	attention := plans.Cost{ReadBytes: 1000, FLOPs: 1000, BytesPerPos: 1000, FLOPsPerPos: 1000, Predicted: plans.Times{Bytes: 1e-9, Operations: 2e-9, Stage: 2e-6}}
	for _, x := range []struct {
		name      string
		cost      plans.Cost
		seconds   float32
		predicted bool
		want      plans.Times
	}{
		{"longer", whole, 14e-6, false, plans.Times{Bytes: 12e-6, Operations: 6e-6, Stage: 2e-6}},
		{"shorter than the stage", whole, 1e-6, false, plans.Times{Stage: 1e-6}},
		{"nothing but a stage", plans.Cost{Predicted: plans.Times{Stage: 2e-6}}, 5e-6, false, plans.Times{Stage: 5e-6}},
		{"positions", attention, 5e-6, false, plans.Times{Bytes: 1e-9, Operations: 2e-9, Stage: 5e-6 - 513*2e-9}},
		{"positions, predicted", attention, 5e-6, true, plans.Times{Bytes: 1e-9, Operations: 2e-9, Stage: 5e-6 - 2e-9}},
	} {
		have := strategy.Measured(x.cost, x.seconds, x.predicted)
		if !near(have.Bytes, x.want.Bytes) || !near(have.Operations, x.want.Operations) || !near(have.Stage, x.want.Stage) {
			t.Errorf("%s: %v, want %v", x.name, have, x.want)
		}
	}
}

// TestFitted: bytes are scaled, a step's first dispatch has the ramp, and what a family's pace says is added. A
// dispatch that begins early spends less of what was measured between timestamps, first of its stage.
func TestFitted(t *testing.T) {
	cost := plans.Cost{ReadBytes: 900, WriteBytes: 100, FLOPs: 1000, Predicted: plans.Times{Bytes: 1e-6, Operations: 1e-6, Stage: 1e-6}}
	second := cost
	second.Predicted.Stage = 0
	attention := cost
	attention.FLOPsPerPos = 1
	on := &target.Target{Units: 10, SharedOptIn: 100, Fit: target.Fit{Ramp: 1e-6, Share: 0.5, Attention: 0.25, Timestamp: 1e-6, Overlap: 3e-6, Cached: 1e9,
		Paces: map[string]target.Pace{
			"once":   {Once: 3e-6},
			"rounds": {Once: 1e-6, Round: 2e-6, Share: 1},
			"items":  {Each: 1e-6, Item: 2e-6},
			"none":   {},
		}}}
	for _, x := range []struct {
		name string
		l    strategy.Launch
		c    kernels.Candidate
		want plans.Times
	}{
		{"no pace", strategy.Launch{Cost: &cost}, kernels.Candidate{Family: "other"}, plans.Times{Bytes: 2e-6, Operations: 1e-6, Stage: 2e-6}},
		{"no pace, early", strategy.Launch{Cost: &cost, Early: true}, kernels.Candidate{Family: "other"}, plans.Times{Bytes: 2e-6, Operations: 1e-6, Stage: 2e-6}},
		{"in the step of another", strategy.Launch{Cost: &second}, kernels.Candidate{Family: "other"}, plans.Times{Bytes: 2e-6, Operations: 1e-6}},
		{"attention", strategy.Launch{Cost: &attention, Matrix: true}, kernels.Candidate{Family: "other"}, plans.Times{Bytes: 2e-6, Operations: 4e-6, Stage: 2e-6}},
		{"once", strategy.Launch{Cost: &cost}, kernels.Candidate{Family: "once"}, plans.Times{Bytes: 2e-6, Operations: 1e-6, Stage: 5e-6}},
		{"once, in the step of another", strategy.Launch{Cost: &second}, kernels.Candidate{Family: "once"}, plans.Times{Bytes: 2e-6, Operations: 1e-6}},
		{"early", strategy.Launch{Cost: &cost, Early: true}, kernels.Candidate{Family: "once"}, plans.Times{Bytes: 2e-6, Operations: 1e-6, Stage: 3e-6}},
		{"early, less than the overlap", strategy.Launch{Cost: &second, Early: true}, kernels.Candidate{Family: "none"}, plans.Times{}},
		{"a round of 21", strategy.Launch{Cost: &cost, Shared: 30}, kernels.Candidate{Family: "rounds", Grid: [3]int{7, 3, 1}}, plans.Times{Bytes: 1e-6, Operations: 1e-6, Stage: 5e-6}},
		{"three of them", strategy.Launch{Cost: &cost, Shared: 60}, kernels.Candidate{Family: "rounds", Grid: [3]int{7, 3, 1}}, plans.Times{Bytes: 1e-6, Operations: 1e-6, Stage: 9e-6}},
		{"few with work", strategy.Launch{Cost: &cost, Shared: 60}, kernels.Candidate{Family: "rounds", Grid: [3]int{7, 3, 1}, Work: site.Work{Workgroups: 8}},
			plans.Times{Bytes: 1e-6, Operations: 1e-6, Stage: 5e-6}},
		{"items", strategy.Launch{Cost: &cost}, kernels.Candidate{Family: "items", Grid: [3]int{4, 5, 1}, Work: site.Work{Items: 3}}, plans.Times{Bytes: 2e-6, Operations: 14e-6, Stage: 2e-6}},
		{"readers", strategy.Launch{Cost: &cost}, kernels.Candidate{Family: "none", Work: site.Work{Readers: 4}}, plans.Times{Bytes: 4e-6, Operations: 1e-6, Stage: 2e-6}},
		{"again", strategy.Launch{Cost: &cost}, kernels.Candidate{Family: "none", Work: site.Work{Again: 3000}}, plans.Times{Bytes: 5e-6, Operations: 1e-6, Stage: 2e-6}},
	} {
		x.l.Candidate = &x.c
		if have := strategy.Fitted(&x.l, on); !near(have.Bytes, x.want.Bytes) || !near(have.Operations, x.want.Operations) || !near(have.Stage, x.want.Stage) {
			t.Errorf("%s: %v, want %v", x.name, have, x.want)
		}
	}
}

func near(a, b float32) bool { return a-b < 1e-11 && b-a < 1e-11 }

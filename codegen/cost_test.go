package codegen

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
)

// planOf compiles a model of the repository.
func planOf(t *testing.T, model, name string, ctx int) *plans.Plan {
	f, err := gguf.OpenHeader("../testdata/models/" + model)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	on, err := target.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Compile(t.Context(), Source{Model: f}, Options{Target: on, Import: frontend.Options{Ctx: ctx, KV: ir.F16}})
	if err != nil {
		t.Fatal(err)
	}
	return r.Plan
}

func entryOf(p *plans.Plan, name string) *plans.Entry {
	for i := range p.Entries {
		if p.Entries[i].Name == name {
			return &p.Entries[i]
		}
	}
	return nil
}

// TestCostOfModels counts by hand: a decoded token reads every weight once, but for
// the embedding and the experts that it does not ask for, and every cached position
// once in all caches.
func TestCostOfModels(t *testing.T) {
	for _, c := range []struct {
		model  string
		shares func(w *plans.Weight) float64 // how much of a weight a token reads
	}{
		{"gopher-q4_k_m.gguf", func(*plans.Weight) float64 { return 1 }},
		{"gopher-moe-q4_k_m.gguf", func(w *plans.Weight) float64 {
			if strings.Contains(w.Name, "_exps") {
				return expertShare
			}
			return 1
		}},
	} {
		p := planOf(t, c.model, "sm_90", 512)
		e := entryOf(p, "decode/1")
		weights := 0.0
		for i := range p.Weights {
			weights += c.shares(&p.Weights[i]) * float64(p.Weights[i].Bytes)
		}
		read, write, flops := e.Work(0)
		if float64(read) < weights || float64(read) > 1.15*weights {
			t.Errorf("%s: reads %d bytes, its weights have %.0f", c.model, read, weights)
		}
		if write <= 0 || flops <= 0 {
			t.Errorf("%s: writes %d bytes, %d operations", c.model, write, flops)
		}
		deeper, _, more := e.Work(100)
		if perPos := plans.SumBytes(p.Memory.KV) / 512; deeper-read != 100*perPos {
			t.Errorf("%s: a position adds %d bytes, the caches have %d", c.model, (deeper-read)/100, perPos)
		}
		if more <= flops {
			t.Errorf("%s: depth adds no operations", c.model)
		}
		if us := 1e6 * e.Predict(0).Seconds(); us < 50 || us > 200 {
			t.Errorf("%s: %.1f us", c.model, us)
		}
	}
}

// expertShare is 2 experts of 8.
const expertShare = 0.25

func TestTouched(t *testing.T) {
	for _, c := range []struct{ rows, experts, slots, want int64 }{
		{1, 256, 8, 8}, {2, 256, 8, 16}, {8, 256, 8, 57}, {512, 256, 8, 256}, {1, 8, 8, 8}, {4, 8, 2, 5},
	} {
		k := &costs{f: &ir.Func{Rows: int(c.rows)}}
		if have := k.touched(c.experts, c.slots); have != c.want {
			t.Errorf("%d rows that choose %d of %d touch %d, want %d", c.rows, c.slots, c.experts, have, c.want)
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
		if have := roofline(&c, on, x.grid, x.matrix, x.first); have != x.want {
			t.Errorf("%v: %v, want %v", x.grid, have, x.want)
		}
	}
	if have := roofline(&c, &target.Target{Units: 1}, [3]int{1, 1, 1}, false, true); have != (plans.Times{}) {
		t.Errorf("without figures: %v", have)
	}
}

// TestLargestCtx compiles with the context that is said to fit, and with one more.
func TestLargestCtx(t *testing.T) {
	p := planOf(t, "gopher-q4_k_m.gguf", "sm_90", 4096)
	memory := p.MemoryBytes() + 12345678
	n := p.LargestCtx(memory)
	if have := planOf(t, "gopher-q4_k_m.gguf", "sm_90", n).MemoryBytes(); n <= 4096 || have > memory {
		t.Errorf("context %d takes %d bytes of %d", n, have, memory)
	}
	if have := planOf(t, "gopher-q4_k_m.gguf", "sm_90", n+1).MemoryBytes(); have <= memory {
		t.Errorf("context %d takes %d bytes of %d", n+1, have, memory)
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
		have := measured(x.cost, x.seconds, x.predicted)
		near := func(a, b float32) bool { return a-b < 1e-11 && b-a < 1e-11 }
		if !near(have.Bytes, x.want.Bytes) || !near(have.Operations, x.want.Operations) || !near(have.Stage, x.want.Stage) {
			t.Errorf("%s: %v, want %v", x.name, have, x.want)
		}
	}
	fit := target.Fit{Ramp: 1e-6, Share: 0.5, Attention: 0.25}
	if have, want := fitted(&attention, plans.Times{Bytes: 1, Operations: 1, Stage: 1e-6}, true, fit), (plans.Times{Bytes: 2, Operations: 4, Stage: 2e-6}); have != want {
		t.Errorf("fitted %v, want %v", have, want)
	}
	if have, want := fitted(&whole, plans.Times{Bytes: 1, Operations: 1}, true, fit), (plans.Times{Bytes: 2, Operations: 1}); have != want {
		t.Errorf("fitted, in the step of another: %v, want %v", have, want)
	}
}

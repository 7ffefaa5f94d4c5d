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

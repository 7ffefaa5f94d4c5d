package verify_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cpu"
	"github.com/zincc-dev/zincc/runtime/host"
	"github.com/zincc-dev/zincc/runtime/verify"
)

// cutModels are models of all kinds of layers that carry something from row to row: attention of all positions and of
// windows, with sinks, latent attention, delta rules, state space models, convolutions; and experts.
var cutModels = append([]synth.Shape{{
	Name: "qwen35moe", Arch: "qwen35moe", Layers: 2, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 64, RopeDims: 32,
	Experts:  synth.Experts{Count: 8, Used: 2, FF: 64, Shared: 64},
	DeltaNet: synth.DeltaNet{KeyHeads: 2, ValueHeads: 4, State: 64, Taps: 4, Interval: 2},
}, {
	Name: "gemma4", Arch: "gemma4", Layers: 4, Embd: 128, FF: 192, Heads: 4, KVHeads: 2, HeadDim: 64, Tied: true,
	Windows: synth.Windows{Size: 32, Period: 2, WideDim: 128, WideHeads: 1},
}}, architectures...)

// TestGrains: prompts cut at multiples of the grain leave the bits of whole steps, on the oracle, on a processor, and
// as the oracle computes the program for a GPU, with its chunks and splits. Of most models -short has only the last.
// TestPlan has kernels of llvmpipe.
func TestGrains(t *testing.T) {
	for i, s := range cutModels {
		s.Quant, s.Vocab, s.Ctx, s.RopeBase = "Q8_0", 288, 512, 1e4
		model := write(t, newShape(t, s))
		targets := []string{"sm_90-cuda", "cpu", "host"}
		if testing.Short() && i > 1 {
			targets = targets[:1]
		}
		for _, to := range targets {
			t.Run(s.Name+" "+to, func(t *testing.T) {
				plan := compileSlots(t, model, to, ir.F16, 2)
				r := cutPrompts(t, plan, to == "cpu")
				if r.Failed > 0 || len(r.Results) < 2 {
					t.Errorf("%d of %d failed, first %+v %+v", r.Failed, len(r.Results), r.First(), r.First().Difference)
				}
			})
		}
	}
}

// TestGrainTooSmall: of a plan that says that steps may begin within a chunk of a delta rule, the rule names the first
// element that tells.
func TestGrainTooSmall(t *testing.T) {
	s := cutModels[0]
	s.Quant, s.Vocab, s.Ctx, s.RopeBase = "Q8_0", 288, 512, 1e4
	plan := compileSlots(t, write(t, newShape(t, s)), "sm_90-cuda", ir.F16, 2)
	for i := range plan.Entries {
		if e := &plan.Entries[i]; e.Grain > 1 {
			e.Grain = ir.DeltaChunk / 2
		}
	}
	chunks, failed := 0, 0
	for _, f := range plan.Program.Funcs {
		if slices.ContainsFunc(f.Ops(), func(op *ir.Op) bool { return op.Kind.Name == "deltanet_chunked" }) && f.Class != ir.ExactStep {
			chunks++
		}
	}
	for _, x := range cutPrompts(t, plan, false).Results {
		d := x.Difference
		if d == nil {
			continue
		}
		failed++
		if d.Device == d.Oracle || !strings.Contains(d.Problem, "from multiples of 4 on") || !strings.HasPrefix(d.Value, "@") {
			t.Errorf("%s: %+v", x.Entry, d)
		}
	}
	if failed != chunks || chunks == 0 {
		t.Errorf("%d entries failed, %d have chunks", failed, chunks)
	}
}

// cutPrompts runs the rule on a processor, or on the oracle.
func cutPrompts(t *testing.T, plan *plans.Plan, processor bool) *verify.Report {
	t.Helper()
	src, err := plans.OpenSource(plan, "plan.bin", "")
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var r *verify.Report
	if processor {
		x, err := cpu.New(t.Context(), plan, src, cpu.Options{Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		r, err = verify.CutSteps(t.Context(), plan, x)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	x, err := host.New(t.Context(), plan, src)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	plan.Require.Backend = plans.Host // the oracle's caches hold float32
	if r, err = verify.CutSteps(t.Context(), plan, x); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestGrainsTellsApart: a plan whose states do not outlast a step is found out. Its delta rules take the first row of
// every step for the first of the sequence.
func TestGrainsTellsApart(t *testing.T) {
	r := cutSteps(t, func(d *plans.Dispatch) {
		for i := range d.Args {
			if strings.Contains(d.Site, "deltanet") && d.Args[i].Region == ir.StepPos {
				d.Args[i].Region = ir.StepSlot
			}
		}
	})
	d := r.Difference
	if d == nil || !strings.HasPrefix(d.Problem, "in 2 steps from multiples of 32 on") || !strings.HasPrefix(d.Value, "@blk.") || d.Row != 64 || d.Device == d.Oracle {
		t.Errorf("%+v, want one of the first row behind the cut", d)
	}
}

// cutSteps returns what the rule says of an entry of a hybrid model whose dispatches are changed.
func cutSteps(t *testing.T, change func(d *plans.Dispatch)) verify.Result {
	t.Helper()
	plan := compile(t, "../../testdata/models/gopher-moe-q4_k_m.gguf", "llvmpipe", ir.F16)
	keepEntries(plan, "prefill/128")
	e := &plan.Entries[0]
	if e.Grain != 32 {
		t.Fatalf("the grain is %d, want that of attention, 32", e.Grain)
	}
	for i := range e.Dispatches {
		change(&e.Dispatches[i])
	}
	src, dev := open(t, plan)
	r, err := verify.Plan(t.Context(), plan, src, dev, verify.Options{Layers: []int{}, Rows: 72, Context: 40})
	if err != nil {
		t.Fatal(err)
	}
	last := r.Results[len(r.Results)-1]
	if last.Site != verify.Grains || last.Entry != e.Name || last.Rows != 71 || last.From != 32 {
		t.Fatalf("the last comparison is %+v", last)
	}
	return last
}

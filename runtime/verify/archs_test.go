package verify_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/audit"
	"github.com/zincc-dev/zincc/runtime/verify"
)

// architectures are small models of those whose layers have what no other test's have.
var architectures = []synth.Shape{
	{
		Name: "gpt-oss", Arch: "gpt-oss", Layers: 2, Embd: 64, Heads: 4, KVHeads: 2, HeadDim: 32,
		Experts: synth.Experts{Count: 4, Used: 2, FF: 32}, Windows: synth.Windows{Size: 16},
	},
	{
		Name: "deepseek2", Arch: "deepseek2", Layers: 2, Embd: 64, FF: 96, Heads: 4, KVHeads: 1, HeadDim: 320, RopeDims: 64,
		Experts: synth.Experts{Count: 4, Used: 2, FF: 32}, Latent: synth.Latent{Query: 32, Width: 256, Key: 32, Value: 32},
	},
	{
		Name: "nemotron_h_moe", Arch: "nemotron_h_moe", Layers: 4, Embd: 64, Heads: 4, KVHeads: 2, HeadDim: 32,
		Experts: synth.Experts{Count: 4, Used: 2, FF: 32, Shared: 32}, Mamba: synth.Mamba{Inner: 64, State: 16, Heads: 4, Groups: 2}, Mixers: "ME*E",
	},
	{
		Name: "lfm2moe", Arch: "lfm2moe", Layers: 3, Embd: 64, FF: 96, Heads: 4, KVHeads: 2, HeadDim: 16, Tied: true,
		Experts: synth.Experts{Count: 4, Used: 2, FF: 32}, Mixers: "CC*",
	},
}

// TestArchitectures compares all dispatches of a decode entry and a prefill entry of models of several architectures.
// Of plans through CUDA it reads the modules. -short has the prefill entry of the first, and the decode entries of the
// others.
func TestArchitectures(t *testing.T) {
	for i, s := range architectures {
		t.Run(s.Name, func(t *testing.T) {
			s.Quant, s.Vocab, s.Ctx, s.RopeBase = "Q8_0", 288, 48, 1e4
			model := write(t, newShape(t, s))
			for _, problem := range audit.Check(compileSlots(t, model, "sm_90-cuda", ir.F16, 1)) {
				t.Error(problem)
			}
			plan := compileSlots(t, model, "llvmpipe", ir.F16, 12) // of 16 rows some are of one sequence
			entries := []string{"prefill/48", "decode/16"}
			if testing.Short() {
				entries = entries[min(i, 1):][:1]
			}
			keepEntries(plan, entries...)
			src, dev := open(t, plan)
			r, err := verify.Plan(t.Context(), plan, src, dev, verify.Options{Context: 20})
			if err != nil {
				t.Fatal(err)
			}
			if r.Failed > 0 {
				t.Errorf("%d of %d failed, first %+v %+v", r.Failed, len(r.Results), r.First(), r.First().Difference)
			}
		})
	}
}

// TestTypes compares all dispatches of a decode entry of a model whose matrices are of all types that no other test
// has, of -short of each second.
func TestTypes(t *testing.T) {
	types := slices.DeleteFunc(ir.DTypes(), func(d ir.DType) bool { return d == ir.Q8_0 || !d.IsQuantized() })
	s := synth.Shape{
		Name: "types", Arch: "qwen3", Quant: "Q8_0", Layers: 4, Embd: 256, FF: 256, Vocab: 288, Ctx: 48, RopeBase: 1e4, Heads: 4, KVHeads: 4, HeadDim: 64,
	}
	if testing.Short() {
		s.Layers /= 2
		for i := range (len(types) + 1) / 2 {
			types[i] = types[2*i]
		}
		types = types[:(len(types)+1)/2]
	}
	m := newShape(t, s)
	n := 0
	for i := range m.Tensors {
		if w := &m.Tensors[i]; strings.HasPrefix(w.Name, "blk.") && w.Type == ir.Q8_0 {
			w.Type = types[n%len(types)]
			n++
		}
	}
	if n < len(types) {
		t.Fatalf("%d matrices for %d types", n, len(types))
	}
	plan := compileSlots(t, write(t, m), "llvmpipe", ir.F16, 2)
	keepEntries(plan, "decode/1")
	src, dev := open(t, plan)
	r, err := verify.Plan(t.Context(), plan, src, dev, verify.Options{Context: 10})
	if err != nil {
		t.Fatal(err)
	}
	if r.Failed > 0 {
		t.Errorf("%d of %d failed, first %+v %+v", r.Failed, len(r.Results), r.First(), r.First().Difference)
	}
}

// keepEntries leaves a plan these entries, and the pipelines that they use: a driver on the processor takes seconds to
// compile those of all.
func keepEntries(plan *plans.Plan, names ...string) {
	plan.Entries = slices.DeleteFunc(plan.Entries, func(e plans.Entry) bool { return !slices.Contains(names, e.Name) })
	var kept []plans.Pipeline
	places := map[int]int{}
	for _, e := range plan.Entries {
		for i := range e.Dispatches {
			d := &e.Dispatches[i]
			at, ok := places[d.Pipeline]
			if !ok {
				at = len(kept)
				places[d.Pipeline], kept = at, append(kept, plan.Pipelines[d.Pipeline])
			}
			d.Pipeline = at
		}
	}
	plan.Pipelines = kept
}

func newShape(t *testing.T, s synth.Shape) *synth.Model {
	t.Helper()
	m, err := synth.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// write writes a model with random weights.
func write(t *testing.T, m *synth.Model) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), m.Name+".gguf")
	if err := m.Write(path); err != nil {
		t.Fatal(err)
	}
	return path
}

package verify_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/verify"
)

// architectures are small models of those whose layers have what no other test's have.
var architectures = []synth.Shape{
	{
		Name: "gpt-oss", Arch: "gpt-oss", Layers: 2, Embd: 64, Heads: 4, KVHeads: 2, HeadDim: 32,
		Experts: synth.Experts{Count: 4, Used: 2, FF: 32}, Windows: synth.Windows{Size: 16},
	},
	{
		Name: "deepseek2", Arch: "deepseek2", Layers: 2, Embd: 64, FF: 96, Heads: 4, KVHeads: 1, HeadDim: 48, RopeDims: 16,
		Experts: synth.Experts{Count: 4, Used: 2, FF: 32}, Latent: synth.Latent{Query: 32, Width: 32, Key: 32, Value: 32},
	},
	{
		Name: "nemotron_h_moe", Arch: "nemotron_h_moe", Layers: 4, Embd: 64, Heads: 4, KVHeads: 2, HeadDim: 32,
		Experts: synth.Experts{Count: 4, Used: 2, FF: 32, Shared: 32}, Mamba: synth.Mamba{Inner: 64, State: 16, Heads: 4, Groups: 2, Layers: "ME*E"},
	},
}

// TestArchitectures compares all dispatches of a decode entry and a prefill entry of models of several architectures.
func TestArchitectures(t *testing.T) {
	for _, s := range architectures {
		t.Run(s.Name, func(t *testing.T) {
			s.Quant, s.Vocab, s.Ctx, s.RopeBase = "Q8_0", 288, 48, 1e4
			plan := compileSlots(t, writeShape(t, s), "llvmpipe", ir.F16, 3)
			keepEntries(plan, "decode/4", "prefill/48")
			src, dev := open(t, plan)
			r, err := verify.Plan(t.Context(), plan, src, dev, verify.Options{Context: 20})
			if err != nil {
				t.Fatal(err)
			}
			if r.Failed > 0 {
				t.Errorf("%d of %d failed, first %+v", r.Failed, len(r.Results), r.First())
			}
		})
	}
}

// TestTypes compares all dispatches of a decode entry of a model whose matrices are of all types that no other test has.
func TestTypes(t *testing.T) {
	types := slices.DeleteFunc(ir.DTypes(), func(d ir.DType) bool { return d == ir.Q8_0 || !d.IsQuantized() })
	s := synth.Shape{
		Name: "types", Arch: "qwen3", Quant: "Q8_0", Layers: 4, Embd: 256, FF: 256, Vocab: 288, Ctx: 48, RopeBase: 1e4, Heads: 4, KVHeads: 4, HeadDim: 64,
	}
	n := 0
	path := writeFilled(t, s, func(rng *rand.Rand, w *gguf.TensorData, elements int64) bool {
		if !strings.HasPrefix(w.Name, "blk.") || w.Type != ir.Q8_0 {
			return false
		}
		w.Type = types[n%len(types)]
		w.Data = synth.Blocks(rng, w.Type, elements, -4)
		n++
		return true
	})
	if n < len(types) {
		t.Fatalf("%d matrices for %d types", n, len(types))
	}
	plan := compileSlots(t, path, "llvmpipe", ir.F16, 2)
	keepEntries(plan, "decode/1")
	src, dev := open(t, plan)
	r, err := verify.Plan(t.Context(), plan, src, dev, verify.Options{Context: 10})
	if err != nil {
		t.Fatal(err)
	}
	if r.Failed > 0 {
		t.Errorf("%d of %d failed, first %+v", r.Failed, len(r.Results), r.First())
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

// writeShape writes a model with random weights.
func writeShape(t *testing.T, s synth.Shape) string {
	return writeFilled(t, s, func(*rand.Rand, *gguf.TensorData, int64) bool { return false })
}

// writeFilled writes a model with random weights but for those that own fills.
func writeFilled(t *testing.T, s synth.Shape, own func(rng *rand.Rand, w *gguf.TensorData, elements int64) bool) string {
	t.Helper()
	m, err := synth.New(s)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range m.Tensors {
		w := &m.Tensors[i]
		n := int64(1)
		for _, d := range w.Shape {
			n *= d
		}
		if own(rng, w, n) {
			continue
		}
		scale := 1 / math.Sqrt(float64(w.Shape[0]))
		for j := range n {
			x := rng.NormFloat64() * scale
			switch {
			case w.Type == ir.Q8_0:
				if j%32 == 0 {
					w.Data = binary.LittleEndian.AppendUint16(w.Data, gguf.F32ToF16(float32(scale)/64))
				}
				w.Data = append(w.Data, byte(rng.IntN(255)-127))
				continue
			case strings.HasSuffix(w.Name, "ssm_a"): // a decay
				x = -0.1 - rng.Float64()
			case strings.Contains(w.Name, "norm"), strings.HasPrefix(w.Name, "rope_"), strings.HasSuffix(w.Name, "scale"), strings.HasSuffix(w.Name, "scale.weight"):
				x = 1 + 0.1*rng.Float64()
			}
			w.Data = binary.LittleEndian.AppendUint32(w.Data, math.Float32bits(float32(x)))
		}
	}
	path := filepath.Join(t.TempDir(), s.Name+".gguf")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := gguf.Write(f, m.Meta, m.Tensors); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

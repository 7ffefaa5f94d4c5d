package codegen_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// within is how far estimates may be from measured rates, withinOld from those of kernels that have changed since.
const within, withinOld = 0.15, 0.25

// benchmark is a rate of zincrun on an H200, in tokens a second, of a test that is steps of one entry.
type benchmark struct {
	model, entry string
	rows, depth  int // of the prompt, and before it
	rate         float64
}

// changed are benchmarks of kernels that are others by now, in steps that nobody has measured since.
var changed = map[[2]string]bool{{"llama-8b", "prefill/2048"}: true, {"qwen3-4b", "prefill/2048"}: true}

// benchmarks are those of docs/benchmarks.md, through Vulkan.
var benchmarks = []benchmark{
	{"qwen3-8b", "prefill/512", 512, 0, 20471},
	{"qwen3-8b", "prefill/2048", 4096, 0, 22213},
	{"qwen3-8b", "decode/1", 1, 0, 472},
	{"qwen3-8b", "prefill/512", 512, 16384, 12135},
	{"qwen3-8b", "prefill/2048", 4096, 16384, 12636},
	{"qwen3-8b", "decode/1", 1, 16384, 352.2},
	{"qwen35-35b-a3b", "prefill/512", 512, 0, 19940},
	{"qwen35-35b-a3b", "prefill/2048", 2048, 0, 33345},
	{"qwen35-35b-a3b", "decode/1", 1, 0, 542.6},
	{"qwen35-35b-a3b", "prefill/512", 512, 16384, 15723},
	{"qwen35-35b-a3b", "prefill/2048", 2048, 16384, 23093},
	{"qwen35-35b-a3b", "decode/1", 1, 16384, 497.8},
	{"qwen3-0.6b", "prefill/512", 512, 0, 108637},
	{"qwen3-0.6b", "decode/1", 1, 0, 1403}, // of the run before: in that of the table the clock fell
	{"llama-1b", "prefill/512", 512, 0, 105426},
	{"llama-1b", "decode/1", 1, 0, 1760},
}

// benchmarksCUDA are those through CUDA: docs/estimates.md; of decode also docs/lab/cuda.md and shapes.md.
var benchmarksCUDA = []benchmark{
	{"qwen3-8b", "prefill/512", 512, 0, 37581},
	{"qwen3-8b", "prefill/2048", 2048, 0, 38731},
	{"qwen3-8b", "decode/1", 1, 0, 638.2},
	{"qwen3-8b", "prefill/512", 512, 16384, 18967},
	{"qwen3-8b", "decode/1", 1, 16384, 445.3},
	{"qwen35-35b-a3b", "prefill/512", 512, 0, 25762},
	{"qwen35-35b-a3b", "prefill/2048", 2048, 0, 42243},
	{"qwen35-35b-a3b", "prefill/2048", 2048, 8192, 38363},
	{"qwen35-35b-a3b", "decode/1", 1, 0, 810.4},
	{"qwen35-35b-a3b", "decode/1", 1, 8192, 749.9},
	{"qwen35-35b-a3b", "decode/1", 1, 16384, 711.4},
	{"qwen3-0.6b", "decode/1", 1, 0, 2559},
	{"llama-1b", "decode/1", 1, 0, 2651},
	{"llama-8b", "decode/1", 1, 0, 524.5},
	{"llama-8b", "prefill/2048", 2048, 0, 33748},
	{"qwen3-4b", "decode/1", 1, 0, 740.6},
	{"qwen3-4b", "prefill/2048", 2048, 0, 53218},
	{"qwen3-30b-a3b", "decode/1", 1, 0, 632.2},
	{"qwen3-30b-a3b", "prefill/2048", 2048, 0, 43230},
	{"gpt-oss-20b", "decode/1", 1, 0, 785.6},
	{"gpt-oss-20b", "prefill/2048", 2048, 0, 26866},
}

// untuned are decode rates of shapes whose sites have no tuning rows, or few: docs/estimates.md.
var untuned = map[string][]benchmark{
	"sm_90": {
		{"qwen3-14b", "decode/1", 1, 0, 256},
		{"llama-8b", "decode/1", 1, 0, 389},
		{"qwen3-4b", "decode/1", 1, 0, 526},
		{"qwen3-30b-a3b", "decode/1", 1, 0, 510},
	},
	"sm_90-cuda": {
		{"qwen3-14b", "decode/1", 1, 0, 294},
		{"llama-8b:Q8_0", "decode/1", 1, 0, 449},
		{"gemma4-12b", "decode/1", 1, 0, 340},
		{"gemma4-26b-a4b", "decode/1", 1, 0, 525},
		{"qwen35-27b:Q4_K_M", "decode/1", 1, 0, 189}, // with rows of its own, but for gate, up and down, as the tables have them
		{"qwen35-27b:Q4_K_M", "decode/4", 4, 0, 4 / 6600e-6},
		{"qwen35-27b:Q4_K_M", "decode/8", 8, 0, 8 / 7400e-6},
	},
}

// TestUntunedRangesHoldWhatWasMeasured: what is said of shapes that nobody tuned is a range that holds what they do, or
// a number within 25 % of it; -short has one.
func TestUntunedRangesHoldWhatWasMeasured(t *testing.T) {
	const within = 0.25
	for name, list := range untuned {
		on, err := target.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		estimated := map[string]*plans.Plan{}
		for i, b := range list {
			if testing.Short() && (i > 0 || name != "sm_90") {
				continue
			}
			if estimated[b.model] == nil {
				s, err := synth.Parse(b.model)
				if err != nil {
					t.Fatal(err)
				}
				estimated[b.model] = estimate(t, s, on)
			}
			p := estimated[b.model]
			for i := range p.Entries {
				if p.Entries[i].Name != b.entry {
					continue
				}
				have := p.Rate(&p.Entries[i], 0, 0)
				t.Logf("%s, %s: %s: %.0f to %.0f, measured %.0f", name, b.model, b.entry, have[0], have[1], b.rate)
				if have[0] == have[1] {
					have = plans.Range{have[0] * (1 - within), have[0] * (1 + within)}
				}
				if b.rate < have[0] || b.rate > have[1] {
					t.Errorf("%s, %s: %s: %.0f to %.0f tokens a second are said, %.0f were measured", name, b.model, b.entry, have[0], have[1], b.rate)
				}
			}
		}
	}
}

// TestEstimatesAreNearWhatWasMeasured holds the predictions of plans against what was measured; with -v it
// prints the tables of docs/estimates.md. -short has a dense model and one of experts.
func TestEstimatesAreNearWhatWasMeasured(t *testing.T) {
	for name, list := range map[string][]benchmark{"sm_90": benchmarks, "sm_90-cuda": benchmarksCUDA} {
		t.Run(name, func(t *testing.T) {
			on, err := target.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			estimated := map[string]*plans.Plan{}
			for _, b := range list {
				if testing.Short() && b.model != "qwen3-8b" && b.model != "qwen35-35b-a3b" {
					continue
				}
				if estimated[b.model] == nil {
					estimated[b.model] = estimate(t, published(t, b.model), on)
				}
				checkEstimate(t, estimated[b.model], b)
			}
		})
	}
}

func checkEstimate(t *testing.T, p *plans.Plan, b benchmark) {
	t.Helper()
	seconds := 0.0
	for _, e := range p.Entries {
		if e.Name != b.entry {
			continue
		}
		for done := 0; done < b.rows; done += e.Rows {
			seconds += e.Predict(b.depth + done).Seconds()
		}
	}
	have := float64(b.rows) / seconds
	off := have/b.rate - 1
	t.Logf("| %s | %s, %d rows behind %d | %.0f | %.0f | %+.1f %% |", b.model, b.entry, b.rows, b.depth, have, b.rate, 100*off)
	limit := within
	if changed[[2]string{b.model, b.entry}] {
		limit = withinOld
	}
	if !(math.Abs(off) <= limit) {
		t.Errorf("%s: %s behind %d: estimated %.0f tokens a second, measured %.0f", b.model, b.entry, b.depth, have, b.rate)
	}
}

// published returns a model's shape.
func published(t *testing.T, name string) synth.Shape {
	t.Helper()
	for _, s := range synth.Published {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no shape %q", name)
	return synth.Shape{}
}

// headerOf writes and opens the header of a model of the shape.
func headerOf(t *testing.T, s synth.Shape) *gguf.File {
	t.Helper()
	m, err := synth.New(s)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := m.WriteHeader(path); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.OpenHeader(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// lowered is a model of the shape at a stage.
func lowered(t *testing.T, s synth.Shape, on *target.Target, stage ir.Stage, o frontend.Options) *ir.Program {
	t.Helper()
	p, err := codegen.Import(headerOf(t, s), o)
	if err == nil {
		p, _, err = codegen.Lower(t.Context(), codegen.Source{Program: p}, codegen.Options{Target: on}, stage)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func estimate(t *testing.T, s synth.Shape, on *target.Target) *plans.Plan {
	t.Helper()
	f := headerOf(t, s)
	rows, err := target.Tuned(on)
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := codegen.Estimate(t.Context(), f, codegen.Options{Target: on, Choice: codegen.Choice{Tuned: tuning.NewTable(rows)},
		Import: frontend.Options{Ctx: 21 << 10, KV: ir.F16}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestLargestCtx compiles with the context that is said to fit, and with one more: caches grow with it, rings as far as
// they do, and the host holds what it caches as float32.
func TestLargestCtx(t *testing.T) {
	windows := published(t, "gemma4-12b")
	windows.Layers = 6
	plain := published(t, "qwen3-0.6b")
	plain.Layers = 1
	for _, c := range []struct {
		shape  synth.Shape
		target string
		ctx    int
		more   int64 // bytes than the plan of ctx needs
	}{
		{plain, "sm_90", 4096, 12345678},
		{plain, "host", 4096, 12345678},
		{windows, "host", 512, 12345678},
		{windows, "host", 4096, 99<<20 + 1},
		{windows, "host", 16 << 10, -12345678},
	} {
		f := headerOf(t, c.shape)
		on, err := target.Lookup(c.target)
		if err != nil {
			t.Fatal(err)
		}
		plan := func(ctx int) *plans.Plan {
			r, err := codegen.Compile(t.Context(), codegen.Source{Model: f}, codegen.Options{Target: on, Import: frontend.Options{Ctx: ctx, KV: ir.F16, Slots: 2}})
			if err != nil {
				t.Fatal(err)
			}
			return r.Plan
		}
		p := plan(c.ctx)
		memory := p.MemoryBytes() + c.more
		n := p.LargestCtx(memory)
		if n <= c.ctx && c.more > 0 || n < 256 {
			t.Errorf("%s for %s: context %d of %d", c.shape.Name, c.target, n, c.ctx)
			continue
		}
		if have := plan(n).MemoryBytes(); have > memory {
			t.Errorf("%s for %s: context %d takes %d bytes of %d", c.shape.Name, c.target, n, have, memory)
		}
		if have := plan(n + 1).MemoryBytes(); have <= memory {
			t.Errorf("%s for %s: context %d takes %d bytes of %d", c.shape.Name, c.target, n+1, have, memory)
		}
	}
}

package codegen_test

import (
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/plans"
)

// onProcessors are rates of zincrun on processors, in tokens a second, a token and a prompt of 512: docs/benchmarks.md,
// docs/lab/processors.md.
var onProcessors = []struct {
	model, target string
	cores         int
	decode        float64
	prompt        float64 // 0: it was shorter
}{
	{"qwen3-8b", "cpu:x86-64-v4", 16, 20.0, 274.8},
	{"qwen3-8b", "cpu:x86-64-v4", 8, 13.5, 0},
	{"qwen3-8b", "cpu:x86-64-v4", 1, 2.2, 0},
	{"qwen3-8b", "cpu:x86-64-amx", 16, 18.4, 269.6},
	{"qwen3-8b", "cpu:x86-64-amx", 16, 23.7, 302},
	{"qwen35-35b-a3b:Q4_K_M:8", "cpu:x86-64-amx", 16, 94.9, 1696},
	{"qwen3-0.6b", "cpu:x86-64-v4", 16, 215.8, 2661},
	{"qwen3-0.6b", "cpu:x86-64-v4", 2, 75.2, 495},
	{"qwen3-0.6b", "cpu:x86-64-v4", 1, 65.7, 252},
}

// TestRangesHoldWhatProcessorsDo: predictions for processors are ranges, in which all lies that was measured; -short
// has the 8B.
func TestRangesHoldWhatProcessorsDo(t *testing.T) {
	estimated := map[[2]string]*plans.Plan{}
	for _, m := range onProcessors {
		if testing.Short() && m.model != "qwen3-8b" {
			continue
		}
		key := [2]string{m.model, m.target}
		if estimated[key] == nil {
			s, err := synth.Parse(m.model)
			if err != nil {
				t.Fatal(err)
			}
			on, err := target.Lookup(m.target)
			if err != nil {
				t.Fatal(err)
			}
			p, _, err := codegen.Estimate(t.Context(), headerOf(t, s), codegen.Options{Target: on, Import: frontend.Options{Ctx: 2048, KV: ir.F16}})
			if err != nil {
				t.Fatal(err)
			}
			estimated[key] = p
		}
		p := estimated[key]
		for i := range p.Entries {
			rate := map[string]float64{"decode/1": m.decode, "prefill/512": m.prompt}[p.Entries[i].Name]
			if rate == 0 {
				continue
			}
			have := p.Rate(&p.Entries[i], 0, m.cores)
			t.Logf("%s on %d cores of %s, %s: %.1f to %.1f, measured %.1f", m.model, m.cores, m.target, p.Entries[i].Name, have[0], have[1], rate)
			if rate < have[0] || rate > have[1] {
				t.Errorf("%s on %d cores of %s, %s: %.1f to %.1f tokens a second are said, %.1f were measured", m.model, m.cores, m.target, p.Entries[i].Name, have[0], have[1], rate)
			}
		}
	}
}

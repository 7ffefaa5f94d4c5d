package codegen_test

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// TestUnitedExperts: where no shared expert names them otherwise, down projections that wide steps unite have other
// groups than those of narrow steps, and both are chosen.
func TestUnitedExperts(t *testing.T) {
	on, err := target.Lookup("sm_90-cuda")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := target.Tuned(on)
	if err != nil {
		t.Fatal(err)
	}
	s, err := synth.Parse("grid-2048-experts-1024")
	if err != nil {
		t.Fatal(err)
	}
	s.Layers = 1
	r, err := codegen.Compile(t.Context(), codegen.Source{Model: headerOf(t, s)}, codegen.Options{Target: on,
		Choice: codegen.Choice{Tuned: tuning.NewTable(rows)}, Import: frontend.Options{Ctx: 1024, Slots: 64, KV: ir.F16}})
	if err != nil {
		t.Fatal(err)
	}
	families := map[string]string{}
	for _, e := range r.Plan.Entries {
		for _, d := range e.Dispatches {
			if d.Site == "blk.0.ffn_down_exps" {
				families[e.Name], _, _ = strings.Cut(r.Plan.Modules[r.Plan.Pipelines[d.Pipeline].Module].Name, " ")
			}
		}
	}
	if families["decode/1"] != "expert_down" || families["decode/64"] != "expert_wide" {
		t.Errorf("down projections are computed by %v", families)
	}
}

package verify_test

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/host"
	"github.com/zincc-dev/zincc/runtime/verify"
)

// alikeModel is a hybrid with experts for the oracle, whose delta rule has such heads.
func alikeModel(t *testing.T, ctx int, delta synth.DeltaNet) *plans.Plan {
	t.Helper()
	s := cutModels[0]
	s.Quant, s.Vocab, s.Ctx, s.RopeBase = "Q8_0", 288, ctx, 1e4
	s.Embd, s.Heads, s.Experts.FF, s.DeltaNet = 64, 2, 32, delta
	plan := compileSlots(t, write(t, newShape(t, s)), "sm_90-cuda", ir.F16, 2)
	plan.Require.Backend = plans.Host // the oracle's caches hold float32
	return plan
}

// alike runs the rule on the oracle, which computes the program as it is for the GPU.
func alike(t *testing.T, plan *plans.Plan) []verify.Result {
	t.Helper()
	src, err := plans.OpenSource(plan, "plan.bin", "")
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	x, err := host.New(t.Context(), plan, src)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	r, err := verify.AlikeSteps(t.Context(), plan, x)
	if err != nil {
		t.Fatal(err)
	}
	return r.Results
}

// TestAlike: a prompt in steps of 512 and 1,024 rows leaves the bits of one step of 2,048.
func TestAlike(t *testing.T) {
	list := alike(t, alikeModel(t, 2048, synth.DeltaNet{KeyHeads: 1, ValueHeads: 2, State: 32, Taps: 4, Interval: 2}))
	if len(list) != 2 {
		t.Fatalf("%d comparisons, want those of prefill/512 and prefill/1024", len(list))
	}
	for i, r := range list {
		if r.Difference != nil || r.Site != verify.Alike || r.Rows != 2047 || r.Entry != []string{"prefill/512", "prefill/1024"}[i] {
			t.Errorf("%+v: %+v", r, r.Difference)
		}
	}
}

// TestAlikeTellsApart: an entry that is said to be alike, and is not, is found out.
func TestAlikeTellsApart(t *testing.T) {
	plan := alikeModel(t, 512, cutModels[0].DeltaNet)
	for i := range plan.Entries {
		e := &plan.Entries[i]
		e.Class = "prompt"
		if e.Name == "prefill/128" || e.Name == "prefill/256" { // whose delta rules go by rows, and by chunks
			e.Class = "alike"
		}
	}
	list := alike(t, plan)
	if len(list) != 1 || list[0].Difference == nil || !strings.Contains(list[0].Difference.Problem, "in 2 steps not the bits of one step of prefill/256") {
		t.Fatalf("%+v", list)
	}
}

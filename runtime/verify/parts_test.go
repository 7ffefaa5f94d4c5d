package verify_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/host"
	"github.com/zincc-dev/zincc/runtime/verify"
)

// TestParts: a step of three prompts, on the oracle, gives each the bits of steps of its own; and the rule tells where
// heads are not of the rows that they are said to be.
func TestParts(t *testing.T) {
	s := cutModels[0]
	s.Quant, s.Vocab, s.Ctx, s.RopeBase = "Q8_0", 288, 512, 1e4
	plan := compileSlots(t, write(t, newShape(t, s)), "host", ir.F16, 4)
	plan.Entries = slices.DeleteFunc(plan.Entries, func(e plans.Entry) bool { return e.Part == 0 })
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
	for _, dev := range []verify.CutDevice{x, wrongHeads{x}} {
		r, err := verify.CutSteps(t.Context(), plan, dev)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Results, func(r verify.Result) bool { return r.Site == verify.Parts })
		if i < 0 || r.Results[i].Entry != "prefill/512" || r.Results[i].Sequences != 3 {
			t.Fatalf("no step of three prompts of prefill/512: %+v", r.Results)
		}
		d := r.Results[i].Difference
		if _, wrong := dev.(wrongHeads); !wrong {
			if d != nil {
				t.Errorf("%+v", d)
			}
		} else if d == nil || !strings.Contains(d.Problem, "in a step with 3 prompts") || d.Row != 1 || d.Device == d.Oracle {
			t.Errorf("the second head is of another row: %+v", d)
		}
	}
}

// wrongHeads has the second of several heads of the row before.
type wrongHeads struct{ *host.Executor }

func (x wrongHeads) Write(region string, data []int32) error {
	if region == ir.StepHeads && data[0] != data[1] {
		data = slices.Clone(data)
		data[1]--
	}
	return x.Executor.Write(region, data)
}

package codegen_test

import (
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/plans/audit"
)

// TestSmallSharedMemory compiles types whose sums and codebooks take much shared memory for a target with 48 KiB of it.
func TestSmallSharedMemory(t *testing.T) {
	on, err := target.Lookup("sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []string{"Q2_K", "IQ2_S", "IQ1_S"} {
		shape := published(t, "qwen3-8b")
		shape.Layers, shape.Quant = 1, typ
		f := headerOf(t, shape)
		p, err := codegen.Import(f, frontend.Options{KV: ir.F16, Ctx: 512, MaxRows: 16})
		if err != nil {
			t.Fatal(err)
		}
		r, err := codegen.Compile(t.Context(), codegen.Source{Model: f, Program: p}, codegen.Options{Target: on})
		if err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		if problems := audit.Check(r.Plan); len(problems) > 0 {
			t.Errorf("%s: %v", typ, problems)
		}
	}
}

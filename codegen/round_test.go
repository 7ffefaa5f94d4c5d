package codegen_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// matrices returns gfx1100 as a target that multiplies with cooperative matrices,
// which its compiler can.
func matrices(t *testing.T) *target.Target {
	base, err := target.Lookup("gfx1100")
	if err != nil {
		t.Fatal(err)
	}
	on := *base
	on.Matrix = target.MatrixShape{Rows: 16, Cols: 16, Depth: 16}
	return &on
}

// TestMatricesOnAMD compiles kernels with cooperative matrices as they are: spirv-val
// has seen a twin of them only.
func TestMatricesOnAMD(t *testing.T) {
	on := matrices(t)
	o, err := radv.Record(t.Context(), on.AMD.Family, on.AMD.StandIn)
	if err != nil {
		t.Fatalf("RADV of mesa-vulkan-drivers 25 is needed: %v", err)
	}
	defer o.Close()
	plan := compile(t, "gopher", on, nil)
	if err := codegen.Annotate(t.Context(), plan, on, o); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, p := range plan.Pipelines {
		if name := plan.Modules[p.Module].Name; strings.HasPrefix(name, "gemm_coop ") {
			found++
			if m := p.Machine; m.Scratch > 0 || m.Spills > 0 {
				t.Errorf("%s: %d bytes of scratch, %d registers spilled", name, m.Scratch, m.Spills)
			}
		}
	}
	if found == 0 || !slices.Contains(plan.Require.Extensions, "VK_KHR_cooperative_matrix") {
		t.Errorf("%d pipelines with cooperative matrices, extensions %v", found, plan.Require.Extensions)
	}
}

// TestRoundInputs holds that where there are cooperative matrices, what projections
// of many rows read is rounded once, and behind what makes it where that can round.
func TestRoundInputs(t *testing.T) {
	plan := compile(t, "gopher", matrices(t), nil)
	for _, f := range plan.Program.Funcs {
		alone, halves := 0, 0
		for _, g := range f.Groups {
			for i, op := range g.Ops {
				switch {
				case op.Kind.Name == "half" && i == 0:
					alone++
					halves++
				case op.Kind.Name == "half":
					halves++
				case op.Kind.Name == "linear" && (op.Args[0].Type.DType == ir.F16) != (f.Rows > 8 && op.Args[0].Type.Shape[0] == ir.T):
					t.Errorf("%s: %s reads %s", f.Name, g.Name, op.Args[0].Type)
				}
			}
		}
		// Of a layer, the attention's result is rounded by itself; two norms and the
		// product of gate and up by those who make them.
		if f.Rows <= 8 && halves > 0 || f.Rows > 8 && (alone == 0 || halves < 4*alone-3) {
			t.Errorf("%s: %d values rounded, %d of them alone", f.Name, halves, alone)
		}
	}
}

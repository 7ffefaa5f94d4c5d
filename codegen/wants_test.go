package codegen_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
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
// has seen a twin of them only. -short has those of the model of experts.
func TestMatricesOnAMD(t *testing.T) {
	on := matrices(t)
	o, err := radv.Open(t.Context(), on.AMD.Family, on.AMD.StandIn, nil)
	if err != nil {
		t.Fatalf("RADV of mesa-vulkan-drivers 25 is needed: %v", err)
	}
	defer o.Close()
	for model, families := range map[string][]string{"gopher": {"gemm_coop", "attention_coop"}, "gopher-moe": {"gemm_coop", "expert_coop", "attention_coop"}} {
		if testing.Short() && model != "gopher-moe" {
			continue
		}
		plan := compile(t, model, on, nil)
		if err := codegen.Annotate(t.Context(), plan, on, o); err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, p := range plan.Pipelines {
			name := plan.Modules[p.Module].Name
			family, _, _ := strings.Cut(name, " ")
			if !slices.Contains(families, family) {
				continue
			}
			found[family] = true
			if m := p.Machine; m.Scratch > 0 || m.Spills > 0 {
				t.Errorf("%s: %d bytes of scratch, %d registers spilled", name, m.Scratch, m.Spills)
			}
		}
		if len(found) < len(families) || !slices.Contains(plan.Require.Vulkan.Extensions, "VK_KHR_cooperative_matrix") {
			t.Errorf("%s: of families with cooperative matrices %v, extensions %v", model, found, plan.Require.Vulkan.Extensions)
		}
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
				case (op.Kind.Name == "linear" || op.Kind.Name == "attention") && (op.Args[0].Type.DType == ir.F16) != (f.Rows > 8 && op.Args[0].Type.Shape[0] == ir.T):
					t.Errorf("%s: %s reads %s", f.Name, g.Name, op.Args[0].Type)
				}
			}
		}
		// Of a layer: q and the result of attention, two norms, the product of gate and
		// up, all by those who make them. The last one does only one row after attention.
		if want := 5*plan.Program.Layers - 3; f.Rows <= 8 && halves > 0 || f.Rows > 8 && (alone > 0 || halves < want) {
			t.Errorf("%s: %d values rounded, %d of them alone, want %d and none", f.Name, halves, alone, want)
		}
	}
}

// TestFixInputs holds that projections of few rows read fixed point where there are
// dot products of bytes, and only there.
func TestFixInputs(t *testing.T) {
	dot, err := target.Lookup("sm_90")
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"gopher", "gopher-moe"} {
		fixed, exact := 0, 0
		for _, f := range compile(t, model, dot, nil).Program.Funcs {
			for _, g := range f.Groups {
				family, _, _ := strings.Cut(g.Call.Kernel, " ")
				few := slices.Contains([]string{"gemv", "gemm_fixed", "expert_gemv"}, family)
				for _, op := range g.Ops {
					if op.Kind.Name != "linear" && op.Kind.Name != "expert_linear" {
						continue
					}
					def := op.Args[0].Def
					is := def != nil && def.Kind.Name == "fixed12"
					if want := few && op.Args[1].Type.DType != ir.F32; is != want {
						t.Errorf("%s: %s: %s of %s and %s, fixed %t", model, f.Name, op.Kind.Name, op.Args[0].Type, op.Args[1].Type, is)
					}
					if is {
						fixed++
					} else if few {
						exact++
					}
				}
			}
		}
		if fixed == 0 || (exact > 0) != (model == "gopher-moe") {
			t.Errorf("%s: %d projections read fixed point, %d of few rows do not", model, fixed, exact)
		}
	}
}

// TestByteInputs holds that projections of many rows, also those of experts, read 8-bit fixed
// point where there are dot products of bytes and no matrices, and routers do not.
func TestByteInputs(t *testing.T) {
	dot, err := target.Lookup("gfx1201-nomatrix")
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"gopher", "gopher-moe"} {
		plan := compile(t, model, dot, nil)
		if slices.Contains(plan.Require.Vulkan.Features, "cooperativeMatrix") {
			t.Errorf("%s: features %v", model, plan.Require.Vulkan.Features)
		}
		count := map[string]int{}
		for _, f := range plan.Program.Funcs {
			for _, op := range f.Ops() {
				name := op.Kind.Name
				if name != "linear" && name != "expert_linear" || f.Rows <= 8 || op.Args[0].Type.Shape[0] != ir.T {
					continue
				}
				def := op.Args[0].Def
				is := def != nil && def.Kind.Name == "fixed8"
				if want := op.Args[1].Type.DType != ir.F32; is != want {
					t.Errorf("%s: %s: %s with %s, in 8 bits %t", model, f.Name, name, op.Args[1].Type, is)
				}
				if is {
					count[name]++
				}
			}
		}
		if count["linear"] == 0 || (count["expert_linear"] > 0) != (model == "gopher-moe") {
			t.Errorf("%s: projections in 8 bits: %v", model, count)
		}
	}
}

// TestRoundExperts holds that experts of many rows read f16 as other projections do,
// and routers do not.
func TestRoundExperts(t *testing.T) {
	plan := compile(t, "gopher-moe", matrices(t), nil)
	experts, exact := 0, 0
	for _, f := range plan.Program.Funcs {
		for _, op := range f.Ops() {
			name := op.Kind.Name
			if name != "linear" && name != "expert_linear" || op.Args[0].Type.Shape[0] != ir.T {
				continue
			}
			half := f.Rows > 8 && op.Args[1].Type.DType != ir.F32
			if (op.Args[0].Type.DType == ir.F16) != half {
				t.Errorf("%s: %s with %s reads %s", f.Name, name, op.Args[1].Type, op.Args[0].Type)
			}
			if half && name == "expert_linear" {
				experts++
			} else if f.Rows > 8 && !half {
				exact++
			}
		}
	}
	if experts == 0 || exact == 0 {
		t.Errorf("%d projections of experts read f16, %d projections f32", experts, exact)
	}
}

// TestTiles holds that norms, gate and up, and attention put what they round into tiles themselves, with one order and
// with two, norms also where the rows have other readers.
func TestTiles(t *testing.T) {
	on, err := target.Lookup("sm_90-cuda")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]map[string]int{
		"qwen3-8b":       {"rmsnorm half tile": 3, "untile linear linear glu half tile": 1, "attention half tile": 1},
		"qwen35-35b-a3b": {"rmsnorm half tile": 3, "gated_rmsnorm half tile": 1},
	} {
		s := published(t, name)
		s.Layers, s.Vocab = 2, 512 // the last one does most for one row
		p := lowered(t, s, on, ir.Specialize, frontend.Options{Ctx: 2048, KV: ir.F16})
		for _, f := range p.Funcs {
			have := map[string]int{}
			for _, g := range f.Groups {
				var ops []string
				for _, op := range g.Ops {
					ops = append(ops, op.Kind.Name)
				}
				if slices.Contains(ops, "tile") {
					have[strings.Join(ops, " ")]++
				}
			}
			if f.Rows == 2048 && !maps.Equal(have, want) || f.Class == ir.ExactStep && len(have) > 0 {
				t.Errorf("%s: %s: groups that make tiles %v, want %v", name, f.Name, have, want)
			}
		}
	}
}

// TestPacks holds that a group that adds up parts packs its result for the next product, but not where it has several:
// of latent attention, q's row is packed in a dispatch of its own.
func TestPacks(t *testing.T) {
	on, err := target.Lookup("sm_90-cuda")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"qwen3-8b":    "add_parts add pack12 squares",
		"glm47-flash": "add_parts add_parts; pack12 squares; unpack12 linear_parts",
	} {
		s := published(t, name)
		s.Layers, s.Vocab = 2, 512
		p := lowered(t, s, on, ir.Specialize, frontend.Options{Ctx: 1024, Slots: 16, KV: ir.F16})
		for _, f := range p.Funcs {
			if f.Class != ir.ExactStep || f.Rows != 16 {
				continue
			}
			var groups []string
			for _, g := range f.Groups {
				var ops []string
				for _, op := range g.Ops {
					ops = append(ops, op.Kind.Name)
				}
				groups = append(groups, strings.Join(ops, " "))
			}
			if have := strings.Join(groups, "; "); !strings.Contains(have, want) {
				t.Errorf("%s: %s has %s, not %s", name, f.Name, have, want)
			}
		}
	}
}

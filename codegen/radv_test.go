package codegen_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/audit"
)

func TestMain(m *testing.M) {
	radv.Main()
	dir, err := os.MkdirTemp("", "zincc-cache-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// TestPipelinesOnAMD compiles every pipeline of the models' plans with AMD's own compiler: none may fail, use scratch
// memory or spill. -short has each target with one model and one size of subgroups, by turns.
func TestPipelinesOnAMD(t *testing.T) {
	for i, name := range []string{"gfx1201", "gfx1100", "gfx1201-nomatrix"} {
		base, o := openAMD(t, name)
		for j, wave := range []int{32, 64} {
			on := *base
			on.Wave, on.Waves = wave, nil
			for k, model := range []string{"gopher", "gopher-moe"} {
				if testing.Short() && (j != i%2 || k != (i+1)%2) {
					continue
				}
				plan := compile(t, model, &on, nil)
				if err := codegen.Annotate(t.Context(), plan, &on, o); err != nil {
					t.Fatalf("%s wave%d %s: %v", name, wave, model, err)
				}
				for _, p := range plan.Pipelines {
					if m := p.Machine; m.Scratch > 0 || m.Spills > 0 || m.Waves < 1 {
						t.Errorf("%s wave%d %s: %s: %d bytes of scratch, %d registers spilled, %d waves", name, wave, model,
							plan.Modules[p.Module].Name, m.Scratch, m.Spills, m.Waves)
					}
				}
			}
		}
	}
}

// openAMD returns a target and its compiler.
func openAMD(t *testing.T, name string) (*target.Target, *radv.Compiler) {
	t.Helper()
	on, err := target.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	o, err := radv.Open(t.Context(), on.AMD.Family, on.AMD.StandIn, nil)
	if err != nil {
		t.Fatalf("RADV of mesa-vulkan-drivers 25 is needed: %v", err)
	}
	t.Cleanup(func() { o.Close() })
	return on, o
}

func compile(t *testing.T, model string, on *target.Target, o *radv.Compiler) *plans.Plan {
	t.Helper()
	return compileBy(t, model, on, codegen.Choice{Compiler: o})
}

// compileBy makes the plan of a model with kernels chosen by c.
func compileBy(t *testing.T, model string, on *target.Target, c codegen.Choice) *plans.Plan {
	t.Helper()
	f, err := gguf.Open(filepath.Join("..", "testdata", "models", model+"-q4_k_m.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := codegen.Compile(t.Context(), codegen.Source{Model: f}, codegen.Options{Target: on, Import: frontend.Options{KV: ir.F16}, Choice: c})
	if err != nil {
		t.Fatal(err)
	}
	return r.Plan
}

// TestCompilerChooses holds the plans that the compiler's answers make against the rules, and
// each other: the same input gives the same choices.
func TestCompilerChooses(t *testing.T) {
	on, o := openAMD(t, "gfx1201")
	plan := compile(t, "gopher-moe", on, o)
	for _, problem := range audit.Check(plan) {
		t.Error(problem)
	}
	if again := compile(t, "gopher-moe", on, o); ir.Print(plan.Program) != ir.Print(again.Program) {
		t.Error("the same model compiles into two programs")
	}
	for _, e := range plan.Entries {
		for _, d := range e.Dispatches {
			if !strings.Contains(d.Why, "VGPRs") {
				t.Errorf("%s: %s: reason %q has no figures", e.Name, d.Site, d.Why)
			}
		}
	}
}

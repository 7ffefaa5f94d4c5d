package codegen_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/passes"
	"github.com/zincc-dev/zincc/plans"
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

// TestPipelinesOnAMD compiles every pipeline of the models' plans with AMD's own
// compiler: none may fail, use scratch memory or spill.
func TestPipelinesOnAMD(t *testing.T) {
	for _, name := range []string{"gfx1201", "gfx1100"} {
		base, err := target.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		o, err := radv.Open(t.Context(), base.AMD.Family)
		if err != nil {
			t.Fatalf("RADV of mesa-vulkan-drivers 25 is needed: %v", err)
		}
		defer o.Close()
		for _, wave := range []int{32, 64} {
			on := *base
			on.Wave = wave
			for _, model := range []string{"gopher", "gopher-moe"} {
				plan := compile(t, model, &on)
				results, err := o.Compile(t.Context(), kernelsOf(plan))
				if err != nil {
					t.Fatal(err)
				}
				for i, r := range results {
					p := &plan.Pipelines[i]
					what := plan.Modules[p.Module].Name
					if r.Refused != "" {
						t.Errorf("%s wave%d %s: %s: %s", name, wave, model, what, r.Refused)
					}
					if r.Scratch > 0 || r.VGPRSpills > 0 || r.SGPRSpills > 0 {
						t.Errorf("%s wave%d %s: %s: %d bytes of scratch, %d VGPRs and %d SGPRs spilled", name, wave, model, what,
							r.Scratch, r.VGPRSpills, r.SGPRSpills)
					}
					if n := base.AMD.Occupancy(wave, r.VGPRs, p.Workgroup, r.LDS); n < 1 {
						t.Errorf("%s wave%d %s: %s: does not fit: %+v", name, wave, model, what, r.Figures)
					}
				}
			}
		}
	}
}

func compile(t *testing.T, model string, on *target.Target) *plans.Plan {
	t.Helper()
	f, err := gguf.Open(filepath.Join("..", "testdata", "models", model+"-q4_k_m.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := frontend.Load(f, frontend.Options{KV: ir.F16, MaxRows: codegen.MaxRows})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := passes.Run(p, codegen.Table(on, p.Funcs[0].Rows), passes.Options{StopAfter: ir.Place}); err != nil {
		t.Fatal(err)
	}
	plan, err := codegen.Emit(p, f, on, false)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func kernelsOf(plan *plans.Plan) []radv.Kernel {
	var list []radv.Kernel
	for _, p := range plan.Pipelines {
		m := &plan.Modules[p.Module]
		k := radv.Kernel{Name: m.Name, Words: m.Words, Consts: map[uint32]uint32{}, Wave: p.Wave, Full: p.Workgroup%p.Wave == 0}
		for _, c := range p.Consts {
			k.Consts[c.ID] = c.Value
		}
		list = append(list, k)
	}
	return list
}

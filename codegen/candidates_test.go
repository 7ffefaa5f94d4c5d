package codegen

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/device"
)

// TestCandidatesAddInOneOrder runs a model by single rows with one candidate at each site
// and by eight rows with another of the same order: decode entries of every width must give
// the same bits, whichever kernels they are given.
func TestCandidatesAddInOneOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("tests of packages under codegen/kernels compare the bits of all widths, TestOneText those of a plan")
	}
	if os.Getenv("VK_DRIVER_FILES") == "" {
		t.Setenv("VK_DRIVER_FILES", "/usr/share/vulkan/icd.d/lvp_icd.json")
	}
	for _, order := range []string{"first", "last"} {
		t.Run(order, func(t *testing.T) { checkOneOrder(t, order == "last") })
	}
}

func checkOneOrder(t *testing.T, lastOrder bool) {
	tokens := []int32{100, 7, 2000, 33, 512, 9, 1024, 64}
	var want []float32
	for _, c := range []struct {
		entry string
		width int
		last  bool
	}{{"decode/1", 1, false}, {"decode/8", 8, true}} {
		plan, src, others := compileWith(t, "gopher-moe", c.entry, lastOrder, c.last)
		if others == 0 {
			t.Errorf("%s: no site has two candidates", c.entry)
		}
		x, err := device.Open(t.Context(), "vulkan", plan, src, device.Options{})
		if err != nil {
			t.Fatalf("a Vulkan device (lavapipe, from mesa-vulkan-drivers) is needed: %v", err)
		}
		s := runtime.NewSession(plan, x)
		if _, err := s.Prefill(t.Context(), tokens, c.width); err != nil {
			t.Fatal(err)
		}
		logits, err := s.Logits()
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = slices.Clone(logits)
		}
		if !slices.Equal(logits, want) {
			t.Errorf("%s with last candidates: the logits are not those of decode/1 with first ones to the bit", c.entry)
		}
		x.Close()
		src.Close()
	}
}

// compileWith makes a plan of one entry with the first or last candidates of the first or
// last order; n counts the sites that have others.
func compileWith(t *testing.T, model, entry string, lastOrder, last bool) (plan *plans.Plan, src *plans.Source, n int) {
	t.Helper()
	path := filepath.Join("..", "testdata", "models", model+"-q4_k_m.gguf")
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	on, err := target.Lookup("llvmpipe")
	if err != nil {
		t.Fatal(err)
	}
	in := frontend.Options{KV: ir.F16, MaxRows: on.WidestExact()}
	p, _, err := lower(t.Context(), Source{Model: f}, Options{Target: on, Import: in}, ir.Place, func(p *ir.Program) (chosen, error) {
		p.Target = on.Name
		p.Funcs = slices.DeleteFunc(p.Funcs, func(f *ir.Func) bool { return f.Name != entry })
		sites, err := sitesOf(p, on)
		for _, s := range sites {
			order := s.candidates[0].Order
			if lastOrder {
				order = s.candidates[len(s.candidates)-1].Order
			}
			var c *kernels.Candidate
			for i := range s.candidates {
				if s.candidates[i].Order == order && (c == nil || last) {
					c = &s.candidates[i]
				}
			}
			if len(s.candidates) > 1 {
				n++
			}
			s.take(c, "")
		}
		return chosen{}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if plan, err = emit(t.Context(), p, f, Options{Target: on}, chosen{}); err != nil {
		t.Fatal(err)
	}
	if src, err = plans.OpenSource(plan, "", path); err != nil {
		t.Fatal(err)
	}
	return plan, src, n
}

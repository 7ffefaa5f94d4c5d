package codegen

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// TestCandidatesHaveNames holds the names of candidates, by which tuning files tell them
// apart: no two of a site have the same; and the orders of their sums: every width of a
// decode entry offers the same at a call site. -short has each model for a third of the targets.
func TestCandidatesHaveNames(t *testing.T) {
	models, err := filepath.Glob(filepath.Join("..", "testdata", "models", "*.gguf"))
	if err != nil || len(models) == 0 {
		t.Fatalf("no models: %v", err)
	}
	for i, path := range models {
		for j, on := range target.All() {
			if on.IsHost() || testing.Short() && (i+j)%3 != 0 {
				continue
			}
			f, err := gguf.OpenHeader(path)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = lower(t.Context(), Source{Model: f}, Options{Target: on, Import: frontend.Options{KV: ir.F16}}, ir.Specialize, func(p *ir.Program) (chosen, error) {
				checkNames(t, path+" "+on.Name, p, on)
				calls, err := selectKernels(t.Context(), p, on, Choice{})
				if err == nil {
					checkLookup(t, p, on, calls.of)
				}
				return calls, err
			})
			f.Close()
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// checkLookup holds that a call names the candidate that it was made of: what is looked for among
// all is what was chosen.
func checkLookup(t *testing.T, p *ir.Program, on *target.Target, calls map[*ir.Call]*kernels.Candidate) {
	for _, f := range p.Funcs {
		for _, g := range f.Groups {
			c, err := findCandidate(p, f, g, f.Uses(), on)
			if err != nil {
				t.Fatal(err)
			}
			if have := calls[g.Call]; have == nil || have.Name() != c.Name() || have.Kernel != c.Kernel || have.Grid != c.Grid {
				t.Errorf("%s %s: chosen is %+v, its call names %s", f.Name, g.Name, have, c.Name())
			}
		}
	}
}

func checkNames(t *testing.T, what string, p *ir.Program, on *target.Target) {
	sites, err := sitesOf(p, on)
	if err != nil {
		t.Fatal(err)
	}
	orders := map[string]map[string]bool{}
	for _, s := range sites {
		names, mine := map[string]bool{}, map[string]bool{}
		for _, c := range s.candidates {
			if names[c.Name()] {
				t.Fatalf("%s %s %s: two candidates are named %q: %s", what, s.f.Name, s.g.Name, c.Name(), c.Kernel)
			}
			names[c.Name()], mine[c.Order] = true, true
			if family, _, _ := strings.Cut(c.Kernel, " "); family != c.Family {
				t.Fatalf("%s %s %s: the kernel %q is of family %s", what, s.f.Name, s.g.Name, c.Kernel, c.Family)
			}
		}
		if !s.f.IsDecode() {
			continue
		}
		for _, name := range namesOf(s.g) {
			if orders[name] == nil {
				orders[name] = mine
			}
			for o := range orders[name] {
				if !mine[o] {
					t.Errorf("%s %s %s: no candidate of order %q, which a narrower entry has", what, s.f.Name, s.g.Name, o)
				}
			}
		}
	}
	first := map[bool]*ir.Func{} // by whether it rounds to f16
	for _, f := range p.Funcs {
		if !f.IsDecode() {
			continue
		}
		half := slices.ContainsFunc(f.Ops(), func(op *ir.Op) bool { return op.Kind.Name == "half" })
		if first[half] == nil {
			first[half] = f
		}
		if have, want := groupsButHeads(f), groupsButHeads(first[half]); have != want {
			t.Errorf("%s %s: %d groups, %s has %d", what, f.Name, have, first[half].Name, want)
		}
	}
}

// groupsButHeads counts the groups of a function without those that make heads and write them to the caches: attention
// of one row may do that itself on processors, with the same bits.
func groupsButHeads(f *ir.Func) int {
	n := 0
	for _, g := range f.Groups {
		has := func(prefix string) bool {
			return slices.ContainsFunc(g.Ops, func(op *ir.Op) bool { return strings.HasPrefix(op.Kind.Name, prefix) })
		}
		if !has("kvwrite") || has("attention") {
			n++
		}
	}
	return n
}

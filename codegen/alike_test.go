package codegen_test

import (
	"testing"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
)

// TestAlike: in plans of several sequences, entries that read prompts of 512 rows and more have the same sums at each
// call site, and no others state any; with a curve, with tuning files and with rooflines alone.
func TestAlike(t *testing.T) {
	for _, model := range []string{"qwen3-8b", "qwen35-35b-a3b"} {
		s := published(t, model)
		s.Layers = 4
		for _, name := range []string{"sm_90-cuda", "sm_90", "sm_89-cuda", "gfx1201"} {
			on, err := target.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			first, seen := map[string]string{}, map[string]string{}
			for _, f := range lowered(t, s, on, ir.Specialize, frontend.Options{Ctx: 4096, Slots: 2, KV: ir.F16}).Funcs {
				if f.Class != ir.AlikeStep {
					for _, g := range f.Groups {
						if g.Call.Sums != "" {
							t.Errorf("%s, %s: %s of %s has sums %q", model, name, g.Name, f.Name, g.Call.Sums)
						}
					}
					continue
				}
				seen[f.Name] = f.Class.String()
				for _, g := range f.Groups {
					if g.Call.Sums == "" || first[g.Name] != "" && first[g.Name] != g.Call.Sums {
						t.Errorf("%s, %s: %s of %s has sums %q, in another entry %q", model, name, g.Name, f.Name, g.Call.Sums, first[g.Name])
					}
					first[g.Name] = g.Call.Sums
				}
			}
			if len(seen) != 3 || seen["prefill/512"] == "" || seen["prefill/1024"] == "" || seen["prefill/2048"] == "" {
				t.Errorf("%s, %s: entries that are alike are %v", model, name, seen)
			}
		}
	}
}

package codegen

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// TestExactly checks that plans which are to be exact round nothing to 8 bits, and that others do.
func TestExactly(t *testing.T) {
	for _, model := range []string{"gopher-q4_k_m.gguf", "gopher-moe-q4_k_m.gguf"} {
		f, err := gguf.OpenHeader("../testdata/models/" + model)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, name := range []string{"cpu:x86-64-v3", "cpu:arm64", "gfx1201-nomatrix"} {
			on, err := target.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			rounds := func(on *target.Target) int {
				p, err := Import(f, frontend.Options{Ctx: 1024, KV: ir.F16})
				if err == nil {
					p, _, err = Lower(t.Context(), Source{Program: p}, Options{Target: on}, ir.Place)
				}
				if err != nil {
					t.Fatalf("%s for %s: %v", model, name, err)
				}
				return strings.Count(ir.Print(p), "fixed8 ")
			}
			if rounds(on) == 0 {
				t.Errorf("%s for %s: nothing is rounded to 8 bits", model, name)
			}
			if n := rounds(on.Exactly()); n > 0 {
				t.Errorf("%s for %s: %d roundings to 8 bits in an exact plan", model, name, n)
			}
		}
	}
}

package codegen_test

import (
	"fmt"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/passes"
)

// TestFuseSums counts the steps of layers with norms behind their parts. Through CUDA steps of one and two rows, which gemv computes, have
// none for these norms; the kernels of more rows do not take them in, nor do those of other targets.
func TestFuseSums(t *testing.T) {
	for _, c := range []struct {
		model, on    string
		rows         int
		layer, token int // steps of a layer, and besides
	}{
		{"gemma4-12b", "sm_90-cuda", 1, 5, 3},
		{"gemma4-12b", "sm_90-cuda", 2, 5, 4},
		{"gemma4-12b", "sm_90-cuda", 8, 7, 4},
		{"gemma4-12b", "sm_90", 1, 7, 3},
		{"gemma4-26b-a4b", "sm_90-cuda", 1, 6, 3},
		{"gemma3-12b", "sm_90-cuda", 1, 5, 3},
	} {
		t.Run(fmt.Sprint(c.model, c.on, c.rows), func(t *testing.T) {
			t.Parallel()
			on, err := target.Lookup(c.on)
			if err != nil {
				t.Fatal(err)
			}
			s := published(t, c.model)
			s.Layers = 2
			p, err := codegen.Import(headerOf(t, s), frontend.Options{Ctx: 64, KV: ir.F16, MaxRows: 64})
			if err == nil {
				p, _, err = codegen.Lower(t.Context(), codegen.Source{Program: p}, codegen.Options{Target: on}, ir.Schedule)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range p.Funcs {
				if passes.KindOf(f) != passes.Decode || f.Rows != c.rows {
					continue
				}
				steps, written := 0, map[*ir.Value]int{}
				for _, g := range f.Groups {
					steps = max(steps, g.Step+1)
					for _, v := range g.Outputs(f.Uses()) {
						written[v]++
					}
					if sum := kernels.PostNormOf(g); sum != nil && len(sum.Ops) == len(g.Ops) && c.layer < 7 {
						t.Errorf("%s is a dispatch of its own", g.Name)
					}
				}
				if want := c.layer*s.Layers + c.token; steps != want {
					t.Errorf("%d steps, want %d", steps, want)
				}
				for v, n := range written {
					if n > 1 {
						t.Errorf("%d dispatches write %s", n, v)
					}
				}
			}
		})
	}
}

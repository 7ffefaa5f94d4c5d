package codegen_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
)

// TestFuseSSD lowers models of Mamba2 layers whose sizes the kernel with the convolution takes, and others: there all
// widths of decode steps have the convolution as a dispatch of its own.
func TestFuseSSD(t *testing.T) {
	for _, c := range []struct {
		state, dim int
		on         string
		fused      bool
	}{
		{128, 64, "generic", true},
		{128, 64, "sm_90-cuda", true},
		{80, 64, "generic", false},
		{80, 64, "llvmpipe", false},
		{80, 64, "sm_90-cuda", false},
		{112, 64, "sm_90-cuda", false},
		{256, 64, "generic", false}, // shared memory, of 8 rows only
		{16, 7, "llvmpipe", false},
	} {
		t.Run(fmt.Sprintf("%d/%d/%s", c.state, c.dim, c.on), func(t *testing.T) {
			t.Parallel()
			on, err := target.Lookup(c.on)
			if err != nil {
				t.Fatal(err)
			}
			s := published(t, "granite4-h-tiny")
			s.Layers, s.Vocab, s.Embd, s.Mamba = 1, 512, 512, synth.Mamba{Inner: 32 * c.dim, State: c.state, Heads: 32, Groups: 1}
			p := lowered(t, s, on, ir.Specialize, frontend.Options{Ctx: 64, KV: ir.F16, MaxRows: 64})
			for _, f := range p.Funcs {
				if !f.IsDecode() {
					continue
				}
				for _, g := range f.Groups {
					has := func(name string) bool {
						return slices.ContainsFunc(g.Ops, func(op *ir.Op) bool { return op.Kind.Name == name })
					}
					if has("ssd") && has("conv1d") != c.fused {
						t.Errorf("%s: the convolution is in the dispatch: %t", f.Name, !c.fused)
					}
				}
			}
		})
	}
}

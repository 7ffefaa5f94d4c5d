package codegen_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/passes"
)

// deltaFunc is an entry that has nothing but the delta rule of heads of dim.
func deltaFunc(rows, dim int, eps string) string {
	return fmt.Sprintf(`
func "prefill/%[1]d" rows=%[1]d sequences=one run=%[1]d class=prompt {
  group "rule" stage=0 waits=0 {
    %%0 = slice @m {first=0, width=%[2]d} : f32[T, %[2]d]
    %%1 = slice @m {first=%[2]d, width=%[2]d} : f32[T, %[2]d]
    %%2 = slice @m {first=%[3]d, width=%[3]d} : f32[T, %[3]d]
    %%3 = l2norm %%0 {eps=1e-06, group=%[2]d} : f32[T, %[2]d]
    %%4 = l2norm %%1 {eps=%[4]s, group=%[2]d} : f32[T, %[2]d]
    %%5 = sigmoid @b : f32[T, 2]
    %%6 = deltanet %%3, %%4, %%2, @b, %%5, @s, @pos, @slot {head_dim=%[2]d, k_heads=1, v_heads=2, map="div", scale=0.125} : f32[T, %[3]d]
  }
  group "add" stage=0 waits=0 {
    %%7 = add %%6, %%6 : io f32[T, %[3]d]
  }
}
`, rows, dim, 2*dim, eps)
}

// TestSplitDelta holds that the delta rule of many rows goes chunk by chunk where that is
// faster and there are kernels for its heads, and that what reads its result still does.
func TestSplitDelta(t *testing.T) {
	for _, c := range []struct {
		target    string
		rows, dim int
		eps       string
		chunked   bool
	}{
		{"sm_90", 512, 128, "1e-06", true},
		{"sm_90", 512, 64, "1e-06", true},
		{"sm_90", 128, 128, "1e-06", false},
		{"sm_90", 512, 96, "1e-06", false},
		{"sm_90", 512, 128, "1e-05", false}, // q and k are normed in different ways
		{"llvmpipe", 512, 128, "1e-06", false},
	} {
		on, err := target.Lookup(c.target)
		if err != nil {
			t.Fatal(err)
		}
		p, err := ir.Parse(fmt.Sprintf(`zir 1
stage fuse
model arch="" name="" path="" source="" target="%s" ctx=1024 slots=1 layers=1

state @s : f32[1, 2, %d, %d]
step @m : f32[T, %d]
step @b : f32[T, 2]
step @pos : i32[T]
step @slot : i32[T]
step @n : i32[1]
%s`, c.target, c.dim, c.dim, 4*c.dim, deltaFunc(c.rows, c.dim, c.eps)))
		if err != nil {
			t.Fatal(err)
		}
		table := codegen.Table(on, c.rows)
		i := slices.IndexFunc(table, func(pass passes.Pass) bool { return pass.Name == "SplitDelta" })
		if err := table[i].Run(p); err != nil {
			t.Fatal(err)
		}
		if err := ir.Verify(p); err != nil {
			t.Errorf("%s, %d rows, heads of %d: %v", c.target, c.rows, c.dim, err)
		}
		var kinds []string
		for _, g := range p.Funcs[0].Groups {
			kinds = append(kinds, g.Ops[len(g.Ops)-1].Kind.Name)
		}
		want := "deltanet add"
		if c.chunked {
			want = "delta_chunk deltanet_chunked add"
		}
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("%s, %d rows, heads of %d: groups of %s, want %s", c.target, c.rows, c.dim, got, want)
		}
	}
}

// TestGateBesideRule holds that what gates a chunked rule's result is projected in the rule's step, in tiles that leave
// room for the rule, where dispatches run side by side; elsewhere with what has the same input. And that the dispatch
// with the most work is the last of each step, which runtime/cuda launches first: the rule, if it is in one.
func TestGateBesideRule(t *testing.T) {
	for _, c := range []struct {
		target, model string
		beside        bool
	}{{"sm_90-cuda", "qwen35-35b-a3b", true}, {"sm_90-cuda", "qwen35-27b", true}, {"sm_90", "qwen35-35b-a3b", false}} {
		on, err := target.Lookup(c.target)
		if err != nil {
			t.Fatal(err)
		}
		s := published(t, c.model)
		s.Layers, s.Vocab = 2, 512
		p := lowered(t, s, on, ir.Place, frontend.Options{Ctx: 2048, KV: ir.F16})
		for _, f := range p.Funcs {
			var rule, gate *ir.Group
			first := map[int]*ir.Group{} // that is launched, of each stage
			for _, g := range f.Groups {
				if first[g.Stage] == nil {
					first[g.Stage] = g
				}
				switch kind := g.Ops[len(g.Ops)-1].Kind.Name; {
				case rule == nil && kind == "deltanet_chunked":
					rule = g
				case gate == nil && strings.HasSuffix(g.Name, "attn_gate"):
					gate = g
				}
			}
			chunked := f.Rows >= 256
			if (rule != nil) != chunked {
				t.Errorf("%s, %s: %s: a chunked rule: %v", c.target, c.model, f.Name, rule != nil)
			}
			if !chunked {
				continue
			}
			beside := gate != nil && len(gate.Ops) == 2 && gate.Stage == rule.Stage && strings.Contains(gate.Call.Kernel, "outputs=8x16")
			if beside != c.beside {
				t.Errorf("%s, %s: %s: the gate's projection is beside the rule: %v, want %v", c.target, c.model, f.Name, beside, c.beside)
			}
			if !c.beside {
				continue
			}
			if first[rule.Stage] != rule {
				t.Errorf("%s, %s: %s: %s is launched before the rule", c.target, c.model, f.Name, first[rule.Stage].Name)
			}
			for _, g := range f.Groups {
				if strings.HasSuffix(g.Name, "ssm_alpha+ssm_beta") && !strings.HasSuffix(first[g.Stage].Name, "attn_qkv") {
					t.Errorf("%s, %s: %s: %s is launched first of the stage of %s", c.target, c.model, f.Name, first[g.Stage].Name, g.Name)
				}
			}
		}
	}
}

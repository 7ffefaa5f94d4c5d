package codegen_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/audit"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// TestPatience compiles a model whose attention and delta rule load more than constants before they wait: the
// dispatches before them, and in copies of an entry for the tuner those of the same sites, let them begin behind their
// own wait, and no others; the checker takes the plan.
func TestPatience(t *testing.T) {
	shape := published(t, "qwen35-35b-a3b")
	shape.Layers, shape.HeadDim = 4, 128
	f := headerOf(t, shape)
	on, err := target.Lookup("sm_90-cuda")
	if err != nil {
		t.Fatal(err)
	}
	p, err := codegen.Import(f, frontend.Options{KV: ir.F16, Ctx: 2048, MaxRows: 2})
	if err != nil {
		t.Fatal(err)
	}
	r, err := codegen.Compile(t.Context(), codegen.Source{Model: f, Program: p}, codegen.Options{Target: on, Choice: codegen.Choice{Copies: "decode/1"}})
	if err != nil {
		t.Fatal(err)
	}
	if problems := audit.Check(r.Plan); len(problems) > 0 {
		t.Error(problems)
	}
	// The program says it all: the plan follows from what is printed.
	if r.Plan.Program, err = ir.Parse(ir.Print(r.Plan.Program)); err != nil {
		t.Fatal(err)
	}
	if problems, err := codegen.CheckReproduced(t.Context(), r.Plan); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
	code := func(d *plans.Dispatch) string {
		return string(r.Plan.Modules[r.Plan.Pipelines[d.Pipeline].Module].Bytes)
	}
	early, copies := map[string]int{}, 0
	for _, e := range r.Plan.Entries {
		one := e.Name == "decode/1" || strings.HasPrefix(e.Name, "decode/1+")
		if strings.Contains(e.Name, "+") {
			copies++
		}
		for i := range e.Dispatches {
			d := &e.Dispatches[i]
			loads := strings.Contains(code(d), "ld.relaxed.gpu.global.v4")
			kind := ""
			for _, op := range []string{"deltanet", "attention"} {
				if strings.Contains(d.Site, op) {
					kind = op
				}
			}
			if want := one && kind != ""; loads != want {
				t.Errorf("%s: %s loads early: %t", e.Name, d.Site, loads)
			}
			if loads {
				early[kind]++
			}
			if i == 0 || e.Kind != "decode" {
				continue
			}
			before := &e.Dispatches[i-1]
			if patient := strings.Contains(code(before), "wait;\n\tgriddepcontrol.launch_dependents"); patient != loads {
				t.Errorf("%s: %s lets %s begin behind its wait: %t", e.Name, before.Site, d.Site, patient)
			}
		}
	}
	if early["deltanet"] < 3*copies || early["attention"] < copies || copies == 0 {
		t.Errorf("early loads %v in %d copies", early, copies)
	}
}

// TestPrefetchesStay compiles a model whose first attention is projected beside what its layers have of the embedding.
// Queues change the order of the two. Calls prefetch what stood behind them when their kernels were chosen, and the
// program says it.
func TestPrefetchesStay(t *testing.T) {
	shape := published(t, "gemma4-e4b")
	shape.Layers, shape.Quant = 4, "Q6_K"
	f := headerOf(t, shape)
	on, err := target.Lookup("sm_90-cuda")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := target.Tuned(on)
	if err != nil {
		t.Fatal(err)
	}
	p, err := codegen.Import(f, frontend.Options{KV: ir.F16, Ctx: 1024, MaxRows: 1})
	if err != nil {
		t.Fatal(err)
	}
	r, err := codegen.Compile(t.Context(), codegen.Source{Model: f, Program: p}, codegen.Options{Target: on, Choice: codegen.Choice{Tuned: tuning.NewTable(rows)}})
	if err != nil {
		t.Fatal(err)
	}
	groups := r.Plan.Program.Func("decode/1").Groups
	at := slices.IndexFunc(groups, func(g *ir.Group) bool { return g.Name == "blk.0.attn_q+attn_k+attn_v" })
	args := groups[at].Call.Args
	if ahead, next := args[len(args)-1].Name, groups[at+1].Name; ahead != "blk.0.attn_output.weight" || next != "per_layer_model_proj" {
		t.Errorf("%s prefetches %s, before %s", groups[at].Name, ahead, next)
	}
	if r.Plan.Program, err = ir.Parse(ir.Print(r.Plan.Program)); err != nil {
		t.Fatal(err)
	}
	if problems, err := codegen.CheckReproduced(t.Context(), r.Plan); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}

// TestEarlyOfUsers holds that in steps of several users these load early what the dispatch before does not write, which
// lets them begin behind its own wait: projections behind others of the same x, experts' down, what adds up experts.
// Others of their kernels wait at once, and so does argmax, which looks at candidates first. Loads of weights that
// would be moved behind products stay, and those of q8_0 say in wide steps alone that they are read once.
func TestEarlyOfUsers(t *testing.T) {
	p, _ := manyUsers(t, "qwen35-35b-a3b")
	early := map[string]map[string]bool{ // by site, entry
		"ssm_alpha+ssm_beta":              {"decode/8": true, "decode/16": true, "decode/64": true},
		"ffn_down_exps+ffn_down_shexp":    {"decode/16": true, "decode/64": true},
		"route+expert_sum+gate_rows+add":  {"decode/16": true, "decode/64": true},
		"argmax+advance":                  {},
		"attn_qkv+attn_gate":              {},
		"attn_q+attn_k+attn_v":            {},
		"ffn_gate_inp+ffn_gate_inp_shexp": {},
		"candidates":                      {},
		"ffn_gate_exps+ffn_up_exps+ffn_gate_shexp+ffn_up_shexp": {},
	}
	found := map[string]int{}
	for _, e := range p.Entries {
		if e.Name != "decode/8" && e.Name != "decode/16" && e.Name != "decode/64" {
			continue
		}
		groups := p.Program.Func(e.Name).Groups
		for i, g := range groups {
			part := g.Name[strings.LastIndexByte(g.Name, '.')+1:]
			in, ok := early[part]
			if !ok {
				continue
			}
			found[part]++
			if loads := len(g.Call.Overlap.Loads) > 0; loads != in[e.Name] {
				t.Errorf("%s: %s loads early: %v", e.Name, g.Name, loads)
			}
			if late := groups[i-1].Call.Overlap.LateTrigger; late != in[e.Name] {
				t.Errorf("%s: %s, before %s, lets it begin late: %v", e.Name, groups[i-1].Name, g.Name, late)
			}
			if !strings.HasPrefix(part, "attn_") {
				continue
			}
			code := string(p.Modules[p.Pipelines[e.Dispatches[i].Pipeline].Module].Bytes)
			if stay := strings.Contains(code, "ld.relaxed.gpu.global.L1::evict_first.L2::128B.v2"); e.Name == "decode/16" && !stay {
				t.Errorf("%s: loads of weights of %s do not stay where they are", e.Name, g.Name)
			}
			if once := strings.Contains(code, "evict_first"); once != (e.Name != "decode/8") {
				t.Errorf("%s: weights of %s are read once: %v", e.Name, g.Name, once)
			}
		}
	}
	if len(found) != len(early) {
		t.Errorf("found %v", found)
	}
}

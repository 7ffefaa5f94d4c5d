package zincc_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/audit"
	"github.com/zincc-dev/zincc/spirv"
)

// badPlan changes a plan that is right into one that `zincc check` has to refuse.
type badPlan struct {
	name string
	rule string // of those that refuse it, one that has to
	// change returns false if it finds nothing to change.
	change func(p *plans.Plan) bool
}

// badPlans are changes after which a plan still reads well.
var badPlans = []badPlan{
	{"cover tiles doubled and the grid halved, in dispatch and call", "reproduced", eachDispatch(func(p *plans.Plan, d *plans.Dispatch, g *ir.Group) bool {
		axis := slices.IndexFunc(d.Grid[:], func(n int) bool { return n%2 == 0 })
		if axis < 0 || slices.ContainsFunc(d.Cover, func(c plans.Cover) bool { return slices.Contains(c.Joined, axis) || len(c.First) > 0 }) {
			return false
		}
		d.Grid[axis] /= 2
		g.Call.Grid[axis] /= 2
		for _, c := range d.Cover {
			for i, a := range c.Axis {
				if a == axis {
					c.Tile[i] *= 2
				}
			}
		}
		return true
	})},
	{"k and v swapped in dispatch and call", "reproduced", swapArgs("kv", "k", "v")},
	{"two weights swapped in dispatch and call", "reproduced", swapWeights},
	{"the name of a candidate of another order in a call", "exact", eachDispatch(func(p *plans.Plan, d *plans.Dispatch, g *ir.Group) bool {
		for _, other := range p.Program.Funcs[0].Groups {
			if other.Call.Candidate != g.Call.Candidate {
				g.Call.Candidate = other.Call.Candidate
				return true
			}
		}
		return false
	})},
	{"the name of another candidate of that order in a call", "reproduced", eachDispatch(func(p *plans.Plan, d *plans.Dispatch, g *ir.Group) bool {
		g.Call.Candidate += ", early"
		return true
	})},
	{"a constant changed in pipeline and call", "reproduced", eachDispatch(func(p *plans.Plan, d *plans.Dispatch, g *ir.Group) bool {
		pl := &p.Pipelines[d.Pipeline]
		if len(pl.Consts) == 0 || pl.Consts[0].Name == "workgroup" {
			return false
		}
		old := pl.Consts[0]
		pl.Consts[0].Value += 4
		return everyCall(p, d.Pipeline, func(call *ir.Call) {
			for i := range call.Consts {
				if call.Consts[i].Name == old.Name {
					call.Consts[i].Value = old.Value + 4
				}
			}
		})
	})},
	{"a constant missing in pipeline and call", "module", eachDispatch(func(p *plans.Plan, d *plans.Dispatch, g *ir.Group) bool {
		pl := &p.Pipelines[d.Pipeline]
		if len(pl.Consts) == 0 {
			return false
		}
		old := pl.Consts[0]
		pl.Consts = pl.Consts[1:]
		return everyCall(p, d.Pipeline, func(call *ir.Call) {
			call.Consts = slices.DeleteFunc(call.Consts, func(k ir.Const) bool { return k.Name == old.Name })
		})
	})},
	{"two constants that have changed names", "module", func(p *plans.Plan) bool {
		for i := range p.Pipelines {
			if k := p.Pipelines[i].Consts; len(k) > 1 {
				k[0].Name, k[1].Name = k[1].Name, k[0].Name
				return true
			}
		}
		return false
	}},
	{"rows of different sequences, of which the call says nothing", "reproduced", eachDispatch(func(p *plans.Plan, d *plans.Dispatch, g *ir.Group) bool {
		d.Mixes = !d.Mixes
		return true
	})},
	{"a dispatch of another grain, and an entry that follows", "reproduced", func(p *plans.Plan) bool {
		e := &p.Entries[0]
		e.Dispatches[0].Grain++
		e.Grain = plans.GrainOf(e)
		return true
	}},
	{"a mask whose rows are tokens", "entry", func(p *plans.Plan) bool {
		for _, op := range p.Program.Funcs[0].Ops() {
			if len(op.Args) == 3 && op.Args[1].Name == ir.StepMasked {
				op.Args[1] = p.Program.Global(ir.StepToken)
				return true
			}
		}
		return false
	}},
	{"a mask of more rows than sequences", "entry", func(p *plans.Plan) bool {
		p.Program.Global(ir.StepMask).Type.Shape[0]++
		return true
	}},
	{"a weight in the layout of processors, in weight and program", "schema", func(p *plans.Plan) bool {
		return relayout(p, "planes", "rows16")
	}},
	{"an output ring four times as long", "entry", func(p *plans.Plan) bool { p.Header.Ring *= 4; return true }},
	{"no features required", "capabilities", func(p *plans.Plan) bool { p.Require.Vulkan.Features = nil; return true }},
	{"no subgroup operations required", "capabilities", func(p *plans.Plan) bool { p.Require.Vulkan.SubgroupOps = nil; return true }},
	{"no extensions required", "capabilities", func(p *plans.Plan) bool { p.Require.Vulkan.Extensions = nil; return true }},
	{"fragments not required", "capabilities", func(p *plans.Plan) bool { p.Require.Vulkan.Fragments = false; return true }},
	{"a workgroup of 1", "code", func(p *plans.Plan) bool { p.Pipelines[0].Workgroup = 1; return true }},
	{"no shared memory", "code", func(p *plans.Plan) bool {
		for i := range p.Pipelines {
			p.Pipelines[i].Shared = 0
		}
		return true
	}},
	{"logits in the next ids", "entry", func(p *plans.Plan) bool { p.Entries[0].Logits = p.Entries[0].Next; return true }},
	{"logits of another entry", "entry", func(p *plans.Plan) bool { p.Entries[0].Logits = p.Entries[1].Logits; return true }},
	{"next ids of another entry", "entry", func(p *plans.Plan) bool { p.Entries[0].Next = p.Entries[1].Next; return true }},
	{"no next ids", "entry", func(p *plans.Plan) bool { p.Entries[0].Next = ""; return true }},
	{"the kind of another entry", "entry", func(p *plans.Plan) bool { p.Entries[0].Kind = "prefill"; return true }},
	{"a vocabulary cut short", "entry", func(p *plans.Plan) bool { p.Vocab.Tokens, p.Vocab.Types = p.Vocab.Tokens[:100], nil; return true }},
	{"a vocabulary cut short, in the header too", "entry", func(p *plans.Plan) bool {
		p.Vocab.Tokens, p.Vocab.Types, p.Header.Model.Vocab = p.Vocab.Tokens[:100], nil, 100
		return true
	}},
	{"modules without code", "effects", func(p *plans.Plan) bool {
		for i := range p.Modules {
			change(&p.Modules[i], withoutCode)
		}
		return true
	}},
	{"the code of another kernel", "code", func(p *plans.Plan) bool {
		p.Modules[0].Bytes, p.Modules[1].Bytes = p.Modules[1].Bytes, p.Modules[0].Bytes
		return true
	}},
	{"code cut short", "code", func(p *plans.Plan) bool {
		return change(&p.Modules[1], func(words []uint32) []uint32 { return words[:len(words)-3] })
	}},
	{"an instruction of no words", "code", func(p *plans.Plan) bool {
		return change(&p.Modules[1], func(words []uint32) []uint32 { words[5] &= 0xffff; return words })
	}},
	{"code with a descriptor", "code", variable(storageBuffer)},
	{"code with two blocks of push constants", "code", variable(pushConstant)},
	{"an entry point of another name", "code", func(p *plans.Plan) bool { p.Modules[1].Interface.Entry = "run"; return true }},
	{"code in an unknown format", "schema", func(p *plans.Plan) bool { p.Modules[1].Format = "dxil"; return true }},
	{"an argument read that is declared written only", "effects", eachDispatch(func(p *plans.Plan, d *plans.Dispatch, g *ir.Group) bool {
		i := slices.IndexFunc(d.Args, func(a plans.Arg) bool { return a.Read && a.Write })
		if i < 0 {
			return false
		}
		d.Args[i].Read = false
		return true
	})},
	{"an argument read, declared written where another one is", "effects", eachDispatch(func(p *plans.Plan, d *plans.Dispatch, g *ir.Group) bool {
		x := slices.IndexFunc(d.Args, func(a plans.Arg) bool { return a.Read && !a.Write && a.Space == "arena" })
		y := slices.IndexFunc(d.Args, func(a plans.Arg) bool { return a.Write && !a.Read && a.Space == "arena" })
		if x < 0 || y < 0 {
			return false
		}
		d.Args[x].Region, d.Args[x].Offset, d.Args[x].Bytes, d.Args[x].Write = d.Args[y].Region, d.Args[y].Offset, d.Args[y].Bytes, true
		return true
	})},
}

// relayout changes the layout of the first weight that has layout from.
func relayout(p *plans.Plan, from, to string) bool {
	i := slices.IndexFunc(p.Weights, func(w plans.Weight) bool { return w.Layout == from })
	if i < 0 {
		return false
	}
	p.Weights[i].Layout = to
	for _, g := range p.Program.Globals {
		if g.Name == p.Weights[i].Name {
			g.Layout = to
		}
	}
	return true
}

// eachDispatch makes a change of the first dispatch for which change returns true.
func eachDispatch(change func(p *plans.Plan, d *plans.Dispatch, g *ir.Group) bool) func(p *plans.Plan) bool {
	return func(p *plans.Plan) bool {
		for i := range p.Entries {
			for j := range p.Entries[i].Dispatches {
				if change(p, &p.Entries[i].Dispatches[j], p.Program.Funcs[i].Groups[j]) {
					return true
				}
			}
		}
		return false
	}
}

// everyCall changes the calls of all dispatches of a pipeline.
func everyCall(p *plans.Plan, pipeline int, change func(*ir.Call)) bool {
	for i, e := range p.Entries {
		for j, d := range e.Dispatches {
			if d.Pipeline == pipeline {
				change(p.Program.Funcs[i].Groups[j].Call)
			}
		}
	}
	return true
}

// swapArgs swaps two arguments of a space in dispatch and call, but for their names.
func swapArgs(space, x, y string) func(p *plans.Plan) bool {
	return eachDispatch(func(p *plans.Plan, d *plans.Dispatch, g *ir.Group) bool {
		at := func(name string) int {
			return slices.IndexFunc(d.Args, func(a plans.Arg) bool { return a.Space == space && a.Name == name })
		}
		i, j := at(x), at(y)
		return i >= 0 && j >= 0 && swap(d, g, i, j)
	})
}

func swap(d *plans.Dispatch, g *ir.Group, i, j int) bool {
	d.Args[i], d.Args[j] = d.Args[j], d.Args[i]
	d.Args[i].Name, d.Args[j].Name = d.Args[j].Name, d.Args[i].Name
	args := g.Call.Args
	args[i], args[j] = args[j], args[i]
	return true
}

// swapWeights swaps two weights of one size.
func swapWeights(p *plans.Plan) bool {
	return eachDispatch(func(p *plans.Plan, d *plans.Dispatch, g *ir.Group) bool {
		for i, a := range d.Args {
			for j := range i {
				if b := d.Args[j]; a.Space == "weight" && b.Space == "weight" && a.Bytes == b.Bytes && a.Bytes > 4096 {
					return swap(d, g, i, j)
				}
			}
		}
		return false
	})(p)
}

// change changes the words of a module.
func change(m *plans.Module, how func([]uint32) []uint32) bool {
	words, err := spirv.Words(m.Bytes)
	m.Bytes = spirv.Bytes(how(words))
	return err == nil
}

// Storage classes of SPIR-V.
const (
	pushConstant  = 9
	storageBuffer = 12
)

// variable adds a variable of a storage class beside that of the push constants, of their type.
func variable(class uint32) func(p *plans.Plan) bool {
	return func(p *plans.Plan) bool {
		return change(&p.Modules[1], func(words []uint32) []uint32 {
			const opTypePointer, opVariable = 32, 59
			bound := words[3]
			words[3] += 2
			to := uint32(0)
			for at := 5; at < len(words); at += int(words[at] >> 16) {
				if words[at] == 4<<16|opTypePointer && words[at+2] == pushConstant && to == 0 {
					to = words[at+3]
				}
				if words[at] == 4<<16|opVariable && words[at+3] == pushConstant {
					return slices.Insert(words, at, 4<<16|opTypePointer, bound, class, to, 4<<16|opVariable, bound, bound+1, class)
				}
			}
			return words
		})
	}
}

// withoutCode removes all instructions of the module's function but its end.
func withoutCode(words []uint32) []uint32 {
	const opFunction, opFunctionEnd, opLabel, opReturn = 54, 56, 248, 253
	out := slices.Clone(words[:5])
	inside, labelled := false, false
	for at := 5; at < len(words); {
		n, op := int(words[at]>>16), words[at]&0xffff
		inside = inside || op == opFunction
		switch {
		case op == opFunctionEnd:
			out = append(out, 1<<16|opReturn, 1<<16|opFunctionEnd)
			inside, labelled = false, false
		case !inside || op == opFunction || op == opLabel && !labelled:
			labelled = labelled || op == opLabel
			out = append(out, words[at:at+n]...)
		}
		at += n
	}
	return out
}

// goodPlan is a plan of gopher that the checker takes.
func goodPlan(t *testing.T, name string, rows int) *plans.Plan {
	t.Helper()
	return goodPlanOf(t, name, frontend.Options{KV: ir.F16, MaxRows: rows})
}

func goodPlanOf(t *testing.T, name string, o frontend.Options) *plans.Plan {
	t.Helper()
	on, err := target.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(modelPath("gopher"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	plan := emit(t, f, on, o)
	if err := codegen.Reproducible(plan); err != nil {
		t.Fatal(err)
	}
	derived, err := codegen.CheckReproduced(t.Context(), plan)
	if bad := append(audit.Check(plan), derived...); err != nil || len(bad) > 0 {
		t.Fatal(bad, err)
	}
	return plan
}

// TestBadPlans changes a plan in every way of badPlans.
func TestBadPlans(t *testing.T) {
	plan := goodPlan(t, "sm_90", 16) // has matrices, and lanes that know their fragments
	var file bytes.Buffer
	if err := plans.Write(&file, plan); err != nil {
		t.Fatal(err)
	}
	for _, c := range badPlans {
		t.Run(c.name, func(t *testing.T) {
			p, err := plans.Decode(file.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if !c.change(p) {
				t.Fatal("nothing to change")
			}
			bad := audit.Check(p)
			if len(bad) == 0 { // as the command does
				if bad, err = codegen.CheckReproduced(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.ContainsFunc(bad, func(b plans.Problem) bool { return b.Rule == c.rule }) {
				t.Errorf("rule %q does not refuse it: %v", c.rule, bad)
			}
		})
	}
}

// TestCandidatesOfRows: plans for many users leave candidates of the rows of wide steps and of prompts, nowhere else,
// and say where. Others leave none: those of few users, and those of processors, where the host reads logits in place.
func TestCandidatesOfRows(t *testing.T) {
	for _, c := range []struct {
		target string
		slots  int
		want   string
	}{{"sm_90", 4, ""}, {"cpu:x86-64-v3", 8, ""}, {"sm_90", 16, "decode/8 decode/16 prefill/16 prefill/48"}} {
		plan := goodPlanOf(t, c.target, frontend.Options{KV: ir.F16, MaxRows: 48, Slots: c.slots})
		var list []string
		for _, e := range plan.Entries {
			if e.Candidates != "" {
				list = append(list, e.Name)
			}
		}
		if have := strings.Join(list, " "); have != c.want {
			t.Fatalf("%s, %d slots: %q leave candidates, want %q", c.target, c.slots, have, c.want)
		}
		if c.want == "" {
			continue
		}
		at := slices.IndexFunc(plan.Entries, func(e plans.Entry) bool { return e.Candidates != "" })
		e, other := &plan.Entries[at], plan.Entries[at+1].Candidates
		for _, bad := range []string{"", other, e.Next, e.Logits} {
			good := e.Candidates
			e.Candidates = bad
			if !slices.ContainsFunc(audit.Check(plan), func(p plans.Problem) bool { return p.Rule == "entry" }) {
				t.Errorf("candidates in %q are not refused", bad)
			}
			e.Candidates = good
		}
		choice, others := choiceOf(plan, e.Name), choiceOf(plan, plan.Entries[at+1].Name)
		good := choice.Args[3]
		for _, bad := range []*ir.Value{others.Args[3], choice.Args[0], choice.Args[1]} {
			choice.Args[3] = bad
			if len(audit.Check(plan)) == 0 {
				t.Errorf("a choice by %s is not refused", bad)
			}
			choice.Args[3] = good
		}
		if bad := audit.Check(plan); len(bad) > 0 {
			t.Error(bad)
		}
	}
}

// choiceOf is the op by which an entry chooses from logits.
func choiceOf(plan *plans.Plan, entry string) *ir.Op {
	ops := plan.Program.Func(entry).Ops()
	return ops[slices.IndexFunc(ops, func(op *ir.Op) bool { return strings.HasPrefix(op.Kind.Name, "argmax") })]
}

// TestBadLayout: a weight of a processor's plan has the layout that kernels read, of two that its format has.
func TestBadLayout(t *testing.T) {
	plan := goodPlan(t, "cpu:x86-64-v3", 1)
	if !relayout(plan, "rows16", "planes") {
		t.Fatal("nothing to change")
	}
	bad, err := codegen.CheckReproduced(t.Context(), plan)
	if err != nil || !slices.ContainsFunc(bad, func(b plans.Problem) bool { return b.Rule == "reproduced" }) {
		t.Errorf("%v, %v", bad, err)
	}
}

// TestBadCUDAPlans changes the code of a plan whose kernels overlap.
func TestBadCUDAPlans(t *testing.T) {
	plan := goodPlan(t, "sm_90-cuda", 1)
	const wait = "\tgriddepcontrol.wait;\n"
	for _, c := range []struct{ name, rule, old, new string }{
		{"a kernel that waits at its end", "overlap", wait, ""},
		{"a kernel that never waits", "overlap", "griddepcontrol.", "//"},
		{"a kernel of which some lanes wait", "overlap", "\tgriddepcontrol.wait", "\t@%p0 griddepcontrol.wait"},
		{"a kernel that lets one begin too early that loads early", "overlap", wait + "\tgriddepcontrol.launch_dependents;\n", "\tgriddepcontrol.launch_dependents;\n" + wait},
		{"an early load that the L1 cache may answer", "overlap", "ld.relaxed.gpu.global.", "ld.weak.global."},
		{"a store before the wait", "code", "ld.relaxed.gpu.global.", "st.relaxed.gpu.global."},
		{"a store through no argument", "effects", "st.global.", "st.local."},
		{"another workgroup", "code", ".reqntid ", ".reqntid 1"},
		{"a later architecture", "capabilities", ".target sm_90", ".target sm_120"},
	} {
		bad := *plan
		bad.Modules = slices.Clone(plan.Modules)
		for i, m := range bad.Modules {
			text := strings.ReplaceAll(string(m.Bytes), c.old, c.new)
			if c.new == "" {
				text = strings.ReplaceAll(text, "\tret;", wait+"\tret;")
			}
			bad.Modules[i].Bytes = []byte(text)
		}
		if problems := audit.Check(&bad); !slices.ContainsFunc(problems, func(b plans.Problem) bool { return b.Rule == c.rule }) {
			t.Errorf("%s: rule %q does not refuse it: %v", c.name, c.rule, problems)
		}
	}

	var file bytes.Buffer
	if err := plans.Write(&file, plan); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, rule string
		change     func(o *ir.Order)
	}{
		{"kernels that load before they wait, said to wait first", "overlap", func(o *ir.Order) {
			if o.Early == ir.LoadsFirst {
				o.Early = ir.WaitsFirst
			}
		}},
		{"early starts of dispatches of wide stages", "launch", func(o *ir.Order) { o.Early = ir.LoadsFirst }},
		{"dispatches that wait for one stage less", "hazard", func(o *ir.Order) { o.Waits = max(0, o.Waits-1) }},
		{"groups that wait for one stage less", "order", func(o *ir.Order) { o.Waits = max(0, o.Waits-1) }},
		{"early starts on other queues", "launch", func(o *ir.Order) { o.Queue = 1 }},
	} {
		bad, err := plans.Decode(file.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for i := range bad.Entries {
			for j, g := range bad.Program.Funcs[i].Groups {
				c.change(&g.Order)
				bad.Entries[i].Dispatches[j].Order = g.Order
			}
		}
		if problems := audit.Check(bad); !slices.ContainsFunc(problems, func(b plans.Problem) bool { return b.Rule == c.rule }) {
			t.Errorf("%s: rule %q does not refuse it: %v", c.name, c.rule, problems)
		}
	}

	for name, change := range map[string]func(c *ir.Call){
		"calls that let the next dispatch begin late": func(c *ir.Call) { c.Overlap.LateTrigger = !c.Overlap.LateTrigger },
		"calls whose kernels wait first":              func(c *ir.Call) { c.Overlap = ir.Overlap{Waits: ir.WaitsFirst} },
		"calls that load the first argument early": func(c *ir.Call) {
			if c.Overlap.Waits == ir.LoadsFirst {
				c.Overlap.Loads = []int{0}
			}
		},
		"calls with registers for other lanes":  func(c *ir.Call) { c.Form.Room ^= 512 },
		"calls that prefetch what no form does": func(c *ir.Call) { c.Form.Ahead += 1 << 20 },
	} {
		bad, err := plans.Decode(file.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range bad.Program.Funcs {
			for _, g := range f.Groups {
				change(g.Call)
			}
		}
		if problems, err := codegen.CheckReproduced(t.Context(), bad); err != nil || len(problems) == 0 {
			t.Errorf("%s: rule %q does not refuse it: %v", name, codegen.ReproducedRule.Name, err)
		}
	}

	bad := *plan // each dispatch writes what the next one reads
	bad.Entries = slices.Clone(plan.Entries)
	for i, e := range bad.Entries {
		list := slices.Clone(e.Dispatches)
		for j := range list[1:] {
			args := slices.Clone(list[j].Args)
			for _, a := range list[j+1].Args {
				a.Name, a.Write = a.Name+"_again", true
				args = append(args, a)
			}
			list[j].Args = args
		}
		bad.Entries[i].Dispatches = list
	}
	written := func(b plans.Problem) bool {
		return b.Rule == "overlap" && strings.Contains(b.Message, "which writes it")
	}
	if problems := audit.Check(&bad); !slices.ContainsFunc(problems, written) {
		t.Errorf("an early load of what the dispatch before writes: rule overlap does not refuse it: %v", problems)
	}
}

package hostile

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/zincc-dev/zincc/plans"
)

// evil are values that sizes get.
var evil = []uint32{0, 1, 1 << 16, 50_000_000, 1 << 31}

// victims are plans of every backend, whose constants are changed.
var victims = []struct{ model, target string }{
	{"gopher", "llvmpipe"}, {"gopher-moe", "generic"}, {"gopher", "sm_90"}, {"small-delta", "gfx1201"}, {"gopher", "xe2"},
	{"gopher", "sm_90-cuda"}, {"small-delta", "sm_75-cuda"}, {"gopher-moe", "sm_120-cuda"},
	{"gopher", "cpu:x86-64-v3"}, {"gopher-moe", "cpu:x86-64-v4"},
}

// TestConstants sets each constant of each module to evil values, in pipelines and calls, and in the code where that
// holds it; with the compiler's name as it was and another. Such a plan must not run. -short takes one of 60 changes,
// by turns.
func TestConstants(t *testing.T) {
	tried, turn := 0, 0
	for _, v := range victims {
		plan := compile(t, v.model, v.target, 1)
		if !reproduced(t, plan) {
			t.Fatalf("%s for %s: the plan itself is refused", v.model, v.target)
		}
		seen := map[string]bool{}
		for i, pl := range plan.Pipelines {
			for j, k := range pl.Consts {
				what := fmt.Sprintf("%s of %s", k.Name, plan.Modules[pl.Module].Name)
				if seen[what] {
					continue
				}
				seen[what] = true
				for _, value := range evil {
					if turn++; value == k.Value || testing.Short() && turn%60 != 0 {
						continue
					}
					tried++
					restore := setConstant(plan, i, j, value)
					if reproduced(t, plan) {
						t.Errorf("%s for %s: %s is %d: check lets it run", v.model, v.target, what, value)
					}
					ours := plan.Header.Compiler
					plan.Header.Compiler = "zincc of somebody else"
					if reproduced(t, plan) {
						t.Errorf("%s for %s: %s is %d, by another compiler: check lets it run", v.model, v.target, what, value)
					}
					plan.Header.Compiler = ours
					restore()
				}
			}
		}
		if !reproduced(t, plan) {
			t.Fatalf("%s for %s: the plan is not what it was", v.model, v.target)
		}
	}
	t.Logf("%d changes", tried)
	if tried < 40 {
		t.Errorf("only %d changes", tried)
	}
}

// setConstant changes constant j of pipeline i wherever the plan says it, until restore is called.
func setConstant(p *plans.Plan, i, j int, value uint32) (restore func()) {
	old, module := p.Pipelines[i].Consts[j], &p.Modules[p.Pipelines[i].Module]
	code := module.Bytes
	undo := []func(){func() { p.Pipelines[i].Consts[j], module.Bytes = old, code }}
	p.Pipelines[i].Consts[j].Value = value
	if f, err := plans.FormatOf(module.Format); err == nil && !f.Open {
		number := regexp.MustCompile(`\b` + strconv.FormatUint(uint64(old.Value), 10) + `\b`)
		module.Bytes = number.ReplaceAll(module.Bytes, strconv.AppendUint(nil, uint64(value), 10))
	}
	for e := range p.Entries {
		for d := range p.Entries[e].Dispatches {
			if p.Entries[e].Dispatches[d].Pipeline != i {
				continue
			}
			call := p.Program.Funcs[e].Groups[d].Call
			for n := range call.Consts {
				if was := call.Consts[n]; was.Name == old.Name {
					call.Consts[n].Value = value
					undo = append(undo, func() { call.Consts[n] = was })
				}
			}
		}
	}
	return func() {
		for _, u := range undo {
			u()
		}
	}
}

// FuzzConstants does what TestConstants does, with any value.
func FuzzConstants(f *testing.F) {
	for i := range victims {
		f.Add(uint8(i), uint16(7*i), uint16(3*i), evil[i%len(evil)])
	}
	made := map[int]*plans.Plan{}
	f.Fuzz(func(t *testing.T, victim uint8, pipeline, constant uint16, value uint32) {
		n := int(victim) % len(victims)
		if made[n] == nil {
			made[n] = compile(t, victims[n].model, victims[n].target, 1)
		}
		p := made[n]
		i := int(pipeline) % len(p.Pipelines)
		if len(p.Pipelines[i].Consts) == 0 {
			return
		}
		j := int(constant) % len(p.Pipelines[i].Consts)
		if p.Pipelines[i].Consts[j].Value == value {
			return
		}
		restore := setConstant(p, i, j, value)
		defer restore()
		if reproduced(t, p) {
			t.Errorf("%s for %s: constant %d of pipeline %d is %d: check lets it run", victims[n].model, victims[n].target, j, i, value)
		}
	})
}

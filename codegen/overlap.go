package codegen

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/passes"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// overlapCalls says of each call how its kernel takes part where dispatches begin early: what it loads before it waits,
// and when it lets the next one begin. What it says of a dispatch holds for those of copies of the entry, too: tuning
// puts dispatches of one between those of another.
func overlapCalls(p *ir.Program, t *target.Target, calls chosen) error {
	if !t.Overlaps() {
		return nil
	}
	type site struct{ entry, name string }
	late := map[site]bool{}
	for _, f := range p.Funcs {
		when, uses := passes.EarlyOf(f, true), f.Uses()
		entry, _ := tuning.Variant(f.Name)
		var before *kernels.Candidate
		for i, g := range f.Groups {
			c, err := calls.candidate(p, f, g, uses, t)
			if err != nil {
				return err
			}
			if g.Call.Overlap.Waits = when; g.Early == ir.LoadsFirst && c.Early {
				if loads := earlyLoads(g, c, before); c.EarlyOf == "" || loadsOf(c, loads) {
					g.Call.Overlap.Loads = loads
					late[site{entry, f.Groups[i-1].Name}] = true
				}
			}
			before = c
		}
	}
	for _, f := range p.Funcs {
		entry, _ := tuning.Variant(f.Name)
		for _, g := range f.Groups {
			g.Call.Overlap.LateTrigger = late[site{entry, g.Name}]
		}
	}
	return nil
}

// loadsOf reports whether the loads have the argument for which c loads early.
func loadsOf(c *kernels.Candidate, loads []int) bool {
	return slices.ContainsFunc(loads, func(i int) bool { return c.Operands[i].Name == c.EarlyOf })
}

// earlyLoads says which arguments of c, of group g, its kernel loads early: variables that neither the dispatch before
// writes nor the group makes.
func earlyLoads(g *ir.Group, c, before *kernels.Candidate) (list []int) {
	written := map[*ir.Value]bool{}
	for _, o := range before.Operands {
		written[o.Value] = written[o.Value] || o.Access&kernel.Write != 0
	}
	for i, o := range c.Operands {
		if !constant(o.Value) && !written[o.Value] && (o.Value.Def == nil || !slices.Contains(g.Ops, o.Value.Def)) {
			list = append(list, i)
		}
	}
	return list
}

// constant reports whether no dispatch writes a value.
func constant(v *ir.Value) bool { return v.Class == ir.Weight || v.Class == ir.Table }

// overlapKey tells the code of calls apart whose kernels take part in other ways where dispatches begin early, or find
// constants in other arguments.
func overlapKey(call *ir.Call) string {
	o := call.Overlap
	if o.Waits != ir.LoadsFirst {
		return " " + string(o.Waits)
	}
	var constants []int
	for i, v := range call.Args {
		if constant(v) {
			constants = append(constants, i)
		}
	}
	return fmt.Sprint(" ", o, constants)
}

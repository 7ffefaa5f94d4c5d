// Package audit checks plans as package plans does, and also reads their modules: the code
// may need only what the plan requires, and may do with its arguments only what the
// dispatches declare.
package audit

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/modules"
)

// rule is one row of the table of rules that read modules.
type rule struct {
	plans.Rule
	check func(a *auditor)
}

var rules = []rule{
	{plans.Rule{Name: "code", Doc: "the code has the entry point, arguments and open constants that its module names, and the workgroup size and shared memory of its pipelines"}, checkCode},
	{plans.Rule{Name: "effects", Doc: "a module stores to the arguments that its dispatches declare as written, loads those that they declare as read, and reaches no other memory"}, checkEffects},
	{plans.Rule{Name: "overlap", Doc: "the module of a dispatch that begins early waits for the dispatch before it. Until then, prefetches apart, it loads nothing (`waits`), or only weights, tables and data that the one before does not write (`loads`). Loads of such data bypass the L1 cache, and the one before permits the early start only after its own wait"}, checkOverlap},
	{plans.Rule{Name: "capabilities", Doc: "the plan requires every device feature that its modules use"}, checkCapabilities},
}

// Rules lists what Check proves: the rules of package plans, and those that read modules.
func Rules() []plans.Rule {
	list := plans.Rules()
	for _, r := range rules {
		list = append(list, r.Rule)
	}
	return list
}

// Check returns all problems of p. It needs no device. A plan that breaks rule "schema"
// is checked no further, nor is a module that cannot be read.
func Check(p *plans.Plan) []plans.Problem {
	a := &auditor{plan: p, problems: plans.Check(p)}
	if slices.ContainsFunc(a.problems, func(x plans.Problem) bool { return x.Rule == "schema" }) {
		return a.problems
	}
	a.read()
	for _, r := range rules {
		r.check(a)
	}
	return a.problems
}

type auditor struct {
	plan      *plans.Plan
	pipelines []*modules.Code // nil where the module cannot be read
	problems  []plans.Problem
}

func (a *auditor) add(rule, entry, site, format string, args ...any) {
	a.problems = append(a.problems, plans.Problem{Rule: rule, Entry: entry, Site: site, Message: fmt.Sprintf(format, args...)})
}

// name of a pipeline, for people.
func (a *auditor) name(i int) string {
	return fmt.Sprintf("pipeline %d, %s", i, a.plan.Modules[a.plan.Pipelines[i].Module].Name)
}

// read reads every pipeline's module under its constants.
func (a *auditor) read() {
	for i := range a.plan.Pipelines {
		pl := &a.plan.Pipelines[i]
		code, err := modules.Read(&a.plan.Modules[pl.Module], modules.Constants(pl))
		if err != nil {
			a.add("code", "", a.name(i), "%v", err)
		}
		a.pipelines = append(a.pipelines, code)
	}
}

func checkCode(a *auditor) {
	for i, pl := range a.plan.Pipelines {
		code := a.pipelines[i]
		if code == nil {
			continue
		}
		in := &a.plan.Modules[pl.Module].Interface
		if code.Opaque {
			if code.Entry != in.Entry {
				a.add("code", "", a.name(i), "entry point %q, the code has %q", in.Entry, code.Entry)
			}
			a.faults(i)
			continue
		}
		if code.Entry != in.Entry || code.Args != in.Args {
			a.add("code", "", a.name(i), "entry point %q with %d arguments, the code has %q with %d", in.Entry, in.Args, code.Entry, code.Args)
		}
		if !slices.Equal(code.Open, in.Open) {
			a.add("code", "", a.name(i), "open constants are %v, those of the code %v", in.Open, code.Open)
		}
		if code.Workgroup != pl.Workgroup {
			a.add("code", "", a.name(i), "workgroup of %d, the code has %d", pl.Workgroup, code.Workgroup)
		}
		if code.Shared != pl.Shared {
			a.add("code", "", a.name(i), "%d bytes of shared memory, the code has %d", pl.Shared, code.Shared)
		}
		a.faults(i)
	}
}

func (a *auditor) faults(pipeline int) {
	for _, fault := range a.pipelines[pipeline].Faults {
		a.add("code", "", a.name(pipeline), "%s", fault)
	}
}

func checkOverlap(a *auditor) {
	for _, e := range a.plan.Entries {
		for n := 1; n < len(e.Dispatches); n++ { // rule "launch": the first begins behind nothing
			if d := &e.Dispatches[n]; d.BeginsEarly() && d.Pipeline >= 0 && a.pipelines[d.Pipeline] != nil {
				a.early(e.Name, d, &e.Dispatches[n-1])
			}
		}
	}
}

// early judges a dispatch that begins while the one before runs.
func (a *auditor) early(entry string, d, before *plans.Dispatch) {
	code := a.pipelines[d.Pipeline]
	if !code.Overlaps {
		a.add("overlap", entry, d.Site, "does not wait for %s, while which it begins", before.Site)
	}
	for i, arg := range d.Args {
		if !code.Early[i] {
			continue
		}
		if !d.LoadsEarly() {
			a.add("overlap", entry, d.Site, "is to wait first of all, and loads argument %s before", arg.Name)
		}
		if arg.Space == "weight" || arg.Space == "table" {
			continue
		}
		if code.Cached[i] {
			a.add("overlap", entry, d.Site, "loads argument %s before it waits, through the L1 cache, which may hold what was there before", arg.Name)
		}
		if c := a.pipelines[before.Pipeline]; c != nil && c.Hasty {
			a.add("overlap", entry, d.Site, "loads argument %s before it waits, and %s lets it begin before that has waited", arg.Name, before.Site)
		}
		for _, w := range before.Args {
			if w.Write && w.Space == arg.Space && w.Region == arg.Region && w.Offset < arg.Offset+arg.Bytes && arg.Offset < w.Offset+w.Bytes {
				a.add("overlap", entry, d.Site, "loads argument %s, of space %s, before it waits for %s, which writes it", arg.Name, arg.Space, before.Site)
			}
		}
	}
}

// readElsewhere reports whether a module reads the memory of argument i, which the dispatch does not write, by another
// argument: keys of latent attention are its values, too.
func readElsewhere(args []plans.Arg, i int, loads map[int]bool) bool {
	a := args[i]
	for j, b := range args {
		if j != i && loads[j] && !a.Write && !b.Write && a.Space == b.Space && a.Region == b.Region && a.Offset == b.Offset && a.Bytes == b.Bytes {
			return true
		}
	}
	return false
}

func checkEffects(a *auditor) {
	for i, code := range a.pipelines {
		if code != nil && code.Stray != "" {
			a.add("effects", "", a.name(i), "%s", code.Stray)
		}
	}
	for _, e := range a.plan.Entries {
		for _, d := range e.Dispatches {
			if d.Pipeline < 0 || a.pipelines[d.Pipeline] == nil || a.pipelines[d.Pipeline].Opaque {
				continue
			}
			code := a.pipelines[d.Pipeline]
			for i, arg := range d.Args {
				for _, way := range []struct {
					name     string
					declared bool
					have     map[int]bool
				}{{"read", arg.Read, code.Loads}, {"written", arg.Write, code.Stores}} {
					switch have := way.have[i]; {
					case have && !way.declared:
						a.add("effects", e.Name, d.Site, "argument %q is %s by the module, which the dispatch does not say", arg.Name, way.name)
					case way.declared && !have && !readElsewhere(d.Args, i, way.have):
						a.add("effects", e.Name, d.Site, "argument %q is never %s by the module", arg.Name, way.name)
					}
				}
			}
			for _, have := range []map[int]bool{code.Loads, code.Stores} {
				for i := range have {
					if i >= len(d.Args) {
						a.add("effects", e.Name, d.Site, "the module reaches argument %d of %d", i, len(d.Args))
					}
				}
			}
		}
	}
}

func checkCapabilities(a *auditor) {
	done := map[int]bool{}
	for i, code := range a.pipelines {
		module := a.plan.Pipelines[i].Module
		if code == nil || done[module] {
			continue
		}
		done[module] = true
		for _, what := range code.Lacks(&a.plan.Require) {
			a.add("capabilities", "", a.plan.Modules[module].Name, "%s", what)
		}
	}
}

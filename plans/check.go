package plans

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// Problem is one violation of a rule by a plan.
type Problem struct {
	Rule    string `json:"rule"`  // a row of Rules
	Entry   string `json:"entry"` // empty when it is not of one entry
	Site    string `json:"site"`  // call site, weight or value; empty when it is none
	Message string `json:"message"`
}

func (p Problem) String() string {
	return fmt.Sprintf("%s/%s: %s: %s", p.Entry, p.Site, p.Rule, p.Message)
}

// Rule is one row of the checker's table: what it proves, and how.
type Rule struct {
	Name string
	Doc  string
	// host rules need no dispatches.
	host  bool
	check func(c *checker)
}

// Rules lists what Check proves, in order. Check stops at a plan that breaks "schema",
// and skips the later rules for a dispatch that breaks "call".
func Rules() []Rule { return slices.Clone(rules) }

var rules = []Rule{
	{Name: "schema", Doc: "indices, names and sizes are in range, and the op program verifies", host: true},
	{Name: "memory", Doc: "regions hold their values and add up to what the plan requires", host: true, check: checkMemory},
	{Name: "regions", Doc: "a cache or state states the rows, window and way back that its readers and writers have; of a pool of pages dispatches take all, and kernels can index it", host: true, check: checkRegions},
	{Name: "aliasing", Doc: "no two values that are live at once share a byte of the arena", host: true, check: checkAliasing},
	{Name: "entry", Doc: "an entry has the kind, logits, next ids, output ring and vocabulary of the program", host: true, check: checkEntries},
	{Name: "order", Doc: "a group waits for those whose values it reads, and for those that read what it writes", host: true, check: checkOrder},
	{Name: "bounds", Doc: "every argument lies inside its region", check: func(c *checker) { c.problems = append(c.problems, checkBounds(c.plan)...) }},
	{Name: "call", Doc: "a dispatch has the kernel, constants, grid and arguments of its group", check: checkCalls},
	{Name: "module", Doc: "pipelines and dispatches give each module the constants and arguments that it asks for", check: checkModules},
	{Name: "readonly", Doc: "weights and tables are never written", check: checkReadOnly},
	{Name: "coverage", Doc: "the tiles that workgroups declare cover each output exactly once, no workgroup lies outside it, and every weight is read", check: checkCoverage},
	{Name: "hazard", Doc: "if two dispatches touch the same bytes and one of them writes, one waits for the other", check: checkHazards},
	{Name: "launch", Doc: "every queue is one that the backend has; a dispatch begins early only where the device supports it, alone in its stage, after the only dispatch of the stage before, on the same queue", host: true, check: checkLaunches},
	{Name: "sequences", Doc: "where the rows of a step may belong to several sequences, every kernel of an op with slots takes several", check: checkSequences},
	{Name: "grain", Doc: "the grain of an entry is the least multiple of those of all its dispatches, and divides its run; it is 0 if there is none", host: true, check: checkGrains},
	{Name: "exact", Doc: "a call site adds in one order in all exact entries, so that rows have the same bits in steps of every width", check: checkExact},
	{Name: "alike", Doc: "all entries of class `alike` have the same call sites with the same sums, so that rows of a prompt have the same bits in any of them", check: checkAlike},
	{Name: "step-block", Doc: "no specialization constant has the name of a value of the step block (names of one letter, such as `n`, are not looked at)", check: checkStepBlock},
	{Name: "requirements", Doc: "the plan requires what its pipelines need", check: checkRequirements},
	{Name: "unused", Doc: "every module has a pipeline and every pipeline a dispatch", check: checkUnused},
}

// checker collects the problems of a plan that has passed validate.
type checker struct {
	plan     *Plan
	sites    []site
	problems []Problem
}

// site is a dispatch with what the program says of it.
type site struct {
	entry *Entry
	fn    *ir.Func
	group *ir.Group
	*Dispatch
	outputs []*ir.Value
	scratch []*ir.Value
	agrees  bool // Args[i] is Call.Args[i]: set by rule "call"
}

// Check returns all problems of p; a plan without problems is safe to
// replay. It needs no device.
func Check(p *Plan) []Problem {
	if err := validate(p); err != nil {
		return []Problem{{Rule: "schema", Message: err.Error()}}
	}
	c := &checker{plan: p}
	for i := range p.Entries {
		e, f := &p.Entries[i], p.Program.Funcs[i]
		uses := f.Uses()
		for j := range e.Dispatches {
			g := f.Groups[j]
			c.sites = append(c.sites, site{entry: e, fn: f, group: g, Dispatch: &e.Dispatches[j], outputs: g.Outputs(uses), scratch: g.Scratch(uses)})
		}
	}
	for _, r := range rules {
		if r.check != nil && (r.host || !p.IsHost()) {
			r.check(c)
		}
	}
	return c.problems
}

func (c *checker) add(rule, entry, site, format string, args ...any) {
	c.problems = append(c.problems, Problem{rule, entry, site, fmt.Sprintf(format, args...)})
}

func (c *checker) addAt(rule string, s *site, format string, args ...any) {
	c.add(rule, s.entry.Name, s.Site, format, args...)
}

// checkBounds needs no more than the ranges that validate has seen; Decode runs it
// too, since an argument outside of its region reads the memory of others.
func checkBounds(p *Plan) []Problem {
	regions := p.regions()
	var bad []Problem
	for _, e := range p.Entries {
		for _, d := range e.Dispatches {
			for _, a := range d.Args {
				if size := regions[regionKey{a.Space, a.Region}]; a.Offset > size || a.Bytes > size-a.Offset {
					bad = append(bad, Problem{"bounds", e.Name, d.Site,
						fmt.Sprintf("argument %q: %d bytes at %d of %s %q, which has %d", a.Name, a.Bytes, a.Offset, a.Space, a.Region, size)})
				}
			}
		}
	}
	return bad
}

// checkSequences finds kernels that take the rows of a step as one sequence where they may
// be of many.
func checkSequences(c *checker) {
	for i := range c.sites {
		s := &c.sites[i]
		if c.plan.Program.Mixes(s.fn) && s.group.UsesSlots() && !s.Mixes {
			c.addAt("sequences", s, "the kernel takes the rows of a step as one sequence, here they may be of %d", min(s.fn.Rows, c.plan.Program.Slots))
		}
	}
}

// checkCalls holds every dispatch against the call of its group.
func checkCalls(c *checker) {
	for i := range c.sites {
		s := &c.sites[i]
		call, pl := s.group.Call, &c.plan.Pipelines[s.Pipeline]
		before := len(c.problems)
		if m := c.plan.Modules[pl.Module].Name; m != call.Kernel {
			c.addAt("call", s, "module is %q, kernel is %q", m, call.Kernel)
		}
		if pl.Wave != call.Wave || s.Grid != call.Grid {
			c.addAt("call", s, "subgroup %d and grid %d, call has %d and %d", pl.Wave, s.Grid, call.Wave, call.Grid)
		}
		for _, k := range call.Consts {
			if !slices.ContainsFunc(pl.Consts, func(o Const) bool { return o.Name == k.Name && o.Value == k.Value }) {
				c.addAt("call", s, "pipeline does not have constant %s", k)
			}
		}
		if len(s.Args) != len(call.Args) {
			c.addAt("call", s, "%d arguments, call has %d", len(s.Args), len(call.Args))
			continue
		}
		for j, a := range s.Args {
			space, region, offset := place(s.entry.Name, call.Args[j])
			if a.Space != space || a.Region != region || a.Offset != offset {
				c.addAt("call", s, "argument %q is %s %q at %d, value %s is %s %q at %d",
					a.Name, a.Space, a.Region, a.Offset, call.Args[j], space, region, offset)
			}
		}
		s.agrees = len(c.problems) == before
	}
}

// place returns where a value of the entry's function lies.
func place(entry string, v *ir.Value) (space, region string, offset int64) {
	switch {
	case v.IsGlobal():
		return v.Class.String(), v.Name, 0
	case v.Class == ir.IO:
		return "io", IORegion(entry, v), 0
	}
	return "arena", "", v.Offset
}

// IORegion is the name of the region of an io value of the entry's function.
func IORegion(entry string, v *ir.Value) string { return entry + ":" + v.String() }

func checkReadOnly(c *checker) {
	for i := range c.sites {
		for _, a := range c.sites[i].Args {
			if a.Write && (a.Space == "weight" || a.Space == "table") {
				c.addAt("readonly", &c.sites[i], "argument %q writes %s %q", a.Name, a.Space, a.Region)
			}
		}
	}
}

func checkStepBlock(c *checker) {
	perStep := map[string]bool{}
	for _, g := range c.plan.Program.Globals {
		// Names of one letter are those of matrix dims, too.
		if g.Class == ir.Step && len(g.Name) > 1 {
			perStep[g.Name] = true
		}
	}
	for i := range c.sites {
		s := &c.sites[i]
		for _, k := range c.plan.Pipelines[s.Pipeline].Consts {
			if perStep[k.Name] {
				c.addAt("step-block", s, "constant %s has the name of a value that changes from step to step", k.Name)
			}
		}
	}
}

func checkUnused(c *checker) {
	pipelines, modules := map[int]bool{}, map[int]bool{}
	for _, s := range c.sites {
		pipelines[s.Pipeline] = true
	}
	for i, pl := range c.plan.Pipelines {
		modules[pl.Module] = true
		if !pipelines[i] {
			c.add("unused", "", fmt.Sprintf("pipeline %d", i), "no dispatch uses it")
		}
	}
	for i, m := range c.plan.Modules {
		if !modules[i] {
			c.add("unused", "", m.Name, "no pipeline uses the module")
		}
	}
}

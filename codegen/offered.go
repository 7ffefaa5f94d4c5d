package codegen

import (
	"fmt"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	text "github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/report"
)

// Offered lists the target's candidates for each function and group of a program.
func Offered(p *ir.Program, t *target.Target) (lists [][][]report.Candidate) {
	for _, f := range p.Funcs {
		lists = append(lists, candidatesOf(p, f, t))
	}
	return lists
}

// candidatesOf lists the candidates of each group of the function, best guess
// first. Groups of a plan for the host have none.
func candidatesOf(p *ir.Program, f *ir.Func, t *target.Target) [][]report.Candidate {
	lists := make([][]report.Candidate, len(f.Groups))
	if t.IsHost() {
		return lists
	}
	uses := f.Uses()
	for i, g := range f.Groups {
		for _, c := range strategy.Candidates(&kernels.Site{Program: p, Func: f, Group: g, Outputs: g.Outputs(uses), Target: t}) {
			one := report.Candidate{Name: c.Name(), Kernel: c.Kernel, Wave: c.Wave, Grid: c.Grid, Taken: c.Name() == g.Call.Name()}
			if seconds, ok := strategy.Seconds(&c, t, f.Rows); ok {
				one.Micros = 1e6 * seconds
			}
			lists[i] = append(lists[i], one)
		}
	}
	return lists
}

// CandidateTable lists the candidates at the call sites of an entry whose names contain part; equal
// layers appear once. Times come from the target's fit, if it has one.
func CandidateTable(p *plans.Plan, t *target.Target, entry, part string) *text.Table {
	out := &text.Table{Title: "candidates", Columns: []string{"site", "candidate", "taken", "subgroup", "grid", "us", "kernel"}}
	f := p.Program.Func(entry)
	lists, seen := candidatesOf(p.Program, f, t), map[string]bool{}
	for i, g := range f.Groups {
		name := plans.FoldSite(g.Name)
		key := fmt.Sprint(name, lists[i])
		if !strings.Contains(g.Name, part) || seen[key] {
			continue
		}
		seen[key] = true
		for _, c := range lists[i] {
			taken, us := "", any("")
			if c.Taken {
				taken = "yes"
			}
			if c.Micros > 0 {
				us = c.Micros
			}
			out.Add(name, c.Name, taken, c.Wave, fmt.Sprintf("%dx%dx%d", c.Grid[0], c.Grid[1], c.Grid[2]), us, c.Kernel)
		}
	}
	return out
}

// Package codegen turns a program of the op IR into a plan for one target: it
// chooses a kernel for every dispatch group, and emits kernels and commands.
package codegen

import (
	"context"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/matmul"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/passes"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// MaxRows is the largest number of rows of one step, on any target.
const MaxRows = 2048

// Choice says by what kernels are chosen.
type Choice struct {
	Tuned    *tuning.Table  // rows for sites that are known; nil: none
	Compiler *radv.Compiler // AMD's compiler, of the target's family, for other sites; nil: none
	// Copies names an entry, or AllEntries, that gets copies with the other candidates, for `zincrun tune`.
	Copies string
}

// AllEntries stands for the names of all entries.
const AllEntries = "all"

// copies reports whether there are copies of the entry.
func (c *Choice) copies(entry string) bool { return c.Copies == AllEntries || c.Copies == entry }

// fragmentEntries are the rows of more prefill entries where there is gemm_fragment: those that its tiles
// are made for, and two tiles of as many as there can be.
var fragmentEntries = []int{matmul.FragmentFew, 2 * matmul.FragmentTall}

// entriesOf are the default entries, and more where there are kernels for their rows.
func entriesOf(t *target.Target, maxRows int) []passes.Entry {
	list := passes.DefaultEntries(min(maxRows, t.Rows), t.WidestExact(), target.DecodeRows)
	if !t.Fragments {
		return list
	}
	for _, rows := range fragmentEntries {
		i := slices.IndexFunc(list, func(e passes.Entry) bool { return e.Kind == passes.Prefill && e.Rows > rows })
		if i >= 0 {
			list = slices.Insert(list, i, passes.ReadsPrompts(passes.Prefill, rows))
		}
	}
	return list
}

// deviceOf is what passes know of the target.
func deviceOf(t *target.Target) passes.Device {
	d := passes.Device{Matrices: t.HasMatrices(), Apart: t.FewKernels, Queues: t.Queues(), Overlaps: t.Overlaps(), Widest: target.DecodeRows, Kernels: onTarget{t}}
	d.FloatsApart.Rows, d.FloatsApart.Work = strategy.FloatsApart(t)
	return d
}

// onTarget answers what kernels of a target compute.
type onTarget struct{ *target.Target }

func (t onTarget) Computes(p *ir.Program, f *ir.Func, g *ir.Group) bool {
	return t.IsHost() || len(strategy.Candidates(&kernels.Site{Program: p, Func: f, Group: g, Outputs: g.Outputs(f.Uses()), Target: t.Target})) > 0
}

func (t onTarget) Unites(f *ir.Func, down, shared *ir.Op) bool {
	return matmul.Unites(t.Target, f.Rows, down, shared)
}

func (t onTarget) Finishes(op *ir.Op) bool { return matmul.Finishes(op) }

func (t onTarget) NormsRuns(norm, linear *ir.Op, rows int) bool {
	return matmul.NormsRuns(t.Target, norm, linear, rows)
}

// Table returns all passes for the target, in order; SelectKernels takes each family's best guess.
func Table(t *target.Target, maxRows int) []passes.Pass {
	return passTable(t, maxRows, func(p *ir.Program) (chosen, error) {
		return selectKernels(context.Background(), p, t, Choice{})
	})
}

// passTable returns all passes for the target, in order, of which the one that chooses kernels runs
// choose.
func passTable(t *target.Target, maxRows int, choose func(p *ir.Program) (chosen, error)) []passes.Pass {
	var calls chosen
	list := passes.Table(entriesOf(t, maxRows), deviceOf(t))
	list = slices.Insert(list, 0, passes.Pass{Name: "LayWeights", Doc: "every weight gets the layout that the target's kernels read", Stage: ir.Fuse,
		Run: func(p *ir.Program) error { return weight.Lay(t, p) }})
	at := slices.IndexFunc(list, func(p passes.Pass) bool { return p.Stage > ir.Schedule })
	list = slices.Insert(list, at, passes.Pass{Name: "OverlapCalls", Doc: "where dispatches begin early, calls say what their kernels load before they wait, and when they let the next dispatch begin", Stage: ir.Schedule,
		Run: func(p *ir.Program) error { return overlapCalls(p, t, calls) }})
	at = slices.IndexFunc(list, func(p passes.Pass) bool { return p.Stage > ir.Fuse })
	return slices.Insert(list, at,
		passes.Pass{Name: "SplitAttention", Doc: "attention of few rows is split over the KV length, so that it fills the device", Stage: ir.Specialize,
			Run: func(p *ir.Program) error { return splitAttention(p, t) }},
		passes.Pass{Name: "SplitArgmax", Doc: "the choice of the largest logit is split over the vocabulary, so that it fills the device", Stage: ir.Specialize,
			Run: func(p *ir.Program) error { return splitArgmax(p, t) }},
		passes.Pass{Name: "AddCandidates", Doc: "in plans for many sequences, steps leave the likeliest tokens of each row, so that a host chooses without all logits; but exact steps of few rows", Stage: ir.Specialize,
			Run: func(p *ir.Program) error { return addCandidates(p, t) }},
		passes.Pass{Name: "SplitDelta", Doc: "the delta rule of many rows goes chunk by chunk. A dispatch before it computes what needs no state, for all chunks at once. The gate gets a projection of its own where that can run at the same time", Stage: ir.Specialize,
			Run: func(p *ir.Program) error { return splitDelta(p, t) }},
		passes.Pass{Name: "ApplyWants", Doc: "groups get what kernels ask for: inputs of projections and attention rounded to f16 or fixed point, inputs of prompts laid out in tiles, workspaces for split-K products", Stage: ir.Specialize,
			Run: func(p *ir.Program) error { return applyWants(p, t) }},
		passes.Pass{Name: "ProjectBeside", Doc: "in a step of one row, the dispatch of a delta rule also computes the projection of its gate; the next projection normalizes and gates its input", Stage: ir.Specialize,
			Run: func(p *ir.Program) error { return projectBeside(p, t) }},
		passes.Pass{Name: "SelectKernels", Doc: "every dispatch gets a kernel, its specialization constants and its grid", Stage: ir.Specialize,
			Run: func(p *ir.Program) (err error) { calls, err = choose(p); return err }},
	)
}

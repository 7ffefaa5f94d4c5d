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

func (t onTarget) FollowParts(p *ir.Program) bool {
	return t.IsHost() || kernels.FollowParts(t.Target, p)
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
	list = slices.Insert(list, 0, passes.Pass{Name: "LayWeights", Doc: "every weight gets the layout in which the target's kernels read it, by its type and the ops that read it. What a kernel can compute depends on that, so it comes first", Stage: ir.Fuse,
		Run: func(p *ir.Program) error { return weight.Lay(t, p) }})
	at := slices.IndexFunc(list, func(p passes.Pass) bool { return p.Stage > ir.Schedule })
	list = slices.Insert(list, at, passes.Pass{Name: "OverlapCalls", Doc: "where dispatches begin early, each call says what its kernel does until the dispatch before it has ended: it waits, or loads weights and what that one does not write. It also says when the kernel lets the next one begin", Stage: ir.Schedule,
		Run: func(p *ir.Program) error { return overlapCalls(p, t, calls) }})
	at = slices.IndexFunc(list, func(p passes.Pass) bool { return p.Stage > ir.Fuse })
	return slices.Insert(list, at,
		passes.Pass{Name: "SplitAttention", Doc: "attention of few rows has too few workgroups to fill the device. It becomes a split over ranges of cached positions and a merge of the parts: one dispatch in decode entries, in which the last workgroup to end merges, and two in others. Attention of prompts' entries that are alike gets few long splits, and such a merge, so that steps of few rows far behind fill the device", Stage: ir.Specialize,
			Run: func(p *ir.Program) error { return splitAttention(p, t) }},
		passes.Pass{Name: "AddCandidates", Doc: "in plans of many sequences, a dispatch behind the logits leaves the likeliest tokens of each row. A host that samples then reads these few and not all logits, and the choice of rows without a mask needs no more. Exact steps of few rows get none", Stage: ir.Specialize,
			Run: func(p *ir.Program) error { return addCandidates(p, t) }},
		passes.Pass{Name: "SplitArgmax", Doc: "the choice of the largest logit of a row is one workgroup's. It becomes a split over parts of the vocabulary and a merge, in one dispatch, so that it fills the device", Stage: ir.Specialize,
			Run: func(p *ir.Program) error { return splitArgmax(p, t) }},
		passes.Pass{Name: "DeferStates", Doc: "where steps of many sequences read and write as many states of a delta rule, that is what bounds them. States there get a log of updates behind them, and the exact steps of most rows add to it and write a state once in a few steps", Stage: ir.Specialize,
			Run: func(p *ir.Program) error { return deferStates(p) }},
		passes.Pass{Name: "SplitDelta", Doc: "a delta rule of many rows goes through them in chunks of 8. A dispatch before it computes what needs no state, for all chunks at once. Where that can run beside it, the gate gets a projection of its own", Stage: ir.Specialize,
			Run: func(p *ir.Program) error { return splitDelta(p, t) }},
		passes.Pass{Name: "ApplyWants", Doc: "families of kernels say what they need around a group, and the program changes accordingly: inputs of projections and attention are rounded to f16 or fixed point, inputs of prompts are laid out in tiles, split-K products get a workspace. Of projections of 16 rows and more through wgmma, one dispatch rounds x for all workgroups and one adds up what these make of its parts. Roundings so are ops, which the oracle computes alike", Stage: ir.Specialize,
			Run: func(p *ir.Program) error { return applyWants(p, t) }},
		passes.Pass{Name: "FuseHorizontally", Doc: "in a step of one row a delta rule leaves most units idle. Its dispatch also computes the projection of the gate, taken from the dispatch before. The gated norm moves on to the projection that reads it", Stage: ir.Specialize,
			Run: func(p *ir.Program) error { return fuseHorizontally(p, t) }},
		passes.Pass{Name: "SelectKernels", Doc: "every dispatch gets a candidate, which is a kernel with its constants and grid: the one that was measured or predicted to be best at such a site, else the best guess. All widths of a decode entry get candidates that add in one order, so that rows have the same bits", Stage: ir.Specialize,
			Run: func(p *ir.Program) (err error) { calls, err = choose(p); return err }},
	)
}

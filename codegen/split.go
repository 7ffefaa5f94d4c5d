package codegen

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// splitAttention replaces attention by a split and a merge if otherwise most of the
// target would be idle: in decode entries, with one workgroup per row and KV head, and in
// other entries if they have few rows, or are alike and may have. In decode entries, and those that are alike, split
// and merge are one dispatch with a last-block reduction. In decode entries it also makes q, k and v and writes the
// caches, if there is a kernel for that.
func splitAttention(p *ir.Program, t *target.Target) error {
	if t.IsHost() {
		return nil
	}
	addArrivals(p, t)
	for _, f := range p.Funcs {
		decode := f.IsDecode()
		b, uses := ir.NewBuilder(f), f.Uses()
		old := f.Groups
		f.Groups = nil
		for _, g := range old {
			at := attentionOf(g)
			n, rows, block, least := 1, 1, 0, 0
			switch {
			case at < 0:
			case decode:
				n, block, least = strategy.DecodeSplits(g.Ops[at], p.Ctx, t)
			default:
				s := &kernels.Site{Program: p, Func: f, Group: g, Outputs: g.Outputs(uses), Target: t}
				n, rows, block, least = strategy.TiledSplits(s, g.Ops[at])
			}
			if n > 1 {
				part, err := splitOp(b, g, at, n, rows, block, least)
				if err != nil {
					return err
				}
				if decode || least > 0 {
					g.Ops = slices.Insert(g.Ops, at, part)
				} else {
					f.Groups = append(f.Groups, &ir.Group{Name: g.Name + ".split", Ops: []*ir.Op{part}})
					g.Name += ".merge"
				}
			}
			f.Groups = append(f.Groups, g)
		}
		if decode {
			fuseHeads(p, f, t)
		}
	}
	return nil
}

// attentionOf returns the index of g's attention, split or not, or -1.
func attentionOf(g *ir.Group) int {
	return slices.IndexFunc(g.Ops, func(op *ir.Op) bool { return op.Kind.Name == "attention" || op.Kind.Name == "attention_split" })
}

// splitOp makes the attention at an index of g a merge of n splits, which it returns.
func splitOp(b *ir.Builder, g *ir.Group, at, n, rows, block, least int) (*ir.Op, error) {
	op := g.Ops[at]
	attrs := append(append(ir.Attrs{}, op.Attrs...), ir.Attr{Name: "splits", Value: int64(n)},
		ir.Attr{Name: "block", Value: int64(block)}, ir.Attr{Name: "rows", Value: int64(rows)})
	if least > 0 {
		attrs = append(attrs, ir.Attr{Name: "least", Value: int64(least)})
	}
	args := slices.Clone(op.Args[:5])
	if table := op.Table(); table != nil {
		args = append(args, table)
	}
	part, err := b.Make("attention_split", attrs, args...)
	if err != nil {
		return nil, err
	}
	args = []*ir.Value{part.Result}
	if sinks := op.Sinks(); sinks != nil {
		args = append(args, sinks)
	}
	merge, err := b.Make("attention_merge", ir.Attrs{
		{Name: "head_dim", Value: int64(op.Attrs.Int("head_dim"))},
		{Name: "heads", Value: int64(op.Attrs.Int("heads"))}, {Name: "splits", Value: int64(n)},
	}, args...)
	if err != nil {
		return nil, err
	}
	// The merge takes over the attention's place and value, so that what is fused
	// around it stays.
	op.Result.Def, merge.Result = merge, op.Result
	g.Ops[at] = merge
	return part, nil
}

// fuseHeads joins every attention with the group before it, if there is a kernel for both.
func fuseHeads(p *ir.Program, f *ir.Func, t *target.Target) {
	uses := f.Uses()
	var groups []*ir.Group
	for _, g := range f.Groups {
		last := len(groups) - 1
		if last >= 0 && attentionOf(g) >= 0 {
			joint := &ir.Group{Name: g.Name, Ops: append(slices.Clone(groups[last].Ops), g.Ops...)}
			s := &kernels.Site{Program: p, Func: f, Group: joint, Outputs: joint.Outputs(uses), Target: t}
			if len(kernels.Candidates(s)) > 0 {
				groups[last] = joint
				continue
			}
		}
		groups = append(groups, g)
	}
	f.Groups = groups
}

// addArrivals adds the counters of last-block reductions: one for each head, and row of the widest exact step or
// ir.TileRows of steps that are alike, which is as many as any kernel needs.
func addArrivals(p *ir.Program, t *target.Target) {
	heads, rows := 1, target.DecodeRows
	for _, f := range p.Funcs {
		switch f.Class {
		case ir.ExactStep:
			rows = max(rows, f.Rows)
		case ir.AlikeStep:
			rows = max(rows, f.Rows/ir.TileRows)
		}
		for _, op := range f.Ops() {
			if op.Kind.Name == "attention" {
				heads = max(heads, op.Attrs.Int("heads"))
			}
		}
	}
	p.AddGlobal(ir.Arrivals, ir.Step, ir.MakeType(ir.I32, ir.Dim(heads*rows)))
}

// splitArgmax divides the argmax of a vocabulary, or of several rows, among workgroups with a last-block reduction.
func splitArgmax(p *ir.Program, t *target.Target) error {
	if t.IsHost() {
		return nil
	}
	for _, f := range p.Funcs {
		b := ir.NewBuilder(f)
		for _, g := range f.Groups {
			op := g.Ops[0]
			if op.Kind.Name != "argmax" {
				continue
			}
			rows := 1
			if op.Args[0].Type.Shape[0] == ir.T {
				rows = f.Rows
			}
			n := strategy.ArgmaxParts(int(op.Args[0].Type.Last()), rows, decidesBy(op, op.Args[0]), t)
			if n == 1 && (f.Rows == 1 || op.Args[0].Type.Shape[0] != ir.T) {
				continue
			}
			attrs := ir.Attrs{{Name: "splits", Value: int64(n)}}
			part, err := b.Make("argmax_split", attrs, op.Args...)
			if err != nil {
				return err
			}
			merge, err := b.Make("argmax_merge", attrs, part.Result)
			if err != nil {
				return err
			}
			op.Result.Def, merge.Result = merge, op.Result
			g.Ops = append([]*ir.Op{part, merge}, g.Ops[1:]...)
		}
	}
	return nil
}

package codegen

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/passes"
)

const (
	// splitBlock is the granularity of a split in KV positions.
	splitBlock = 32
	// maxSplits bounds what the merge has to read.
	maxSplits = 32
)

// splitAttention replaces attention by a split and a merge if otherwise most of the
// target would be idle: in decode entries, with one workgroup per row and KV head, and in
// others if they have few rows. The number of splits of decode entries must not depend
// on the rows of the step: every one of them adds in the same order.
func splitAttention(p *ir.Program, t *target.Target) error {
	if t.Host {
		return nil
	}
	for _, f := range p.Funcs {
		b, uses := ir.NewBuilder(f), f.Uses()
		old := f.Groups
		f.Groups = nil
		for _, g := range old {
			at := slices.IndexFunc(g.Ops, func(op *ir.Op) bool { return op.Kind.Name == "attention" })
			n, rows := 1, 1
			switch {
			case at < 0:
			case passes.KindOf(f) == passes.Decode:
				n = splits(g.Ops[at], p.Ctx, t)
			default:
				n, rows = tiledSplits(&kernels.Site{Program: p, Func: f, Group: g, Outputs: g.Outputs(uses), Target: t})
			}
			if n < 2 {
				f.Groups = append(f.Groups, g)
				continue
			}
			op := g.Ops[at]
			attrs := append(append(ir.Attrs{}, op.Attrs...), ir.Attr{Name: "splits", Value: int64(n)},
				ir.Attr{Name: "block", Value: int64(splitBlock)}, ir.Attr{Name: "rows", Value: int64(rows)})
			part, err := b.Op("attention_split", attrs, op.Args...)
			if err != nil {
				return err
			}
			f.Groups[len(f.Groups)-1].Name = g.Name + ".split"
			merge, err := b.Make("attention_merge", ir.Attrs{
				{Name: "head_dim", Value: int64(op.Attrs.Int("head_dim"))},
				{Name: "heads", Value: int64(op.Attrs.Int("heads"))}, {Name: "splits", Value: int64(n)},
			}, part)
			if err != nil {
				return err
			}
			// The merge takes over the attention's place and value, so that what is
			// fused around it stays.
			op.Result.Def, merge.Result = merge, op.Result
			g.Ops[at] = merge
			g.Name += ".merge"
			f.Groups = append(f.Groups, g)
		}
	}
	return nil
}

// splits is how many workgroups share the positions of one row and KV head.
func splits(op *ir.Op, ctx int, t *target.Target) int {
	heads := max(1, op.Attrs.Int("kv_heads"))
	return max(1, min(2*t.Units/heads, maxSplits, ctx/splitBlock))
}

// tiledSplits is how many workgroups share the positions of a tile of rows, and the
// rows of a tile.
func tiledSplits(s *kernels.Site) (n, rows int) {
	tiles, rows := kernels.AttentionTiles(s)
	if tiles == 0 {
		return 1, 1
	}
	return max(1, min(s.Target.Units/tiles, maxSplits, s.Program.Ctx/splitBlock)), rows
}

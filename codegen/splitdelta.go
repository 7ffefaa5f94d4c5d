package codegen

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/matmul"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/passes"
)

// splitDelta splits a delta rule of many rows of one sequence, or of few runs, into two dispatches: the first computes,
// for all chunks at once, what needs no state; the second goes chunk by chunk.
func splitDelta(p *ir.Program, t *target.Target) error {
	for _, f := range p.Funcs {
		if !strategy.Chunks(t, f.Rows) || p.Mixes(f) && f.Part == 0 {
			continue
		}
		b := ir.NewBuilder(f)
		has := func(g *ir.Group, output *ir.Value) bool {
			return len(kernels.Candidates(&kernels.Site{Program: p, Func: f, Group: g, Outputs: []*ir.Value{output}, Target: t})) > 0
		}
		var groups []*ir.Group
		for _, g := range f.Groups {
			rule := g.Ops[len(g.Ops)-1]
			if !chunks(g, rule) {
				groups = append(groups, g)
				continue
			}
			first, second, err := chunked(b, g, rule)
			if err != nil {
				return err
			}
			chunk, apply := first.Ops[len(first.Ops)-1], second.Ops[len(second.Ops)-1]
			if !has(first, chunk.Result) || !has(second, apply.Result) {
				groups = append(groups, g)
				continue
			}
			// What reads the rule's value goes on to do so.
			rule.Result.Def, apply.Result = apply, rule.Result
			groups = append(groups, first, second)
		}
		f.Groups = groups
		if t.Groups {
			gatesApart(f)
		}
	}
	return nil
}

// gatesApart gives the projection of what gates the result of a chunked rule a dispatch of its own. It can run beside
// the rule (passes.fillStages), which leaves most of each unit idle.
func gatesApart(f *ir.Func) {
	uses := f.Uses()
	for i := 0; i < len(f.Groups); i++ {
		g := f.Groups[i]
		at := slices.IndexFunc(g.Ops, func(op *ir.Op) bool { return matmul.GatesRule(uses, op) })
		if at < 0 || slices.ContainsFunc(g.Ops, func(op *ir.Op) bool { return op.Kind.Name != "linear" || op.Args[0] != g.Ops[0].Args[0] }) {
			continue
		}
		if gate := g.Ops[at]; len(g.Ops) > 1 {
			f.Groups = slices.Replace(f.Groups, i, i+1, &ir.Group{Name: g.Name, Ops: without(g.Ops, gate)}, &ir.Group{Name: g.Name, Ops: []*ir.Op{gate}})
			passes.Rename(f.Groups[i])
			passes.Rename(f.Groups[i+1])
			i++
		}
	}
}

// chunks reports whether rule is a delta rule whose q and k ops of g normalize per head, with
// the same eps.
func chunks(g *ir.Group, rule *ir.Op) bool {
	if rule.Kind.Name != "deltanet" {
		return false
	}
	first := rule.Args[0].Def
	for _, x := range rule.Args[:2] {
		norm := x.Def
		if norm == nil || norm.Kind.Name != "l2norm" || !slices.Contains(g.Ops, norm) || norm.Attrs.Int("group") != rule.Attrs.Int("head_dim") ||
			norm.Attrs.Float("eps") != first.Attrs.Float("eps") {
			return false
		}
	}
	return true
}

// chunked returns the groups that compute g chunk by chunk. Each makes its operands
// itself.
func chunked(b *ir.Builder, g *ir.Group, rule *ir.Op) (first, second *ir.Group, err error) {
	a, q, k := rule.Attrs, rule.Args[0].Def, rule.Args[1].Def
	attrs := ir.Attrs{{Name: "head_dim", Value: int64(a.Int("head_dim"))}, {Name: "k_heads", Value: int64(a.Int("k_heads"))},
		{Name: "v_heads", Value: int64(a.Int("v_heads"))}, {Name: "map", Value: a.Str("map")}}
	more := append(slices.Clone(attrs), ir.Attr{Name: "scale", Value: a.Float("scale")}, ir.Attr{Name: "eps", Value: q.Attrs.Float("eps")})
	first, second = &ir.Group{Name: g.Name + ".chunk"}, &ir.Group{Name: g.Name}
	args := []*ir.Value{q.Args[0], k.Args[0], rule.Args[3], rule.Args[4]}
	if b.Func.Part > 0 {
		args = append(args, rule.Args[6])
	}
	chunk, err := remake(b, g, first, "delta_chunk", more, args...)
	if err != nil {
		return nil, nil, err
	}
	_, err = remake(b, g, second, "deltanet_chunked", attrs, q.Args[0], k.Args[0], rule.Args[2], chunk, rule.Args[5], rule.Args[6], rule.Args[7])
	return first, second, err
}

// remake appends an op to a group, behind copies of the ops of g that make its operands.
func remake(b *ir.Builder, g, to *ir.Group, kind string, attrs ir.Attrs, args ...*ir.Value) (*ir.Value, error) {
	args = slices.Clone(args)
	for i, x := range args {
		if x.Def == nil || !slices.Contains(g.Ops, x.Def) {
			continue
		}
		var err error
		if args[i], err = remake(b, g, to, x.Def.Kind.Name, x.Def.Attrs, x.Def.Args...); err != nil {
			return nil, err
		}
	}
	op, err := b.Make(kind, attrs, args...)
	if err != nil {
		return nil, err
	}
	to.Ops = append(to.Ops, op)
	return op.Result, nil
}

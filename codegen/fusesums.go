package codegen

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// fuseSums moves a post-norm into the projections that read its sum first, if all of them can take it: each computes it for
// itself, and the first writes the sum for those that read it later. So it needs no step of its own.
func fuseSums(p *ir.Program, t *target.Target) error {
	if t.IsHost() || !strategy.FusesSums(t) {
		return nil
	}
	return parallel(len(p.Funcs), func(i int) error {
		f := p.Funcs[i]
		if f.Rows > ir.DecodeRows {
			return nil
		}
		for _, g := range slices.Clone(f.Groups) {
			if sum := kernels.PostNormOf(g); sum != nil && len(sum.Ops) == len(g.Ops) && sum.Result.Class == ir.Arena {
				if err := fuseSum(p, f, g, sum.Result, t); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func fuseSum(p *ir.Program, f *ir.Func, g *ir.Group, sum *ir.Value, t *target.Target) error {
	uses := f.Uses()
	first, all := firstReaders(f, g, sum)
	for i, r := range first {
		outputs := r.Outputs(uses)
		before := &kernels.Site{Program: p, Func: f, Group: r, Outputs: outputs, Target: t}
		after := *before
		after.Group = &ir.Group{Name: r.Name, Ops: slices.Concat(g.Ops, r.Ops)}
		if i == 0 && all > len(first) {
			after.Outputs = append(slices.Clone(outputs), sum)
		}
		if !strategy.TakesSum(before, &after) {
			return nil
		}
	}
	for i, r := range slices.Backward(first) {
		ops := g.Ops
		if i > 0 {
			var err error
			if ops, err = copyInto(f, g.Ops, r); err != nil {
				return err
			}
		}
		r.Ops = slices.Concat(ops, r.Ops)
	}
	if len(first) > 0 {
		f.Groups = slices.DeleteFunc(f.Groups, func(o *ir.Group) bool { return o == g })
	}
	return nil
}

// firstReaders returns the groups that read v, the result of g, and depend on no other that does; all is how many read it.
func firstReaders(f *ir.Func, g *ir.Group, v *ir.Value) (first []*ir.Group, all int) {
	behind := map[*ir.Value]bool{} // what depends on a reader
	for _, r := range f.Groups[slices.Index(f.Groups, g)+1:] {
		inputs := r.Inputs()
		reads, later := slices.Contains(inputs, v), slices.ContainsFunc(inputs, func(v *ir.Value) bool { return behind[v] })
		if !reads && !later {
			continue
		}
		if reads {
			all++
		}
		if reads && !later {
			first = append(first, r)
		}
		for _, op := range r.Ops {
			if op.Result != nil {
				behind[op.Result] = true
			}
		}
		for _, w := range r.Writes() {
			behind[w] = true
		}
	}
	return first, all
}

// copyInto makes copies of ops, and has r read the results of these.
func copyInto(f *ir.Func, ops []*ir.Op, r *ir.Group) ([]*ir.Op, error) {
	b, made := ir.NewBuilder(f), map[*ir.Value]*ir.Value{}
	replace := func(args []*ir.Value) []*ir.Value {
		args = slices.Clone(args)
		for i, a := range args {
			if copied := made[a]; copied != nil {
				args[i] = copied
			}
		}
		return args
	}
	var copies []*ir.Op
	for _, op := range ops {
		c, err := b.Make(op.Kind.Name, op.Attrs, replace(op.Args)...)
		if err != nil {
			return nil, err
		}
		made[op.Result] = c.Result
		copies = append(copies, c)
	}
	for _, op := range r.Ops {
		op.Args = replace(op.Args)
	}
	return copies, nil
}

package passes

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// fuseConv joins a convolution of an exact step, where it is a short gated one: with the product that makes its rows,
// the write of its ring, the product with its result, and the slices that these read. Like fuseSSD, it leaves what no
// kernel computes as one, and devices where projections stay apart.
func fuseConv(p *ir.Program, d Device) error {
	if d.Apart {
		return nil
	}
	return each(func(f *ir.Func) error {
		uses := f.Uses()
		for _, op := range f.Ops() {
			if op.Kind.Name == "conv1d" && f.Exact(op.Result) {
				d.joinIfComputed(p, f, op, aroundConv(uses, op))
			}
		}
		return nil
	})(p)
}

// aroundConv returns what one dispatch may compute with conv, nil if its rows are no product or its result is not
// multiplied.
func aroundConv(uses map[*ir.Value][]*ir.Op, conv *ir.Op) []*ir.Op {
	product, gate := conv.Args[0].Def, only(uses, conv.Result, "mul")
	if product == nil || product.Kind.Name != "mul" || gate == nil {
		return nil
	}
	group := []*ir.Op{product, conv, gate}
	for _, write := range uses[product.Result] {
		if write.Kind.Name == "conv_write" {
			group = append(group, write)
		}
	}
	return withSlices(uses, group)
}

// fuseRing joins a gated convolution of an exact step with the projection that makes all that it convolves, where a
// kernel computes both: each channel needs what its own rows of the weights make. Either form gives the same bits, so a
// wider step may have the other one.
func fuseRing(p *ir.Program, d Device) error {
	if d.Apart {
		return nil
	}
	return each(func(f *ir.Func) error {
		uses := f.Uses()
		for _, op := range f.Ops() {
			if op.Kind.Name == "conv1d" && f.Exact(op.Result) && aroundConv(uses, op) != nil {
				joinIf(f, op, withProjection(uses, groupOf(f, op)), func(g *ir.Group) bool { return d.Kernels.Computes(p, f, g) })
			}
		}
		return nil
	})(p)
}

// withProjection returns the ops of g and the one linear op whose result g cuts into slices, nil if there is none or
// others read it.
func withProjection(uses map[*ir.Value][]*ir.Op, g *ir.Group) []*ir.Op {
	for _, op := range g.Ops {
		if x := op.Args[0]; op.Kind.Name == "slice" && x.Def != nil && x.Def.Kind.Name == "linear" && within(uses[x], g.Ops) {
			return append(slices.Clone(g.Ops), x.Def)
		}
	}
	return nil
}

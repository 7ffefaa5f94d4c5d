package recurrent

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// gatedConv is a dispatch group of few rows around a convolution, a short gated one: a product that makes its rows, the
// convolution, the write of its ring, and a product with its result:
//
//	[slice] [slice] mul conv1d conv_write [slice] mul
type gatedConv struct {
	conv, write, gate *ir.Op
	x, by, z          cutInput // the factors of the rows; what the result is multiplied with
	factors           []*ir.Value
}

// matchGatedConv returns the site's group as a gatedConv, nil if it is none.
func matchGatedConv(s *site.Site, conv *ir.Op) *gatedConv {
	ops := s.Group.Ops
	g := &gatedConv{conv: conv}
	m := &groupMatch{site: s, used: map[*ir.Op]bool{g.conv: true}}
	product := m.maker(g.conv.Args[0], "mul")
	if product == nil {
		return nil
	}
	g.factors = slices.Clone(product.Args)
	if g.x, g.by = m.input(g.factors[0]), m.input(g.factors[1]); g.x.x == g.factors[0] && g.by.x != g.factors[1] {
		g.x, g.by = g.by, g.x // one that is cut is the first, so that a key tells which
		slices.Reverse(g.factors)
	}
	for _, op := range ops[slices.Index(ops, conv)+1:] {
		switch at := slices.Index(op.Args, g.conv.Result); {
		case op.Kind.Name == "conv_write" && op.Args[0] == g.conv.Args[0] && slices.Equal(op.Args[1:], g.conv.Args[2:5]):
			g.write, m.used[op] = op, true
		case op.Kind.Name == "mul" && at >= 0:
			g.gate, g.z, m.used[op] = op, m.input(op.Args[1-at]), true
		}
	}
	if g.write == nil || g.gate == nil || !m.whole(g.gate.Result) {
		return nil
	}
	for _, in := range []cutInput{g.x, g.by, g.z} {
		if in.x.Def != nil && slices.Contains(ops, in.x.Def) {
			return nil
		}
	}
	return g
}

// gatedConvCandidates compute an element a lane. A row of the ring that a step reads is none that it writes.
func gatedConvCandidates(s *site.Site, conv *ir.Op) []site.Candidate {
	g := matchGatedConv(s, conv)
	if g == nil || s.Target.FewKernels {
		return nil
	}
	rows, ok := site.ExtentOf(s, g.gate.Result)
	ring := g.conv.Args[2]
	k := convKernel{taps: int(g.conv.Args[1].Type.Last()), linear: g.conv.Attrs.Str("act") == "none"}
	if !ok || !rows.Exact || rows.Run+k.taps-1 > int(ring.Type.Shape[1]) || !site.Indexable(s, ring, 1) {
		return nil
	}
	a := site.AccessesOf(int(g.gate.Result.Type.Last()), s.Target)
	a.Vec = 1
	key := fmt.Sprintf("conv taps=%d mul%s%s gate%s", k.taps, g.x.key(g.factors[0]), g.by.key(g.factors[1]), g.z.key(g.gate.Args[0]))
	if k.linear {
		key += " linear"
	}
	if len(g.conv.Args) > 5 {
		key += " bias"
	}
	cover := a.Cover(rows.Max)
	cover = append(cover, plans.Cover{Arg: "ring", Dims: cover[0].Dims, Tile: cover[0].Tile, Axis: cover[0].Axis})
	return []site.Candidate{site.Implement(site.Candidate{
		Kernel: key + rows.Key(),
		Grid:   a.Grid(rows.Max),
		Cover:  cover,

		Sequences: ir.ManySequences,
	}, "conv gated", func(s *site.Signature) func(b *kernel.Builder) {
		extent := rows.Declare(s)
		c := &convArgs{convKernel: k,
			x: s.Read("x", g.x.x), by: s.Read("by", g.by.x), weight: s.Read("weight", g.conv.Args[1]), ring: s.Update("ring", ring),
			pos: s.Read("pos", g.conv.Args[3]), slot: s.Read("slot", g.conv.Args[4]), alone: rows.Max == 1, depth: declareDepth(s, ring),
			cut: g.x.declareCut(s, "x", g.factors[0]), byCut: g.by.declareCut(s, "by", g.factors[1])}
		if len(g.conv.Args) > 5 {
			c.bias = s.Read("bias", g.conv.Args[5])
		}
		z, zCut := s.Read("z", g.z.x), g.z.declareCut(s, "z", g.gate.Args[0])
		y, accesses := s.Write("y", g.gate.Result), a.Declare(s)
		return func(b *kernel.Builder) {
			bound, row := extent.Load(b), b.WorkgroupID(1)
			accesses.Each(b, func(i, n kernel.Value) {
				c.width = n
				b.If(b.Lt(row, bound), func() {
					factor := z.Load(kernel.F32, zCut.at(b, row, i, n, 1))
					y.Store(b.Add(b.Mul(row, n), i), b.Mul(factor, c.at(b, row, i)))
					at := b.Add(b.Mul(c.slotOf(b, row), c.depth), b.Mod(c.pos.Load(kernel.U32, row), c.depth))
					c.ring.Store(b.Add(b.Mul(at, n), i), c.row(b, row, i))
				})
			})
		}
	})}
}

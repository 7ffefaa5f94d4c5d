package matmul

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// gatedRing is a short gated convolution behind a projection whose rows have three parts: it convolves the product of
// two parts and multiplies the sum by the third. A workgroup that has a channel of each part has all that the channel
// needs, beside the ring of past products.
type gatedRing struct {
	taps  *ir.Value // weights, a row for each channel
	ring  *ir.Value
	pos   *ir.Value
	slot  *ir.Value
	rows  site.Extent
	total int // rows of the projection's weights
}

// takeRing reads the ops behind x where they are a projection and its gated convolution:
//
//	linear slice slice mul conv1d conv_write slice mul
func (m *match) takeRing(ops []*ir.Op) bool {
	find := func(name string, is func(op *ir.Op) bool) *ir.Op {
		if i := slices.IndexFunc(ops, func(op *ir.Op) bool { return op.Kind.Name == name && is(op) }); i >= 0 {
			return ops[i]
		}
		return nil
	}
	linear, conv := find("linear", func(*ir.Op) bool { return true }), find("conv1d", func(*ir.Op) bool { return true })
	if len(ops) != 8 || linear == nil || conv == nil || len(linear.Args) != 2 || len(conv.Args) != 5 || conv.Attrs.Str("act") != "none" || !m.linear(linear) {
		return false
	}
	product := find("mul", func(op *ir.Op) bool { return op.Result == conv.Args[0] })
	gate := find("mul", func(op *ir.Op) bool { return slices.Contains(op.Args, conv.Result) })
	write := find("conv_write", func(op *ir.Op) bool {
		return op.Args[0] == conv.Args[0] && slices.Equal(op.Args[1:], conv.Args[2:5])
	})
	if product == nil || gate == nil || write == nil {
		return false
	}
	factor := gate.Args[0]
	if factor == conv.Result {
		factor = gate.Args[1]
	}
	p := m.projects[0]
	whole := *p.matrices[0]
	p.matrices = nil
	for _, v := range []*ir.Value{product.Args[0], product.Args[1], factor} {
		part := find("slice", func(op *ir.Op) bool { return op.Result == v && op.Args[0] == linear.Result })
		if part == nil {
			return false
		}
		w := whole
		w.from = part.Attrs.Int("first")
		p.matrices = append(p.matrices, &w)
	}
	rows, ok := site.ExtentOf(m.s, gate.Result)
	p.ring = &gatedRing{taps: conv.Args[1], ring: conv.Args[2], pos: conv.Args[3], slot: conv.Args[4], rows: rows, total: p.width}
	p.width, p.result = int(gate.Result.Type.Last()), gate.Result
	return ok && rows.Max+p.ring.count() <= int(p.ring.ring.Type.Shape[1])+1 && site.Indexable(m.s, p.ring.ring, 1)
}

// count is the number of terms of a sum.
func (g *gatedRing) count() int { return int(g.taps.Type.Last()) }

// ringed reports whether a convolution is behind the group's projection.
func (g *linearGroup) ringed() bool { return len(g.projects) == 1 && g.projects[0].ring != nil }

// wholeStep reports whether lanes of shapes with all columns can keep x, a unit each.
func (g *linearGroup) wholeStep(t *target.Target) bool {
	return g.k <= gemvElements*t.Wave*max(1, min(gemvSubgroups, t.Workgroup/t.Wave))
}

// ringArgs are a gatedRing's arguments and constants in a kernel.
type ringArgs struct {
	*gatedRing
	taps, ring, pos, slot *kernel.Buffer
	depth                 kernel.Value
	extent                site.StepRows
}

func (g *gatedRing) declare(s *site.Signature) *ringArgs {
	return &ringArgs{gatedRing: g, taps: s.Read("taps", g.taps), ring: s.Update("ring", g.ring), pos: s.Read("pos", g.pos), slot: s.Read("slot", g.slot),
		depth: s.U32("depth", int(g.ring.Type.Shape[1]), 16, "rows of the ring"), extent: g.rows.Declare(s)}
}

// past is the ring of so many channels.
func (a *ringArgs) past(width kernel.Value) lane.Ring {
	return lane.Ring{Rows: a.ring, Taps: a.count(), Depth: a.depth, Width: width}
}

// declareParts declares a projection's weights, which it reads as three parts, its ring and its result.
func (p *projectArgs) declareParts(s *site.Signature, g *linearGroup, a *linearArgs) {
	w := p.spec.matrices[0]
	m := weight.Matrix{Format: w.format, Buf: s.Read("w0", w.value), Rows: s.U32("rows0", p.spec.ring.total, 6144, "rows of the weights"), Cols: a.k, Halves: g.halves}
	for j, w := range p.spec.matrices {
		p.matrices, p.bias = append(p.matrices, m), append(p.bias, nil)
		p.from = append(p.from, s.U32(matrixName("from", 0, j), w.from, 0, "first row of the part"))
	}
	p.ring, p.out = p.spec.ring.declare(s), s.Write("y0", p.spec.result)
}

// vars returns places for what load returns.
func (g *gatedRing) vars(b *kernel.Builder) (list []*kernel.Var) {
	n := g.count()
	for range n + n - 1 {
		list = append(list, b.Var(kernel.F32, 0.0))
	}
	for range n - 1 + 2 {
		list = append(list, b.Var(kernel.U32, b.U32(0)))
	}
	return list
}

// load loads what a channel needs besides its products: its weights; by distance, past products that the ring has, and
// whether the step has them instead (1) or not; where the ring takes the product, and whether the row is one of the
// step (1). A row beyond the step takes the last one's place.
func (a *ringArgs) load(b *kernel.Builder, width, row, channel kernel.Value) []kernel.Value {
	n := a.count()
	live := b.Lt(row, a.extent.Load(b))
	row = b.Min(row, b.Sub(a.extent.Load(b), 1))
	pos, slot := a.pos.Load(kernel.U32, row), a.slot.Load(kernel.U32, row)
	var weights, past, flags []kernel.Value
	for i := range n {
		weights = append(weights, a.taps.Load(kernel.F32, b.Add(b.Mul(channel, n), i)))
	}
	here, all := make([]kernel.Value, n), b.Bool(a.rows.Max > 1)
	kept := make([]*kernel.Var, n)
	for d := 1; d < n; d++ {
		here[d], kept[d] = b.Bool(false), b.Var(kernel.F32, 0)
		if a.rows.Max > 1 {
			here[d] = b.And(b.Ge(row, d), b.Eq(a.slot.Load(kernel.U32, b.Sub(row, b.Min(row, d))), slot))
			all = b.And(all, here[d])
		}
		flags = append(flags, b.Select(here[d], b.U32(1), b.U32(0)))
	}
	whole := &all
	if a.rows.Max == 1 {
		whole = nil
	}
	ring := a.past(width)
	ring.Past(b, slot, pos, channel, here, whole, func(d int, v kernel.Value) { kept[d].Set(b.Select(b.Ge(pos, d), v, 0)) })
	for d := 1; d < n; d++ {
		past = append(past, kept[d].Get())
	}
	return slices.Concat(weights, past, flags, []kernel.Value{ring.At(b, slot, pos, channel, b.U32(0)), b.Select(live, b.U32(1), b.U32(0))})
}

// storeRing computes an element of the result and of the ring, and writes both. parts returns the scaled sums of the
// column that is so many before, and loaded is what load returns.
func (p *projectArgs) storeRing(b *kernel.Builder, parts func(back int) []kernel.Value, loaded []kernel.Value, row, col kernel.Value) {
	a := p.ring
	n := a.count()
	weights, past, flags, at, live := loaded[:n], loaded[n:2*n-1], loaded[2*n-1:3*n-2], loaded[3*n-2], loaded[3*n-1]
	own := parts(0)
	now := b.Mul(own[0], own[1])
	sum := a.past(p.width).Sum(b, b.F32(0), weights, func(d int) kernel.Value {
		v := past[d-1]
		if a.rows.Max > 1 {
			of := parts(d)
			v = b.Select(b.Eq(flags[d-1], 1), b.Mul(of[0], of[1]), v)
		}
		return v
	}, now)
	b.If(b.Eq(live, 1), func() {
		p.out.Store(b.Add(b.Mul(row, p.width), col), b.Mul(own[2], sum))
		a.ring.Store(at, now)
	})
}

// normedBy returns sums times the norm's scale, if there is one.
func normedBy(b *kernel.Builder, sums []kernel.Value, rstd *kernel.Value) []kernel.Value {
	if rstd == nil {
		return sums
	}
	scaled := make([]kernel.Value, len(sums))
	for i, s := range sums {
		scaled[i] = b.Mul(s, *rstd)
	}
	return scaled
}

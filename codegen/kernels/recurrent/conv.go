package recurrent

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

func ConvCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	if op.Kind.Name == "conv_write" {
		return convWriteCandidates(s, op)
	}
	return slices.Concat(conv1dCandidates(s, op), gatedConvCandidates(s, op))
}

// convKernel is a conv1d as a kernel knows it.
type convKernel struct {
	taps   int
	linear bool // without activation
}

// act is the activation of a sum.
func (k convKernel) act(b *kernel.Builder, sum kernel.Value) kernel.Value {
	if k.linear {
		return sum
	}
	return lane.Logistic(b, sum, sum)
}

// convArgs are the arguments and constants of a conv1d in a kernel.
type convArgs struct {
	convKernel
	x, weight, ring *kernel.Buffer
	pos, slot       *kernel.Buffer // slot is nil if there is one only
	bias            *kernel.Buffer // nil if there is none
	alone           bool           // the step has one row
	rows            site.Extent    // of which some may be dead; zero where none are
	width, depth    kernel.Value   // channels; rows of the ring
	cut             cutArgs        // of x
	by              *kernel.Buffer // what x is multiplied with, or nil
	byCut           cutArgs
}

// row returns an element of a row that is convolved.
func (c *convArgs) row(b *kernel.Builder, row, channel kernel.Value) kernel.Value {
	x := c.x.Load(kernel.F32, c.cut.at(b, row, channel, c.width, 1))
	if c.by != nil {
		x = b.Mul(x, c.by.Load(kernel.F32, c.byCut.at(b, row, channel, c.width, 1)))
	}
	return x
}

// cutArgs say where the elements that count begin in a row, and how many elements the row has; zero if all of them
// count.
type cutArgs struct{ first, width kernel.Value }

// at returns where an access of so many elements is, in a row of which n accesses count.
func (c cutArgs) at(b *kernel.Builder, row, i, n kernel.Value, vec int) kernel.Value {
	if c.width == (kernel.Value{}) {
		return b.Add(b.Mul(row, n), i)
	}
	return b.Add(b.Div(b.Add(b.Mul(row, c.width), c.first), vec), i)
}

// cutOnly returns where the first operand of op lies in a group [slice] op, in which the slice makes it; false if the
// group is none.
func cutOnly(s *site.Site, op *ir.Op) (cutInput, bool) {
	ops := s.Group.Ops
	if op != ops[len(ops)-1] || len(ops) > 2 || op.Result != nil && (len(s.Outputs) != 1 || s.Outputs[0] != op.Result) {
		return cutInput{}, false
	}
	in := cutInput{x: op.Args[0]}
	if len(ops) == 2 {
		cut := ops[0]
		if cut.Kind.Name != "slice" || cut.Result != in.x || slices.Contains(op.Args[1:], in.x) || op.Result == nil && len(s.Outputs) > 0 {
			return cutInput{}, false
		}
		in = cutInput{cut.Args[0], cut.Attrs.Int("first")}
	}
	return in, true
}

// declareCut declares where the elements of v lie in rows of in, if those have others.
func (in cutInput) declareCut(s *site.Signature, name string, v *ir.Value) (c cutArgs) {
	if in.x != v {
		c.first, c.width = in.declarePlace(s, name)
	}
	return c
}

// key tells kernels of slices from those that read v itself.
func (in cutInput) key(v *ir.Value) string {
	if in.x == v {
		return ""
	}
	return " cut"
}

// at returns an element of the result, for a row of the step. Its terms are added
// from the oldest on, wherever they lie. The rows of a slot follow each other, so
// those before this one are of this step if they have its slot.
func (c *convArgs) at(b *kernel.Builder, row, channel kernel.Value) kernel.Value {
	return c.sum(b, row, channel, c.weights(b, channel), nil)
}

// sum is at for a channel whose weights are loaded, and its bias if that is not nil.
func (c *convArgs) sum(b *kernel.Builder, row, channel kernel.Value, weights []kernel.Value, bias *kernel.Value) kernel.Value {
	pos, slot := c.pos.Load(kernel.U32, row), c.slotOf(b, row)
	here := make([]kernel.Value, c.taps) // by distance: whether that row is of this step
	past := make([]*kernel.Var, c.taps)
	all := b.Bool(true)
	for d := 1; d < c.taps; d++ {
		if c.alone {
			here[d], past[d] = b.Bool(false), b.Var(kernel.F32, 0)
			continue
		}
		from := b.Sub(row, b.Min(row, d))
		here[d] = b.And(b.Ge(row, d), b.Eq(c.slotOf(b, from), slot))
		all = b.And(all, here[d])
		past[d] = b.Var(kernel.F32, c.row(b, from, channel))
	}
	now := c.row(b, row, channel)
	ring := lane.Ring{Rows: c.ring, Taps: c.taps, Depth: c.depth, Width: c.width}
	whole := &all
	if c.alone {
		whole = nil
	}
	ring.Past(b, slot, pos, channel, here, whole, func(d int, v kernel.Value) {
		past[d].Set(b.Select(here[d], past[d].Get(), b.Select(b.Ge(pos, d), v, 0)))
	})
	sum := b.F32(0)
	switch {
	case bias != nil:
		sum = *bias
	case c.bias != nil:
		sum = c.bias.Load(kernel.F32, channel)
	}
	sum = ring.Sum(b, sum, weights, func(d int) kernel.Value { return past[d].Get() }, now)
	return c.act(b, sum)
}

// slotOf returns the slot of a row.
func (c *convArgs) slotOf(b *kernel.Builder, row kernel.Value) kernel.Value {
	if c.slot == nil {
		return b.U32(0)
	}
	return c.slot.Load(kernel.U32, row)
}

// weights loads a channel's weights.
func (c *convArgs) weights(b *kernel.Builder, channel kernel.Value) []kernel.Value {
	var list []kernel.Value
	vec := site.Widest(c.taps)
	for i := range c.taps / vec {
		v := c.weight.Load(kernel.F32.Vec(vec), b.Add(b.Mul(channel, c.taps/vec), i))
		list = append(list, lane.Elements(b, v)...)
	}
	return list
}

// convRows and convWriteRows are how many rows of a step a lane takes, where that leaves
// workgroups for all units.
const (
	convRows      = 4
	convWriteRows = 16
)

// inRows emits the kernel of lanes that take four channels of several rows, one behind the
// other: what a row and those before it have in common is loaded once. If they are not all of
// the step and of one slot, the rows are computed as if alone.
func (c *convArgs) inRows(b *kernel.Builder, y *kernel.Buffer, a site.AccessArgs, rows int, bound kernel.Value) {
	a.Each(b, func(i, n kernel.Value) {
		c.width = b.Mul(n, 4)
		first, before := b.Mul(b.WorkgroupID(1), rows), c.taps-1
		last := b.Sub(bound, 1)
		var xs []kernel.Value
		slot := c.slotOf(b, b.Min(first, last))
		together := b.And(b.Ge(first, before), b.Le(b.Add(first, rows), bound))
		for j := range before + rows {
			row := b.Min(b.Sub(b.Add(first, j), b.Min(b.Add(first, j), before)), last)
			together = b.And(together, b.Eq(c.slotOf(b, row), slot))
			xs = append(xs, c.x.Load(lane.F32x4, c.cut.at(b, row, i, n, 4)))
		}
		b.IfElse(together, func() {
			var weights [4][]kernel.Value
			bias := b.Splat(b.F32(0), 4)
			if c.bias != nil {
				bias = c.bias.Load(lane.F32x4, i)
			}
			for e := range weights {
				weights[e] = c.weights(b, b.Add(b.Mul(i, 4), e))
			}
			for r := range rows {
				var out []kernel.Operand
				for e := range weights {
					sum := b.Elem(bias, e)
					for tap, w := range weights[e] {
						sum = b.FMA(w, b.Elem(xs[r+tap], e), sum)
					}
					out = append(out, c.act(b, sum))
				}
				y.Store(b.Add(b.Mul(b.Add(first, r), n), i), b.Vec(out...))
			}
		}, func() {
			b.ForRolled(first, b.Min(b.Add(first, rows), bound), 1, func(row kernel.Value) {
				c.unlessDead(b, row, func() {
					b.ForRolled(0, 4, 1, func(e kernel.Value) {
						channel := b.Add(b.Mul(i, 4), e)
						y.Store(b.Add(b.Mul(row, c.width), channel), c.at(b, row, channel))
					})
				})
			})
		})
	})
}

// unlessDead computes a row, if that has a slot.
func (c *convArgs) unlessDead(b *kernel.Builder, row kernel.Value, compute func()) {
	if c.rows.Part == 0 {
		compute()
		return
	}
	b.If(b.Not(c.rows.Dead(b, c.slotOf(b, row))), compute)
}

// conv1dCandidates compute an element a lane, or several of several rows.
func conv1dCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	in, ok := cutOnly(s, op)
	if !ok || !site.Indexable(s, op.Args[2], 1) {
		return nil
	}
	rows, ok := site.ExtentOf(s, op.Result)
	if !ok {
		return nil
	}
	k := convKernel{taps: int(op.Args[1].Type.Last()), linear: op.Attrs.Str("act") == "none"}
	a, each, key := site.AccessesOf(int(op.Result.Type.Last()), s.Target), 1, rows.Key()
	if a.Vec == 4 && in.quads() && s.Func.Class != ir.ExactStep {
		each = a.RowsALane(rows.Max, convRows, s.Target)
	}
	if each == 1 {
		a.Vec = 1
	} else {
		key = fmt.Sprintf(" rows=%d%s", each, key)
	}
	if k.linear {
		key = " linear" + key
	}
	if len(op.Args) > 5 {
		key = " bias" + key
	}
	key = in.key(op.Args[0]) + rows.PartKey() + key
	cover := a.Cover(rows.Max)
	cover[0].Tile[0] = each
	return []site.Candidate{site.Implement(site.Candidate{
		Kernel: fmt.Sprintf("conv taps=%d%s", k.taps, key),
		Grid:   a.Grid(site.CeilDiv(rows.Max, each)),
		Cover:  cover,

		Sequences: ir.ManySequences, Parts: true,
	}, "conv1d", func(s *site.Signature) func(b *kernel.Builder) {
		extent := rows.Declare(s)
		args := &convArgs{convKernel: k, rows: rows,
			x: s.Read("x", in.x), weight: s.Read("weight", op.Args[1]), ring: s.Read("ring", op.Args[2]),
			pos: s.Read("pos", op.Args[3]), slot: s.Read("slot", op.Args[4]), depth: declareDepth(s, op.Args[2]), cut: in.declareCut(s, "x", op.Args[0])}
		if len(op.Args) > 5 {
			args.bias = s.Read("bias", op.Args[5])
		}
		y, accesses := s.Write("y", op.Result), a.Declare(s)
		return func(b *kernel.Builder) {
			bound, row := extent.Load(b), b.WorkgroupID(1)
			if each > 1 {
				args.inRows(b, y, accesses, each, bound)
				return
			}
			accesses.Each(b, func(i, n kernel.Value) {
				args.width = n
				b.If(b.Lt(row, bound), func() {
					args.unlessDead(b, row, func() { y.Store(b.Add(b.Mul(row, n), i), args.at(b, row, i)) })
				})
			})
		}
	})}
}

// declareDepth declares how many rows a ring has for a sequence.
func declareDepth(s *site.Signature, ring *ir.Value) kernel.Value {
	return s.U32("depth", int(ring.Type.Shape[1]), 16, "rows of the ring")
}

// convWriteCandidates copy rows into the ring.
func convWriteCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	in, ok := cutOnly(s, op)
	if !ok {
		return nil
	}
	ring := op.Args[1]
	rows, ok := site.ExtentOf(s, in.x)
	a := site.AccessesOf(int(ring.Type.Last()), s.Target)
	for int(in.x.Type.Last())%a.Vec != 0 || in.first%a.Vec != 0 {
		a.Vec /= 2
	}
	if !ok || !site.Indexable(s, ring, a.Vec) {
		return nil
	}
	each := 1
	if s.Func.Class != ir.ExactStep {
		each = a.RowsALane(rows.Max, convWriteRows, s.Target)
	}
	cover := a.Cover(rows.Max)[0]
	cover.Arg, cover.Tile[0] = "ring", each
	return []site.Candidate{site.Implement(site.Candidate{
		Kernel: fmt.Sprintf("conv write v=%d rows=%d%s%s%s", a.Vec, each, in.key(op.Args[0]), rows.PartKey(), rows.Key()),
		Grid:   a.Grid(site.CeilDiv(rows.Max, each)),
		Cover:  []plans.Cover{cover},

		Sequences: ir.ManySequences, Parts: true,
	}, "conv_write", func(s *site.Signature) func(b *kernel.Builder) {
		extent, x, pos, slot := rows.Declare(s), s.Read("x", in.x), s.Read("pos", op.Args[2]), s.Read("slot", op.Args[3])
		depth, ring, accesses := declareDepth(s, ring), s.Write("ring", ring), a.Declare(s)
		cut := in.declareCut(s, "x", op.Args[0])
		return func(b *kernel.Builder) {
			bound := extent.Load(b)
			accesses.Each(b, func(i, n kernel.Value) {
				var to, kept []kernel.Value
				for j := range each { // few of many rows stay, so that those are not loaded before
					row := b.Add(b.Mul(b.WorkgroupID(1), each), j)
					in, later := b.Min(row, b.Sub(bound, 1)), b.Add(row, depth)
					at := slot.Load(kernel.U32, in)
					again := b.And(b.Lt(later, bound), b.Eq(slot.Load(kernel.U32, b.Min(later, b.Sub(bound, 1))), at))
					to = append(to, b.Add(b.Mul(at, depth), b.Mod(pos.Load(kernel.U32, in), depth)))
					keep := b.And(b.Lt(row, bound), b.Not(again))
					if rows.Part > 0 {
						keep = b.And(keep, b.Not(rows.Dead(b, at)))
					}
					kept = append(kept, keep)
				}
				for j := range each {
					row := b.Add(b.Mul(b.WorkgroupID(1), each), j)
					b.If(kept[j], func() {
						ring.Store(b.Add(b.Mul(to[j], n), i), x.Load(kernel.F32.Vec(a.Vec), cut.at(b, row, i, n, a.Vec)))
					})
				}
			})
		}
	})}
}

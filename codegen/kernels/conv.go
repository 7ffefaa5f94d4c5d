package kernels

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

func convCandidates(s *Site) []Candidate {
	return append(conv1dCandidates(s), convWriteCandidates(s)...)
}

// convKernel is a conv1d as a kernel knows it.
type convKernel struct {
	taps int
}

// convArgs are the arguments and constants of a conv1d in a kernel.
type convArgs struct {
	convKernel
	x, weight, ring *kernel.Buffer
	pos, slot       *kernel.Buffer // slot is nil if there is one only
	alone           bool           // the step has one row
	width, depth    kernel.Value   // channels; rows of the ring
}

// at returns an element of the result, for a row of the step. Its terms are added
// from the oldest on, wherever they lie. The rows of a slot follow each other, so
// those before this one are of this step if they have its slot.
func (c *convArgs) at(b *kernel.Builder, row, channel kernel.Value) kernel.Value {
	weights := c.weights(b, channel)
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
		past[d] = b.Var(kernel.F32, c.x.Load(kernel.F32, b.Add(b.Mul(from, c.width), channel)))
	}
	now := c.x.Load(kernel.F32, b.Add(b.Mul(row, c.width), channel))
	// Where some rows are not of this step the furthest is not, and it stands for
	// those that are: a dispatch may write their rows of the ring meanwhile.
	fromRing := func() {
		for d := 1; d < c.taps; d++ {
			back := b.Select(here[d], b.U32(uint32(c.taps-1)), b.U32(uint32(d)))
			at := b.Add(b.Mul(slot, c.depth), b.Mod(b.Sub(b.Add(pos, c.depth), back), c.depth))
			kept := c.ring.Load(kernel.F32, b.Add(b.Mul(at, c.width), channel))
			past[d].Set(b.Select(here[d], past[d].Get(), b.Select(b.Ge(pos, d), kept, 0)))
		}
	}
	if c.alone {
		fromRing()
	} else {
		b.If(b.Not(all), fromRing)
	}
	sum := b.F32(0)
	for d := c.taps - 1; d > 0; d-- {
		sum = b.FMA(weights[c.taps-1-d], past[d].Get(), sum)
	}
	sum = b.FMA(weights[c.taps-1], now, sum)
	return logistic(b, sum, sum)
}

// slotOf returns the slot of a row.
func (c *convArgs) slotOf(b *kernel.Builder, row kernel.Value) kernel.Value {
	if c.slot == nil {
		return b.U32(0)
	}
	return c.slot.Load(kernel.U32, row)
}

// weights loads those of a channel.
func (c *convArgs) weights(b *kernel.Builder, channel kernel.Value) []kernel.Value {
	var list []kernel.Value
	vec := widest(c.taps)
	for i := range c.taps / vec {
		v := c.weight.Load(kernel.F32.Vec(vec), b.Add(b.Mul(channel, c.taps/vec), i))
		list = append(list, elements(b, v)...)
	}
	return list
}

// conv1dCandidates compute an element a lane.
func conv1dCandidates(s *Site) []Candidate {
	op := only(s, "conv1d")
	if op == nil || !cacheFits(s, op.Args[2], 1) {
		return nil
	}
	rows, ok := extentOf(s, op.Result)
	if !ok {
		return nil
	}
	k := convKernel{taps: int(op.Args[1].Type.Last())}
	a := rowAccesses{vec: 1, size: min(s.Target.Workgroup, 256) / s.Target.Wave * s.Target.Wave, width: int(op.Result.Type.Last())}
	operands := rows.operands()
	for i, v := range op.Args {
		operands = append(operands, Operand{op.Kind.Params[i], v, kernel.Read})
	}
	return []Candidate{{
		Kernel: fmt.Sprintf("conv taps=%d%s", k.taps, rows.key()),
		Build: func() (*kernel.Func, error) {
			return kernel.Build("conv1d", func(b *kernel.Builder) {
				bound := rows.bound(b)
				args := &convArgs{convKernel: k,
					x: b.Arg("x", kernel.Read), weight: b.Arg("weight", kernel.Read), ring: b.Arg("ring", kernel.Read),
					pos: b.Arg("pos", kernel.Read), slot: b.Arg("slot", kernel.Read), depth: b.SpecU32("depth", 16)}
				y, row := b.Arg("y", kernel.Write), b.WorkgroupID(1)
				a.run(b, func(i, n kernel.Value) {
					args.width = n
					b.If(b.Lt(row, bound), func() { y.Store(b.Add(b.Mul(row, n), i), args.at(b, row, i)) })
				})
			})
		},
		Consts:   append(append(rows.consts(), ir.Const{Name: "depth", Value: uint32(op.Args[2].Type.Shape[1])}), a.consts()...),
		Grid:     a.grid(rows.max),
		Operands: append(operands, Operand{"y", op.Result, kernel.Write}),
		Cover:    a.cover(rows.max),
	}}
}

// convWriteCandidates copy rows into the ring.
func convWriteCandidates(s *Site) []Candidate {
	op := only(s, "conv_write")
	if op == nil {
		return nil
	}
	x, ring := op.Args[0], op.Args[1]
	rows, ok := extentOf(s, x)
	a := accessesOf(int(x.Type.Last()), s.Target)
	if !ok || !cacheFits(s, ring, a.vec) {
		return nil
	}
	depth := int(ring.Type.Shape[1])
	cover := a.cover(rows.max)[0]
	cover.Arg = "ring"
	return []Candidate{{
		Kernel: fmt.Sprintf("conv write v=%d%s", a.vec, rows.key()),
		Build: func() (*kernel.Func, error) {
			return kernel.Build("conv_write", func(b *kernel.Builder) {
				bound := rows.bound(b)
				x, pos, slot := b.Arg("x", kernel.Read), b.Arg("pos", kernel.Read), b.Arg("slot", kernel.Read)
				ring, depth := b.Arg("ring", kernel.Write), b.SpecU32("depth", 16)
				row := b.WorkgroupID(1)
				a.run(b, func(i, n kernel.Value) {
					v := x.Load(kernel.F32.Vec(a.vec), b.Add(b.Mul(row, n), i))
					b.If(b.Lt(row, bound), func() {
						at, later := slot.Load(kernel.U32, row), b.Add(row, depth)
						again := b.And(b.Lt(later, bound), b.Eq(slot.Load(kernel.U32, b.Min(later, b.Sub(bound, 1))), at))
						to := b.Add(b.Mul(at, depth), b.Mod(pos.Load(kernel.U32, row), depth))
						b.If(b.Not(again), func() { ring.Store(b.Add(b.Mul(to, n), i), v) })
					})
				})
			})
		},
		Consts: append(append(rows.consts(), ir.Const{Name: "depth", Value: uint32(depth)}), a.consts()...),
		Grid:   a.grid(rows.max),
		Operands: append(rows.operands(), Operand{"x", x, kernel.Read}, Operand{"pos", op.Args[2], kernel.Read},
			Operand{"slot", op.Args[3], kernel.Read}, Operand{"ring", ring, kernel.Write}),
		Cover: []plans.Cover{cover},
	}}
}

package attention

import (
	"math"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
)

// write stores the quotients of the rows that this step has, or what a split has.
func (r *coopAttentionRun) write(y *kernel.Buffer) {
	r.finish(y)
	b := r.b
	mine := b.Mul(b.SubgroupID(), r.sumsSize())
	for from := 0; from < len(r.sums); from += r.dims() / fragment.Square {
		part := r.sums[from:min(len(r.sums), from+r.dims()/fragment.Square)]
		quads := len(part) * fragment.Square / 4
		for d, s := range part {
			r.shared.StoreMatrix(b.Add(mine, d*fragment.Square/4), r.sumStride(), kernel.RowMajor, s.Get())
		}
		b.SubgroupBarrier()
		b.For(b.SubgroupLane(), fragment.Square*quads, r.wave, func(i kernel.Value) {
			row, quad := b.Div(i, quads), b.Mod(i, quads)
			v := b.Bitcast(lane.F32x4, r.shared.Load(b.Add(mine, b.Mul(row, r.sumStride()), quad)))
			number := b.Splat(r.number(fades, row), 4)
			quad = b.Add(quad, b.Mul(r.side, r.headDim/r.sides/4), from*fragment.Square/4)
			r.place(row, func(head kernel.Value) { r.writeQuad(y, head, quad, v, number) })
		})
		b.SubgroupBarrier()
	}
}

// finish sums up the weights of the rows. The number of a row is then the factor of
// its sums: over the weights or, of a split, to what the largest score is.
func (r *coopAttentionRun) finish(y *kernel.Buffer) {
	b := r.b
	fold := func(m *kernel.Var, f folding) kernel.Value {
		var all kernel.Value
		r.square(m, func(_, column kernel.Value, x *kernel.Var) {
			if all == (kernel.Value{}) {
				all = x.Get()
			} else {
				all = f(b, all, x.Get())
			}
		})
		return r.together(r.ofRow(f, all), f)
	}
	weight := fold(r.weight, sumOf)
	if sinks := r.attentionArgs.sinks; sinks != nil {
		head := b.Add(r.head, b.Mod(r.inTile(r.teamRow), r.fold))
		weight = withSink(b, sinks, head, func() kernel.Value { return b.Mul(r.top.Get(), math.Ln2) }, weight)
	}
	number := b.Div(1.0, weight)
	var largest kernel.Value
	if r.partial {
		r.sync() // all have read what this overwrites
		largest = b.Mul(fold(r.largest, largestOf), r.factor)
		number = b.Select(b.Gt(weight, 0), b.Exp2(b.Sub(r.top.Get(), largest)), 0)
	}
	b.If(b.Eq(r.member, 0), func() {
		r.setNumber(fades, number)
		if r.partial {
			r.place(r.teamRow, func(head kernel.Value) {
				seen := b.Gt(weight, 0)
				top := b.Select(seen, b.Mul(largest, math.Ln2), emptyScore)
				b.If(b.Eq(r.side, 0), func() {
					y.Store(b.Add(r.pairs(head), r.headDim/2), b.Vec(top, b.Mul(weight, number)))
				})
			})
		}
	})
}

// place calls body with the head, counted through all rows, that is a row of the team,
// if it is of this step.
func (r *coopAttentionRun) place(row kernel.Value, body func(head kernel.Value)) {
	b := r.b
	inTile := r.inTile(row)
	row = b.Add(r.row, b.Div(inTile, r.fold))
	b.If(b.Le(row, r.lastRow), func() { body(b.Add(b.Mul(row, r.heads), r.head, b.Mod(inTile, r.fold))) })
}

// pairs returns where in y, in pairs of f32, the split's sums of a head begin.
func (r *coopAttentionRun) pairs(head kernel.Value) kernel.Value {
	b := r.b
	return b.Mul(b.Add(b.Mul(head, b.NumWorkgroups(2)), b.WorkgroupID(2)), (r.headDim+2)/2)
}

// writeQuad stores four dims of a head, times a number.
func (r *coopAttentionRun) writeQuad(y *kernel.Buffer, head, quad, v, number kernel.Value) {
	b := r.b
	v = b.Mul(v, number)
	if r.partial {
		at := b.Add(r.pairs(head), b.Mul(quad, 2))
		y.Store(at, b.Vec(b.Elem(v, 0), b.Elem(v, 1)))
		y.Store(b.Add(at, 1), b.Vec(b.Elem(v, 2), b.Elem(v, 3)))
		return
	}
	v = r.attentionArgs.gate.load(b, lane.F32x4, head, quad, r.headDim/4)(v)
	if r.coopAttention.gate.half {
		v = lane.RoundHalf(b, v)
	}
	y.Store(b.Add(b.Mul(head, r.headDim/4), quad), v)
}

package attention

import (
	"math"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
)

// write stores the quotients of the rows that this step has, or what a split has.
func (r *coopAttentionRun) write() {
	r.finish()
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
			r.place(r.inTile(row), func(head kernel.Value) { r.writeQuad(head, quad, v, number) })
		})
		b.SubgroupBarrier()
	}
}

// finish sums up the weights of the rows. The number of a row is then the factor of
// its sums: over the weights or, of a split, to what the largest score is.
func (r *coopAttentionRun) finish() {
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
			r.place(r.inTile(r.teamRow), func(head kernel.Value) {
				seen := b.Gt(weight, 0)
				top := b.Select(seen, b.Mul(largest, math.Ln2), emptyScore)
				b.If(b.Eq(r.side, 0), func() {
					r.y.Store(b.Add(r.pairs(head), r.headDim/2), b.Vec(top, b.Mul(weight, number)))
				})
			})
		}
	})
}

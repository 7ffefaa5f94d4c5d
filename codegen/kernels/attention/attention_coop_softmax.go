package attention

import (
	"math"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
)

// Most tiles only have their scores turned into weights where they are, in the matrices.
// The device decides which element of a matrix a lane holds. So masks and new maxima of
// rows need scores in shared memory, where each row has two lanes.

// each calls body for the elements of a matrix that the lane holds.
func (r *coopAttentionRun) each(body func(i kernel.Value)) {
	r.b.ForUnroll(0, r.b.MatLength(coopSum), 1, body)
}

// vote finds out whether the tops must change before the scores become weights, and
// returns what returns that. In a workgroup of more than one side that is the same in all
// of it, and all lanes must come to a barrier in between.
func (r *coopAttentionRun) vote(masked kernel.Value) func() kernel.Value {
	b := r.b
	over := b.Var(kernel.F32, emptyScore)
	r.each(func(i kernel.Value) {
		most := r.scores[0].Elem(i)
		for _, s := range r.scores[1:] {
			most = b.Max(most, s.Elem(i))
		}
		over.Set(b.Max(over.Get(), b.FMA(most, r.factor, r.under.Elem(i))))
	})
	vote := b.Or(masked, b.SubgroupAny(b.Gt(over.Get(), growth)))
	if r.sides == 1 {
		return func() kernel.Value { return vote }
	}
	b.If(b.SubgroupElect(), func() {
		s := b.SubgroupID()
		r.shared.StoreElem(b.Add(b.Div(s, 4), r.votesAt()), b.Mod(s, 4), b.Convert(kernel.U32, vote))
	})
	return func() kernel.Value {
		any := b.U32(0)
		for s := range r.subgroups() {
			any = b.Or(any, r.shared.LoadElem(s/4+r.votesAt(), s%4))
		}
		return b.Ne(any, 0)
	}
}

// weigh turns the scores into weights, in shared memory.
func (r *coopAttentionRun) weigh() {
	b := r.b
	r.each(func(i kernel.Value) {
		under, sum := r.under.Elem(i), r.weight.Elem(i)
		for _, s := range r.scores {
			x := s.Elem(i)
			if r.partial {
				r.largest.SetElem(i, b.Max(r.largest.Elem(i), x))
			}
			w := b.Exp2(b.FMA(x, r.factor, under))
			s.SetElem(i, w)
			sum = b.Add(sum, w)
		}
		r.weight.SetElem(i, sum)
	})
	at := b.Add(b.Mul(r.team, r.teamSize()), b.Mul(r.side, r.tileKV/r.sides/8), r.weightsAt())
	for c, s := range r.scores {
		r.shared.StoreMatrix(b.Add(at, c*fragment.Square/8), r.weightStride(), kernel.RowMajor, b.MatConvert(kernel.F16, s.Get()))
	}
}

// change changes what the weights are relative to where changed holds: it masks the
// scores, makes the largest of each row its top, if it is larger than that was, and
// scales the sums.
func (r *coopAttentionRun) change(from, masked, changed kernel.Value) {
	r.b.If(changed, func() { r.changeTops(from, masked) })
}

func (r *coopAttentionRun) changeTops(from, masked kernel.Value) {
	b := r.b
	most := b.Var(lane.F32x4, b.Splat(b.F32(emptyScore), 4))
	for c, s := range r.scores {
		r.square(s, func(at, column kernel.Value, x *kernel.Var) {
			p := b.Add(from, b.Mul(r.side, r.tileKV/r.sides), column, c*fragment.Square)
			positions := b.Vec(p, b.Add(p, 1), b.Add(p, 2), b.Add(p, 3))
			b.If(masked, func() {
				limit := b.Splat(r.limit, 4)
				x.Set(b.Select(r.sees(b, b.Lt(positions, limit), positions, limit), x.Get(), math.Inf(-1)))
				r.shared.Store(at, b.Bitcast(lane.U32x4, x.Get()))
			})
			most.Set(b.Max(most.Get(), x.Get()))
		})
		b.SubgroupBarrier()
		s.Set(r.shared.LoadMatrix(coopSum, r.squareAt(), squareStride, kernel.RowMajor))
		b.SubgroupBarrier()
	}
	largest := b.Mul(r.together(r.ofRow(largestOf, most.Get()), largestOf), r.factor)
	old := r.top.Get()
	top := b.Max(old, largest)
	r.top.Set(top)
	b.If(b.Eq(r.member, 0), func() {
		r.setNumber(fades, b.Exp2(b.Sub(old, top)))
		r.setNumber(tops, b.Neg(top))
	})
	b.SubgroupBarrier()
	fade := r.shared.LoadMatrix(coopSum, r.numberAt(fades), 0, kernel.ColumnMajor)
	r.under.Set(r.shared.LoadMatrix(coopSum, r.numberAt(tops), 0, kernel.ColumnMajor))
	r.weight.Set(b.MatTimes(r.weight.Get(), fade))
	for _, s := range r.sums {
		s.Set(b.MatTimes(s.Get(), fade))
	}
}

// square puts a matrix into the subgroup's square and calls body for each four elements
// of the lane's row: where they lie, the column of the first, and what they are.
func (r *coopAttentionRun) square(m *kernel.Var, body func(at, column kernel.Value, x *kernel.Var)) {
	b := r.b
	r.shared.StoreMatrix(r.squareAt(), squareStride, kernel.RowMajor, m.Get())
	b.SubgroupBarrier()
	for i := range fragment.Square / 8 {
		column := b.Add(b.Mul(r.member, fragment.Square/2), 4*i)
		at := b.Add(r.squareAt(), b.Mul(r.teamRow, squareStride), b.Div(column, 4))
		body(at, column, b.Var(lane.F32x4, b.Bitcast(lane.F32x4, r.shared.Load(at))))
	}
}

func (r *coopAttentionRun) squareAt() kernel.Value {
	return r.b.Add(r.b.Mul(r.team, r.teamSize()), r.b.Mul(r.side, squareSize), r.weightsAt())
}

// folding makes one of two numbers.
type folding func(b *kernel.Builder, x, y kernel.Value) kernel.Value

func largestOf(b *kernel.Builder, x, y kernel.Value) kernel.Value { return b.Max(x, y) }

func sumOf(b *kernel.Builder, x, y kernel.Value) kernel.Value { return b.Add(x, y) }

// ofRow folds the elements of x, of both lanes that have a row.
func (r *coopAttentionRun) ofRow(f folding, x kernel.Value) kernel.Value {
	b := r.b
	x = f(b, f(b, b.Elem(x, 0), b.Elem(x, 1)), f(b, b.Elem(x, 2), b.Elem(x, 3)))
	return f(b, x, b.SubgroupShuffleXor(x, 1))
}

// together folds a number of the lane's row over the sides of the team.
func (r *coopAttentionRun) together(x kernel.Value, f folding) kernel.Value {
	if r.sides == 1 {
		return x
	}
	b := r.b
	b.If(b.Eq(r.member, 0), func() { r.setNumber(results, x) })
	b.Barrier()
	for s := range r.sides {
		unit := b.Add(r.numbersOf(b.Add(b.Mul(r.team, r.sides), s), results), b.Div(r.teamRow, 4))
		v := b.Bitcast(kernel.F32, r.shared.LoadElem(unit, b.Mod(r.teamRow, 4)))
		if s == 0 {
			x = v
		} else {
			x = f(b, x, v)
		}
	}
	return x
}

// numbersOf returns where the numbers of that kind of a subgroup's rows begin.
func (r *coopAttentionRun) numbersOf(subgroup kernel.Value, kind int) kernel.Value {
	const each = fragment.Square / 4
	return r.b.Add(r.b.Mul(subgroup, numbers*each), kind*each+r.numbersAt())
}

func (r *coopAttentionRun) numberAt(kind int) kernel.Value {
	return r.numbersOf(r.b.SubgroupID(), kind)
}

// setNumber sets a number of the lane's row.
func (r *coopAttentionRun) setNumber(kind int, x kernel.Value) {
	b := r.b
	r.shared.StoreElem(b.Add(r.numberAt(kind), b.Div(r.teamRow, 4)), b.Mod(r.teamRow, 4), b.Bitcast(kernel.U32, x))
}

// number returns a number of a row of the team.
func (r *coopAttentionRun) number(kind int, row kernel.Value) kernel.Value {
	b := r.b
	return b.Bitcast(kernel.F32, r.shared.LoadElem(b.Add(r.numberAt(kind), b.Div(row, 4)), b.Mod(row, 4)))
}

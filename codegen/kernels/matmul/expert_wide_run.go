package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// expertWideTask is the kernel of one projection while it is built.
type expertWideTask struct {
	*fixedTask
	expertWideShared
	kernel *expertWide
	result func(column kernel.Value) kernel.Value // row of the result
}

// expertWideShared is the shared memory of expert_wide: x of 8 rows.
type expertWideShared struct {
	fixed   fixedShared
	xCodes  *kernel.Array // by block, run, lane: see fixedX
	xTotals *kernel.Array // of super-blocks, by block, lane: upper ones, then lower ones
	xScales *kernel.Array // by block, two columns
}

func newExpertWideShared(b *kernel.Builder, k *expertWide) expertWideShared {
	n := k.sizes()
	array := func(t kernel.Type, n int) *kernel.Array {
		if n == 0 {
			return nil
		}
		return b.Shared(t, n)
	}
	return expertWideShared{
		fixed: fixedShared{
			totals: array(lane.F32x4, n.totals), terms: array(lane.F32x4, n.terms),
			scales: array(lane.F32x2, n.scales), squares: array(kernel.F32, n.squares),
		},
		xCodes:  b.Shared(lane.U32x4, k.blocks()*weight.FixedRuns*fragment.Lanes),
		xTotals: b.Shared(lane.U32x4, k.blocks()*fragment.Lanes),
		xScales: b.Shared(lane.F32x2, k.blocks()*fixedColumns/2),
	}
}

// compute multiplies the columns with the workgroup's outputs.
func (r *expertWideTask) compute() {
	b := r.b
	each, from := r.kernel.each(), b.Mul(b.Add(b.Mul(b.WorkgroupID(1), r.kernel.turns*wideGroups), r.group), r.kernel.each())
	colOf := func(turn kernel.Value) kernel.Value { return b.Add(from, b.Mul(turn, wideGroups*each)) }
	held := hold(b, r.rowsAt(from, nil).load(b.U32(0))) // before x, which is nearer
	b.ForRolled(r.group, r.blocks(), wideGroups, r.roundBlock)
	b.Barrier()
	scales := r.columnScales()
	b.ForRolled(0, r.kernel.turns, 1, func(turn kernel.Value) {
		col := colOf(turn)
		b.If(b.Lt(col, r.p.width), func() {
			sums := r.sumTile(col, colOf(b.Min(b.Add(turn, 1), r.kernel.turns-1)), held)
			r.storeTile(col, sums, scales)
		})
	})
}

// roundBlock rounds a block of x into shared memory.
func (r *expertWideTask) roundBlock(block kernel.Value) {
	b := r.b
	r.held = block
	var words [weight.FixedRuns][]kernel.Operand
	loaded := r.loadX(block, b.Min(r.place, b.Sub(r.columns, 1)), r.place, nil)
	scale, sums := r.rounded(loaded, func(scale kernel.Value) {
		b.If(b.Eq(r.quad, 0), func() {
			r.xScales.StoreElem(b.Add(b.Mul(block, fixedColumns/2), b.Shr(r.place, 1)), b.And(r.place, 1), scale)
		})
	}, func(run, _ int, n kernel.Value) { words[run] = append(words[run], r.pairs(n)...) })
	for run, w := range words {
		r.xCodes.Store(b.Add(b.Mul(block, weight.FixedRuns*fragment.Lanes), run*fragment.Lanes, r.lane), b.Vec(w...))
	}
	if !r.format.Super {
		r.keepTerms(scale, sums)
		return
	}
	totals := r.totalsOf(sums)
	r.xTotals.Store(b.Add(b.Mul(block, fragment.Lanes), r.lane), b.Vec(operands(append(totals[0], totals[1]...))...))
}

// blockOf returns what roundBlock has left.
func (r *expertWideTask) blockOf(block kernel.Value) fixedX {
	b := r.b
	r.held = block
	x := fixedX{codes: func(run int) [2]kernel.Value {
		v := r.xCodes.Load(b.Add(b.Mul(block, weight.FixedRuns*fragment.Lanes), run*fragment.Lanes, r.lane))
		return [2]kernel.Value{b.MatPairs(xMatrix, b.Elem(v, 0), b.Elem(v, 1)), b.MatPairs(xMatrix, b.Elem(v, 2), b.Elem(v, 3))}
	}}
	if r.format.Super {
		pair := r.xScales.Load(b.Add(b.Mul(block, fixedColumns/2), r.quad))
		v := r.xTotals.Load(b.Add(b.Mul(block, fragment.Lanes), r.lane))
		x.scale = [2]kernel.Value{b.Elem(pair, 0), b.Elem(pair, 1)}
		x.totals = [2]kernel.Value{b.MatPairs(xMatrix, b.Elem(v, 0), b.Elem(v, 1)), b.MatPairs(xMatrix, b.Elem(v, 2), b.Elem(v, 3))}
	}
	return x
}

// columnScales returns the norm's scales of the lane's two columns of sums, nil without norm.
func (r *expertWideTask) columnScales() (scales [2]*kernel.Value) {
	if r.gain == nil {
		return
	}
	b, n := r.b, r.k/128
	for c := range scales {
		first := b.Mul(b.Add(b.Mul(r.quad, 2), c), n)
		sum := r.squares.Load(first)
		for i := 1; i < n; i++ {
			sum = b.Add(sum, r.squares.Load(b.Add(first, i)))
		}
		scale := r.a.rstd(b, sum)
		scales[c] = &scale
	}
	return scales
}

// sumTile returns the lane's sums of the tile whose first output of each matrix is col, row by row. Words of the tile
// at next replace those that held has.
func (r *expertWideTask) sumTile(col, next kernel.Value, held fixedHeld) (sums [4]*kernel.Var) {
	b, blocks := r.b, r.blocks()
	vars := func() (list [4]*kernel.Var) {
		for e := range list {
			list[e] = b.Var(kernel.F32, minusZero)
		}
		return
	}
	first, second := vars(), vars() // of a chunk, two blocks of which are added before the next two
	sums = vars()
	rows := r.rowsAt(col, nil)
	b.ForRolled(0, blocks, 1, func(block kernel.Value) {
		last := b.Eq(block, blocks-1)
		after := r.rowsAt(b.Select(last, next, col), nil).load(b.Select(last, 0, b.Add(block, 1)))
		if !r.format.Super {
			b.SubgroupBarrier() // all have read the terms before
		}
		values := r.block(rows, held.words(), r.blockOf(block), func(slot int) { held.follow(after, slot) })
		at := b.And(block, fixedChunk-1)
		upper, odd := b.Ge(at, 2), b.Eq(b.And(at, 1), 1)
		for e, v := range values {
			lower := b.Select(odd, b.Add(first[e].Get(), v), v)
			first[e].Set(b.Select(upper, first[e].Get(), lower))
			both := b.Select(odd, b.Add(second[e].Get(), v), v)
			second[e].Set(b.Select(upper, both, minusZero))
			whole := b.Add(sums[e].Get(), b.Add(first[e].Get(), second[e].Get()))
			sums[e].Set(b.Select(b.Or(last, b.Eq(at, fixedChunk-1)), whole, sums[e].Get()))
		}
	})
	return sums
}

// storeTile stores the sums of a tile.
func (r *expertWideTask) storeTile(col kernel.Value, sums [4]*kernel.Var, scales [2]*kernel.Value) {
	b, each := r.b, r.kernel.each()
	for c, scale := range scales {
		column := b.Add(b.Mul(r.quad, 2), c)
		of := [2]kernel.Value{sums[c].Get(), sums[2+c].Get()}
		row := r.result(b.Min(column, b.Sub(r.columns, 1)))
		for from := 0; from < each; from += fixedSide / 2 {
			var own []kernel.Value
			for m := range r.p.matrices {
				own = append(own, of[(m*each+from)/8])
			}
			out := b.Add(col, from, r.place)
			b.If(b.And(b.Lt(out, r.p.width), b.Lt(column, r.columns)), func() { r.p.store(b, own, scale, nil, row, out) })
		}
	}
}

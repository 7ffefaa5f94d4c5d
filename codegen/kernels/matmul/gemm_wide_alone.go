package matmul

import (
	"math"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
)

// gemm_wide without dispatches before and behind it: each workgroup rounds its part of x itself, and the last one that
// has left parts of a tile adds them up. That pays where projections are short, so that two more dispatches take
// longer, and where parts are more than the L2 cache holds (docs/lab/batched-decoding.md).

// inParts reports whether the group becomes products of parts.
func (k gemmWide) inParts(t *target.Target) bool {
	bytes := 0
	for _, p := range k.projects {
		bytes += 4 * k.rows * k.splits * p.width * len(p.matrices)
	}
	return !k.shape.plain && bytes <= t.Thresholds.Parts
}

// alone computes the workgroup's tiles, some at a time, turns of them.
func (t *wideTiles) alone(turns, own kernel.Value) {
	b, r := t.b, t.wideTask
	if r.split == nil {
		b.ForRolled(0, own, 1, func(i kernel.Value) {
			t.compute(i, b.Select(b.Lt(b.Add(i, 1), own), b.Add(i, 1), i))
			r.endTile(t.colOf(i), b.U32(0), t.take())
		})
		return
	}
	// What a workgroup counts of a part it looks at behind the next one: the time that counting takes would be lost.
	parts, _ := r.kernel.turnParts()
	b.ForRolled(0, parts+1, 1, func(i kernel.Value) {
		n, from, to := t.part(i, turns)
		to = b.Select(b.Lt(i, parts), b.Min(to, own), from)
		after := t.firstOf(b.Add(i, 1), turns, own)
		b.ForRolled(from, to, 1, func(i kernel.Value) {
			next := b.Add(i, 1)
			t.compute(i, b.Select(b.Lt(next, to), next, after))
			at := r.tileLeft(r.split.index, t.tileOf(i))
			for j := range r.matrices() {
				r.split.partial.Store(b.Add(at, j*fragment.Lanes), b.Vec(operands(t.take4(j))...))
			}
		})
		counter := b.Mul(r.split.counter(b, r.gemmFixed), parts)
		b.BarrierBuffers()
		b.If(b.Lt(i, parts), func() {
			site.Arrive(b, r.arrived, b.And(i, 1), r.split.arrivals, b.Add(counter, n), b.U32(uint32(r.splits)))
		})
		before := b.Sub(i, 1)
		b.If(b.Gt(i, 0), func() {
			b.If(b.Eq(r.arrived.Load(b.And(before, 1)), r.splits), func() {
				_, from, to := t.part(before, turns)
				t.addUp(from, b.Min(to, own))
			})
		})
	})
}

// part is the i-th part of so many turns of the workgroup: its number, and its turns.
func (t *wideTiles) part(i, turns kernel.Value) (n, from, to kernel.Value) {
	b, r := t.b, t.wideTask
	parts, each := r.kernel.turnParts()
	n = b.Mod(b.Add(b.Div(b.Mul(r.split.index, parts), r.splits), i), parts)
	return n, b.Mul(n, each), b.Min(turns, b.Add(b.Mul(n, each), each))
}

// firstOf is the first turn of the i-th part, or of the next one that has any of the subgroup's own.
func (t *wideTiles) firstOf(i, turns, own kernel.Value) kernel.Value {
	_, from, _ := t.part(i, turns)
	return t.b.Select(t.b.Lt(from, own), from, 0)
}

func (t *wideTiles) tileOf(turn kernel.Value) kernel.Value {
	return t.b.Add(t.b.Mul(turn, t.gemmFixed.groups), t.group)
}

// roundOwn rounds the workgroup's part of x, and finds the scales of rows or leaves squares for them.
func (r *wideTask) roundOwn(first kernel.Value) {
	b := r.b
	r.roundAll(first)
	b.Barrier()
	switch {
	case r.gain != nil && r.split == nil:
		r.scaleColumns()
		b.Barrier()
	case r.gain != nil:
		r.leaveSquares()
	}
}

// turnParts is how many parts the tiles of a workgroup have, and of how many turns each of them is. Workgroups that
// share rows begin with different ones, so that each is the last in another one, which it adds up.
func (k gemmWide) turnParts() (n, each int) {
	each = site.CeilDiv(k.turns(), min(k.splits, k.turns()))
	return site.CeilDiv(k.turns(), each), each
}

// squaresOf is the sums of squares of a column that a workgroup has.
func (k gemmWide) squaresOf() int {
	if k.splits == 1 {
		return k.k / 128
	}
	return fixedSquares
}

// roundAll rounds the workgroup's blocks of x, of which the first is given: a subgroup 8 columns of a block at a time,
// since a unit would wait for the instructions of two.
func (r *wideTask) roundAll(first kernel.Value) {
	b := r.b
	blocks := b.U32(uint32(r.kernel.held()))
	if r.blocks()%r.kernel.held() != 0 { // the last chunk has fewer
		blocks = b.Min(blocks, b.Sub(r.blocks(), first))
	}
	b.ForRolled(r.group, b.Mul(blocks, r.matrices()), r.groups, func(i kernel.Value) { r.roundOne(first, i) })
}

// roundOne rounds the i-th block of 8 columns of x, of which the first is given.
func (r *wideTask) roundOne(first, i kernel.Value) {
	b := r.b
	local, column := b.Div(i, r.matrices()), b.Add(b.Mul(b.Mod(i, r.matrices()), fixedColumns), r.place)
	at := b.Add(b.Mul(local, wideVecs*r.wide), column)
	put := func(where int, word kernel.Operand) { r.x.StoreElem(b.Add(at, where*r.wide), r.quad, word) }
	_, sums := r.rounded(r.loadX(b.Add(first, local), column, column, nil), func(scale kernel.Value) {
		b.If(b.Eq(r.quad, 0), func() { // where wideBlock looks for it
			r.wideShared.scales.StoreElem(b.Add(b.Mul(local, r.wide/2), b.Shr(column, 1)), b.And(column, 1), b.Bitcast(kernel.U32, scale))
		})
	}, func(run, i int, n kernel.Value) {
		for half, word := range r.pairs(r.even(run, n)) {
			put(4*run+2*i+half, word)
		}
	})
	if !r.hasMinimums() {
		return
	}
	for i, words := range r.totalsOf(sums) {
		for half, word := range words {
			put(wideTotals+2*i+half, word)
		}
	}
}

// even returns integers of x of a run so that products in all slots have the same exponent, which is exact.
func (r *wideTask) even(run int, n kernel.Value) kernel.Value {
	b, e := r.b, r.format.Exponents
	if !r.format.Super || e[0] == e[1] || r.format.SlotOf(run)%2 == 0 {
		return n
	}
	return b.Mul(n, b.Splat(b.F32(float32(math.Ldexp(1, e[0]-e[1]))), 4))
}

// leaveSquares leaves the sums of squares of the workgroup's chunk for those who add up.
func (r *wideTask) leaveSquares() {
	b := r.b
	b.For(b.LocalID(), r.wide*fixedSquares, r.kernel.room, func(i kernel.Value) {
		column, n := b.Mod(i, r.wide), b.Div(i, r.wide)
		b.If(b.Lt(b.Add(b.Mul(r.split.index, fixedSquares), n), r.k/128), func() {
			of := r.fixedTask.squares.Load(b.Add(b.Mul(column, fixedSquares), n))
			r.split.partial.Store(r.leftAt(column, r.split.index, b.Add(n, r.left()-fixedSquares)), of)
		})
	})
}

// addedMatrices is the matrices of sums of a tile that addUp has at once: loads of few would be waited for, and a unit
// would wait for the instructions of many.
const addedMatrices = 4

// addUp adds what the workgroups of all splits have left of some turns.
func (t *wideTiles) addUp(from, to kernel.Value) {
	b, r := t.b, t.wideTask
	r.scaleSplit()
	atOnce := min(r.matrices(), addedMatrices)
	b.ForRolled(from, to, 1, func(i kernel.Value) {
		b.ForRolled(0, r.matrices(), atOnce, func(first kernel.Value) {
			sums := make([]kernel.Value, atOnce)
			for chunk := range r.chunks() {
				at := b.Add(r.tileLeft(b.U32(uint32(chunk)), t.tileOf(i)), b.Mul(first, fragment.Lanes))
				for j := range sums {
					sums[j] = weight.Plus(b, sums[j], r.split.partial.Load(lane.F32x4, b.Add(at, j*fragment.Lanes)))
				}
			}
			var list []kernel.Value
			for _, v := range sums {
				list = append(list, lane.Elements(b, v)...)
			}
			r.endTile(t.colOf(i), first, list)
		})
	})
}

// tileLeft is where the lane's sums of a tile of a chunk begin, in vec4, of which each lane of a subgroup has one.
func (r *wideTask) tileLeft(chunk, tile kernel.Value) kernel.Value {
	b := r.b
	return b.Add(b.Div(r.leftOf(chunk), 4), b.Mul(tile, fixedSide*r.wide/4), r.lane)
}

// take4 is take of a matrix.
func (t *wideTiles) take4(j int) (list []kernel.Value) {
	for _, v := range t.sums[4*j : 4*j+4] {
		list = append(list, v.Get())
		v.Set(minusZero)
	}
	return list
}

// endTile stores the sums of some matrices of 8 columns of a tile, from the given one on. The tile's first output of
// each matrix of weights is col. All that is added to sums is loaded before anything is stored.
func (r *wideTask) endTile(col, first kernel.Value, sums []kernel.Value) {
	b := r.b
	var outs []kernel.Value // by half of a tile, if its rows are of one matrix
	for from := 0; from < r.each(); from += fixedSide / 2 {
		outs = append(outs, b.Add(col, from, r.place))
	}
	columns := make([]kernel.Value, len(sums)/2)
	for n := range columns {
		columns[n] = b.Add(b.Mul(r.quad, 2), b.Mul(first, fixedColumns), n/2*fixedColumns+n%2)
	}
	var residuals [][]kernel.Value
	for _, out := range outs {
		for _, column := range columns {
			residuals = append(residuals, r.p.loadResiduals(b, r.rowOf(column), b.Min(out, b.Sub(r.p.width, 1))))
		}
	}
	for half, out := range outs {
		b.If(b.Lt(out, r.p.width), func() { // all at once: each waits for its own
			for n, column := range columns {
				var own []kernel.Value
				for m := range r.p.matrices {
					own = append(own, sums[4*(n/2)+n%2+2*(m*r.each()/8+half)])
				}
				r.p.store(b, own, r.scaleOf(column), residuals[half*len(columns)+n], r.rowOf(column), out)
			}
		})
	}
}

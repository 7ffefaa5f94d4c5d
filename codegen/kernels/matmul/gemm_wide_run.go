package matmul

import (
	"math"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// wideTask is the kernel of one projection while it is built.
type wideTask struct {
	*fixedTask
	wideShared
	kernel gemmWide
}

// minusZero changes no sum.
var minusZero = math.Float32frombits(1 << 31)

// matrices is how many matrices of 8 columns there are.
func (r *wideTask) matrices() int { return r.wide / fixedColumns }

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
		b.If(b.Eq(r.quad, 0), func() {
			r.scales.StoreElem(b.Add(b.Mul(local, r.wide/2), b.Shr(column, 1)), b.And(column, 1), scale)
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

// hasMinimums reports whether blocks have minimums, which are multiplied by totals of x.
func (r *wideTask) hasMinimums() bool { return r.format.Super && r.format.Stored() }

// even returns integers of x of a run so that products in all slots have the same exponent, which is exact.
func (r *wideTask) even(run int, n kernel.Value) kernel.Value {
	b, e := r.b, r.format.Exponents
	if !r.format.Super || e[0] == e[1] || r.format.SlotOf(run)%2 == 0 {
		return n
	}
	return b.Mul(n, b.Splat(b.F32(float32(math.Ldexp(1, e[0]-e[1]))), 4))
}

// inSeries computes the workgroup's tiles, some at a time.
func (r *wideTask) inSeries() {
	b := r.b
	left := b.Div(b.Add(b.Sub(r.p.width, r.col), r.each()-1), r.each())
	tiles := b.Add(b.Min(r.series, left), r.groups-1)
	turns := b.Div(tiles, r.groups)
	own := turns // of those that multiply together
	if slices.ContainsFunc(r.gemmFixed.series, func(n int) bool { return n%r.groups > 0 }) {
		own = b.Div(b.Sub(tiles, b.Mul(b.Div(r.group, together), together)), r.groups)
	}
	first := b.U32(0)
	r.real = b.Bool(true)
	if r.split != nil {
		first = b.Mul(r.split.index, fixedChunk)
	}
	next := r.each() * r.groups // from tile to tile of a subgroup
	col := b.Add(r.col, b.Mul(r.group, r.each()))
	parts, each := r.kernel.parts()
	part := func(i kernel.Value) (n, from, to kernel.Value) { // the i-th of the workgroup
		n = b.Mod(b.Add(b.Div(b.Mul(r.split.index, parts), r.splits), i), parts)
		return n, b.Mul(n, each), b.Min(turns, b.Add(b.Mul(n, each), each))
	}
	firstOf := func(i kernel.Value) kernel.Value { // turn of the i-th part, or of the next one that has any
		_, from, _ := part(i)
		return b.Select(b.Lt(from, own), from, 0)
	}
	begin := col
	if r.split != nil {
		begin = b.Add(col, b.Mul(firstOf(b.U32(0)), next))
	}
	held := hold(b, r.rowsAt(begin, nil).load(first)) // before x, which is nearer
	r.roundAll(first)
	b.Barrier()
	switch {
	case r.gain != nil && r.split == nil:
		r.scaleColumns()
		b.Barrier()
	case r.gain != nil:
		r.leaveSquares()
	}
	t := &wideTiles{wideTask: r, first: first, col: col, next: next, turns: turns, held: held}
	t.accumulators()
	if r.split == nil {
		b.ForRolled(0, own, 1, func(i kernel.Value) {
			t.compute(i, b.Select(b.Lt(b.Add(i, 1), own), b.Add(i, 1), i))
			r.endTile(t.colOf(i), b.U32(0), t.take())
		})
		return
	}
	// What a workgroup counts of a part it looks at behind the next one: the time that counting takes would be lost.
	b.ForRolled(0, parts+1, 1, func(i kernel.Value) {
		n, from, to := part(i)
		to = b.Select(b.Lt(i, parts), b.Min(to, own), from)
		after := firstOf(b.Add(i, 1))
		b.ForRolled(from, to, 1, func(i kernel.Value) {
			next := b.Add(i, 1)
			t.compute(i, b.Select(b.Lt(next, to), next, after))
			at := r.tileLeft(r.split.index, t.tileOf(i))
			for j := range r.matrices() {
				r.split.partial.Store(b.Add(at, j*fragment.Lanes), b.Vec(t.take4(j)...))
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
				_, from, to := part(before)
				t.addUp(from, b.Min(to, own))
			})
		})
	})
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

// accumulators makes the sets of accumulators and the lane's sums.
func (t *wideTiles) accumulators() {
	for range t.kernel.shape.sets {
		var set []*kernel.Var
		for range t.matrices() {
			set = append(set, t.b.Var(sumMatrix, t.b.MatFill(sumMatrix, 0)))
		}
		t.sets = append(t.sets, set)
	}
	for range 4 * t.matrices() {
		t.sums = append(t.sums, t.b.Var(kernel.F32, minusZero))
		if t.waiting == nil {
			t.waits = append(t.waits, t.b.Var(kernel.F32, minusZero))
		}
	}
}

// tileLeft is where the lane's sums of a tile of a chunk begin, in vec4, of which each lane of a subgroup has one.
func (r *wideTask) tileLeft(chunk, tile kernel.Value) kernel.Value {
	b := r.b
	return b.Add(b.Div(r.leftOf(chunk), 4), b.Mul(tile, fixedSide*r.wide/4), r.lane)
}

// wideTiles goes through the tiles of a workgroup.
type wideTiles struct {
	*wideTask
	first kernel.Value // block of x
	col   kernel.Value // first output of each matrix of the subgroup's first tile
	next  int          // outputs from tile to tile
	turns kernel.Value
	held  fixedHeld
	sets  [][]*kernel.Var
	sums  []*kernel.Var // of the lane in a tile, by matrix of 8 columns, row, column
	waits []*kernel.Var // of a block, if they do not wait in shared memory
}

func (t *wideTiles) tileOf(turn kernel.Value) kernel.Value {
	return t.b.Add(t.b.Mul(turn, t.gemmFixed.groups), t.group)
}

func (t *wideTiles) colOf(turn kernel.Value) kernel.Value {
	return t.b.Add(t.col, t.b.Mul(turn, t.next))
}

// take returns the sums of the tile, and clears them.
func (t *wideTiles) take() (list []kernel.Value) {
	for j := range t.matrices() {
		for _, v := range t.take4(j) {
			list = append(list, v.(kernel.Value))
		}
	}
	return list
}

// take4 is take of a matrix.
func (t *wideTiles) take4(j int) (list []kernel.Operand) {
	for _, v := range t.sums[4*j : 4*j+4] {
		list = append(list, v.Get())
		v.Set(minusZero)
	}
	return list
}

// compute adds up the tile of a turn. The weights of the next one are loaded meanwhile.
func (t *wideTiles) compute(turn, after kernel.Value) {
	b, r, col := t.b, t.wideTask, t.colOf(turn)
	held := r.kernel.held()
	b.ForRolled(0, held, 1, func(local kernel.Value) {
		last := b.Eq(b.Add(local, 1), held)
		next := r.rowsAt(b.Select(last, t.colOf(after), col), nil).load(b.Select(last, t.first, r.there(b.Add(t.first, local, 1))))
		follow := func(slot int) { t.held.follow(next, slot) }
		var ahead [2][]kernel.Value
		if r.pinned {
			for h, row := range next {
				for _, w := range row {
					ahead[h] = append(ahead[h], w.Load())
				}
			}
			b.SubgroupHint()
			follow = func(int) {}
		}
		values := r.wideBlock(r.rowsAt(col, nil), t.held.words(), local, t.sets, follow)
		for h, row := range ahead {
			for i, v := range row {
				t.held[h][i].Set(v)
			}
		}
		if r.blocks()%held != 0 {
			real := b.Lt(b.Add(t.first, local), r.blocks())
			for e, v := range values {
				values[e] = b.Select(real, v, minusZero)
			}
		}
		b.IfElse(b.Eq(b.And(local, 1), 0), func() { t.wait(values) }, func() {
			for e, v := range t.waited() {
				t.sums[e].Set(b.Add(t.sums[e].Get(), b.Add(v, values[e])))
			}
		})
	})
}

// wait keeps the sums of a block for its neighbour, which takes them with waited.
func (t *wideTiles) wait(values []kernel.Value) {
	for e, v := range values {
		if t.waiting == nil {
			t.waits[e].Set(v)
		} else if e%4 == 0 {
			t.waiting.Store(t.waitsAt(e/4), t.b.Vec(operands(values[e:e+4])...))
		}
	}
}

func (t *wideTiles) waited() (values []kernel.Value) {
	if t.waiting == nil {
		for _, v := range t.waits {
			values = append(values, v.Get())
		}
		return values
	}
	for j := range t.matrices() {
		values = append(values, lane.Elements(t.b, t.waiting.Load(t.waitsAt(j)))...)
	}
	return values
}

// waitsAt is where the lane's sums of a matrix wait.
func (t *wideTiles) waitsAt(j int) kernel.Value {
	return t.b.Add(t.lane, t.b.Mul(t.group, fragment.Lanes), j*t.kernel.room)
}

// there is a block, or the last one behind it.
func (r *wideTask) there(block kernel.Value) kernel.Value {
	if r.blocks()%r.kernel.held() == 0 {
		return block
	}
	return r.b.Min(block, r.blocks()-1)
}

// wideBlock is the products of a block with all columns, whose steps follow each other in sets of accumulators.
type wideBlock struct {
	*wideTask
	rows   fixedRows
	words  [2][]kernel.Value
	local  kernel.Value // number of the block's x
	at     kernel.Value // where that is in shared memory
	sets   [][]*kernel.Var
	steps  []wideProduct
	follow func(slot int) // is called where words of a slot are no more needed; -1: those of scales
	scales [2]weight.SuperScales
	total  []kernel.Value // the sums, as integers
	values []kernel.Value // the sums
	upper  []kernel.Value // products of minimums and upper totals
	plain  plainBlock

	matrices [][]kernel.GroupProduct // by step
	minimums kernel.Value            // their matrix, if blocks have any
}

// wideBlock is superBlock for all columns: the lane's sums of the block whose x is that number, by matrix of 8 columns,
// row, column.
func (r *wideTask) wideBlock(rows fixedRows, words [2][]kernel.Value, local kernel.Value, sets [][]*kernel.Var, follow func(slot int)) []kernel.Value {
	k := &wideBlock{wideTask: r, rows: rows, words: words, local: local, at: r.b.Mul(local, wideVecs*r.wide), sets: sets, steps: wideProducts(r.format, len(sets)), follow: follow}
	if !r.format.Super {
		return k.inRuns()
	}
	k.begin()
	if r.hasMinimums() {
		k.minimums = k.minimumMatrix()
	}
	follow(-1)
	k.multiplyAll()
	return k.values
}

func (k *wideBlock) multiply(set int, products ...kernel.GroupProduct) {
	set %= len(k.sets)
	k.b.MatGroupAdd(k.sets[set], k.x, k.wide, products...)
}

func (k *wideBlock) product(a kernel.Value, where int) kernel.GroupProduct {
	return kernel.GroupProduct{A: a, At: k.b.Add(k.at, where*k.wide)}
}

func (k *wideBlock) clear(set int, to float32) {
	for _, v := range k.sets[set%len(k.sets)] {
		v.Set(k.b.MatFill(sumMatrix, to))
	}
}

// begin loads the scales and starts the sums.
func (k *wideBlock) begin() {
	k.total = make([]kernel.Value, 4*k.wideTask.matrices())
	for h := range k.scales {
		k.scales[h] = k.rows[h].Super(k.words[h])
		start := k.startOf(k.scales[h].Scales, k.steps)
		for e := range k.total {
			if e%4/2 == h {
				k.total[e] = start
			}
		}
	}
}

// minimumMatrix returns the matrix of minimums.
func (k *wideBlock) minimumMatrix() kernel.Value {
	b := k.b
	pairs := k.minimumPairs(k.scales)
	for i, w := range pairs { // whole numbers for subnormal ones: sums need no factor
		pairs[i] = b.FMAHalf(b.Or(w, 0x64006400), weight.Half2(1), weight.Half2(-1024))
	}
	return b.MatPairs(weightMatrix, pairs...)
}

// startOfStep is what an accumulator has that a step clears.
func (k *wideBlock) startOfStep(s wideProduct) float32 {
	if !k.format.Super {
		return 0
	}
	return window(k.format.Exponents[0])
}

// multiplyAll does all steps, then those of minimums, if there are any: while the accumulators of one are read, others
// are under way.
func (k *wideBlock) multiplyAll() {
	k.prepare(0)
	before := len(k.sets) - 1 // steps that are under way while one is read
	all := len(k.steps)
	if k.hasMinimums() {
		all += 2
	}
	for n := range all {
		if n >= len(k.steps) {
			k.clear(n, 0)
			k.multiply(n, k.product(k.minimums, wideTotals+2*(n-len(k.steps))))
		} else {
			if step := k.steps[n]; step.clear {
				k.clear(n, k.startOfStep(step))
			}
			k.multiply(n, k.matrices[n]...)
			k.prepare(n + 1)
		}
		k.b.MatGroupWait(before)
		if n >= before {
			k.end(n - before)
		}
	}
	k.b.MatGroupWait(0)
	for n := all - before; n < all; n++ {
		k.end(n)
	}
}

// prepare makes the matrices of step n from codes, if it is the first of its slot.
func (k *wideBlock) prepare(n int) {
	if n >= len(k.steps) || k.steps[n].half > 0 {
		return
	}
	slot := k.steps[n].slot
	codes := k.codes(k.rows, k.words, slot)
	var two []kernel.GroupProduct
	for i := range 2 {
		words := []kernel.Operand{codes[0][2*i], codes[0][2*i+1], codes[1][2*i], codes[1][2*i+1]}
		if bias := k.format.Bias; k.format.Super && bias != 0 {
			for w, v := range words { // exact: codes are subnormal
				words[w] = k.b.FMAHalf(v, weight.Half2(1), uint32(0x80008000|bias<<16|bias))
			}
		}
		a := k.b.MatPairs(weightMatrix, words...)
		two = append(two, k.product(a, 4*k.format.Run(slot)+2*i))
	}
	if k.format.Fine {
		k.matrices = append(k.matrices, two[:1], two[1:])
	} else {
		k.matrices = append(k.matrices, two)
	}
}

// end adds the accumulators of step n to the sums.
func (k *wideBlock) end(n int) {
	b, set := k.b, k.sets[n%len(k.sets)]
	switch {
	case !k.format.Super:
		k.plain.end(k, n)
		return
	case n == len(k.steps):
		k.upper = elementsOf(set)
		return
	case n > len(k.steps):
		k.addMinimums(elementsOf(set))
		return
	}
	step := k.steps[n]
	var factors [2]kernel.Value
	for h := range factors {
		factors[h] = k.scaleByte(k.scales[h].Scales, step.scale)
		if step.next >= 0 {
			factors[h] = b.Sub(factors[h], k.scaleByte(k.scales[h].Scales, step.next))
		}
	}
	for e, v := range elementsOf(set) {
		k.total[e] = b.Add(k.total[e], b.Mul(factors[e%4/2], b.Bitcast(kernel.U32, v)))
	}
	if step.half == k.format.Halves()-1 {
		k.follow(step.slot)
	}
	if n == len(k.steps)-1 {
		k.makeNumbers()
	}
}

// elementsOf are the lane's elements of accumulators, by matrix, row, column.
func elementsOf(set []*kernel.Var) (list []kernel.Value) {
	for _, v := range set {
		for e := range 4 {
			list = append(list, v.Elem(e))
		}
	}
	return
}

// startOf returns what takes the windows of all steps out of the sum: where an accumulator is cleared, they add up to
// the scale of the step behind.
func (r *wideTask) startOf(scales []kernel.Value, steps []wideProduct) (start kernel.Value) {
	for _, s := range steps {
		if s.clear {
			start = weight.Plus(r.b, start, r.scaleByte(scales, s.scale))
		}
	}
	return r.b.Mul(start, -math.Float32bits(window(r.format.Exponents[0])))
}

// scaleOfX is the scale of x of element e of the lane's sums.
func (k *wideBlock) scaleOfX(e int) kernel.Value {
	b := k.b
	return b.Elem(k.wideTask.scales.Load(b.Add(b.Mul(k.local, k.wide/2), e/4*fixedColumns/2, k.quad)), e%2)
}

// makeNumbers makes floats of the integer sums of the block.
func (k *wideBlock) makeNumbers() {
	b := k.b
	for e, n := range k.total {
		factor := b.Mul(k.scales[e%4/2].Factor, k.scaleOfX(e))
		k.values = append(k.values, b.Mul(factor, b.Convert(kernel.F32, b.Bitcast(kernel.I32, n))))
	}
}

// addMinimums adds the products of minimums and the totals of x, of which the lower ones are given.
func (k *wideBlock) addMinimums(lower []kernel.Value) {
	b := k.b
	for e, v := range lower {
		k.values[e] = b.FMA(k.scales[e%4/2].Offset, b.Mul(k.scaleOfX(e), b.FMA(k.upper[e], 64, v)), k.values[e])
	}
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

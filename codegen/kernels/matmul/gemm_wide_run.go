package matmul

import (
	"math"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
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

// copyX begins to copy the workgroup's blocks of x, of which the first is given, and their scales.
func (r *wideTask) copyX(first kernel.Value) {
	b, blocks := r.b, r.kernel.held()
	at := b.U32(uint32(slices.Index(r.packed.lanes, packedLanes(r.format)) * r.tiles()))
	if r.tiles() > 1 {
		at = b.Add(at, b.WorkgroupID(2))
	}
	at = b.Mul(at, r.blocks())
	b.If(b.Eq(b.LocalID(), 0), func() {
		var codes, scales []kernel.Piece
		for local := range blocks {
			from := b.Mul(b.Add(at, r.there(b.Add(first, local))), packedVecs*r.wide)
			codes = append(codes, kernel.Piece{Buffer: r.a.x, From: from, To: b.U32(uint32(local * wideVecs * r.wide)), N: wideVecs * r.wide})
			scales = append(scales, kernel.Piece{Buffer: r.a.x, From: b.Add(from, wideVecs*r.wide), To: b.U32(uint32(local * 2 * r.wide)), N: r.wide})
		}
		r.copies.Copy(blocks, r.wideShared.scales, scales...) // is waited for first
		for local, p := range codes {
			r.copies.Copy(local, r.x, p)
		}
	})
}

// hasMinimums reports whether blocks have minimums, which are multiplied by totals of x.
func (r *wideTask) hasMinimums() bool { return r.format.Super && r.format.Stored() }

// inSeries computes the workgroup's tiles, some at a time.
func (r *wideTask) inSeries() {
	b := r.b
	left := b.Div(b.Add(b.Sub(r.p.width, r.col), r.each()-1), r.each())
	tiles := b.Add(b.Min(r.series, left), r.groups-1)
	turns := b.Div(tiles, r.groups)
	own := turns // of those that multiply together
	if slices.ContainsFunc(r.gemmFixed.series, func(n int) bool { return n%r.groups > 0 }) {
		own = b.Div(b.Sub(tiles, b.Mul(b.Div(r.group, together), together)), r.groups)
		own = b.SubgroupShuffle(own, 0) // ptxas then knows that lanes stay together
	}
	first := b.U32(0)
	if r.splits > 1 {
		first = b.Mul(b.WorkgroupID(1), fixedChunk)
	}
	r.real = b.Bool(true)
	col := b.Add(r.col, b.Mul(r.group, r.each()))
	t := &wideTiles{wideTask: r, first: first, col: col, next: r.each() * r.groups}
	begin := col
	if r.split != nil {
		begin = b.Add(col, b.Mul(t.firstOf(b.U32(0), turns, own), t.next))
	}
	t.held = hold(b, r.rowsAt(begin, nil).load(first)) // before x, which is nearer
	if r.packed == nil {
		r.roundOwn(first)
	} else {
		r.copyX(first)
		r.copies.Wait(r.kernel.held(), 0) // scales; compute waits for blocks
	}
	t.accumulators()
	if r.packed == nil {
		t.alone(turns, own)
		return
	}
	b.ForRolled(0, own, 1, func(i kernel.Value) {
		t.compute(i, b.Select(b.Lt(b.Add(i, 1), own), b.Add(i, 1), i))
		r.leave(t.colOf(i), t.take())
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
		if t.kernel.shape.plain && t.waiting == nil {
			t.waits = append(t.waits, t.b.Var(kernel.F32, minusZero))
		}
	}
}

// wideTiles goes through the tiles of a workgroup.
type wideTiles struct {
	*wideTask
	first kernel.Value // block of x
	col   kernel.Value // first output of each matrix of the subgroup's first tile
	next  int          // outputs from tile to tile
	held  fixedHeld
	sets  [][]*kernel.Var
	sums  []*kernel.Var // of the lane in a tile, by matrix of 8 columns, row, column
	waits []*kernel.Var // of an even block of plain formats, if they wait in registers
}

func (t *wideTiles) colOf(turn kernel.Value) kernel.Value {
	return t.b.Add(t.col, t.b.Mul(turn, t.next))
}

// take returns the sums of the tile, and clears them.
func (t *wideTiles) take() (list []kernel.Value) {
	for j := range t.matrices() {
		list = append(list, t.take4(j)...)
	}
	return list
}

// compute adds up the tile of a turn, two blocks after each other. The weights of the next one are loaded meanwhile.
// Plain formats have one block a turn of the loop, and half as much code.
func (t *wideTiles) compute(turn, after kernel.Value) {
	b, r, col := t.b, t.wideTask, t.colOf(turn)
	if r.kernel.shape.plain {
		t.oneByOne(col, after)
		return
	}
	b.ForRolled(0, r.kernel.held(), 2, func(local kernel.Value) {
		second := b.Add(local, 1)
		waited := t.wait(t.sumsOf(local, col, col, r.there(b.Add(t.first, second))))
		last := b.Eq(b.Add(local, 2), r.kernel.held())
		values := t.sumsOf(second, col, b.Select(last, t.colOf(after), col), b.Select(last, t.first, r.there(b.Add(t.first, local, 2))))
		t.add(waited(), values)
	})
}

// oneByOne is compute with one block a turn: the sums of an even block wait for those of the odd one behind it.
func (t *wideTiles) oneByOne(col, after kernel.Value) {
	b, r := t.b, t.wideTask
	b.ForRolled(0, r.kernel.held(), 1, func(local kernel.Value) {
		last := b.Eq(b.Add(local, 1), r.kernel.held())
		values := t.sumsOf(local, col, b.Select(last, t.colOf(after), col), b.Select(last, t.first, r.there(b.Add(t.first, local, 1))))
		var waited func() []kernel.Value
		b.IfElse(b.Eq(b.And(local, 1), 0), func() { waited = t.wait(values) }, func() { t.add(waited(), values) })
	})
}

// add adds the sums of two blocks to those of the tile.
func (t *wideTiles) add(one, other []kernel.Value) {
	for e, v := range one {
		t.sums[e].Set(t.b.Add(t.sums[e].Get(), t.b.Add(v, other[e])))
	}
}

// sumsOf returns the sums of a block of x in a tile. The words of the next block, in the tile nextCol, follow.
func (t *wideTiles) sumsOf(local, col, nextCol, nextBlock kernel.Value) []kernel.Value {
	b, r := t.b, t.wideTask
	next := r.rowsAt(nextCol, nil).load(nextBlock)
	follow := func(slot int) {
		if t.held.follow(next, slot) {
			b.SubgroupHint() // else the driver's compiler loads all of them at the end
		}
	}
	var ahead [2][]kernel.Value
	if r.kernel.shape.pins {
		for h, row := range next {
			for _, w := range row {
				ahead[h] = append(ahead[h], w.Load())
			}
		}
		b.SubgroupHint()
		follow = func(int) {}
	}
	if r.copies != nil {
		r.copies.Wait(local, 0)
	}
	values := r.wideBlock(r.rowsAt(col, nil), t.held.words(), local, t.sets, follow)
	for h, row := range ahead {
		for i, v := range row {
			t.held[h][i].Set(v)
		}
	}
	if r.blocks()%r.kernel.held() != 0 {
		real := b.Lt(b.Add(t.first, local), r.blocks())
		for e, v := range values {
			values[e] = b.Select(real, v, minusZero)
		}
	}
	return values
}

// wait keeps the sums of a block for its neighbour, which takes them with what it returns.
func (t *wideTiles) wait(values []kernel.Value) (take func() []kernel.Value) {
	switch {
	case t.waits != nil:
		for e, v := range values {
			t.waits[e].Set(v)
		}
		return func() (list []kernel.Value) {
			for _, v := range t.waits {
				list = append(list, v.Get())
			}
			return
		}
	case t.waiting == nil:
		return func() []kernel.Value { return values }
	}
	for j := range t.matrices() {
		t.waiting.Store(t.waitsAt(j), t.b.Vec(operands(values[4*j:4*j+4])...))
	}
	return func() (list []kernel.Value) {
		for j := range t.matrices() {
			list = append(list, lane.Elements(t.b, t.waiting.Load(t.waitsAt(j)))...)
		}
		return
	}
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
	xs     []kernel.Value // scales of x, by column of the lane
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

// set sets accumulators to a number and products.
func (k *wideBlock) set(set int, start float32, products ...kernel.GroupProduct) {
	for _, v := range k.sets[set%len(k.sets)] {
		v.Set(k.b.MatFill(sumMatrix, start))
	}
	k.multiply(set, products...)
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

// windows is the product with ones that is the window of all sums. To set these to a number takes an instruction for
// each, which is less only where columns are few.
func (k *wideBlock) windows() kernel.GroupProduct {
	part := k.b.U32(weight.Half2(window(k.format.Exponents[0]) / fixedSide)) // sixteen of it add up exactly
	return kernel.GroupProduct{A: k.b.MatPairs(weightMatrix, part, part, part, part), At: k.b.U32(uint32(k.kernel.blocksOfX()))}
}

// step multiplies what step n has. Accumulators that it clears begin with a window.
func (k *wideBlock) step(n int) {
	products, start := k.matrices[n], float32(0)
	switch {
	case !k.steps[n].clear:
		k.multiply(n, products...)
		return
	case !k.format.Super:
	case k.kernel.ones() > 0:
		products = append([]kernel.GroupProduct{k.windows()}, products...)
	default:
		start = window(k.format.Exponents[0])
	}
	k.set(n, start, products...)
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
			k.set(n, 0, k.product(k.minimums, wideTotals+2*(n-len(k.steps))))
		} else {
			k.step(n)
			k.prepare(n + 1)
		}
		if n == len(k.steps)-1 && k.format.Super {
			k.loadScales() // early enough for makeNumbers
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
	k.follow(slot)
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

// loadScales loads the scales of x of the lane's columns.
func (k *wideBlock) loadScales() {
	b := k.b
	for j := range k.wideTask.matrices() {
		at := b.Add(b.Mul(k.local, k.wide/2), j*fixedColumns/2, k.quad)
		if k.packed != nil {
			at = b.Add(b.Mul(k.local, 2*k.wide), b.Add(b.Mul(k.quad, 4), b.And(k.quad, 1)), 2*j*fixedColumns)
		}
		pair := b.Bitcast(lane.F32x2, k.wideTask.scales.Load(at))
		k.xs = append(k.xs, b.Elem(pair, 0), b.Elem(pair, 1))
	}
}

// scaleOfX is the scale of x of element e of the lane's sums.
func (k *wideBlock) scaleOfX(e int) kernel.Value { return k.xs[e/4*2+e%2] }

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

// leave stores the sums of a tile, by matrix of 8 columns, row, column. Its first output is col.
func (r *wideTask) leave(col kernel.Value, sums []kernel.Value) {
	b := r.b
	part := b.Add(b.Mul(b.WorkgroupID(1), r.p.width), col, r.place)
	for half := range 2 {
		b.If(b.Lt(b.Add(col, r.place, half*fixedSide/2), r.p.width), func() {
			for n := range len(sums) / 2 {
				row := r.rowOf(b.Add(b.Mul(r.quad, 2), n/2*fixedColumns+n%2))
				at := b.Add(b.Mul(row, b.Mul(r.p.width, r.splits)), part, half*fixedSide/2)
				r.p.out.Store(at, sums[4*(n/2)+n%2+2*half])
			}
		})
	}
}

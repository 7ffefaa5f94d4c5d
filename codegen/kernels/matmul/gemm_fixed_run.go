package matmul

import (
	"math"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// fixedTask is the kernel of one projection while it is built.
type fixedTask struct {
	gemmFixed
	fixedShared
	b       *kernel.Builder
	a       *linearArgs
	p       *projectArgs
	split   *fixedSplit   // nil if workgroups do not share rows
	staging *fixedStaging // nil if weights come to registers
	format  *weight.FixedFormat
	index   int                                    // of the projection
	series  kernel.Value                           // its tiles of a workgroup
	columns kernel.Value                           // rows of x that the workgroup has
	row     kernel.Value                           // the first of them; nil if there are no others
	rowAt   func(column kernel.Value) kernel.Value // replaces row where rows of x do not lie side by side
	whole   bool                                   // no tile goes beyond the last output
	pinned  bool                                   // loads of weights stay where they are
	along   bool                                   // a subgroup copies a row's blocks one after the other
	held    kernel.Value                           // whose terms of x, of the blocks in shared memory, are meant
	lane    kernel.Value                           // in the subgroup
	group   kernel.Value                           // the subgroup
	place   kernel.Value                           // of the lane's row of a matrix of weights and its column of x: 0 to 7
	quad    kernel.Value                           // the lane of those that share them
	col     kernel.Value                           // first output of each matrix of the workgroup
	real    kernel.Value                           // of a subgroup that has a block; others repeat the last one
	// pairOrder permutes a word to the lane's two bytes of it; void where bytes are not permuted.
	pairOrder kernel.Value
}

var (
	weightMatrix = kernel.F16.Matrix(fixedSide, fixedSide, kernel.MatrixA)
	sumMatrix    = kernel.F32.Matrix(fixedSide, fixedColumns, kernel.Accumulator)
)

// fixedRows are the two rows of weights of a tile that a lane holds parts of.
type fixedRows [2]weight.FixedItem

// rowOf is the row of x that a column of the workgroup is.
func (r *fixedTask) rowOf(column kernel.Value) kernel.Value {
	switch {
	case r.rowAt != nil:
		return r.rowAt(column)
	case r.tiles() > 1:
		return r.b.Add(r.row, column)
	}
	return column
}

// rowsAt are those of the tile whose first output of each matrix is col. live is whether
// they count: if not, all are the first.
func (r *fixedTask) rowsAt(col kernel.Value, live *kernel.Value) fixedRows {
	b := r.b
	var rows fixedRows
	for h := range rows {
		n := h * fixedSide / 2
		row := b.Add(col, r.place, n%r.each())
		if !r.whole {
			row = b.Min(row, b.Sub(r.p.width, 1))
		}
		if live != nil {
			row = b.Select(*live, row, 0)
		}
		j := n / r.each()
		m := r.p.matrices[j]
		if r.pinned {
			m.Buf = m.Buf.Ahead()
		}
		rows[h] = r.format.Open(b, m, r.p.row(b, j, row), r.quad)
	}
	return rows
}

// load returns loads of a lane's words of a block by row.
func (rows fixedRows) load(block kernel.Value) (words [2][]weight.FixedWord) {
	for h, row := range rows {
		words[h] = row.Load(block)
	}
	return
}

// fixedHeld are a lane's words of the tile that is multiplied. As it proceeds, words of the
// next tile replace words that are no longer needed.
type fixedHeld [2][]*kernel.Var

// hold loads words.
func hold(b *kernel.Builder, words [2][]weight.FixedWord) (held fixedHeld) {
	for h, row := range words {
		for _, w := range row {
			v := w.Load()
			held[h] = append(held[h], b.Var(v.Type(), v))
		}
	}
	return
}

func (held fixedHeld) words() (words [2][]kernel.Value) {
	for h, row := range held {
		for _, v := range row {
			words[h] = append(words[h], v.Get())
		}
	}
	return
}

// follow loads the next words in the place of those that are not needed behind slot, and reports whether it loads any.
func (held fixedHeld) follow(next [2][]weight.FixedWord, slot int) (loads bool) {
	for h, row := range next {
		for i, w := range row {
			if w.Last == slot {
				held[h][i].Set(w.Load())
				loads = true
			}
		}
	}
	return loads
}

// inSeries computes the workgroup's tiles one after the other.
func (r *fixedTask) inSeries() {
	b := r.b
	// The last workgroup of a projection may have fewer tiles.
	left := b.Sub(r.p.width, r.col)
	series := b.Min(r.series, b.Div(b.Add(left, r.each()-1), r.each()))
	block, chunk := r.group, b.U32(0)
	r.real = b.Bool(true)
	if r.split != nil {
		block = b.Add(b.Mul(r.split.index, r.groups), block)
		chunk = b.Mul(r.split.index, r.groups/fixedChunk)
		if r.blocks()%r.groups != 0 { // the last split has fewer
			r.real = b.Lt(block, r.blocks())
			block = b.Min(block, r.blocks()-1)
		}
	}
	var held fixedHeld
	if r.staging != nil {
		r.fillStaging(block, series)
	} else {
		held = hold(b, r.rowsAt(r.col, nil).load(block)) // before x, which is nearer
	}
	x := r.roundX(block, r.ownGains(block))
	if r.gain != nil && r.split == nil {
		b.Barrier()
		r.scaleColumns()
	}
	b.ForRolled(0, series, 1, func(i kernel.Value) {
		col := b.Add(r.col, b.Mul(i, r.each()))
		rows := r.rowsAt(col, nil)
		var words [2][]kernel.Value
		follow := func(slot int) {}
		if r.staging != nil {
			words = r.turnStaging(rows, block, i, series)
		} else {
			more := b.Lt(b.Add(i, 1), series)
			next := r.rowsAt(b.Add(col, r.each()), &more).load(block)
			words, follow = held.words(), func(slot int) { held.follow(next, slot) }
		}
		base := b.Mul(b.Mod(i, r.turns()), r.groups*fixedSums)
		finishers := [2]kernel.Value{}
		for c := range finishers { // in turn, one for each column of a lane
			finishers[c] = b.Eq(r.group, b.Mod(b.Add(b.Mul(i, 2), c), r.groups))
		}
		sums := r.block(rows, words, x, follow)
		if r.blocks()%r.groups != 0 {
			for e := range sums {
				sums[e] = b.Select(r.real, sums[e], math.Float32frombits(1<<31)) // -0 changes no sum
			}
		}
		r.put(b.Add(base, b.Mul(r.group, fixedSums)), sums)
		b.Barrier()
		for c, mine := range finishers {
			b.If(mine, func() { r.finish(base, col, chunk, i, c) })
		}
	})
}

// fixedSums is the pairs of sums of 16 outputs and 8 columns.
const fixedSums = fixedSide * fixedColumns / 2

// put stores what block returns: of each column of the lane two outputs.
func (r *fixedTask) put(at kernel.Value, sums [4]kernel.Value) {
	for c := range 2 {
		r.sums.Store(r.b.Add(at, c*fragment.Lanes, r.lane), r.b.Vec(sums[c], sums[2+c]))
	}
}

// block returns the lane's sums of a block, for its two rows of 16 outputs and its two
// columns, row by row.
// follow is called behind each slot, and before the first one with -1.
func (r *fixedTask) block(rows fixedRows, words [2][]kernel.Value, x fixedX, follow func(slot int)) (sums [4]kernel.Value) {
	if r.format.Super {
		return r.superBlock(rows, words, x, follow)
	}
	b := r.b
	terms := r.exchangeTerms(rows, words)
	follow(-1)
	var tree [4]slotTree
	var before [][4]kernel.Value
	for slot := range weight.FixedRuns {
		run := r.format.Run(slot)
		w := terms(slot)
		xs := r.xTerms(run)
		codes := r.codes(rows, words, slot)
		values := r.leaves(codes, w, xs, x.codes(run))
		for h := range values {
			for e := range tree {
				switch {
				case !r.format.Fine:
					tree[e].add(b, values[h][e])
				case r.format.Whole:
					if h == 1 {
						tree[e].add(b, b.Add(values[0][e], values[h][e]))
					}
				case slot%2 == 1: // first halves of two runs have a slot, and second ones
					tree[e].add(b, b.Add(before[h][e], values[h][e]))
				}
			}
		}
		before = values
		follow(slot)
	}
	for e := range sums {
		sums[e] = tree[e].waiting[0]
	}
	return
}

// codes returns the lane's elements of the run in a slot.
func (r *fixedTask) codes(rows fixedRows, words [2][]kernel.Value, slot int) (codes [2][4]kernel.Value) {
	for h, row := range rows {
		of := row.Codes
		if r.staging != nil && row.InCopy != nil {
			of = row.InCopy
		}
		codes[h] = of(words[h], slot)
	}
	return
}

// products returns the products of codes and x, as integers times a power of two: of a run or,
// if scales are fine, of its halves. begin returns what those of a half are added to. All sums are
// exact: they have at most 24 bits.
func (r *fixedTask) products(codes [2][4]kernel.Value, x [2]kernel.Value, begin func(half int) kernel.Value) (sums [][4]kernel.Value) {
	b := r.b
	sum := begin(0)
	for i := range x {
		a := b.MatPairs(weightMatrix, codes[0][2*i], codes[0][2*i+1], codes[1][2*i], codes[1][2*i+1])
		if sum = b.MatMulAdd(a, x[i], sum); i == 0 && !r.format.Fine {
			continue
		}
		if sums = append(sums, r.elems(sum)); i == 0 {
			sum = begin(1)
		}
	}
	return
}

// elems are the elements of a matrix of sums that the lane has.
func (r *fixedTask) elems(m kernel.Value) (own [4]kernel.Value) {
	v := r.b.Var(sumMatrix, m)
	for e := range own {
		own[e] = v.Elem(e)
	}
	return
}

// leaves returns the products of a run, or of its halves if scales are fine, with what they are
// multiplied by and what is added.
func (r *fixedTask) leaves(codes [2][4]kernel.Value, w [2][]weight.DotScale, t xTerms, x [2]kernel.Value) (values [][4]kernel.Value) {
	b := r.b
	begin := func(h int) kernel.Value {
		sum := b.MatFill(sumMatrix, 0)
		if r.format.Bias == 0 {
			return sum
		}
		v := b.Var(sumMatrix, sum)
		for e := range 4 {
			v.SetElem(e, t.totals[h][e%2])
		}
		return v.Get()
	}
	for h, sums := range r.products(codes, x, begin) {
		for e, sum := range sums {
			row, column := e/2, e%2
			sums[e] = b.Mul(b.Mul(w[row][h].Scale, t.scale[column]), sum)
			if r.format.Stored() {
				sums[e] = b.FMA(w[row][h].Offset, t.totals[h][column], sums[e])
			}
		}
		values = append(values, sums)
	}
	return
}

// slotTree adds values, one slot after the other, in pairs of neighbours, then pairs of pairs.
type slotTree struct {
	slots   int
	waiting []kernel.Value // for their neighbours
}

func (t *slotTree) add(b *kernel.Builder, v kernel.Value) {
	t.slots++
	for n := t.slots; n%2 == 0; n /= 2 {
		last := len(t.waiting) - 1
		v = b.Add(t.waiting[last], v)
		t.waiting = t.waiting[:last]
	}
	t.waiting = append(t.waiting, v)
}

// exchangeTerms has the lanes of the subgroup tell each other the terms of the block's runs: each computes the terms of
// two runs, and all need all. They go through shared memory, if there is room for them: then a barrier stands between
// two blocks. It returns the terms of the lane's two rows by slot.
func (r *fixedTask) exchangeTerms(rows fixedRows, words [2][]kernel.Value) func(slot int) [2][]weight.DotScale {
	b, f := r.b, r.format
	own := r.ownTerms(rows, words)
	all := func(slot int) (list []kernel.Value) {
		for _, v := range own[slot%2] {
			list = append(list, b.SubgroupShuffle(v, b.Add(b.Sub(r.lane, r.quad), slot/2)))
		}
		return
	}
	if r.terms != nil {
		all = r.keepOwnTerms(own)
	}
	return func(slot int) (w [2][]weight.DotScale) {
		list, n := all(slot), f.Halves()
		for row := range w {
			for h := range n {
				s := weight.DotScale{Scale: list[row*n+h]}
				if f.Stored() {
					s.Offset = list[(2+row)*n+h]
				}
				w[row] = append(w[row], s)
			}
		}
		return
	}
}

// ownTerms returns the lane's terms of a block, of its slot of even and of odd number: scales of both rows, then
// offsets.
func (r *fixedTask) ownTerms(rows fixedRows, words [2][]kernel.Value) (lists [2][]kernel.Value) {
	b, f := r.b, r.format
	terms := [2][2][]weight.DotScale{rows[0].Terms(words[0]), rows[1].Terms(words[1])}
	for _, row := range terms {
		for j, e := range f.Exponents {
			for i := range row[j] {
				if e != 0 {
					row[j][i].Scale = b.Mul(row[j][i].Scale, math.Ldexp(1, -e)) // exact
				}
			}
		}
	}
	for j := range lists {
		for _, row := range terms {
			for _, s := range row[j] {
				lists[j] = append(lists[j], s.Scale)
			}
		}
		for _, row := range terms {
			for _, s := range row[j] {
				if f.Stored() {
					lists[j] = append(lists[j], s.Offset)
				}
			}
		}
	}
	return
}

// keepOwnTerms puts the lane's terms into shared memory. It returns how all are loaded from there.
func (r *fixedTask) keepOwnTerms(own [2][]kernel.Value) func(slot int) []kernel.Value {
	b, f := r.b, r.format
	at := func(slot kernel.Value, vector int) kernel.Value {
		return b.Add(b.Mul(b.Add(b.Mul(b.Add(b.Mul(r.group, weight.FixedRuns), slot), f.Vectors()), vector), 8), r.place)
	}
	for j, values := range own {
		var list []kernel.Operand
		for _, v := range values {
			list = append(list, v)
		}
		for len(list)%4 > 0 {
			list = append(list, float32(0))
		}
		for v := range f.Vectors() {
			r.terms.Store(at(b.Add(b.Mul(r.quad, 2), j), v), b.Vec(list[4*v:4*v+4]...))
		}
	}
	b.SubgroupBarrier()
	return func(slot int) (list []kernel.Value) {
		for v := range f.Vectors() {
			list = append(list, weight.Elems4(b, r.terms.Load(at(b.U32(uint32(slot)), v)))...)
		}
		return
	}
}

// finish adds up the sums of one of a lane's columns, of the i-th tile, whose first output of each
// matrix is col, and stores the results, or leaves them if workgroups share rows. Sums begin at base.
func (r *fixedTask) finish(base, col, chunk, i kernel.Value, c int) {
	b := r.b
	var parts, chunks []kernel.Value
	for i := range r.groups {
		parts = append(parts, r.sums.Load(b.Add(base, i*fixedSums+c*fragment.Lanes, r.lane)))
	}
	for i := 0; i < len(parts); i += fixedChunk {
		chunks = append(chunks, blocksOf(b, parts[i:min(len(parts), i+fixedChunk)]))
	}
	column := b.Add(b.Mul(r.quad, 2), c)
	if r.split != nil {
		for j, sums := range chunks {
			r.leave(column, b.Add(chunk, j), i, sums)
		}
		return
	}
	sum := inTurn(b, chunks)
	for from := 0; from < r.each(); from += fixedSide / 2 {
		out := b.Add(col, from, r.place)
		b.If(b.And(b.Lt(out, r.p.width), b.Lt(column, r.columns)), func() {
			row := r.rowOf(column)
			residuals := r.p.loadResiduals(b, row, out)
			var own []kernel.Value
			for m := range r.p.matrices {
				own = append(own, b.Elem(sum, (m*r.each()+from)/8))
			}
			r.p.store(b, own, r.scaleOf(column), residuals, row, out)
		})
	}
}

// blocksOf adds the blocks of a chunk; the last chunk may lack some.
func blocksOf(b *kernel.Builder, blocks []kernel.Value) kernel.Value {
	sum := blocks[0]
	if len(blocks) > 1 {
		sum = b.Add(sum, blocks[1])
	}
	switch len(blocks) {
	case 3:
		sum = b.Add(sum, blocks[2])
	case 4:
		sum = b.Add(sum, b.Add(blocks[2], blocks[3]))
	}
	return sum
}

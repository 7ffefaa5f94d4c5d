package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// fragmentRun is the kernel of one projection while it is built.
type fragmentRun struct {
	gemmFragment
	rowTile
	d       *weight.CoopDecoder
	a       *linearArgs
	sharing weight.Sharing
	shared  *kernel.Array
	group   kernel.Value
	sub     kernel.Value   // of those side by side
	place   kernel.Value   // of the lane's row of a matrix: 0 to 7
	quad    kernel.Value   // the lane of those that share a row
	col     kernel.Value   // first output of each matrix of the workgroup
	mine    kernel.Value   // and of the subgroup, from that of the tile on
	split   *fragmentSplit // nil if there is none
	x       fragmentX
	// arrivals are of x, where copies bring it; nil elsewhere.
	arrivals *kernel.Arrivals
	copied   copiedWords
	sums     [][]*kernel.Var // by 16 outputs and 8 rows
}

// fragmentX brings x.
type fragmentX interface {
	// start loads what the first block needs.
	start(block kernel.Value)
	// octet makes octet o of iteration p of a block ready, behind which comes block next if
	// more holds, and returns what 8 rows have of it.
	octet(at fragmentAt, p, o int) func(rows int) kernel.Value
}

// fragmentAt is a block of the group, and what comes behind it.
type fragmentAt struct {
	block, next  kernel.Value
	more         *kernel.Value // whether there is a next one, nil if that is the same one
	i, blocks    kernel.Value  // it is the i-th of so many of its tile
	iteration    kernel.Value  // and of all tiles
	col, nextCol kernel.Value  // first output of each matrix of its tile, and of that of the next block
}

// after returns which iteration of which block comes behind iteration p of this one.
func (at fragmentAt) after(p int) (block kernel.Value, iteration int) {
	if p+1 == weight.FragmentIterations {
		return at.next, 0
	}
	return at.block, p + 1
}

// emit emits the kernel behind what finds the tile of rows. workgroup counts the tiles of outputs.
// split is the workgroup's part of the elements of a row, nil if that is all.
func (k gemmFragment) emit(b *kernel.Builder, a *linearArgs, series, workgroup kernel.Value, tile rowTile, split *fragmentSplit) {
	memory := b.Shared(lane.U32x4, k.shared())
	tile.b = b
	arrivals := k.declareArrivals(b)
	copied := k.declareCopies(b)
	rows := func() { k.emitRows(a, series, workgroup, tile, memory, split, arrivals, copied) }
	if !k.pipe.cases && k.halves() == 1 {
		rows()
		return
	}
	least, n := 0, k.rowsOf(&tile)
	for _, k.most = range k.cases() {
		b.If(b.And(b.Gt(n, least), b.Le(n, k.most)), rows)
		least = k.most
	}
}

// rowsOf is how many rows of the tile there are.
func (k gemmFragment) rowsOf(t *rowTile) kernel.Value {
	if t.sorted != nil || k.rowTiles() > 1 || k.limit != nil {
		most := kernel.Operand(k.fragmentTile.rows)
		if k.limit != nil {
			most = *k.limit
		}
		return t.b.Min(t.b.Sub(t.rows, t.row), most)
	}
	return t.rows
}

// emitRows emits the kernel for so many rows.
func (k gemmFragment) emitRows(a *linearArgs, series, workgroup kernel.Value, tile rowTile, memory *kernel.Array, split *fragmentSplit, arrivals *kernel.Arrivals, copied copiedWords) {
	b := tile.b
	a.each(b, workgroup, func(p *projectArgs, at kernel.Value) {
		tile.p = p
		t := &fragmentRun{gemmFragment: k, rowTile: tile, a: a, shared: memory, split: split, arrivals: arrivals, copied: copied, d: weight.NewCoopDecoder(b, tile.rows)}
		t.sharing = weight.Sharings[p.spec.sharing()]
		t.group, t.sub = b.Div(b.SubgroupID(), k.across), b.Mod(b.SubgroupID(), k.across)
		t.place, t.quad = b.Shr(b.SubgroupLane(), 2), b.And(b.SubgroupLane(), 3)
		t.col = b.Mul(at, b.Mul(series, k.tile()))
		t.mine = b.Mul(t.sub, k.each())
		k.pipe.run(t, series)
	})
}

// items are the rows of weights whose parts a lane holds: of each 16 outputs of the
// subgroup two. live is whether they count: if not, all lanes load the same word.
func (t *fragmentRun) items(col kernel.Value, live *kernel.Value) [][2]weight.FragmentItem {
	d := *t.d
	d.Live = live
	return t.itemsBy(col, &d)
}

// itemsBy are the same, whose words d loads.
func (t *fragmentRun) itemsBy(col kernel.Value, d *weight.CoopDecoder) [][2]weight.FragmentItem {
	return t.open(d, func(n int) kernel.Value { return t.weightRow(col, n) })
}

// open returns the items of rows, given from which of its outputs on the subgroup wants one.
func (t *fragmentRun) open(d *weight.CoopDecoder, row func(n int) kernel.Value) [][2]weight.FragmentItem {
	list := make([][2]weight.FragmentItem, t.outputs/fragment.Side)
	for i := range list {
		for h := range 2 {
			n := i*fragment.Side + h*fragment.Side/2
			w := t.p.matrices[n/t.each()]
			list[i][h] = w.Format.Fragment.Open(d, w, row(n), t.quad)
		}
	}
	return list
}

// weightRow returns the row of weights of the lane's place among the subgroup's outputs from n on.
func (t *fragmentRun) weightRow(col kernel.Value, n int) kernel.Value {
	b := t.b
	row := b.Add(t.outputOf(b.Add(col, t.mine)), t.place, n%t.each())
	if t.direct() { // of a lane, neighbours
		row = b.Add(col, t.mine, b.Mul(t.place, t.laneOutputs()), n/fragment.Columns%t.laneOutputs())
	}
	return t.p.row(b, n/t.each(), b.Min(row, b.Sub(t.p.width, 1)))
}

// runKept goes through tiles; each subgroup has one block of them.
func (t *fragmentRun) runKept(series kernel.Value) {
	b := t.b
	t.x = &keptX{fragmentRun: t}
	items := t.items(t.col, nil)
	loads := load(items, t.group)
	t.x.start(t.group)
	held := loads.held(b)
	// The last workgroup of a projection may have fewer tiles.
	left := b.Sub(t.p.width, t.col)
	series = b.Min(series, b.Div(b.Add(left, t.tile()-1), t.tile()))
	b.ForRolled(0, series, 1, func(i kernel.Value) {
		col := b.Add(t.col, b.Mul(i, t.tile()))
		more := b.Lt(b.Add(i, 1), series)
		t.clear()
		now := held.turn(load(t.items(b.Add(col, t.tile()), &more), t.group))
		t.multiply(items, now, fragmentAt{block: t.group, next: t.group})
		t.store(col, i)
	})
}

// fragmentPart is a tile of outputs of a workgroup, and what comes behind it.
type fragmentPart struct {
	i, col  kernel.Value // first output of each matrix
	nextCol kernel.Value
	more    *kernel.Value // whether there is a next one, nil if there never is
}

// tiles calls one for the tiles of outputs that the workgroup goes through.
func (t *fragmentRun) tiles(series kernel.Value, one func(part fragmentPart)) {
	b := t.b
	if t.series == 1 {
		one(fragmentPart{i: b.U32(0), col: t.col, nextCol: t.col})
		return
	}
	// The last workgroup of a projection may have fewer.
	left := b.Sub(t.p.width, t.col)
	series = b.Min(series, b.Div(b.Add(left, t.tile()-1), t.tile()))
	b.ForRolled(0, series, 1, func(i kernel.Value) {
		col := b.Add(t.col, b.Mul(i, t.tile()))
		more := b.Lt(b.Add(i, 1), series)
		one(fragmentPart{i, col, b.Add(col, t.tile()), &more})
	})
}

// blocks calls one for every block of the group, of every tile, and stores each tile.
func (t *fragmentRun) blocks(series kernel.Value, one func(at fragmentAt)) {
	b := t.b
	t.tiles(series, func(part fragmentPart) {
		t.clear()
		blocks := t.blocksOf()
		b.ForRolled(0, blocks, 1, func(i kernel.Value) {
			more := b.Lt(b.Add(i, 1), blocks)
			block := b.Add(b.Mul(i, t.groups), t.firstBlock())
			at := fragmentAt{block: block, next: b.Select(more, b.Add(block, t.groups), block), more: &more, i: i, blocks: blocks,
				col: part.col, nextCol: part.col, iteration: i}
			if part.more != nil {
				at.next = b.Select(more, at.next, t.firstBlock())
				at.nextCol = b.Select(more, part.col, part.nextCol)
				any := b.Or(more, *part.more)
				at.more, at.iteration = &any, b.Add(b.Mul(part.i, blocks), i)
			}
			one(at)
		})
		t.store(part.col, b.U32(0))
	})
}

// blocksOf is how many blocks a group of the workgroup has.
func (t *fragmentRun) blocksOf() kernel.Value {
	if t.split == nil {
		return t.b.Div(t.a.k, weight.FragmentBlock*t.groups)
	}
	return t.b.Div(t.a.k, weight.FragmentBlock*t.groups*t.split.splits)
}

// firstBlock is the first of them.
func (t *fragmentRun) firstBlock() kernel.Value {
	if t.split == nil {
		return t.group
	}
	return t.b.Add(t.b.Mul(t.split.split, t.blocksOf(), t.groups), t.group)
}

// runStaged goes through the blocks with x of each subgroup's own.
func (t *fragmentRun) runStaged(series kernel.Value) {
	t.x = t.stageX()
	t.runAhead(series)
}

// runAhead goes through the blocks of the subgroup, with the words of one loaded a block ahead.
func (t *fragmentRun) runAhead(series kernel.Value) {
	items := t.items(t.col, nil)
	first := t.firstBlock()
	loads := load(items, first)
	t.x.start(first)
	held := loads.held(t.b)
	t.blocks(series, func(at fragmentAt) {
		t.multiply(items, held.turn(load(t.items(at.nextCol, at.more), at.next)), at)
	})
}

// runPooled goes through the blocks of the group. Words are loaded a block ahead, if the tile says so, or an iteration;
// if many sums leave few registers only an octet, when those before are used up.
func (t *fragmentRun) runPooled(series kernel.Value) {
	t.x = t.poolX()
	if t.early {
		t.runAhead(series)
		return
	}
	items := t.items(t.col, nil)
	t.x.start(t.group)
	first := t.firstBlock()
	head, held := heads(items, first).held(t.b), words(items, first, 0).held(t.b)
	late := 0
	if t.outputs > fragment.Side {
		late = 3
	}
	t.blocks(series, func(at fragmentAt) {
		items, next := items, t.items(at.nextCol, at.more)
		if t.series > 1 {
			items = t.items(at.col, nil)
		}
		for p := range weight.FragmentIterations {
			after := items
			block, q := at.after(p)
			if q == 0 {
				after = next
			}
			t.iteration(items, head.gets().scales(items, p), held.gets(), func(o int) func(int) kernel.Value {
				x := t.x.octet(at, p, o)
				if o == late {
					head.sets(heads(after, block))
					held.sets(words(after, block, q))
				}
				return x
			})
		}
	})
}

// clear sets the sums to zero.
func (t *fragmentRun) clear() {
	b := t.b
	sum := kernel.F32.Matrix(fragment.Side, fragment.Columns, kernel.Accumulator)
	fresh := t.sums == nil
	for i := range t.outputs / fragment.Side {
		if fresh {
			t.sums = append(t.sums, nil)
		}
		for c := range t.tileRows() / fragment.Columns {
			if fresh {
				t.sums[i] = append(t.sums[i], b.Var(sum, b.MatFill(sum, 0)))
			} else {
				t.sums[i][c].Set(b.MatFill(sum, 0))
			}
		}
	}
}

// multiply adds the products of a block.
func (t *fragmentRun) multiply(items [][2]weight.FragmentItem, loads fragmentLoads, at fragmentAt) {
	for p := range weight.FragmentIterations {
		t.iteration(items, loads[weight.FragmentIterations].scales(items, p), loads[p], func(o int) func(int) kernel.Value { return t.x.octet(at, p, o) })
	}
}

// weights returns the matrices of octet o of an iteration, of 16 outputs each: of two times 16 elements.
func (t *fragmentRun) weights(items [][2]weight.FragmentItem, scales, words fragmentWords, o int) (a [2][]kernel.Value) {
	b := t.b
	ws := kernel.F16.Matrix(fragment.Side, fragment.Side, kernel.MatrixA)
	for i, pair := range items {
		lo := pair[0].Octet(scales[i][0], words[i][0], o)
		hi := pair[1].Octet(scales[i][1], words[i][1], o)
		for e := range a {
			a[e] = append(a[e], b.MatPairs(ws, b.Elem(lo, 2*e), b.Elem(lo, 2*e+1), b.Elem(hi, 2*e), b.Elem(hi, 2*e+1)))
		}
	}
	return a
}

// fragmentAtOnce is the matrices of x that a lane loads before it multiplies them.
const fragmentAtOnce = 6

// iteration adds the products of an iteration. x makes an octet ready and returns what 8 rows have of it.
func (t *fragmentRun) iteration(items [][2]weight.FragmentItem, scales, words fragmentWords, octet func(o int) func(rows int) kernel.Value) {
	b := t.b
	xs := kernel.F16.Matrix(fragment.Side, fragment.Columns, kernel.MatrixB)
	all := t.tileRows() / fragment.Columns
	size := site.CeilDiv(all, site.CeilDiv(all, fragmentAtOnce))
	var next [2][]kernel.Value
	for o := range 4 {
		x := octet(o)
		if o == 0 {
			next = t.weights(items, scales, words, o)
		}
		a := next
		for from := 0; from < all; from += size {
			var v []kernel.Value
			for c := from; c < min(from+size, all); c++ {
				v = append(v, x(c))
			}
			if from == 0 && o+1 < 4 { // while x is on its way
				next = t.weights(items, scales, words, o+1)
			}
			for e := range a {
				for c := range v {
					q := b.MatPairs(xs, b.Elem(v[c], 2*e), b.Elem(v[c], 2*e+1))
					for i := range items {
						sum := t.sums[i][from+c]
						sum.Set(b.MatMulAdd(a[e][i], q, sum.Get()))
					}
				}
			}
		}
	}
}

// store finishes and writes the tile whose first output of each matrix is col, the
// i-th of the workgroup: subgroups put their sums into shared memory, where lanes find 4
// neighbours each, of all matrices and groups.
func (t *fragmentRun) store(col, i kernel.Value) {
	b := t.b
	if t.arrivals != nil {
		b.MatGroupWait(0)
	}
	if t.direct() {
		t.storeDirect(col)
		return
	}
	slot := t.part() * t.stride()
	// Tiles take turns, so that one is finished while the next is multiplied.
	base := b.Mul(b.Mod(i, t.turns()), t.region())
	mine := b.Add(base, b.Mul(t.group, slot), b.Mul(t.sub, t.outputs/4))
	for from := 0; from < t.tileRows(); from += t.part() {
		if t.pipe.shared != nil || from > 0 {
			b.Barrier() // there is x, or the rows before
		}
		for m := range t.sums {
			for c := range t.part() / fragment.Columns {
				t.shared.StoreMatrix(b.Add(mine, c*fragment.Columns*t.stride()+m*fragment.Side/4), t.stride(), kernel.ColumnMajor, t.sums[m][from/fragment.Columns+c].Get())
			}
		}
		b.Barrier()
		t.write(base, from, col)
	}
}

// write finishes and writes the rows from row from on, whose sums begin at base.
func (t *fragmentRun) write(base kernel.Value, from int, col kernel.Value) {
	if t.p.spec.tile != nil {
		t.writeTiles(base, col)
		return
	}
	b, wide := t.b, t.tile()/4
	n := t.part() * wide
	for first := 0; first < n; first += t.threads() {
		i := b.Add(b.LocalID(), first)
		b.If(b.Lt(i, n), func() {
			row, x := b.Div(i, wide), b.Mod(i, wide)
			v := t.products(base, row, x)
			row = b.Add(t.row, row, from)
			if t.split != nil {
				t.split.leave(t, v[0], row, x)
			} else {
				t.finish(v, row, b.Add(b.Div(col, 4), x), b.Bool(true))()
			}
		})
	}
}

// products returns the sums, by matrix, of vec4 x of the outputs of a row, with those of the first row at base.
func (t *fragmentRun) products(base, row, x kernel.Value) (v []kernel.Value) {
	b, each := t.b, t.each()/4
	for m := range t.p.matrices {
		at := b.Add(base, b.Mul(row, t.stride()), b.Mul(b.Div(x, each), t.outputs/4), b.Mod(x, each), m*each)
		sum := b.Bitcast(lane.F32x4, t.shared.Load(at))
		for g := 1; g < t.groups; g++ {
			sum = b.Add(sum, b.Bitcast(lane.F32x4, t.shared.Load(b.Add(at, g*t.part()*t.stride()))))
		}
		v = append(v, sum)
	}
	return v
}

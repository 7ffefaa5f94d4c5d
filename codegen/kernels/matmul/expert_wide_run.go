package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
)

// expertWideTask is the kernel of one projection while it is built.
type expertWideTask struct {
	*fixedTask
	kernel *expertWide
	own    kernel.Value                           // the subgroup's block
	member kernel.Value                           // of the subgroups that have it
	result func(column kernel.Value) kernel.Value // row of the result
	ring   *byteRing                              // of whole rows; nil if each subgroup copies its block
	sets   int                                    // of byteColumns rows, that are multiplied together
	// sumsOwn is where the lane's sums of the first line are that waits.
	sumsOwn kernel.Value
}

func (k *expertWide) newShared(b *kernel.Builder) fixedShared {
	n := k.sizes()
	array := func(t kernel.Type, n int) *kernel.Array {
		if n == 0 {
			return nil
		}
		return b.Shared(t, n)
	}
	return fixedShared{
		sums: array(lane.F32x2, n.sums), totals: array(lane.F32x4, n.totals), terms: array(lane.F32x4, n.terms),
		scales: array(lane.F32x2, n.scales), squares: array(kernel.F32, n.squares), rstd: array(kernel.F32, n.rstd), gains: array(lane.F32x4, n.gains),
	}
}

// compute multiplies the columns with the workgroup's outputs.
func (r *expertWideTask) compute() {
	b, turns := r.b, r.kernel.turns
	var held fixedHeld
	if r.staging != nil {
		for i := range r.stages - 1 { // before x, which is nearer
			turn := b.U32(uint32(i))
			r.copyBlock(r.colOf(turn), r.own, turn)
			b.CopyGroup()
		}
	} else {
		held = hold(b, r.rowsAt(r.colOf(b.U32(0)), nil).load(r.own))
	}
	x := r.roundX(r.own, r.ownGains(r.own))
	batch := r.kernel.batch
	b.ForRolled(0, turns, batch, func(first kernel.Value) {
		sums := b.Mul(b.And(first, batch), r.kernel.sharers()) // batches take turns in two regions
		count := b.U32(uint32(batch))
		if turns%batch > 0 {
			count = b.Min(b.Sub(turns, first), batch)
		}
		b.ForRolled(0, count, 1, func(i kernel.Value) {
			r.keep(b.Add(sums, b.Mul(i, r.kernel.sharers()), r.member), r.multiply(b.Add(first, i), x, held))
		})
		b.Barrier()
		b.For(r.group, r.columns, r.groups, func(column kernel.Value) { r.finishColumn(sums, first, column) })
	})
}

// colOf is the first output of each matrix of the subgroup's tile of a turn.
func (r *expertWideTask) colOf(turn kernel.Value) kernel.Value {
	b := r.b
	return b.Mul(b.Add(b.Mul(b.Add(b.Mul(b.WorkgroupID(1), r.kernel.turns), turn), r.kernel.sharers()), r.member), r.kernel.each())
}

// multiply returns the lane's sums of the subgroup's block of the tile of a turn. Words of the next tile replace those
// that held has.
func (r *expertWideTask) multiply(turn kernel.Value, x fixedX, held fixedHeld) [4]kernel.Value {
	b, turns := r.b, r.kernel.turns
	rows := r.rowsAt(r.colOf(turn), nil)
	if r.staging == nil {
		next := r.rowsAt(r.colOf(b.Min(b.Add(turn, 1), turns-1)), nil).load(r.own)
		b.SubgroupBarrier() // all have read the terms before
		return r.block(rows, held.words(), x, func(slot int) { held.follow(next, slot) })
	}
	b.CopyWait(r.stages - 2)
	b.SubgroupBarrier() // the tile is there, and all have read the one before it, in whose place another comes
	ahead := b.Add(turn, r.stages-1)
	b.If(b.Lt(ahead, turns), func() { r.copyBlock(r.colOf(ahead), r.own, ahead) })
	b.CopyGroup()
	return r.block(rows, r.copied(rows, r.own, turn), x, func(int) {})
}

// sumsAt is where sums of a column begin, of a block of the i-th tile whose sums wait.
func (r *expertWideTask) sumsAt(i, block, column kernel.Value) kernel.Value {
	b := r.b
	at := b.Add(b.Mul(i, r.kernel.tileSums()), b.Mul(block, fixedSums))
	return b.Add(at, b.Mul(b.And(column, 1), fragment.Lanes), b.Mul(b.Shr(column, 1), fixedSide/2))
}

// keep puts the lane's sums of a tile into shared memory, as the i-th one's: of each of its columns those of both rows.
func (r *expertWideTask) keep(i kernel.Value, sums [4]kernel.Value) {
	b := r.b
	for c := range 2 {
		at := r.sumsAt(i, r.own, b.Add(b.Mul(r.quad, 2), c))
		r.sums.Store(b.Add(at, r.place), b.Vec(sums[c], sums[2+c]))
	}
}

// finishColumn adds up the sums of a column, of the tiles from turn first on, which begin at the sums-th, and stores
// the results.
func (r *expertWideTask) finishColumn(sums, first, column kernel.Value) {
	b, k := r.b, r.kernel
	scale, row, tiles := r.columnScale(column), r.result(column), k.batch*k.sharers()
	for from := 0; from < tiles; from += fragment.Lanes / 8 {
		i := b.Add(b.Shr(r.lane, 3), from)
		tile := b.Add(b.Mul(b.Add(b.Mul(b.WorkgroupID(1), k.turns), first), k.sharers()), i)
		finish := func() { r.finishTile(b.Add(sums, i), tile, b.And(r.lane, 7), column, row, scale) }
		if k.turns%k.batch == 0 && tiles%(fragment.Lanes/8) == 0 {
			finish()
		} else {
			b.If(b.Lt(i, b.Mul(b.Min(b.Sub(k.turns, first), k.batch), k.sharers())), finish)
		}
	}
}

// finishTile adds up the sums of a column of the i-th tile that waits, of some places, and stores the results in a row.
func (r *expertWideTask) finishTile(i, tile, place, column, row kernel.Value, scale *kernel.Value) {
	b, each := r.b, r.kernel.each()
	var parts, chunks []kernel.Value
	for block := range r.blocks() {
		parts = append(parts, r.sums.Load(b.Add(r.sumsAt(i, b.U32(uint32(block)), column), place)))
	}
	for at := 0; at < len(parts); at += fixedChunk {
		chunks = append(chunks, blocksOf(b, parts[at:min(len(parts), at+fixedChunk)]))
	}
	sum := inTurn(b, chunks)
	for half := 0; half < each; half += fixedSide / 2 {
		var own []kernel.Value
		for m := range r.p.matrices {
			own = append(own, b.Elem(sum, (m*each+half)/8))
		}
		out := b.Add(b.Mul(tile, each), half, place)
		store := func() { r.p.store(b, own, scale, nil, row, out) }
		if r.whole {
			store()
		} else {
			b.If(b.Lt(out, r.p.width), store)
		}
	}
}

// columnScale returns the norm's scale of a column, nil without norm.
func (r *expertWideTask) columnScale(column kernel.Value) *kernel.Value {
	if r.gain == nil {
		return nil
	}
	b, n := r.b, r.k/128
	first := b.Mul(column, n)
	sum := r.squares.Load(first)
	for i := 1; i < n; i++ {
		sum = b.Add(sum, r.squares.Load(b.Add(first, i)))
	}
	scale := r.a.rstd(b, sum)
	return &scale
}

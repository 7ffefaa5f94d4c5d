package recurrent

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

func DeltaChunkedCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	var list []site.Candidate
	for _, parts := range []int{4, 2} {
		k := &deltaChunkedKernel{chunkedRule{parts: parts}, s.Target.Copies()}
		if !k.match(s, op) || !k.fits(s) {
			continue
		}
		words := ""
		if k.copies {
			words = " copies"
		}
		list = append(list, k.candidate("delta_chunked", words, "", k.kernel))
	}
	return list
}

// deltaChunkedKernel is a chunkedRule that adds up products in lanes: a team of 16 lanes has 4 columns, each lane all 4
// of some key dims, so that what it loads of k or q serves 4 products. A lane holds k of a chunk from the change of the
// state before it to its own, so that there is one barrier a chunk: before it all keep the next chunk and what the rows
// change, behind it they read both.
//
// A lane multiplies rows r ^ member of each four rows, so that when lanes exchange sums, each
// keeps those of the same registers.
type deltaChunkedKernel struct {
	chunkedRule
	copies bool // rows of k and q go to shared memory while lanes go on, some chunks ahead; else through registers
}

const (
	// copiedChunks is the number of chunks, a power of two, that shared memory then has rows of: the current one, the
	// one before, and those in flight.
	copiedChunks   = 4
	chunkedTeam    = 16
	chunkedColumns = 4 // of a team
	chunkedRows    = 4 // of which a lane ends with the sums of one
	chunkedGroups  = ir.DeltaChunk / chunkedRows
)

// held is the accesses of 4 elements of a column that a lane holds.
func (k *deltaChunkedKernel) held() int { return k.headDim / (4 * chunkedTeam) }

func (k *deltaChunkedKernel) lanes() int { return k.width() / chunkedColumns * chunkedTeam }

// loads is the accesses of a lane to k of a chunk, and as many to q.
func (k *deltaChunkedKernel) loads() int { return ir.DeltaChunk * k.headDim / 4 / k.lanes() }

func (k *deltaChunkedKernel) fits(s *site.Site) bool {
	t := s.Target
	return k.inputs[0].quads() && k.inputs[1].quads() && (k.headDim == 64 || k.headDim == 128) &&
		(k.parts == 2 || k.heads*k.parts <= t.Units) &&
		t.Wave%chunkedTeam == 0 && k.lanes()%t.Wave == 0 && k.lanes() <= t.Workgroup && k.lanes() >= ir.DeltaChunk*ir.DeltaChunkWidth/4
}

// ringed is how many chunks shared memory has rows of.
func (k *deltaChunkedKernel) ringed() int {
	if k.copies {
		return copiedChunks
	}
	return 2
}

func (k *deltaChunkedKernel) kernel(s *site.Signature) func(b *kernel.Builder) {
	r := &deltaChunkedRun{deltaChunkedKernel: k, chunkedArgs: k.declare(s)}
	return func(b *kernel.Builder) {
		r.b, r.n = b, r.rows.Load(b)
		r.begin()
		r.eachRun(&k.chunkedRule, func() {
			r.loadState()
			r.start()
			b.ForRolled(0, r.n, ir.DeltaChunk, r.chunk)
			r.storeState()
			if k.copies && k.rows.Part > 0 {
				b.CopyWait(0) // what was copied ahead is behind the run
			}
		})
	}
}

// deltaChunkedRun is the kernel while it is built.
type deltaChunkedRun struct {
	*deltaChunkedKernel
	*chunkedArgs
	mine, member kernel.Value  // the lane's team, and the lane in it
	row, column  kernel.Value  // of each four rows, and of the team's columns: where the sums that the lane ends with are
	vectors      *kernel.Array // by chunk: rows of k, then of q
	numbers      *kernel.Array // two chunks: what delta_chunk has of each row, the matrices in the order in which lanes want them
	changes      *kernel.Array // two chunks: of a team, what each row adds to the state, by column
	fetched      [2][]*kernel.Var
	fetchedChunk *kernel.Var
	fetchedV     [chunkedGroups]*kernel.Var
	v            [chunkedGroups]*kernel.Var   // of the chunk before the one that is fetched
	keyRows      [ir.DeltaChunk][]*kernel.Var // k of the chunk
	state        [chunkedColumns][]*kernel.Var
}

// begin finds what is the workgroup's, and the lane's team, and declares shared memory.
func (r *deltaChunkedRun) begin() {
	b := r.b
	b.Workgroup(r.lanes())
	r.find(&r.chunkedRule)
	r.mine, r.member = b.Div(b.LocalID(), chunkedTeam), b.Mod(b.LocalID(), chunkedTeam)
	r.row, r.column = b.Mod(r.member, chunkedRows), b.Div(r.member, chunkedRows)
	rows := lane.F32x4
	if r.copies {
		rows = lane.U32x4
	}
	r.vectors = b.Shared(rows, r.ringed()*2*ir.DeltaChunk*r.headDim/4)
	r.numbers = b.Shared(lane.F32x4, 2*ir.DeltaChunk*ir.DeltaChunkWidth/4)
	r.changes = b.Shared(lane.F32x4, 2*r.lanes()/chunkedTeam*ir.DeltaChunk)
}

// place is the columns of the team in the head, and the fours of the lane in each.
func (r *deltaChunkedRun) place() (columns, fours []kernel.Value) {
	b := r.b
	part := r.part(b, b.WorkgroupID(0))
	for c := range r.state {
		columns = append(columns, b.Add(part, b.Mul(r.mine, chunkedColumns), c))
	}
	for p := range r.held() {
		fours = append(fours, b.Add(r.member, p*chunkedTeam))
	}
	return columns, fours
}

// eachState calls do for the accesses to the state that are this lane's: access p
// of column c, and its place in the state.
func (r *deltaChunkedRun) eachState(do func(c, p int, at kernel.Value)) {
	b, quads := r.b, r.headDim/4
	part := r.part(b, b.WorkgroupID(0))
	column := b.Add(b.Mul(b.Add(b.Mul(r.slot, r.heads), r.head), r.headDim+2*r.log), part, b.Mul(r.mine, chunkedColumns))
	for c := range r.state {
		for p := range r.held() {
			do(c, p, b.Add(b.Mul(b.Add(column, c), quads), b.Add(r.member, p*chunkedTeam)))
		}
	}
}

// loadState loads the state, which is 0 before position 0.
func (r *deltaChunkedRun) loadState() {
	b := r.b
	begun := b.Splat(b.Gt(r.pos.Load(kernel.U32, r.origin), 0), 4)
	r.eachState(func(c, _ int, at kernel.Value) {
		r.state[c] = append(r.state[c], b.Var(lane.F32x4, b.Select(begun, r.stateBuffer.Load(lane.F32x4, at), 0)))
	})
	if r.log == 0 {
		return
	}
	columns, fours := r.place()
	r.applyLog(&r.chunkedRule, columns, fours, func(c, p int, by func(s kernel.Value) kernel.Value) {
		s := r.state[c][p]
		s.Set(by(s.Get()))
	})
}

func (r *deltaChunkedRun) storeState() {
	r.eachState(func(c, p int, at kernel.Value) { r.stateBuffer.Store(at, r.state[c][p].Get()) })
	if r.log > 0 {
		columns, _ := r.place()
		r.settle(&r.chunkedRule, r.b.Eq(r.member, 0), columns)
	}
}

// start puts the first chunk into shared memory, and loads the second.
func (r *deltaChunkedRun) start() {
	b := r.b
	for i := range r.fetched {
		for range r.loads() {
			if !r.copies {
				r.fetched[i] = append(r.fetched[i], b.Var(lane.F32x4, b.Splat(b.F32(0), 4)))
			}
		}
	}
	if r.copies {
		for i := range copiedChunks - 1 {
			r.copy(b.U32(uint32(i * ir.DeltaChunk)))
		}
	}
	r.fetchedChunk = b.Var(lane.F32x4, b.Splat(b.F32(0), 4))
	for g := range r.fetchedV {
		r.fetchedV[g] = b.Var(kernel.F32, 0)
	}
	r.fetch(b.U32(0))
	r.keepVectors(b.U32(0))
	r.keepNumbers(b.U32(0), r.fetchedChunk.Get())
	for g := range r.v {
		r.v[g] = b.Var(kernel.F32, r.fetchedV[g].Get())
	}
	r.fetch(b.U32(ir.DeltaChunk))
	r.arrive()
	b.Barrier()
	for i := range r.keyRows {
		for _, k := range r.load(b.U32(0), i) {
			r.keyRows[i] = append(r.keyRows[i], b.Var(lane.F32x4, k))
		}
	}
}

// fetch loads what this lane has of the chunk from row first on, the last row for those
// that the step lacks, but 0 of what they would change and say.
func (r *deltaChunkedRun) fetch(first kernel.Value) {
	b := r.b
	for i, list := range r.fetched {
		for j, v := range list {
			x, at := r.vector(first, i, j)
			v.Set(x.Load(lane.F32x4, at))
		}
	}
	const each = ir.DeltaChunkWidth / 4
	at := b.Min(b.LocalID(), ir.DeltaChunk*each-1)
	row := b.Add(first, b.Div(at, each))
	x := r.chunks.Load(lane.F32x4, b.Add(b.Mul(b.Add(b.Mul(b.Min(row, r.last), r.heads), r.first), each), b.Mod(at, each)))
	r.fetchedChunk.Set(b.Select(b.Splat(b.Le(row, r.last), 4), x, 0))
	for g, v := range r.fetchedV {
		row := b.Min(b.Add(first, r.rowOf(g)), r.last)
		v.Set(r.inputBuffers[2].Load(kernel.F32, b.Add(b.Mul(row, r.widths[2]), r.from[2], b.Mul(r.mine, chunkedColumns), r.column)))
	}
}

// vector returns where the lane's j-th access to k, or with i 1 to q, of the chunk from row first on is.
func (r *deltaChunkedRun) vector(first kernel.Value, i, j int) (x *kernel.Buffer, at kernel.Value) {
	b, quads, input := r.b, r.headDim/4, 1-i
	at = b.Add(b.LocalID(), j*r.lanes())
	row := b.Min(b.Add(first, b.Div(at, quads)), r.last)
	return r.inputBuffers[input], b.Add(b.Div(b.Add(b.Mul(row, r.widths[input]), r.from[input]), 4), b.Mod(at, quads))
}

// copy begins to copy the rows of the chunk from row first on.
func (r *deltaChunkedRun) copy(first kernel.Value) {
	b := r.b
	to := b.Add(r.vectorsOf(first), b.LocalID())
	for i := range 2 {
		for j := range r.loads() {
			x, at := r.vector(first, i, j)
			x.Copy(lane.U32x4, r.vectors, b.Add(to, (i*r.loads()+j)*r.lanes()), at)
		}
	}
	b.CopyGroup()
}

// arrive waits for what this lane has copied of the next chunk, or at first of the first.
func (r *deltaChunkedRun) arrive() {
	if r.copies {
		r.b.CopyWait(copiedChunks - 2)
	}
}

// vectorsOf returns where shared memory has the rows of the chunk from row first on.
func (r *deltaChunkedRun) vectorsOf(first kernel.Value) kernel.Value {
	b := r.b
	return b.Mul(b.Mod(b.Div(first, ir.DeltaChunk), r.ringed()), 2*ir.DeltaChunk*r.headDim/4)
}

// rowOf returns which row of a chunk is this lane's of group g of four.
func (r *deltaChunkedRun) rowOf(g int) kernel.Value { return r.b.Add(r.row, g*chunkedRows) }

// keepVectors puts rows that were fetched into shared memory.
func (r *deltaChunkedRun) keepVectors(vectors kernel.Value) {
	b := r.b
	for i, list := range r.fetched {
		for j, v := range list {
			r.vectors.Store(b.Add(vectors, b.LocalID(), (i*len(list)+j)*r.lanes()), v.Get())
		}
	}
}

// keepNumbers puts what this lane has of delta_chunk into shared memory.
func (r *deltaChunkedRun) keepNumbers(numbers, x kernel.Value) {
	b := r.b
	const each = ir.DeltaChunkWidth / 4
	b.If(b.Lt(b.LocalID(), ir.DeltaChunk*each), func() {
		row := b.Mod(b.Div(b.LocalID(), each), chunkedRows)
		mask := b.Select(b.Lt(b.Mod(b.LocalID(), each), each-1), row, b.U32(0))
		for e := range 4 {
			r.numbers.StoreElem(b.Add(numbers, b.LocalID()), b.Xor(mask, e), b.Elem(x, e))
		}
	})
}

// next puts the chunk behind the one from row first on into shared memory, loads the one
// behind that, and returns this lane's elements of v of this one.
func (r *deltaChunkedRun) next(first, vectors, numbers kernel.Value) (v [chunkedGroups]kernel.Value) {
	if r.copies {
		r.copy(r.b.Add(first, (copiedChunks-1)*ir.DeltaChunk))
	} else {
		r.keepVectors(vectors)
	}
	x := r.fetchedChunk.Get()
	for g := range v {
		v[g] = r.v[g].Get()
		r.v[g].Set(r.fetchedV[g].Get())
	}
	r.fetch(r.b.Add(first, 2*ir.DeltaChunk))
	r.keepNumbers(numbers, x)
	return v
}

// chunk is the rows from first on.
func (r *deltaChunkedRun) chunk(first kernel.Value) {
	b := r.b
	odd := b.Mod(b.Div(first, ir.DeltaChunk), 2)
	const numbersOf = ir.DeltaChunk * ir.DeltaChunkWidth / 4
	nextVectors := r.vectorsOf(b.Add(first, ir.DeltaChunk))
	v := r.next(first, nextVectors, b.Mul(b.Sub(1, odd), numbersOf))
	vectors, numbers := r.vectorsOf(first), b.Mul(odd, numbersOf)

	var keys, queries [ir.DeltaChunk][]kernel.Value
	for i := range keys {
		for _, k := range r.keyRows[i] {
			keys[i] = append(keys[i], k.Get())
		}
	}
	kept := r.multiply(keys)
	b.SubgroupHint() // else the driver puts products with q first, and all wait for the sums of those with k
	for i := range queries {
		queries[i] = r.load(b.Add(vectors, ir.DeltaChunk*r.headDim/4), i)
	}
	asked := r.multiply(queries)
	const each = ir.DeltaChunkWidth / 4
	var deltas [chunkedGroups][]kernel.Value // by row ^ this lane's row
	var weights [chunkedGroups]kernel.Value
	for g := range v {
		row := b.Add(numbers, b.Mul(r.rowOf(g), each))
		weights[g] = r.numbers.Load(b.Add(row, each-1))
		delta := b.Sub(v[g], b.Mul(b.Elem(weights[g], 0), kept[g]))
		deltas[g] = []kernel.Value{delta}
		for mask := 1; mask < chunkedRows; mask++ {
			deltas[g] = append(deltas[g], b.SubgroupShuffleXor(delta, mask))
		}
	}
	var matrices [2][chunkedGroups][]kernel.Value
	for matrix := range matrices {
		for g := range v {
			matrices[matrix][g] = r.matrixRow(numbers, matrix, g)
		}
	}
	fade := r.numbers.LoadElem(b.Add(numbers, each-1), 2)
	changes := b.Mul(b.Add(b.Mul(odd, r.lanes()/chunkedTeam), r.mine), ir.DeltaChunk)
	for g := range v {
		r.changes.StoreElem(b.Add(changes, r.rowOf(g)), r.column, r.times(matrices[0][g], deltas[:]))
	}
	r.arrive()
	b.Barrier()
	// The stores come before the change, so that they are done by the next barrier.
	for g := range v {
		row := b.Add(first, r.rowOf(g))
		y := b.FMA(b.Elem(weights[g], 1), asked[g], r.times(matrices[1][g], deltas[:]))
		b.If(b.Le(row, r.last), func() {
			at := b.Add(b.Mul(b.Add(b.Mul(row, r.heads), r.first), r.headDim), r.part(b, b.WorkgroupID(0)),
				b.Mul(r.mine, chunkedColumns), r.column)
			r.y.Store(at, y)
		})
	}
	r.change(keys, changes, fade, nextVectors)
}

// matrixRow loads what a matrix has for this lane's row of group g.
func (r *deltaChunkedRun) matrixRow(numbers kernel.Value, matrix, g int) (list []kernel.Value) {
	b := r.b
	for i := range g + 1 {
		list = append(list, r.numbers.Load(b.Add(numbers, b.Mul(r.rowOf(g), ir.DeltaChunkWidth/4), matrix*chunkedGroups+i)))
	}
	return list
}

// times returns the product of a row of a matrix and a column of deltas, both in the order of
// row ^ this lane's row.
func (r *deltaChunkedRun) times(row []kernel.Value, deltas [][]kernel.Value) kernel.Value {
	b := r.b
	var sum kernel.Value
	for i, quad := range row {
		for e, d := range deltas[i] {
			if i == 0 && e == 0 {
				sum = b.Mul(b.Elem(quad, e), d)
			} else {
				sum = b.FMA(b.Elem(quad, e), d, sum)
			}
		}
	}
	return sum
}

// load loads this lane's elements of the lane's i-th row of k or q.
func (r *deltaChunkedRun) load(from kernel.Value, i int) (list []kernel.Value) {
	b := r.b
	at := b.Add(from, b.Mul(r.rowBeside(i), r.headDim/4), r.member)
	for p := range r.held() {
		list = append(list, b.Bitcast(lane.F32x4, r.vectors.Load(b.Add(at, p*chunkedTeam))))
	}
	return list
}

// rowBeside returns which row of a chunk is the lane's i-th: of each four rows, row ^ this
// lane's row.
func (r *deltaChunkedRun) rowBeside(i int) kernel.Value {
	return r.b.Add(r.b.Xor(r.row, i%chunkedRows), i/chunkedRows*chunkedRows)
}

// multiply returns the products of rows and columns of the state that are this lane's.
func (r *deltaChunkedRun) multiply(rows [ir.DeltaChunk][]kernel.Value) (sums [chunkedGroups]kernel.Value) {
	b := r.b
	for g := range sums {
		var list [chunkedRows][]kernel.Value
		for i := range list {
			for _, column := range r.state {
				list[i] = append(list[i], r.dot(column, rows[g*chunkedRows+i]))
			}
		}
		for mask := 1; mask < chunkedRows; mask *= 2 {
			for i := 0; i < chunkedRows; i += 2 * mask {
				for c := range list[i] {
					list[i][c] = b.Add(list[i][c], b.SubgroupShuffleXor(list[i+mask][c], mask))
				}
			}
		}
		sums[g] = lane.SumEach(b, list[0], r.member, chunkedRows)
	}
	return sums
}

// dot returns the product of this lane's elements of a column and of a row.
func (r *deltaChunkedRun) dot(column []*kernel.Var, row []kernel.Value) kernel.Value {
	b := r.b
	var sum kernel.Value
	for p, s := range column {
		x := s.Get()
		for e := range 4 {
			if p == 0 && e == 0 {
				sum = b.Mul(b.Elem(x, e), b.Elem(row[p], e))
			} else {
				sum = b.FMA(b.Elem(x, e), b.Elem(row[p], e), sum)
			}
		}
	}
	return sum
}

// change lets the rows change the state, and loads k of the next chunk: there shared memory
// has the least to do.
func (r *deltaChunkedRun) change(keys [ir.DeltaChunk][]kernel.Value, changes, fade, next kernel.Value) {
	b := r.b
	for i, row := range keys {
		all := r.changes.Load(b.Add(changes, r.rowBeside(i)))
		for c, column := range r.state {
			for p, s := range column {
				x := s.Get()
				if i == 0 {
					x = b.Mul(x, b.Splat(fade, 4))
				}
				s.Set(b.FMA(b.Splat(b.Elem(all, c), 4), row[p], x))
			}
		}
		for p, k := range r.load(next, i) {
			r.keyRows[i][p].Set(k)
		}
	}
}

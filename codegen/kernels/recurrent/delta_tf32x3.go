package recurrent

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// DeltaTF32x3Candidates returns delta_chunked with matrices of TF32.
func DeltaTF32x3Candidates(s *site.Site, op *ir.Op) []site.Candidate {
	if !s.Target.TF32() {
		return nil
	}
	k := &deltaTF32x3Kernel{chunkedRule: chunkedRule{parts: 4}}
	if s.Target.Overlaps() {
		k.least = s.Target.SharedOptIn / 16 / 3
	}
	if !k.match(s, op) || !k.fits(s.Target) {
		return nil
	}
	c := k.candidate("delta_tf32x3", "", " tf32", k.kernel)
	if s.Target.Curve != nil { // no roofline knows how long chunks wait for each other
		c.Tiling = &site.Tiling{Name: "chunks", Rows: ir.DeltaChunk}
	}
	return []site.Candidate{c}
}

// deltaTF32x3Kernel is a chunkedRule whose products with the state are made by matrices of TF32: each number is the
// sum of two of these, and three of their four products count. A subgroup has 16 columns of the state and half of the
// key dims, turned over: columns are the rows of its matrices. So what it has of the state is both what is changed and,
// as it is, what is multiplied with keys and queries. Subgroups with the halves of the same columns exchange their
// sums.
//
// With g = lane/4 and t = lane%4 a lane has columns g and g+8, of each 16 key dims 4t to 4t+3, and rows t and t+4 of
// the chunk.
type deltaTF32x3Kernel struct {
	chunkedRule
	// least is the vec4 of shared memory that a workgroup asks for at least, so that a unit has at most two, and room
	// for other work beside one. Else the first units that are free, where the dispatch before or one beside it ends,
	// would get several of the few workgroups, which take long.
	least int
}

const (
	tf32x3Halves = 2
	// tf32x3Pad is the padding between rows of k and q in shared memory, in vec4, so that lanes use different banks.
	tf32x3Pad = 1
)

// fits reports whether the columns and key dims of a workgroup are whole matrices, and its lanes enough for what a
// chunk needs copied.
func (k *deltaTF32x3Kernel) fits(t *target.Target) bool {
	for _, in := range k.inputs {
		if !in.quads() {
			return false
		}
	}
	return k.headDim%(tf32x3Halves*fragment.Side) == 0 && k.headDim%(k.parts*fragment.Side) == 0 && k.headDim <= deltaMax &&
		16*k.sharedVec4() <= max(t.Shared, t.SharedOptIn) &&
		k.lanes() <= t.Workgroup && k.lanes() >= max(numbersSize, ir.DeltaChunk*k.width()/4)
}

func (k *deltaTF32x3Kernel) lanes() int { return k.width() / fragment.Side * tf32x3Halves * 32 }

func (k *deltaTF32x3Kernel) kernel(s *site.Signature) func(b *kernel.Builder) {
	r := &deltaTF32x3Run{deltaTF32x3Kernel: k, chunkedArgs: k.declare(s)}
	return func(b *kernel.Builder) {
		r.b, r.n = b, r.rows.Load(b)
		r.begin()
		r.eachRun(&k.chunkedRule, func() {
			r.loadState()
			for i := range copiedChunks - 1 {
				r.copy(b.U32(uint32(i * ir.DeltaChunk)))
			}
			b.CopyWait(copiedChunks - 2)
			b.Barrier()
			b.ForRolled(0, r.n, ir.DeltaChunk, r.chunk)
			r.storeState()
			if k.rows.Part > 0 {
				b.CopyWait(0) // what was copied ahead is behind the run
			}
		})
	}
}

// deltaTF32x3Run is the kernel while it is built.
type deltaTF32x3Run struct {
	*deltaTF32x3Kernel
	*chunkedArgs
	half    kernel.Value  // of the key dims, that the subgroup has
	g, t    kernel.Value  // of the lane
	rowOfG  kernel.Value  // which row of a chunk column g of a matrix is
	column  kernel.Value  // the lane's first, from that of the workgroup on
	vectors *kernel.Array // by chunk: rows of k, then of q
	numbers *kernel.Array // by chunk: what delta_chunk has of each row
	values  *kernel.Array // by chunk: rows of v
	sums    *kernel.Array // two chunks: those of the subgroups' halves
	state   []*kernel.Var // by 8 key dims
}

// begin finds what is the workgroup's, the subgroup's and the lane's, and declares shared memory.
func (r *deltaTF32x3Run) begin() {
	b := r.b
	b.Workgroup(r.lanes())
	r.find(&r.chunkedRule)
	r.half = b.Mod(b.SubgroupID(), tf32x3Halves)
	r.g, r.t = b.Div(b.SubgroupLane(), 4), b.Mod(b.SubgroupLane(), 4)
	r.rowOfG = b.Add(b.Div(r.g, 2), b.Mul(b.Mod(r.g, 2), 4))
	r.column = b.Add(b.Mul(b.Div(b.SubgroupID(), tf32x3Halves), fragment.Side), r.g)
	r.vectors = b.Shared(lane.U32x4, copiedChunks*r.slotSize())
	r.numbers = b.Shared(lane.U32x4, copiedChunks*numbersSize)
	r.values = b.Shared(lane.U32x4, copiedChunks*r.valuesSize())
	r.sums = b.Shared(lane.F32x4, r.sumsSize()+max(0, r.least-r.sharedVec4()))
}

func (k *deltaTF32x3Kernel) sharedVec4() int {
	return copiedChunks*(k.slotSize()+numbersSize+k.valuesSize()) + k.sumsSize()
}

// sumsSize is the vec4 of the sums of two chunks with keys and queries.
func (k *deltaTF32x3Kernel) sumsSize() int { return 2 * 2 * k.lanes() }

// numbersSize is the vec4 of a chunk's numbers, valuesSize of its rows of v.
const numbersSize = ir.DeltaChunk * ir.DeltaChunkWidth / 4

func (k *deltaTF32x3Kernel) valuesSize() int { return ir.DeltaChunk * k.valuesLine() }

// valuesLine is the vec4 from one row of v to the next: lanes of four rows use different banks.
func (k *deltaTF32x3Kernel) valuesLine() int { return k.width()/4 + 2 }

func (k *deltaTF32x3Kernel) line() int { return k.headDim/4 + tf32x3Pad }

// slotSize is the vec4 of the rows of a chunk.
func (k *deltaTF32x3Kernel) slotSize() int { return 2 * ir.DeltaChunk * k.line() }

// blocks are 16 key dims of which the subgroup has so many.
func (r *deltaTF32x3Run) blocks() int { return r.headDim / tf32x3Halves / fragment.Side }

// quad is the first vec4 of a block of the subgroup's in a row of k or a column of the state.
func (r *deltaTF32x3Run) quad(block int) kernel.Value {
	return r.b.Add(r.b.Mul(r.half, r.headDim/tf32x3Halves/4), block*fragment.Side/4)
}

// place is the columns of the lane in the head, and the fours that it has in each, a block one.
func (r *deltaTF32x3Run) place() (columns, fours []kernel.Value) {
	b := r.b
	for i := range 2 {
		columns = append(columns, b.Add(r.part(b, b.WorkgroupID(0)), r.column, 8*i))
	}
	for block := range r.blocks() {
		fours = append(fours, b.Add(r.quad(block), r.t))
	}
	return columns, fours
}

func (r *deltaTF32x3Run) eachState(do func(block, i int, at kernel.Value)) {
	b := r.b
	for block := range r.blocks() {
		for i := range 2 {
			column := b.Add(b.Mul(b.Add(b.Mul(r.slot, r.heads), r.head), r.headDim+2*r.log), r.part(b, b.WorkgroupID(0)), r.column, 8*i)
			do(block, i, b.Add(b.Mul(column, r.headDim/4), r.quad(block), r.t))
		}
	}
}

// four returns what the lane has of a block and its column i, and setFour sets that.
func (r *deltaTF32x3Run) four(block, i int) kernel.Value {
	var four [4]kernel.Operand
	for e := range four {
		four[e] = r.state[2*block+e/2].Elem(2*i + e%2)
	}
	return r.b.Vec(four[:]...)
}

func (r *deltaTF32x3Run) setFour(block, i int, v kernel.Value) {
	for e := range 4 {
		r.state[2*block+e/2].SetElem(2*i+e%2, r.b.Elem(v, e))
	}
}

// loadState loads the state, which is 0 before position 0.
func (r *deltaTF32x3Run) loadState() {
	b := r.b
	begun := b.Splat(b.Gt(r.pos.Load(kernel.U32, r.origin), 0), 4)
	for range 2 * r.blocks() {
		r.state = append(r.state, b.Var(fragment.TF32Sum, b.MatFill(fragment.TF32Sum, 0)))
	}
	r.eachState(func(block, i int, at kernel.Value) {
		r.setFour(block, i, b.Select(begun, r.stateBuffer.Load(lane.F32x4, at), 0))
	})
	if r.log == 0 {
		return
	}
	columns, fours := r.place()
	r.applyLog(&r.chunkedRule, columns, fours, func(i, block int, by func(s kernel.Value) kernel.Value) {
		r.setFour(block, i, by(r.four(block, i)))
	})
}

func (r *deltaTF32x3Run) storeState() {
	r.eachState(func(block, i int, at kernel.Value) { r.stateBuffer.Store(at, r.four(block, i)) })
	if r.log > 0 {
		columns, _ := r.place()
		r.settle(&r.chunkedRule, r.b.And(r.b.Eq(r.half, 0), r.b.Eq(r.t, 0)), columns)
	}
}

// copy begins to copy the rows of the chunk from row first on.
func (r *deltaTF32x3Run) copy(first kernel.Value) {
	b, quads := r.b, r.headDim/4
	n := ir.DeltaChunk * quads
	for i := range 2 {
		for from := 0; from < n; from += r.lanes() {
			at := b.Add(b.LocalID(), from)
			row, quad := b.Div(at, quads), b.Mod(at, quads)
			source := b.Add(b.Div(b.Add(b.Mul(b.Min(b.Add(first, row), r.last), r.widths[1-i]), r.from[1-i]), 4), quad)
			to := b.Add(r.rowsOf(first), b.Mul(b.Add(row, i*ir.DeltaChunk), r.line()), quad)
			if n-from < r.lanes() {
				b.If(b.Lt(at, n), func() { r.inputBuffers[1-i].Copy(lane.U32x4, r.vectors, to, source) })
			} else {
				r.inputBuffers[1-i].Copy(lane.U32x4, r.vectors, to, source)
			}
		}
	}
	const each = ir.DeltaChunkWidth / 4
	slot := b.Mod(b.Div(first, ir.DeltaChunk), copiedChunks)
	row := func(i kernel.Value) kernel.Value { return b.Min(b.Add(first, i), r.last) }
	b.If(b.Lt(b.LocalID(), numbersSize), func() {
		from := b.Add(b.Mul(b.Add(b.Mul(row(b.Div(b.LocalID(), each)), r.heads), r.first), each), b.Mod(b.LocalID(), each))
		r.chunks.Copy(lane.U32x4, r.numbers, b.Add(b.Mul(slot, numbersSize), b.LocalID()), from)
	})
	wide := r.width() / 4
	values := ir.DeltaChunk * wide
	b.If(b.Ge(b.LocalID(), r.lanes()-values), func() {
		i := b.Sub(b.LocalID(), r.lanes()-values)
		line, quad := b.Div(i, wide), b.Mod(i, wide)
		from := b.Add(b.Div(b.Add(b.Mul(row(line), r.widths[2]), r.from[2]), 4), quad)
		r.inputBuffers[2].Copy(lane.U32x4, r.values, b.Add(b.Mul(slot, r.valuesSize()), b.Mul(line, r.valuesLine()), quad), from)
	})
	b.CopyGroup()
}

// rowsOf returns where shared memory has the rows of the chunk from row first on.
func (r *deltaTF32x3Run) rowsOf(first kernel.Value) kernel.Value {
	b := r.b
	return b.Mul(b.Mod(b.Div(first, ir.DeltaChunk), copiedChunks), r.slotSize())
}

// of returns what the lane needs besides of the chunk from row first on: numbers of rows t and t+4, its elements of
// both matrices, as columns of which g is a row, and of v, as sums lie, and what the state fades by.
func (r *deltaTF32x3Run) of(first kernel.Value) (weights [2]kernel.Value, matrices [2][2]kernel.Value, v [4]kernel.Value, fade kernel.Value) {
	b := r.b
	slot := b.Mod(b.Div(first, ir.DeltaChunk), copiedChunks)
	at := func(row kernel.Value, quad int) kernel.Value {
		return b.Add(b.Mul(slot, numbersSize), b.Mul(row, ir.DeltaChunkWidth/4), quad)
	}
	load := func(a *kernel.Array, at, e kernel.Value) kernel.Value {
		return b.Bitcast(kernel.F32, a.LoadElem(at, e))
	}
	there := b.Le(b.Add(first, r.rowOfG), r.last)
	for i := range weights {
		weights[i] = b.Bitcast(lane.F32x4, r.numbers.Load(at(b.Add(r.t, 4*i), 2*ir.DeltaChunk/4)))
		for m := range matrices {
			matrices[m][i] = b.Select(there, load(r.numbers, at(r.rowOfG, m*ir.DeltaChunk/4+i), r.t), b.F32(0))
		}
	}
	for i := range v {
		column := b.Add(r.column, i/2*8)
		line := b.Mul(b.Add(r.t, i%2*4), r.valuesLine())
		v[i] = load(r.values, b.Add(b.Mul(slot, r.valuesSize()), line, b.Div(column, 4)), b.Mod(column, 4))
	}
	return weights, matrices, v, load(r.numbers, at(b.U32(0), 2*ir.DeltaChunk/4), b.U32(2))
}

// left is a sum as what is multiplied: its columns are those of k.
func (r *deltaTF32x3Run) left(e [4]kernel.Value) fragment.Split {
	return fragment.SplitTF32(r.b, fragment.TF32Left, e[0], e[2], e[1], e[3])
}

// right is the other factor of left; a lane has two elements of it.
func (r *deltaTF32x3Run) right(x, y kernel.Value) fragment.Split {
	return fragment.SplitTF32(r.b, fragment.TF32Right, x, y)
}

func elemsOf(v *kernel.Var) (e [4]kernel.Value) {
	for i := range e {
		e[i] = v.Elem(i)
	}
	return e
}

// sum returns a matrix with these elements.
func (r *deltaTF32x3Run) sum(e [4]kernel.Value) *kernel.Var {
	v := r.b.Var(fragment.TF32Sum, r.b.MatFill(fragment.TF32Sum, 0))
	for i, x := range e {
		v.SetElem(i, x)
	}
	return v
}

// chunk is the rows from first on.
func (r *deltaTF32x3Run) chunk(first kernel.Value) {
	b := r.b
	numbers, matrices, v, fade := r.of(first)
	rows := r.rowsOf(first)
	kept, said := r.exchange(first, r.products(rows))
	var delta, asked [4]kernel.Value
	for e := range delta {
		weights := numbers[e%2]
		delta[e] = b.Sub(v[e], b.Mul(b.Elem(weights, 0), b.Elem(kept, e)))
		asked[e] = b.Mul(b.Elem(weights, 1), b.Elem(said, e))
	}
	d := r.left(delta)
	change := b.Var(fragment.TF32Sum, d.AddTo(b, b.MatFill(fragment.TF32Sum, 0), r.right(matrices[0][0], matrices[0][1])))
	r.fade(rows, r.left(elemsOf(change)), fade)
	r.copy(b.Add(first, (copiedChunks-1)*ir.DeltaChunk))
	says := b.Var(fragment.TF32Sum, d.AddTo(b, r.sum(asked).Get(), r.right(matrices[1][0], matrices[1][1])))
	row := b.Add(first, r.t, b.Mul(r.half, 4))
	second := b.Eq(r.half, 1)
	b.If(b.Le(row, r.last), func() {
		at := b.Add(b.Mul(b.Add(b.Mul(row, r.heads), r.first), r.headDim), r.part(b, b.WorkgroupID(0)), r.column)
		for i := range 2 {
			r.y.Store(b.Add(at, 8*i), b.Select(second, says.Elem(2*i+1), says.Elem(2*i)))
		}
	})
}

// products returns those of the state with keys, then with queries, of the subgroup's dims, each as three sums.
func (r *deltaTF32x3Run) products(rows kernel.Value) (sums [2][3]kernel.Value) {
	b := r.b
	for i := range sums {
		for j := range sums[i] {
			sums[i][j] = b.MatFill(fragment.TF32Sum, 0)
		}
	}
	for block := range r.blocks() {
		var x [2]kernel.Value
		for i := range x {
			x[i] = b.Bitcast(lane.F32x4, r.vectors.Load(b.Add(rows, b.Mul(b.Add(r.rowOfG, i*ir.DeltaChunk), r.line()), r.quad(block), r.t)))
		}
		for e := range 2 {
			s := r.left(elemsOf(r.state[2*block+e]))
			for i := range x {
				y := r.right(b.Elem(x[i], 2*e), b.Elem(x[i], 2*e+1))
				sums[i][0] = b.MatMulAdd(s[0], y[0], sums[i][0])
				sums[i][1] = b.MatMulAdd(s[0], y[1], sums[i][1])
				sums[i][2] = b.MatMulAdd(s[1], y[0], sums[i][2])
			}
		}
	}
	return sums
}

// exchange adds the products of all dims, of which the subgroups of a column have parts.
func (r *deltaTF32x3Run) exchange(first kernel.Value, sums [2][3]kernel.Value) (keys, queries kernel.Value) {
	b := r.b
	odd := b.Mod(b.Div(first, ir.DeltaChunk), 2)
	place := func(half kernel.Value, i int) kernel.Value {
		id := b.Add(b.Mul(b.Div(b.SubgroupID(), tf32x3Halves), tf32x3Halves), half)
		return b.Add(b.Mul(b.Add(b.Mul(odd, 2), i), r.lanes()), b.Mul(id, 32), b.SubgroupLane())
	}
	for i := range sums {
		var own [3]*kernel.Var
		for j := range own {
			own[j] = b.Var(fragment.TF32Sum, sums[i][j])
		}
		var four [4]kernel.Operand
		for e := range four {
			four[e] = b.Add(own[0].Elem(e), b.Add(own[1].Elem(e), own[2].Elem(e)))
		}
		r.sums.Store(place(r.half, i), b.Vec(four[:]...))
	}
	b.CopyWait(copiedChunks - 3)
	b.Barrier()
	var both [2]kernel.Value
	for i := range both {
		both[i] = b.Add(r.sums.Load(place(b.U32(0), i)), r.sums.Load(place(b.U32(1), i)))
	}
	return both[0], both[1]
}

// fade lets the state fade by a factor and adds the change by the keys of the rows.
func (r *deltaTF32x3Run) fade(rows kernel.Value, change fragment.Split, factor kernel.Value) {
	b := r.b
	upper := b.Eq(b.Mod(r.g, 2), 1)
	for block := range r.blocks() {
		var x [2]kernel.Value
		for i := range x {
			x[i] = b.Bitcast(lane.F32x4, r.vectors.Load(b.Add(rows, b.Mul(b.Add(r.t, 4*i), r.line()), r.quad(block), b.Div(r.g, 2))))
		}
		for e := range 2 {
			s := r.state[2*block+e]
			var y [2]kernel.Value
			for i := range y {
				y[i] = b.Select(upper, b.Elem(x[i], 2*e+1), b.Elem(x[i], 2*e))
			}
			for i := range 4 {
				s.SetElem(i, b.Mul(s.Elem(i), factor))
			}
			s.Set(change.AddTo(b, s.Get(), r.right(y[0], y[1])))
		}
	}
}

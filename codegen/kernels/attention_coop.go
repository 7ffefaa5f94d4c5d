package kernels

import (
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

func attentionCoopCandidates(s *Site) []Candidate {
	k := matchAttentionCoop(s)
	if k == nil || k.op.Args[0].Type.DType != ir.F16 {
		return nil
	}
	return []Candidate{k.candidate()}
}

// matchAttentionCoop returns what computes the site's attention with cooperative
// matrices, but for the type of q; nil if nothing does.
func matchAttentionCoop(s *Site) *coopAttention {
	op, gate, result := onlyGated(s, "attention")
	splits := 1
	if op == nil {
		if op = only(s, "attention_split"); op == nil {
			return nil
		}
		result, splits = op.Result, op.Attrs.Int("splits")
	}
	if s.Target.Matrix != (target.MatrixShape{Rows: coopSide, Cols: coopSide, Depth: coopSide}) {
		return nil
	}
	shape, ok := attentionOf(s, op, gate)
	if !ok || shape.rows.max <= decodeRows || shape.kv != ir.F16 {
		return nil
	}
	k := &coopAttention{attentionShape: shape, op: op, result: result, splits: splits, partial: op.Kind.Name == "attention_split"}
	if !k.divide(s.Target) || k.partial && (op.Attrs.Int("rows") != k.queryRows() || op.Attrs.Int("block")%k.tileKV != 0) {
		return nil
	}
	return k
}

// AttentionTiles returns how many workgroups attention_coop has for the site's attention,
// and how many rows of q a tile has; 0 if attention_coop does not compute it.
func AttentionTiles(s *Site) (tiles, rows int) {
	k := matchAttentionCoop(s)
	if k == nil {
		return 0, 0
	}
	return k.tiles() * k.heads / k.fold, k.queryRows()
}

// coopAttention is FlashAttention-2 (Dao, arXiv:2307.08691) with cooperative matrices
// of f16. q is f16, and so are the weights of the softmax once they are relative to
// the row's largest; all sums are f32, in the device's order.
//
// The rows of a step must be consecutive positions of one sequence slot, as those of
// prefill are. A row of the tile is one head of one row of q: heads that share a KV
// head share what is read of the cache. A team of subgroups has some rows of the tile;
// each of its sides computes the scores of its part of the positions, and the sums of
// its part of the dims.
type coopAttention struct {
	attentionShape
	op      *ir.Op
	result  *ir.Value
	splits  int  // workgroups that share the positions of a tile
	partial bool // write sums, maximum and weight of each split, not the quotient

	fold   int // heads of a tile
	teams  int
	sides  int // subgroups of a team
	blocks int // of 16 rows that a team has
	tileKV int // positions of the cache in shared memory
}

// growth is by how much, as a power of two, the largest score of a row may grow before
// its sums are scaled anew. Weights are at most 2^growth until then, and f16 has room.
const growth = 8

// coopDims is the dims that a subgroup puts into shared memory at a time at the end.
const coopDims = 64

// divide chooses the tile.
func (k *coopAttention) divide(t *target.Target) bool {
	for k.fold = 1; k.fold < coopSide && k.group%(2*k.fold) == 0; k.fold *= 2 {
	}
	k.teams, k.sides, k.blocks, k.tileKV = 8, 1, 1, 32
	if k.headDim > 128 {
		k.teams, k.sides = 4, 2
	}
	for k.teams > 1 && k.tileRows()/2 >= k.rows.max*k.fold {
		k.teams /= 2
	}
	part := k.headDim / k.sides
	return k.headDim%(coopSide*k.sides) == 0 && part <= 128 && k.wave >= 2*coopSide &&
		16*k.shared() <= t.Shared && k.lanes() <= t.Workgroup
}

func (k *coopAttention) lanes() int { return k.teams * k.sides * k.wave }

// tileRows is the rows of the tile.
func (k *coopAttention) tileRows() int { return k.teams * k.teamRows() }

func (k *coopAttention) teamRows() int { return k.blocks * coopSide }

// queryRows is the rows of q that the tile has heads of.
func (k *coopAttention) queryRows() int { return k.tileRows() / k.fold }

// tiles is how many the heads of a tile have.
func (k *coopAttention) tiles() int { return ceilDiv(k.rows.max, k.queryRows()) }

// In shared memory lie, in octets of f16, a tile of k, one of v, the scores and then
// the weights of all rows, and one number for each row; before that all of q, and after
// it the sums.

// stride is the octets from row to row of q and the caches: an odd number, so that 8
// rows begin in different banks.
func (k *coopAttention) stride() int { return k.headDim/8 + 1 }

// scoreStride is the same for scores, in f32. Weights, in f16, take half of it.
func (k *coopAttention) scoreStride() int { return k.tileKV/4 + 1 }

// dims is how many dims a side puts into shared memory at once.
func (k *coopAttention) dims() int { return min(coopDims, k.headDim/k.sides) }

func (k *coopAttention) valuesAt() int { return k.tileKV * k.stride() }

func (k *coopAttention) scoresAt() int { return 2 * k.valuesAt() }

func (k *coopAttention) numbersAt() int {
	return max(k.scoresAt()+k.tileRows()*k.scoreStride(), k.tileRows()*k.stride(), k.teams*k.sides*k.sumsSize())
}

// sumsSize is what a subgroup's dims of 16 rows take.
func (k *coopAttention) sumsSize() int { return coopSide * (k.dims()/4 + 1) }

func (k *coopAttention) votesAt() int { return k.numbersAt() + k.tileRows()/4 }

func (k *coopAttention) shared() int { return k.votesAt() + ceilDiv(k.teams*k.sides, 4) }

func (k *coopAttention) candidate() Candidate {
	rows, heads, part, consts := k.rows.max, k.heads, "", k.consts()
	cover := plans.Cover{Arg: "y", Dims: []int{rows, heads * k.headDim}, Tile: []int{k.queryRows(), k.fold * k.headDim}, Axis: []int{1, 0}}
	if k.partial {
		part, consts = " part", append(consts, ir.Const{Name: "block", Value: uint32(k.op.Attrs.Int("block"))})
		cover = plans.Cover{Arg: "y", Dims: []int{rows, heads, k.splits, k.headDim + 2}, Tile: []int{k.queryRows(), k.fold, 1, k.headDim + 2}, Axis: []int{1, 0, 2, -1}}
	}
	return Candidate{
		Kernel: fmt.Sprintf("attention_coop hd=%d fold=%d tile=%dx%d team=%dx%d%s%s%s", k.headDim, k.fold, k.tileRows(), k.tileKV,
			k.sides, k.teamRows(), part, k.gate.key(), k.rows.key()),
		Build:    k.build,
		Consts:   consts,
		Grid:     [3]int{heads / k.fold, k.tiles(), k.splits},
		Operands: append(k.operands(k.op), Operand{"y", k.result, kernel.Write}),
		Cover:    []plans.Cover{cover},
	}
}

// coopAttentionRun is the kernel while it is built.
type coopAttentionRun struct {
	*coopAttention
	attentionArgs
	b          *kernel.Builder
	shared     *kernel.Array
	row        kernel.Value // first of the tile
	head       kernel.Value // first of the tile
	lastRow    kernel.Value // of the step
	end        kernel.Value // of the positions of the tile or, of those, of the split
	base       kernel.Value // octet of the head's first position in the caches
	team, side kernel.Value
	member     kernel.Value     // the lane among those that have its row in the softmax
	query      [][]kernel.Value // by block, then 16 dims
	sums       [][]*kernel.Var  // by block, then 16 dims of the side
	factor     kernel.Value     // of the scores, to powers of two
	limit      []kernel.Value   // by block: positions that the lane's row sees
	top        []*kernel.Var    // by block: what the scores of the lane's row are relative to
	weight     []*kernel.Var    // by block: sum of the weights that the lane had
	largest    []*kernel.Var    // by block, of a split: the largest score of the lane's row
	grown      kernel.Value     // some row of the subgroup has a new top
}

func (k *coopAttention) build() (*kernel.Func, error) {
	return kernel.Build("attention_coop", func(b *kernel.Builder) {
		r := &coopAttentionRun{coopAttention: k, b: b, attentionArgs: k.declare(b)}
		y := b.Arg("y", kernel.Write)
		b.Workgroup(k.lanes())
		r.shared = b.Shared(u32x4, k.shared())

		// The last rows see most: they come first.
		tile := b.Sub(b.Sub(b.NumWorkgroups(1), 1), b.WorkgroupID(1))
		r.row, r.head = b.Mul(tile, k.queryRows()), b.Mul(b.WorkgroupID(0), k.fold)
		rows := r.attentionArgs.rows
		b.ReturnIf(b.Ge(r.row, rows))
		r.lastRow = b.Sub(rows, 1)
		first := r.pos.Load(kernel.U32, r.row)
		r.end = b.Add(r.pos.Load(kernel.U32, b.Min(b.Add(r.row, k.queryRows()-1), r.lastRow)), 1)
		b.ReturnIf(b.Gt(r.end, r.ctx)) // beyond the cache

		slot := r.slot.Load(kernel.U32, r.row)
		r.base = b.Add(b.Mul(b.Mul(slot, r.ctx), r.kvRow), b.Mul(b.Div(r.head, r.group), k.headDim/chunk))
		r.team, r.side = b.Div(b.SubgroupID(), k.sides), b.Mod(b.SubgroupID(), k.sides)
		begin := b.U32(0)
		if k.partial {
			splits, block := b.NumWorkgroups(2), b.SpecU32("block", 32)
			round := b.Mul(splits, block)
			step := b.Mul(b.Div(b.Sub(b.Add(r.end, round), 1), round), block)
			begin = b.Mul(b.WorkgroupID(2), step)
			r.end = b.Min(r.end, b.Add(begin, step))
		}
		r.start()
		r.fetch(r.k, 0, begin)()
		r.fetch(r.v, k.valuesAt(), begin)()
		b.Barrier()
		b.For(begin, r.end, k.tileKV, func(from kernel.Value) {
			next := b.Add(from, k.tileKV) // behind the last tile: nothing that is used
			storeK := r.fetch(r.k, 0, next)
			storeV := r.fetch(r.v, k.valuesAt(), next)
			r.score()
			b.Barrier()
			storeK()
			r.soften(from, b.Gt(next, b.Add(first, 1)))
			r.sync()
			r.add()
			b.Barrier()
			storeV()
		})
		r.write(y)
	})
}

// sync makes what the team has put into shared memory seen by all of it.
func (r *coopAttentionRun) sync() {
	if r.sides == 1 {
		r.b.SubgroupBarrier()
	} else {
		r.b.Barrier()
	}
}

// rowLanes is the lanes that have a row in the softmax; they are neighbours.
func (k *coopAttention) rowLanes() int { return k.wave * k.sides / coopSide }

// lane's row of a block, among the rows of the team.
func (r *coopAttentionRun) teamRow(block int) kernel.Value {
	b := r.b
	own := b.Add(b.Mul(r.side, coopSide/r.sides), b.Div(b.SubgroupLane(), r.rowLanes()))
	return b.Add(own, block*coopSide)
}

// start loads q and clears the sums.
func (r *coopAttentionRun) start() {
	b, octets := r.b, r.headDim/8
	b.For(b.LocalID(), r.tileRows()*octets, r.lanes(), func(i kernel.Value) {
		row, octet := b.Div(i, octets), b.Mod(i, octets)
		at := b.Add(b.Mul(b.Min(b.Add(r.row, b.Div(row, r.fold)), r.lastRow), r.heads), r.head, b.Mod(row, r.fold))
		r.shared.Store(b.Add(b.Mul(row, r.stride()), octet), r.q.Load(u32x4, b.Add(b.Mul(at, octets), octet)))
	})
	b.Barrier()
	r.factor = b.Mul(r.scale, math.Log2E)
	r.member = b.Mod(b.SubgroupLane(), r.rowLanes())
	sum := kernel.F32.Matrix(coopSide, coopSide, kernel.Accumulator)
	qs := kernel.F16.Matrix(coopSide, coopSide, kernel.MatrixA)
	for block := range r.blocks {
		var query []kernel.Value
		var sums []*kernel.Var
		at := b.Mul(b.Add(b.Mul(r.team, r.teamRows()), block*coopSide), r.stride())
		for d := 0; d < octets; d += coopSide / 8 {
			query = append(query, r.shared.LoadMatrix(qs, b.Add(at, d), r.stride(), kernel.RowMajor))
		}
		for range r.headDim / r.sides / coopSide {
			sums = append(sums, b.Var(sum, b.MatFill(sum, 0)))
		}
		r.query, r.sums = append(r.query, query), append(r.sums, sums)
		row := b.Div(b.Add(b.Mul(r.team, r.teamRows()), r.teamRow(block)), r.fold)
		r.limit = append(r.limit, b.Add(r.pos.Load(kernel.U32, b.Min(b.Add(r.row, row), r.lastRow)), 1))
		r.top = append(r.top, b.Var(kernel.F32, emptyScore))
		r.weight = append(r.weight, b.Var(kernel.F32, 0))
		r.largest = append(r.largest, b.Var(kernel.F32, emptyScore))
	}
	b.Barrier()
}

// fetch loads the positions from `from` on and returns what stores them at octet to
// of shared memory. Those from end on repeat the last.
func (r *coopAttentionRun) fetch(cache *kernel.Buffer, to int, from kernel.Value) func() {
	b, octets := r.b, r.headDim/8
	var stores []func()
	n := r.tileKV * octets
	for first := 0; first < n; first += r.lanes() {
		item := b.Add(b.LocalID(), first)
		p, o := b.Div(item, octets), b.Mod(item, octets)
		row := b.Mul(b.Min(b.Add(from, p), b.Sub(r.end, 1)), r.kvRow)
		x := cache.Load(u32x4, b.Add(r.base, row, o))
		store := func() { r.shared.Store(b.Add(b.Mul(p, r.stride()), o, to), x) }
		if n-first < r.lanes() {
			whole := store
			store = func() { b.If(b.Lt(item, n), whole) }
		}
		stores = append(stores, store)
	}
	return func() {
		for _, s := range stores {
			s()
		}
	}
}

// score puts the products of q and the side's positions into shared memory.
func (r *coopAttentionRun) score() {
	b := r.b
	ks := kernel.F16.Matrix(coopSide, coopSide, kernel.MatrixB)
	sum := kernel.F32.Matrix(coopSide, coopSide, kernel.Accumulator)
	own := r.tileKV / r.sides
	from := b.Mul(r.side, own*r.stride())
	to := b.Add(b.Mul(r.team, r.teamRows()*r.scoreStride()), b.Mul(r.side, own/4), r.scoresAt())
	scores := make([][]kernel.Value, own/coopSide)
	for c := range scores {
		for range r.blocks {
			scores[c] = append(scores[c], b.MatFill(sum, 0))
		}
	}
	for d := range r.query[0] {
		for c := range scores {
			k := r.shared.LoadMatrix(ks, b.Add(from, c*coopSide*r.stride()+d*coopSide/8), r.stride(), kernel.ColumnMajor)
			for block, q := range r.query {
				scores[c][block] = b.MatMulAdd(q[d], k, scores[c][block])
			}
		}
	}
	for c := range scores {
		for block, s := range scores[c] {
			r.shared.StoreMatrix(b.Add(to, block*coopSide*r.scoreStride()+c*coopSide/4), r.scoreStride(), kernel.RowMajor, s)
		}
	}
}

// soften turns the scores of the tile's positions into weights. Where masked holds,
// some row does not see all of them.
func (r *coopAttentionRun) soften(from, masked kernel.Value) {
	b := r.b
	octets := r.tileKV / 8 / r.rowLanes() // of a lane
	r.grown = b.Bool(false)
	for block := range r.blocks {
		row := b.Add(b.Mul(r.team, r.teamRows()), r.teamRow(block))
		at := b.Add(b.Mul(row, r.scoreStride()), r.scoresAt())
		var where []kernel.Value
		var x []*kernel.Var
		for o := range octets {
			octet := b.U32(uint32(o))
			if octets == 4 {
				octet = b.Mod(b.Add(b.Mul(r.member, 2), o), octets) // lanes of a row from different banks
			}
			octet = b.Add(b.Mul(r.member, octets), octet)
			where = append(where, octet)
			for i := range 2 {
				v := r.shared.Load(b.Add(at, b.Mul(octet, 2), i))
				x = append(x, b.Var(f32x4, b.Bitcast(f32x4, v)))
			}
		}
		b.If(masked, func() {
			for i, x := range x {
				p := b.Add(from, b.Mul(where[i/2], 8), i%2*4)
				positions := b.Vec(p, b.Add(p, 1), b.Add(p, 2), b.Add(p, 3))
				x.Set(b.Select(b.Lt(positions, b.Splat(r.limit[block], 4)), x.Get(), math.Inf(-1)))
			}
		})
		most := x[0].Get()
		for _, x := range x[1:] {
			most = b.Max(most, x.Get())
		}
		largest := b.Max(b.Max(b.Elem(most, 0), b.Elem(most, 1)), b.Max(b.Elem(most, 2), b.Elem(most, 3)))
		largest = xorLanes(b, largest, 1, r.rowLanes(), func(x, y kernel.Value) kernel.Value { return b.Max(x, y) })
		largest = b.Mul(largest, r.factor)
		if r.partial {
			r.largest[block].Set(b.Max(r.largest[block].Get(), largest))
		}
		old := r.top[block].Get()
		grown := b.Gt(largest, b.Add(old, growth))
		top := b.Select(grown, largest, old)
		fade := b.Exp2(b.Sub(old, top))
		r.top[block].Set(top)
		r.grown = b.Or(r.grown, grown)
		b.If(b.Eq(r.member, 0), func() { r.setNumber(row, fade) })

		factor, under := b.Splat(r.factor, 4), b.Splat(b.Neg(top), 4)
		var sum kernel.Value
		var halves []kernel.Value
		for i, x := range x {
			w := b.Exp2(b.FMA(x.Get(), factor, under))
			halves = append(halves, packHalves(b, w))
			if i == 0 {
				sum = w
			} else {
				sum = b.Add(sum, w)
			}
		}
		r.weight[block].Set(b.FMA(r.weight[block].Get(), fade, sum4(b, sum)))
		b.SubgroupBarrier() // the lanes of the row have its scores
		for o, octet := range where {
			x, y := halves[2*o], halves[2*o+1]
			r.shared.Store(b.Add(at, octet), b.Vec(b.Elem(x, 0), b.Elem(x, 1), b.Elem(y, 0), b.Elem(y, 1)))
		}
	}
	r.grown = b.SubgroupAny(r.grown)
	if r.sides > 1 {
		b.If(b.SubgroupElect(), func() {
			s := b.SubgroupID()
			r.shared.StoreElem(b.Add(b.Div(s, 4), r.votesAt()), b.Mod(s, 4), b.Convert(kernel.U32, r.grown))
		})
	}
}

// setNumber sets the number of a row of the tile.
func (r *coopAttentionRun) setNumber(row, x kernel.Value) {
	b := r.b
	r.shared.StoreElem(b.Add(b.Div(row, 4), r.numbersAt()), b.Mod(row, 4), b.Bitcast(kernel.U32, x))
}

// add adds the weighted tile of v to the sums, which it scales before if the top of
// some row of the team has grown.
func (r *coopAttentionRun) add() {
	b := r.b
	sum := kernel.F32.Matrix(coopSide, coopSide, kernel.Accumulator)
	grown := r.grown
	for s := 0; s < r.sides && r.sides > 1; s++ {
		subgroup := b.Add(b.Mul(r.team, r.sides), s)
		vote := b.Ne(r.shared.LoadElem(b.Add(b.Div(subgroup, 4), r.votesAt()), b.Mod(subgroup, 4)), 0)
		if s == 0 {
			grown = vote
		} else {
			grown = b.Or(grown, vote)
		}
	}
	b.If(grown, func() {
		for block, sums := range r.sums {
			at := b.Add(b.Mul(r.team, r.teamRows()/4), block*coopSide/4+r.numbersAt())
			fade := r.shared.LoadMatrix(sum, at, 0, kernel.ColumnMajor)
			for _, s := range sums {
				s.Set(b.MatTimes(s.Get(), fade))
			}
		}
	})
	ws := kernel.F16.Matrix(coopSide, coopSide, kernel.MatrixA)
	vs := kernel.F16.Matrix(coopSide, coopSide, kernel.MatrixB)
	weights := b.Add(b.Mul(r.team, r.teamRows()*r.scoreStride()), r.scoresAt())
	values := b.Add(b.Mul(r.side, r.headDim/r.sides/8), r.valuesAt())
	for p := 0; p < r.tileKV; p += coopSide {
		var w []kernel.Value
		for block := range r.sums {
			w = append(w, r.shared.LoadMatrix(ws, b.Add(weights, block*coopSide*r.scoreStride()+p/8), r.scoreStride(), kernel.RowMajor))
		}
		for d := range r.sums[0] {
			v := r.shared.LoadMatrix(vs, b.Add(values, p*r.stride()+d*coopSide/8), r.stride(), kernel.RowMajor)
			for block, sums := range r.sums {
				sums[d].Set(b.MatMulAdd(w[block], v, sums[d].Get()))
			}
		}
	}
}

// write stores the quotients of the rows that this step has, or what a split has.
func (r *coopAttentionRun) write(y *kernel.Buffer) {
	b, stride := r.b, r.dims()/4+1
	for block := range r.blocks {
		weight := xorLanes(b, r.weight[block].Get(), 1, r.rowLanes(), func(x, y kernel.Value) kernel.Value { return b.Add(x, y) })
		inTile := b.Add(b.Mul(r.team, r.teamRows()), r.teamRow(block))
		b.If(b.Eq(r.member, 0), func() {
			if !r.partial {
				r.setNumber(inTile, weight)
				return
			}
			largest := r.largest[block].Get()
			fade := b.Exp2(b.Sub(r.top[block].Get(), largest))
			r.setNumber(inTile, fade)
			r.place(inTile, func(head kernel.Value) {
				top := b.Select(b.Gt(largest, emptyScore), b.Mul(largest, math.Ln2), emptyScore)
				y.Store(b.Add(r.pairs(head), r.headDim/2), b.Vec(top, b.Mul(weight, fade)))
			})
		})
	}
	b.Barrier()
	mine := b.Mul(b.SubgroupID(), r.sumsSize())
	for block, sums := range r.sums {
		for from := 0; from < len(sums); from += r.dims() / coopSide {
			part := sums[from:min(len(sums), from+r.dims()/coopSide)]
			quads := len(part) * coopSide / 4
			for d, s := range part {
				r.shared.StoreMatrix(b.Add(mine, d*coopSide/4), stride, kernel.RowMajor, s.Get())
			}
			b.SubgroupBarrier()
			b.For(b.SubgroupLane(), coopSide*quads, r.wave, func(i kernel.Value) {
				row, quad := b.Div(i, quads), b.Mod(i, quads)
				v := b.Bitcast(f32x4, r.shared.Load(b.Add(mine, b.Mul(row, stride), quad)))
				inTile := b.Add(b.Mul(r.team, r.teamRows()), row, block*coopSide)
				number := b.Bitcast(kernel.F32, r.shared.LoadElem(b.Add(b.Div(inTile, 4), r.numbersAt()), b.Mod(inTile, 4)))
				quad = b.Add(quad, b.Mul(r.side, r.headDim/r.sides/4), from*coopSide/4)
				r.place(inTile, func(head kernel.Value) { r.writeQuad(y, head, quad, v, b.Splat(number, 4)) })
			})
			b.SubgroupBarrier()
		}
	}
}

// place calls body with the head, counted through all rows, that is a row of the tile,
// if it is of this step.
func (r *coopAttentionRun) place(inTile kernel.Value, body func(head kernel.Value)) {
	b := r.b
	row := b.Add(r.row, b.Div(inTile, r.fold))
	b.If(b.Le(row, r.lastRow), func() { body(b.Add(b.Mul(row, r.heads), r.head, b.Mod(inTile, r.fold))) })
}

// pairs returns where in y, in pairs of f32, the split's sums of a head begin.
func (r *coopAttentionRun) pairs(head kernel.Value) kernel.Value {
	b := r.b
	return b.Mul(b.Add(b.Mul(head, b.NumWorkgroups(2)), b.WorkgroupID(2)), (r.headDim+2)/2)
}

// writeQuad stores four dims of a head: of a split times the row's number, else divided
// by it.
func (r *coopAttentionRun) writeQuad(y *kernel.Buffer, head, quad, v, number kernel.Value) {
	b := r.b
	if r.partial {
		v = b.Mul(v, number)
		at := b.Add(r.pairs(head), b.Mul(quad, 2))
		y.Store(at, b.Vec(b.Elem(v, 0), b.Elem(v, 1)))
		y.Store(b.Add(at, 1), b.Vec(b.Elem(v, 2), b.Elem(v, 3)))
		return
	}
	v = r.attentionArgs.gate.load(b, f32x4, head, quad, r.headDim/4)(b.Div(v, number))
	if r.coopAttention.gate.half {
		v = roundHalf(b, v)
	}
	y.Store(b.Add(b.Mul(head, r.headDim/4), quad), v)
}

package attention

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

func AttentionTiledCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	gate, result := onlyGated(s, op)
	if result == nil {
		return nil
	}
	shape, ok := attentionOf(s, op, gate)
	if !ok || !shape.exact(op) {
		return nil
	}
	k := &tiledKernel{attentionShape: shape, op: op, result: result}
	if inLanes(s, shape) || !k.divide(s.Target) {
		return nil
	}
	rows, heads := shape.rows, shape.heads
	return []site.Candidate{site.Implement(site.Candidate{
		Kernel: k.key(),
		Grid:   [3]int{heads, site.CeilDiv(rows.Max, k.tileRows), 1},
		Grain:  k.tileRows,
		Parts:  rows.FollowsParts(k.tileRows),
		Cover:  []plans.Cover{{Arg: "y", Dims: []int{rows.Max, heads * k.headDim}, Tile: []int{k.tileRows, k.headDim}, Axis: []int{1, 0}}},
	}, "attention_tiled", k.kernel)}
}

// tiledKernel is the tiled attention of Dao et al. (FlashAttention, arXiv:2205.14135).
//
// The rows of a step must be of one sequence: the slot of a tile's first row and the
// position of its last one stand for the tile.
//
// A team of lanes has four rows of the tile. Each lane of a team computes the
// scores of some positions of a tile of the cache, for all four rows, and then
// sums some chunks of four dims over all positions of the tile.
type tiledKernel struct {
	attentionShape
	op       *ir.Op
	result   *ir.Value
	tileRows int // rows of q in a workgroup
	tileKV   int // positions of the cache in shared memory
	team     int // lanes of a team: a power of two, in one subgroup
}

// attentionTiles are the tile sizes, rows of q and of the cache, best first.
var attentionTiles = [][2]int{{32, 32}, {32, 16}, {16, 16}, {16, 8}, {8, 8}, {8, 4}, {4, 16}, {4, 8}}

// tiledShared bounds the shared memory of a workgroup, in bytes: with more, too
// few of them run at once.
const tiledShared = 48 << 10

// divide chooses the first tiles that fit in shared memory.
func (k *tiledKernel) divide(t *target.Target) bool {
	for _, tile := range attentionTiles {
		k.tileRows, k.tileKV = tile[0], tile[1]
		k.team = min(16, k.wave)
		size := k.lanes()
		if k.sharedBytes() <= min(t.Shared, tiledShared) && size%k.wave == 0 && size <= t.Workgroup {
			return true
		}
	}
	return false
}

func (k *tiledKernel) lanes() int { return k.tileRows / 4 * k.team }

// stride is the distance, in units of four elements, of the rows of a tile. The
// one unit of padding spreads a column over the banks.
func (k *tiledKernel) stride() int { return k.headDim/4 + 1 }

func (k *tiledKernel) sharedBytes() int {
	return 16 * ((k.tileRows+k.tileKV)*k.stride() + k.tileKV*k.tileRows/4)
}

func (k *tiledKernel) key() string {
	return fmt.Sprintf("attention_tiled %s hd=%d tile=%dx%d w=%d%s", k.kv, k.headDim, k.tileRows, k.tileKV, k.wave, k.attentionShape.key())
}

func (k *tiledKernel) kernel(s *site.Signature) func(b *kernel.Builder) {
	r := &tiledRun{tiledKernel: k, attentionArgs: k.declare(s, k.op)}
	y := s.Write("y", k.result)
	return func(b *kernel.Builder) {
		r.b = b
		r.begin(b, k.attentionShape)
		b.Workgroup(k.lanes())
		r.query = b.Shared(lane.F32x4, k.tileRows*k.stride())
		r.cached = b.Shared(lane.F32x4, k.tileKV*k.stride())
		r.weights = b.Shared(lane.F32x4, k.tileKV*k.tileRows/4)

		r.head, r.row = b.WorkgroupID(0), b.Mul(b.WorkgroupID(1), k.tileRows)
		rows := r.attentionArgs.rows
		none, parts := b.Ge(r.row, rows), k.attentionShape.rows
		if parts.Part > 0 {
			none = b.Or(none, parts.Dead(b, r.slot.Load(kernel.U32, r.row)))
		}
		b.ReturnIf(none)
		r.lastRow = b.Sub(rows, 1)
		// Dead rows see what the last live one sees.
		end := b.Add(r.pos.Load(kernel.U32, b.Min(b.Add(r.row, k.tileRows-1), r.lastRow)), 1)
		b.ReturnIf(b.Gt(end, r.ctx)) // beyond the cache

		r.team4, r.member = b.Shr(b.LocalID(), site.Log2(k.team)), b.And(b.LocalID(), k.team-1)
		r.start()
		base := r.cachedHead(b, r.slot.Load(kernel.U32, r.row), b.Div(r.head, r.group))
		begin := b.U32(0)
		if k.attentionShape.window > 0 {
			begin = r.firstIn(b, r.pos.Load(kernel.U32, r.row), k.tileKV)
		}
		b.For(begin, end, k.tileKV, func(from kernel.Value) {
			b.Barrier()
			r.fill(r.k, base, from, end)
			b.Barrier()
			fade := r.score(from)
			b.Barrier()
			r.fill(r.v, base, from, end)
			b.Barrier()
			r.add(fade)
		})
		r.write(y)
	}
}

// tiledRun is the kernel while it is built. Vectors of four hold one element for
// each row of the lane's team.
type tiledRun struct {
	*tiledKernel
	attentionArgs
	b             *kernel.Builder
	head          kernel.Value
	row, lastRow  kernel.Value     // first row of the tile, last row of the step
	team4, member kernel.Value     // the team, and the lane in it
	query         *kernel.Array    // rows of the tile, times scale
	cached        *kernel.Array    // positions of k, later of v
	weights       *kernel.Array    // by position, then team
	limit         kernel.Value     // positions that each row sees
	top, weight   *kernel.Var      // weight is of the lane's own positions only
	sum           [][4]*kernel.Var // by chunk of the lane, then row
}

// start loads the tile of q and clears the sums.
func (r *tiledRun) start() {
	b, quads := r.b, r.headDim/4
	b.For(b.LocalID(), r.tileRows*quads, r.lanes(), func(i kernel.Value) {
		row, quad := b.Div(i, quads), b.Mod(i, quads)
		at := b.Add(b.Mul(b.Min(b.Add(r.row, row), r.lastRow), r.heads), r.head)
		x := r.q.Load(lane.F32x4, b.Add(b.Mul(at, quads), quad))
		r.query.Store(b.Add(b.Mul(row, r.stride()), quad), b.Mul(x, b.Splat(r.scale, 4)))
	})
	limits := make([]kernel.Operand, 4)
	for i := range limits {
		row := b.Add(b.Add(r.row, b.Mul(r.team4, 4)), i)
		at := r.pos.Load(kernel.U32, b.Min(row, r.lastRow))
		limits[i] = b.Select(b.Le(row, r.lastRow), b.Add(at, 1), 0)
	}
	r.limit = b.Vec(limits...)
	zero := b.Splat(b.F32(0), 4)
	r.top, r.weight = b.Var(lane.F32x4, b.Splat(b.F32(emptyScore), 4)), b.Var(lane.F32x4, zero)
	r.sum = make([][4]*kernel.Var, site.CeilDiv(quads, r.team))
	for c := range r.sum {
		for i := range 4 {
			r.sum[c][i] = b.Var(lane.F32x4, zero)
		}
	}
}

// fill puts the positions from `from` on into shared memory; those from end on
// repeat the last.
func (r *tiledRun) fill(cache *kernel.Buffer, base cachedHead, from, end kernel.Value) {
	b, chunks := r.b, r.headDim/chunk
	if r.kept.inPages(r.tileKV) {
		base = r.near(b, base, from)
	}
	b.For(b.LocalID(), r.tileKV*chunks, r.lanes(), func(i kernel.Value) {
		p, c := b.Div(i, chunks), b.Mod(i, chunks)
		at := r.at(b, base, b.Min(b.Add(from, p), b.Sub(end, 1)))
		x := r.unpack(b, r.loadWords(b, r.attentionShape, cache, at, c)).whole(b)
		to := b.Add(b.Mul(p, r.stride()), b.Mul(c, 2))
		r.cached.Store(to, x[0])
		r.cached.Store(b.Add(to, 1), x[1])
	})
}

// score computes the weights of the tile's positions and returns the factor that
// the sums so far must have.
func (r *tiledRun) score(from kernel.Value) kernel.Value {
	b := r.b
	columns := site.CeilDiv(r.tileKV, r.team)
	at := func(c int) kernel.Value { return b.Add(r.member, c*r.team) }
	var dots [][4]*kernel.Var
	for range columns {
		var dot [4]*kernel.Var
		for i := range dot {
			dot[i] = b.Var(lane.F32x4, b.Splat(b.F32(0), 4))
		}
		dots = append(dots, dot)
	}
	b.For(0, r.headDim/4, 1, func(quad kernel.Value) {
		var query [4]kernel.Value
		for i := range query {
			query[i] = r.query.Load(b.Add(b.Mul(b.Add(b.Mul(r.team4, 4), i), r.stride()), quad))
		}
		for c, dot := range dots {
			key := r.cached.Load(b.Add(b.Mul(b.Min(at(c), r.tileKV-1), r.stride()), quad))
			for i, d := range dot {
				d.Set(b.FMA(query[i], key, d.Get()))
			}
		}
	})
	old := r.top.Get()
	top := old
	scores := make([]kernel.Value, columns)
	for c, dot := range dots {
		var s [4]kernel.Operand
		for i, d := range dot {
			s[i] = lane.Sum4(b, d.Get())
		}
		position := b.Splat(b.Add(from, at(c)), 4)
		seen := r.sees(b, b.Lt(position, r.limit), position, r.limit)
		if (c+1)*r.team > r.tileKV {
			seen = b.And(seen, b.Splat(b.Lt(at(c), r.tileKV), 4))
		}
		scores[c] = b.Select(seen, b.Vec(s[:]...), emptyScore)
		top = b.Max(top, scores[c])
	}
	top = lane.Fold(b, top, 1, r.team, func(x, y kernel.Value) kernel.Value { return b.Max(x, y) })
	fade := b.Exp(b.Sub(old, top))
	weight := b.Mul(r.weight.Get(), fade)
	for c := range dots {
		w := b.Exp(b.Sub(scores[c], top)) // 0 if not seen, or faded to 0 when the row sees a position
		weight = b.Add(weight, w)
		store := func() { r.weights.Store(b.Add(b.Mul(at(c), r.tileRows/4), r.team4), w) }
		if (c+1)*r.team > r.tileKV {
			b.If(b.Lt(at(c), r.tileKV), store)
		} else {
			store()
		}
	}
	r.top.Set(top)
	r.weight.Set(weight)
	return fade
}

// add adds the tile of v in shared memory to the faded sums.
func (r *tiledRun) add(fade kernel.Value) {
	b := r.b
	for _, chunk := range r.sum {
		for i, sum := range chunk {
			sum.Set(b.Mul(sum.Get(), b.Splat(b.Elem(fade, i), 4)))
		}
	}
	b.For(0, r.tileKV, 1, func(p kernel.Value) {
		weights := r.weights.Load(b.Add(b.Mul(p, r.tileRows/4), r.team4))
		for c, chunk := range r.sum {
			quad, _ := r.quad(c)
			value := r.cached.Load(b.Add(b.Mul(p, r.stride()), quad))
			for i, sum := range chunk {
				sum.Set(b.FMA(b.Splat(b.Elem(weights, i), 4), value, sum.Get()))
			}
		}
	})
}

// quad returns the four dims that are chunk c of this lane, and whether there are
// any; they are dims of the head in any case.
func (r *tiledRun) quad(c int) (kernel.Value, kernel.Value) {
	b, quads := r.b, r.headDim/4
	q := b.Add(r.member, c*r.team)
	if (c+1)*r.team <= quads {
		return q, b.Bool(true)
	}
	return b.Min(q, quads-1), b.Lt(q, quads)
}

// divisor is the sum of the weights of the team's i-th row.
func (r *tiledRun) divisor(weight kernel.Value, i int) kernel.Value {
	b := r.b
	return withSink(b, r.attentionArgs.sinks, r.head, func() kernel.Value { return b.Elem(r.top.Get(), i) }, b.Elem(weight, i))
}

// write stores the quotients of the rows that this step has.
func (r *tiledRun) write(y *kernel.Buffer) {
	b := r.b
	weight := lane.Fold(b, r.weight.Get(), 1, r.team, func(x, y kernel.Value) kernel.Value { return b.Add(x, y) })
	for i := range 4 {
		row := b.Add(b.Add(r.row, b.Mul(r.team4, 4)), i)
		b.If(b.Le(row, r.lastRow), func() {
			head := b.Add(b.Mul(row, r.heads), r.head)
			to := b.Mul(head, r.headDim/4)
			for c, chunk := range r.sum {
				quad, real := r.quad(c)
				b.If(real, func() {
					gated := r.attentionArgs.gate.load(b, lane.F32x4, head, quad, r.headDim/4)
					y.Store(b.Add(to, quad), gated(b.Div(chunk[i].Get(), b.Splat(r.divisor(weight, i), 4))))
				})
			}
		})
	}
}

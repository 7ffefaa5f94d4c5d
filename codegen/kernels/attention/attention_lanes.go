package attention

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// lanesKernel is the tiled attention of a processor, whose lanes are positions of the cache where
// scores are computed, and dims of the head where values are summed: no product is added up between
// lanes. A workgroup has some rows of q of one head, in pairs.
type lanesKernel struct {
	attentionShape
	op       *ir.Op
	result   *ir.Value
	tileRows int // rows of q in a workgroup, even
}

const (
	lanesKV   = 64 // positions of the cache in shared memory
	lanesWide = 16 // lanes
	lanesPair = 2  // rows at a time
	lanesDims = 4  // see dims
)

func AttentionLanesCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	gate, result := onlyGated(s, op)
	if result == nil {
		return nil
	}
	shape, ok := attentionOf(s, op, gate)
	if !ok || !shape.exact(op) || !inLanes(s, shape) {
		return nil
	}
	k := &lanesKernel{shape, op, result, 32}
	if shape.rows.Max >= 256 {
		k.tileRows = 64
	}
	for k.tileRows > lanesPair && k.sharedBytes() > s.Target.Shared {
		k.tileRows /= 2
	}
	if k.sharedBytes() > s.Target.Shared {
		return nil
	}
	rows, heads := shape.rows.Max, shape.heads
	return []site.Candidate{site.Implement(site.Candidate{
		Kernel: k.key(),
		Grid:   [3]int{heads, site.CeilDiv(rows, k.tileRows), 1},
		Grain:  k.tileRows,
		Cover:  []plans.Cover{{Arg: "y", Dims: []int{rows, heads * k.headDim}, Tile: []int{k.tileRows, k.headDim}, Axis: []int{1, 0}}},
	}, "attention_lanes", k.kernel)}
}

// inLanes reports whether the target is a processor whose lanes the dims of a head fill.
func inLanes(s *site.Site, shape attentionShape) bool {
	return s.Target.Workgroup == lanesWide && s.Target.Wave == lanesWide && shape.headDim%lanesWide == 0
}

func (k *lanesKernel) sharedBytes() int {
	return 4 * (2*k.tileRows*k.headDim + 2*lanesKV*k.headDim + lanesPair*lanesKV + 2*k.tileRows)
}

func (k *lanesKernel) key() string {
	return fmt.Sprintf("attention_lanes %s d=%d%s", k.kv, k.dims(), k.attentionShape.key())
}

// dims is the dims of a head whose sums a lane has at a time.
func (k *lanesKernel) dims() int {
	n := lanesDims
	for k.headDim/lanesWide%n != 0 {
		n /= 2
	}
	return n
}

// lanesRun is the kernel while it is built.
type lanesRun struct {
	*lanesKernel
	attentionArgs
	b            *kernel.Builder
	tile         kernel.Value // rows of a workgroup
	head         kernel.Value
	row, lastRow kernel.Value  // first row of the tile, last row of the step
	query        *kernel.Array // rows of the tile, times scale
	keys         *kernel.Array // by dim, then position
	values       *kernel.Array // by position, then dim
	weights      *kernel.Array // of the rows at hand, by position
	sums         *kernel.Array // by row, then dim
	tops, totals *kernel.Array // by row
}

func (k *lanesKernel) kernel(s *site.Signature) func(b *kernel.Builder) {
	r := &lanesRun{lanesKernel: k, attentionArgs: k.declare(s, k.op)}
	r.headWidth = s.U32("head_dim", k.headDim, 64, "elements of a head")
	r.tile = s.U32("tile", k.tileRows, 32, "rows of q of a workgroup")
	y := s.Write("y", k.result)
	return func(b *kernel.Builder) {
		r.b = b
		r.begin(b, k.attentionShape)
		b.Workgroup(lanesWide)
		f32 := func(n kernel.Operand) *kernel.Array { return b.Shared(kernel.F32, n) }
		tile, keys := b.Mul(r.tile, r.dim()), b.Mul(r.dim(), lanesKV)
		r.query, r.sums, r.keys, r.values = f32(tile), f32(tile), f32(keys), f32(keys)
		r.weights, r.tops, r.totals = f32(lanesPair*lanesKV), f32(r.tile), f32(r.tile)

		r.head, r.row = b.WorkgroupID(0), b.Mul(b.WorkgroupID(1), r.tile)
		rows := r.attentionArgs.rows
		b.ReturnIf(b.Ge(r.row, rows))
		r.lastRow = b.Sub(rows, 1)
		end := b.Add(r.pos.Load(kernel.U32, b.Min(b.Sub(b.Add(r.row, r.tile), 1), r.lastRow)), 1)
		b.ReturnIf(b.Gt(end, r.ctx)) // beyond the cache

		live := b.Min(b.Sub(rows, r.row), r.tile)
		b.For(0, r.tile, 1, r.start)
		base := r.cachedHead(b, r.slot.Load(kernel.U32, r.row), b.Div(r.head, r.group))
		b.For(r.firstIn(b, r.pos.Load(kernel.U32, r.row), lanesKV), end, lanesKV, func(from kernel.Value) {
			b.Barrier()
			r.fill(base, from, end)
			b.Barrier()
			b.For(0, live, lanesPair, func(first kernel.Value) { r.add(first, from) })
		})
		b.Barrier()
		b.For(0, live, 1, func(row kernel.Value) { r.write(row, y) })
	}
}

// dim is the elements of a head.
func (r *lanesRun) dim() kernel.Value { return r.headWidth }

// parts runs body for each part of a head that the lanes have at a time.
func (r *lanesRun) parts(body func(j kernel.Value)) { r.b.For(0, r.b.Div(r.dim(), lanesWide), 1, body) }

// at returns where the lane's dim of part j of a row is in an array of heads.
func (r *lanesRun) at(row kernel.Value, j kernel.Value) kernel.Value {
	return r.b.Add(r.b.Mul(row, r.dim()), r.b.Mul(j, lanesWide), r.b.LocalID())
}

func (r *lanesRun) start(row kernel.Value) {
	b := r.b
	source := b.Add(b.Mul(b.Min(b.Add(r.row, row), r.lastRow), r.heads), r.head)
	r.parts(func(j kernel.Value) {
		r.query.Store(r.at(row, j), b.Mul(r.q.Load(kernel.F32, r.at(source, j)), r.scale))
		r.sums.Store(r.at(row, j), 0.0)
	})
	b.If(b.Eq(b.LocalID(), 0), func() {
		r.tops.Store(row, emptyScore)
		r.totals.Store(row, 0.0)
	})
}

// fill puts the positions from `from` on into shared memory; those from end on repeat the last.
func (r *lanesRun) fill(base cachedHead, from, end kernel.Value) {
	b := r.b
	place := func(p kernel.Value) cachedHead {
		return r.attentionArgs.at(b, base, b.Min(b.Add(from, p), b.Sub(end, 1)))
	}
	for j := 0; j < lanesKV; j += lanesWide {
		p := b.Add(b.LocalID(), j)
		at := place(p)
		b.For(0, b.Div(r.dim(), chunk), 1, func(c kernel.Value) {
			x := r.unpack(b, r.loadWords(b, r.attentionShape, r.k, at, c)).whole(b)
			for e := range chunk {
				r.keys.Store(b.Add(b.Mul(b.Add(b.Mul(c, chunk), e), lanesKV), p), b.Elem(x[e/4], e%4))
			}
		})
	}
	b.For(0, lanesKV, 1, func(p kernel.Value) {
		at := place(p)
		r.parts(func(j kernel.Value) {
			r.values.Store(r.at(p, j), r.element(b, r.attentionShape, r.v, at, j))
		})
	})
}

// add adds the tile's positions to the sums of a pair of rows.
func (r *lanesRun) add(first, from kernel.Value) {
	b := r.b
	const parts = lanesKV / lanesWide
	var dots [lanesPair][parts]*kernel.Var
	for i := range dots {
		for j := range dots[i] {
			dots[i][j] = b.Var(kernel.F32, 0.0)
		}
	}
	b.For(0, r.dim(), 1, func(d kernel.Value) {
		for j := range parts {
			key := r.keys.Load(b.Add(b.Mul(d, lanesKV), j*lanesWide, b.LocalID()))
			for i := range dots {
				q := r.query.Load(b.Add(b.Mul(b.Add(first, i), r.dim()), d))
				dots[i][j].Set(b.FMA(q, key, dots[i][j].Get()))
			}
		}
	})
	var fades [lanesPair]kernel.Value
	for i := range dots {
		fades[i] = r.weigh(b.Add(first, i), i, from, dots[i][:])
	}
	b.Barrier()
	b.For(0, b.Div(r.dim(), lanesWide), r.dims(), func(part kernel.Value) {
		var sums [lanesPair][]*kernel.Var
		for i := range sums {
			for j := range r.dims() {
				sums[i] = append(sums[i], b.Var(kernel.F32, b.Mul(r.sums.Load(r.at(b.Add(first, i), b.Add(part, j))), fades[i])))
			}
		}
		b.For(0, lanesKV, 1, func(p kernel.Value) {
			for j := range r.dims() {
				v := r.values.Load(r.at(p, b.Add(part, j)))
				for i := range sums {
					sums[i][j].Set(b.FMA(r.weights.Load(b.Add(p, i*lanesKV)), v, sums[i][j].Get()))
				}
			}
		})
		for i := range sums {
			for j, s := range sums[i] {
				r.sums.Store(r.at(b.Add(first, i), b.Add(part, j)), s.Get())
			}
		}
	})
	b.Barrier() // the next pair takes the same shared memory
}

// weigh keeps the weights of the tile's positions for a row, the i-th at hand, and returns the factor that its sums
// so far must have.
func (r *lanesRun) weigh(row kernel.Value, i int, from kernel.Value, dots []*kernel.Var) kernel.Value {
	b := r.b
	at := b.Add(r.row, row)
	limit := b.Select(b.Le(at, r.lastRow), b.Add(r.pos.Load(kernel.U32, b.Min(at, r.lastRow)), 1), 0)
	old := r.tops.Load(row)
	scores := make([]kernel.Value, len(dots))
	most := b.F32(emptyScore)
	for j, d := range dots {
		p := b.Add(from, j*lanesWide, b.LocalID())
		scores[j] = b.Select(r.sees(b, b.Lt(p, limit), p, limit), d.Get(), emptyScore)
		most = b.Max(most, scores[j])
	}
	top := b.Max(old, b.SubgroupMax(most))
	fade := b.Exp(b.Sub(old, top))
	sum := b.F32(0)
	for j, s := range scores {
		w := b.Exp(b.Sub(s, top)) // 0 if not seen, or faded to 0 when the row sees a position
		r.weights.Store(b.Add(b.LocalID(), i*lanesKV+j*lanesWide), w)
		sum = b.Add(sum, w)
	}
	total := b.FMA(r.totals.Load(row), fade, b.SubgroupAdd(sum))
	b.SubgroupBarrier() // all have read what follows overwrites
	b.If(b.Eq(b.LocalID(), 0), func() {
		r.tops.Store(row, top)
		r.totals.Store(row, total)
	})
	return fade
}

// write stores the quotients of a row.
func (r *lanesRun) write(row kernel.Value, y *kernel.Buffer) {
	b := r.b
	head := b.Add(b.Mul(b.Add(r.row, row), r.heads), r.head)
	total := withSink(b, r.attentionArgs.sinks, r.head, func() kernel.Value { return r.tops.Load(row) }, r.totals.Load(row))
	r.parts(func(j kernel.Value) {
		gated := r.attentionArgs.gate.load(b, kernel.F32, head, b.Add(b.LocalID(), b.Mul(j, lanesWide)), r.dim())
		y.Store(r.at(head, j), gated(b.Div(r.sums.Load(r.at(row, j)), total)))
	})
}

package attention

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// laneSums are rangeSums of a processor, of 16 positions at a time. Lanes have dims of the head there. Each has a part
// of every score, until the lanes exchange parts, so that each has the score of a position. Blocks of positions begin
// where the range does, so that the order of the sums depends on the row's position alone.
type laneSums struct {
	*splitRun
	base       cachedHead
	queries    *kernel.Array // q of all heads, by dim
	weights    *kernel.Array // by head, then position
	sum        [][]*kernel.Var
	top, total []*kernel.Var // by head, the same in all lanes
}

// laneRegisters is the number of sums that stay in registers, beside all else.
const laneRegisters = 16

// onLanes reports whether lanes have dims of the head.
func (k *splitKernel) onLanes(t *target.Target) bool {
	return t.LaneRows && k.headDim%lanesWide == 0
}

// freshOnLanes reports whether there is a kernel that makes heads, too, where lanes have dims of them: one workgroup
// attends to a row's position, and what lanes make of a head lies in pairs of neighbours.
func (k *splitKernel) freshOnLanes() bool {
	return k.rows.Max == 1 && k.share == k.group && k.kv == ir.F16 && k.chains.vec == 2 && k.chains.inRuns(2)
}

func newLaneSums(of *splitRun) *laneSums {
	r := &laneSums{splitRun: of, base: of.cachedBase()}
	f32 := func(n int) *kernel.Array { return r.b.Shared(kernel.F32, n) }
	r.queries, r.weights = f32(r.share*r.headDim), f32(r.share*lanesWide)
	r.askForResult()
	return r
}

func (r *laneSums) query(h, j, v kernel.Value) {
	b := r.b
	for e, x := range lane.Elements(b, v) {
		r.queries.Store(b.Add(b.Mul(h, r.headDim), b.Mul(j, r.maker.vec), e), b.Mul(x, r.scale))
	}
}

// pairs is query for all lanes' accesses of two neighbours: halves of them lie in a row, and nothing is scattered.
func (r *laneSums) pairs(h, v kernel.Value) {
	b := r.b
	even := b.Eq(b.And(b.LocalID(), 1), 0)
	for half := range 2 {
		from := b.Add(b.Shr(b.LocalID(), 1), half*lanesWide/2)
		x := b.Select(even, b.SubgroupShuffle(b.Elem(v, 0), from), b.SubgroupShuffle(b.Elem(v, 1), from))
		r.queries.Store(r.at(h, 2*r.maker.chunk+half), b.Mul(x, r.scale))
	}
}

// queryAsItIs keeps q of all heads where nothing is done to it before: lanes load what lies in a row, and nothing is
// scattered.
func (r *laneSums) queryAsItIs() {
	b := r.b
	for h := range r.share {
		head := b.Add(b.Mul(r.row, r.heads), r.head, h)
		for j := range r.dims() {
			r.queries.Store(r.at(b.U32(uint32(h)), j), b.Mul(r.chains[0].x.Load(kernel.F32, r.at(head, j)), r.scale))
		}
	}
}

// askForResult asks for the lines of the result, which another thread has read.
func (r *laneSums) askForResult() {
	b := r.b
	first := b.Mul(b.Add(b.Mul(r.row, r.heads), r.head), r.headDim)
	b.For(0, r.share*r.headDim, lanesWide, func(i kernel.Value) { r.y.Prefetch(b.Add(first, i)) })
}

// makeHeads is that of splitRun for the only row of a step, whose position one workgroup of a KV head has: it writes k
// and v.
func (r *laneSums) makeHeads() {
	b, m := r.b, &r.maker
	m.at = r.splitRun.at
	b.For(0, r.share, 1, func(h kernel.Value) {
		m.make(r.chains[0], b.Add(b.Mul(r.row, r.heads), r.head, h), func(_, v kernel.Value) { r.pairs(h, v) })
	})
	b.If(b.Lt(m.at, r.hi), func() {
		kvHeads, kvHead := b.Div(r.heads, r.group), b.Div(r.head, r.group)
		cached := b.Add(b.Mul(r.caches.place(b, r.slot, m.at), kvHeads), kvHead)
		for i, cache := range []*kernel.Buffer{r.k, r.v} {
			m.make(r.chains[i+1], b.Add(b.Mul(r.row, kvHeads), kvHead), func(j, v kernel.Value) {
				cache.Store(b.Add(b.Mul(cached, r.headDim/m.vec), j), packHalves(b, v))
			})
		}
	})
	b.BarrierBuffers()
}

// at returns where the lane's dim of part j of row i is in an array of heads.
func (r *laneSums) at(i kernel.Value, j int) kernel.Value {
	return r.b.Add(r.b.Mul(i, r.headDim), j*lanesWide, r.b.LocalID())
}

// dims are the parts of a head that a lane has a dim of each.
func (r *laneSums) dims() int { return r.headDim / lanesWide }

func (r *laneSums) start() {
	for range r.share {
		var sums []*kernel.Var
		for range r.dims() {
			sums = append(sums, r.b.Var(kernel.F32, 0.0))
		}
		r.sum = append(r.sum, sums)
		r.top, r.total = append(r.top, r.b.Var(kernel.F32, emptyScore)), append(r.total, r.b.Var(kernel.F32, 0.0))
	}
}

func (r *laneSums) attend() {
	b := r.b
	b.For(r.lo, r.hi, lanesWide, func(from kernel.Value) {
		b.For(0, lanesWide, 1, func(p kernel.Value) { r.prefetch(b.Add(from, p, lanesWide)) })
		for h, score := range r.scores(from) {
			r.weigh(h, score, from)
		}
		b.Barrier()
		b.For(0, lanesWide, 1, func(p kernel.Value) {
			for j, v := range r.parts(r.v, b.Add(from, p)) {
				for h, sums := range r.sum {
					sums[j].Set(b.FMA(r.weights.Load(b.Add(p, h*lanesWide)), v, sums[j].Get()))
				}
			}
		})
		b.Barrier()
	})
}

// parts returns the lane's dims of a position; beyond the range, of its last.
func (r *laneSums) parts(cache *kernel.Buffer, p kernel.Value) []kernel.Value {
	b := r.b
	at := r.attentionArgs.at(b, r.base, b.Min(p, b.Sub(r.hi, 1)))
	var list []kernel.Value
	for j := range r.dims() {
		list = append(list, r.element(b, r.attentionShape, cache, at, b.U32(uint32(j))))
	}
	return list
}

// prefetch asks for the lines of a position: heads of others lie before the next one.
func (r *laneSums) prefetch(p kernel.Value) {
	b := r.b
	perChunk := r.chunkWords()
	first := b.Mul(r.attentionArgs.at(b, r.base, p).chunks, perChunk)
	for i := 0; i < r.headDim/chunk*perChunk; i += 64 / 4 {
		r.k.Prefetch(b.Add(first, i))
		r.v.Prefetch(b.Add(first, i))
	}
}

// scores returns, by head, the products of q with the keys of the lanes' positions. A key is loaded once for all heads,
// and what lanes have of two scores becomes one value as soon as both are there.
func (r *laneSums) scores(from kernel.Value) []kernel.Value {
	b := r.b
	joined := make([]lane.Joiner, r.share)
	for p := range lanesWide {
		key := r.parts(r.k, b.Add(from, p))
		for h := range joined {
			var part lane.Partial
			for j, k := range key {
				part.Product(b, r.queries.Load(r.at(b.U32(uint32(h)), j)), k)
			}
			joined[h].Add(b, part.Sum, b.LocalID())
		}
	}
	list := make([]kernel.Value, r.share)
	for h := range joined {
		list[h] = joined[h].Sum()
	}
	return list
}

// weigh keeps the weights of the lanes' positions for a head, and fades its sums so far.
func (r *laneSums) weigh(h int, score, from kernel.Value) {
	b := r.b
	p := b.Add(from, b.LocalID())
	score = b.Select(r.inWindow(b.Lt(p, r.hi), p), score, emptyScore)
	old := r.top[h].Get()
	top := b.Max(old, b.SubgroupMax(score))
	fade, weight := b.Exp(b.Sub(old, top)), b.Exp(b.Sub(score, top))
	r.weights.Store(b.Add(b.LocalID(), h*lanesWide), weight)
	r.top[h].Set(top)
	r.total[h].Set(b.FMA(r.total[h].Get(), fade, b.SubgroupAdd(weight)))
	for _, s := range r.sum[h] {
		s.Set(b.Mul(s.Get(), fade))
	}
}

// finish writes lane by lane: sums of a head lie in a row, so that nothing is scattered.
func (r *laneSums) finish(alone kernel.Value) {
	b := r.b
	for h, sums := range r.sum {
		write := func() { r.write(h, sums, r.top[h], r.total[h].Get()) }
		if r.merge == nil {
			write()
			continue
		}
		b.IfElse(alone, write, func() {
			at := r.scratch(b.U32(uint32(h)), r.split)
			for j, s := range sums {
				r.partial.Store(r.at(at, j), s.Get())
			}
			b.If(b.SubgroupElect(), func() { r.partial.Store(r.tail(at), b.Vec(r.top[h].Get(), r.total[h].Get())) })
		})
	}
}

func (r *laneSums) mergeSplits(active kernel.Value) {
	b := r.b
	b.For(0, r.share, 1, func(h kernel.Value) {
		tail := func(split kernel.Value) kernel.Value { return r.partial.Load(lane.F32x2, r.tail(r.scratch(h, split))) }
		top, total := b.Var(kernel.F32, emptyScore), b.Var(kernel.F32, 0.0)
		b.For(0, active, 1, func(split kernel.Value) { top.Set(b.Max(top.Get(), b.Elem(tail(split), 0))) })
		var sums []*kernel.Var
		for range r.dims() {
			sums = append(sums, b.Var(kernel.F32, 0.0))
		}
		b.For(0, active, 1, func(split kernel.Value) {
			of := tail(split)
			fade := b.Exp(b.Sub(b.Elem(of, 0), top.Get()))
			total.Set(b.FMA(fade, b.Elem(of, 1), total.Get()))
			for j, s := range sums {
				s.Set(b.FMA(fade, r.partial.Load(kernel.F32, r.at(r.scratch(h, split), j)), s.Get()))
			}
		})
		r.write(h, sums, top, total.Get())
	})
}

// write stores the result of a head of the workgroup.
func (r *laneSums) write(h kernel.Operand, sums []*kernel.Var, top *kernel.Var, total kernel.Value) {
	b := r.b
	head := b.Add(r.head, h)
	if sinks := r.attentionArgs.sinks; sinks != nil {
		total = withSink(b, sinks, head, top.Get, total)
	}
	head = b.Add(b.Mul(r.row, r.heads), head)
	for j, s := range sums {
		i := b.Add(b.LocalID(), j*lanesWide)
		gated := r.attentionArgs.gate.load(b, kernel.F32, head, i, r.headDim)
		r.y.Store(b.Add(b.Mul(head, r.headDim), i), gated(b.Div(s.Get(), total)))
	}
}

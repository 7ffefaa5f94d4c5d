package attention

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// laneSums are rangeSums of a processor, of 16 positions at a time, which it puts into shared memory as floats.
// Lanes have dims of the head there; of a score each has a part, until the lanes exchange them so that each
// has the score of a position. Blocks of positions begin where the range does, so that the order of the sums
// depends on the row's position alone.
type laneSums struct {
	*splitRun
	base         cachedHead
	queries      *kernel.Array // q of all heads, by dim
	keys, values *kernel.Array // by position, then dim
	weights      *kernel.Array // by head, then position
	sum          [][]*kernel.Var
	top, total   []*kernel.Var // by head, the same in all lanes
}

// laneRegisters are the sums that stay in registers, with what else is there.
const laneRegisters = 16

// onLanes reports whether lanes have dims of the head: then nothing but attention is part of the group.
func (k *splitKernel) onLanes(t *target.Target) bool {
	return t.Backend == plans.CPU && k.headDim%lanesWide == 0
}

func newLaneSums(of *splitRun) *laneSums {
	r := &laneSums{splitRun: of, base: of.cachedBase()}
	f32 := func(n int) *kernel.Array { return r.b.Shared(kernel.F32, n) }
	r.queries, r.weights = f32(r.share*r.headDim), f32(r.share*lanesWide)
	r.keys, r.values = f32(lanesWide*r.headDim), f32(lanesWide*r.headDim)
	return r
}

func (r *laneSums) query(h, j, v kernel.Value) {
	b := r.b
	for e, x := range lane.Elements(b, v) {
		r.queries.Store(b.Add(b.Mul(h, r.headDim), b.Mul(j, r.maker.vec), e), b.Mul(x, r.scale))
	}
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
		b.For(0, lanesWide, 1, func(p kernel.Value) {
			r.prefetch(b.Add(from, p, lanesWide))
			at := r.attentionArgs.at(b, r.base, b.Min(b.Add(from, p), b.Sub(r.hi, 1)))
			for j := range r.dims() {
				r.keys.Store(r.at(p, j), r.element(b, r.attentionShape, r.k, at, b.U32(uint32(j))))
				r.values.Store(r.at(p, j), r.element(b, r.attentionShape, r.v, at, b.U32(uint32(j))))
			}
		})
		b.Barrier()
		for h := range r.share {
			r.weigh(h, r.score(h), from)
		}
		b.Barrier()
		b.For(0, lanesWide, 1, func(p kernel.Value) {
			for j := range r.dims() {
				v := r.values.Load(r.at(p, j))
				for h, sums := range r.sum {
					sums[j].Set(b.FMA(r.weights.Load(b.Add(p, h*lanesWide)), v, sums[j].Get()))
				}
			}
		})
		b.Barrier()
	})
}

// prefetch asks for the lines of a position: heads of others lie before the next one.
func (r *laneSums) prefetch(p kernel.Value) {
	b := r.b
	perChunk := map[ir.DType]int{ir.F32: 8, ir.F16: 4, ir.Q8_0: 2}[r.kv] // words
	first := b.Mul(r.attentionArgs.at(b, r.base, p).chunks, perChunk)
	for i := 0; i < r.headDim/chunk*perChunk; i += 64 / 4 {
		r.k.Prefetch(b.Add(first, i))
		r.v.Prefetch(b.Add(first, i))
	}
}

// score returns the product of q of a head with the key of the lane's position.
func (r *laneSums) score(h int) kernel.Value {
	b := r.b
	var query, parts []kernel.Value
	for j := range r.dims() {
		query = append(query, r.queries.Load(r.at(b.U32(uint32(h)), j)))
	}
	for p := range lanesWide {
		var part lane.Partial
		for j, q := range query {
			part.Product(b, q, r.keys.Load(r.at(b.U32(uint32(p)), j)))
		}
		parts = append(parts, part.Sum)
	}
	return lane.SumEach(b, parts, b.LocalID(), 1)
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

// apart: no position is.
func (r *laneSums) apart(h, quad kernel.Value) (score, v kernel.Value) { return }

func (r *laneSums) store(to subgroupSums) {
	b := r.b
	for h, sums := range r.sum {
		b.If(b.SubgroupElect(), func() {
			to.tops.Store(h, r.top[h].Get())
			to.weights.Store(h, r.total[h].Get())
		})
		for j, s := range sums {
			dim := b.Add(b.LocalID(), h*r.headDim+j*lanesWide)
			to.sums.StoreElem(b.Shr(dim, 2), b.And(dim, 3), s.Get())
		}
	}
}

package attention

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
)

// spreadSums are sums that subgroups have parts of.
type spreadSums interface {
	// apart returns the score of a position that is not among the sums, if there is one, and
	// four elements of its value; of a head of the workgroup.
	apart(h, quad kernel.Value) (score, v kernel.Value)
	// store puts the sums of all heads into shared memory.
	store(to subgroupSums)
}

// subgroupSums are what subgroups have added up, in shared memory.
type subgroupSums struct {
	sums          *kernel.Array // by subgroup, head, four elements
	tops, weights *kernel.Array // by subgroup, head
}

// mergeSubgroups adds up the sums of all subgroups and writes the split's, or the result if
// the split is alone.
func (r *splitRun) mergeSubgroups(of spreadSums, alone kernel.Value) {
	b, quads := r.b, r.headDim/4
	sums := b.Shared(lane.F32x4, r.subgroups*r.share*quads)
	tops, weights := b.Shared(kernel.F32, r.subgroups*r.share), b.Shared(kernel.F32, r.subgroups*r.share)
	of.store(subgroupSums{sums, tops, weights})
	b.Barrier()
	r.eachQuad(func(h, quad kernel.Value) {
		top := b.Var(kernel.F32, emptyScore)
		b.For(0, r.subgroups, 1, func(s kernel.Value) {
			top.Set(b.Max(top.Get(), tops.Load(b.Add(b.Mul(s, r.share), h))))
		})
		score, v := of.apart(h, quad)
		apart := score != (kernel.Value{})
		if apart {
			top.Set(b.Max(top.Get(), score))
		}
		sum, weight := b.Var(lane.F32x4, b.Splat(b.F32(0), 4)), b.Var(kernel.F32, 0)
		b.For(0, r.subgroups, 1, func(s kernel.Value) {
			at := b.Add(b.Mul(s, r.share), h)
			fade := b.Exp(b.Sub(tops.Load(at), top.Get()))
			weight.Set(b.FMA(weights.Load(at), fade, weight.Get()))
			sum.Set(b.FMA(sums.Load(b.Add(b.Mul(at, quads), quad)), b.Splat(fade, 4), sum.Get()))
		})
		if apart {
			fade := b.Exp(b.Sub(score, top.Get()))
			weight.Set(b.Add(weight.Get(), fade))
			sum.Set(b.FMA(v, b.Splat(fade, 4), sum.Get()))
		}
		if r.merge == nil {
			r.write(h, quad, sum.Get(), top, weight.Get())
			return
		}
		b.IfElse(alone, func() { r.write(h, quad, sum.Get(), top, weight.Get()) }, func() {
			at := r.scratch(h, r.split)
			r.partial.Store(b.Add(b.Mul(at, quads), quad), sum.Get())
			b.If(b.Eq(quad, 0), func() { r.partial.Store(r.tail(at), b.Vec(top.Get(), weight.Get())) })
		})
	})
}

// eachQuad hands the lanes the elements of the workgroup's heads, four at a time.
func (r *splitRun) eachQuad(body func(h, quad kernel.Value)) {
	b, quads := r.b, r.headDim/4
	b.For(b.LocalID(), r.share*quads, r.subgroups*r.wave, func(i kernel.Value) { body(b.Div(i, quads), b.Mod(i, quads)) })
}

// scratch counts the splits of one of the workgroup's heads through all heads and rows.
// In memory the sums of all lie before the pairs of maximum and weight, of which tail
// is the index.
func (r *splitRun) scratch(h, split kernel.Value) kernel.Value {
	b := r.b
	return b.Add(b.Mul(b.Add(b.Mul(r.row, r.heads), r.head, h), r.splits), split)
}

func (r *splitRun) tail(at kernel.Value) kernel.Value {
	b := r.b
	if r.lanes { // one kernel serves entries of all widths
		return b.Add(b.Mul(r.heads, r.splits, b.NumWorkgroups(1), r.headDim/2), at)
	}
	return b.Add(b.Mul(r.heads, r.splits, r.attentionShape.rows.Max*r.headDim/2), at)
}

// mergeAtOnce is the splits whose sums a lane loads at once. Of 16 the code takes longer
// to come to the compute units than the loads that they save.
const mergeAtOnce = 8

// mergeSplits is that of rangeSums.
func (r *splitRun) mergeSplits(active kernel.Value) {
	b := r.b
	r.eachQuad(func(h, quad kernel.Value) {
		top, weight := b.Var(kernel.F32, emptyScore), b.Var(kernel.F32, 0)
		sum := b.Var(lane.F32x4, b.Splat(b.F32(0), 4))
		b.For(0, active, mergeAtOnce, func(first kernel.Value) {
			var tails, sums [mergeAtOnce]kernel.Value // all loads before the first use
			for j := range sums {
				at := r.scratch(h, b.Min(b.Add(first, j), b.Sub(active, 1)))
				tails[j] = r.partial.Load(lane.F32x2, r.tail(at))
				sums[j] = r.partial.Load(lane.F32x4, b.Add(b.Mul(at, r.headDim/4), quad))
			}
			addSplits(b, splitSums{top, weight, sum}, tails[:], sums[:], first, active)
		})
		r.write(h, quad, sum.Get(), top, weight.Get())
	})
}

// write stores elements 4*quad and on of one of the workgroup's heads.
func (r *splitRun) write(h, quad, sum kernel.Value, top *kernel.Var, weight kernel.Value) {
	b := r.b
	if sinks := r.attentionArgs.sinks; sinks != nil {
		weight = withSink(b, sinks, b.Add(r.head, h), top.Get, weight)
	}
	head := b.Add(b.Mul(r.row, r.heads), r.head, h)
	gated := r.attentionArgs.gate.load(b, lane.F32x4, head, quad, r.headDim/4)
	y := gated(b.Div(sum, b.Splat(weight, 4)))
	if r.splitKernel.gate.half {
		y = lane.RoundHalf(b, y)
	}
	r.y.Store(b.Add(b.Mul(head, r.headDim/4), quad), y)
}

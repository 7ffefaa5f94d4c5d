package attention

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

func AttentionMergeCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	gate, result := onlyGated(s, op)
	if result == nil {
		return nil
	}
	rows, ok := site.ExtentOf(s, op.Result)
	if !ok {
		return nil
	}
	headDim, heads := op.Attrs.Int("head_dim"), op.Attrs.Int("heads")
	rows.Part = 0 // what dead rows have merged nobody reads
	k := mergeKernel{op: op, result: result, rows: rows, gate: gate, wave: s.Target.Wave}
	k.size = min(site.CeilDiv(headDim/2, k.wave)*k.wave, s.Target.Workgroup/k.wave*k.wave)
	if len(op.Args) > 1 {
		k.sinks = op.Args[1]
	}
	return []site.Candidate{site.Implement(site.Candidate{
		Kernel: k.key(),
		Grid:   [3]int{heads, rows.Max, 1},
		Cover:  []plans.Cover{{Arg: "y", Dims: []int{rows.Max, heads * headDim}, Tile: []int{1, headDim}, Axis: []int{1, 0}}},
	}, "attention_merge", k.kernel)}
}

// mergeAhead is the splits whose sums a lane loads at once: all that there are at
// maxSplits of package codegen, for the loads are most of the time.
const mergeAhead = 32

type mergeKernel struct {
	op     *ir.Op
	result *ir.Value // op's, or what becomes of it
	rows   site.Extent
	gate   headGate
	sinks  *ir.Value
	wave   int
	size   int // lanes of a workgroup
}

func (k mergeKernel) key() string {
	return fmt.Sprintf("attention_merge w=%d%s", k.wave, attentionShape{rows: k.rows, gate: k.gate, sinks: k.sinks}.key())
}

func (k mergeKernel) kernel(s *site.Signature) func(b *kernel.Builder) {
	extent, gate, partial, sinks := k.rows.Declare(s), k.gate.declare(s), s.Read("partial", k.op.Args[0]), declareSinks(s, k.sinks)
	y := s.Write("y", k.result)
	headDim := s.U32("head_dim", k.op.Attrs.Int("head_dim"), 128, "elements of a head")
	splits := s.U32("splits", k.op.Attrs.Int("splits"), 1, "workgroups that share the positions")
	size := s.U32("workgroup", k.size, k.wave, "lanes")
	return func(b *kernel.Builder) {
		rows := extent.Load(b)
		b.Workgroup(size)

		row := b.WorkgroupID(1)
		head := b.Add(b.Mul(row, b.NumWorkgroups(0)), b.WorkgroupID(0))
		pairs := b.Div(b.Add(headDim, 2), 2) // of a split; the last has maximum and weight
		from := b.Mul(head, splits, pairs)
		b.For(b.LocalID(), b.Div(headDim, 2), size, func(i kernel.Value) {
			gated := gate.load(b, lane.F32x2, head, i, b.Div(headDim, 2))
			top, weight := b.Var(kernel.F32, emptyScore), b.Var(kernel.F32, 0)
			sum := b.Var(lane.F32x2, 0.0)
			b.For(0, splits, mergeAhead, func(first kernel.Value) {
				var sums, tails [mergeAhead]kernel.Value // all loads before the first use
				for j := range sums {
					s := b.Add(from, b.Mul(b.Min(b.Add(first, j), b.Sub(splits, 1)), pairs))
					sums[j] = partial.Load(lane.F32x2, b.Add(s, i))
					tails[j] = partial.Load(lane.F32x2, b.Add(s, b.Div(headDim, 2)))
				}
				addSplits(b, splitSums{top, weight, sum}, tails[:], sums[:], first, splits)
			})
			b.If(b.Lt(row, rows), func() {
				divisor := weight.Get
				if sinks != nil {
					divisor = func() kernel.Value { return withSink(b, sinks, b.WorkgroupID(0), top.Get, weight.Get()) }
				}
				v := gated(b.Div(sum.Get(), b.Splat(divisor(), 2)))
				if k.gate.half {
					v = b.PackHalf(b.Clamp(v, -65504.0, 65504.0))
				}
				y.Store(b.Add(b.Mul(head, b.Div(headDim, 2)), i), v)
			})
		})
	}
}

// splitSums are what splits of a head add up to: the largest score, the weights
// relative to it, and a vector of the values so weighted.
type splitSums struct{ top, weight, sum *kernel.Var }

// addSplits adds splits from first on, in their order; those from end on weigh nothing.
// tails are pairs of a split's largest score and weight.
func addSplits(b *kernel.Builder, to splitSums, tails, sums []kernel.Value, first, end kernel.Value) {
	most := to.top.Get()
	for _, t := range tails {
		most = b.Max(most, b.Elem(t, 0))
	}
	fade, lanes := b.Exp(b.Sub(to.top.Get(), most)), sums[0].Type().Lanes()
	to.top.Set(most)
	w, v := b.Mul(to.weight.Get(), fade), b.Mul(to.sum.Get(), b.Splat(fade, lanes))
	for j, t := range tails {
		fade := b.Select(b.Lt(b.Add(first, j), end), b.Exp(b.Sub(b.Elem(t, 0), most)), 0)
		w = b.FMA(fade, b.Elem(t, 1), w)
		v = b.FMA(b.Splat(fade, lanes), sums[j], v)
	}
	to.weight.Set(w)
	to.sum.Set(v)
}

package matmul

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// expertWeigh computes a group of the form
//
//	route expert_sum [gate_rows] [add]...
//
// of an exact step: what expert_down does behind its products, which other dispatches made here, with its bits.
type expertWeigh struct {
	*expertSum
	route *ir.Op
	rows  site.Extent
	width int
	wave  int
}

// weighLanes is the lanes of a workgroup.
const weighLanes = 128

func ExpertWeighCandidates(s *site.Site, route *ir.Op) []site.Candidate {
	k := &expertWeigh{route: route, wave: s.Target.Wave}
	rest := *s.Group
	rest.Ops = slices.DeleteFunc(slices.Clone(rest.Ops), func(op *ir.Op) bool { return op == route })
	inner := *s
	inner.Group = &rest
	k.expertSum = matchExpertSum(&inner)
	if k.expertSum == nil || k.x == nil || k.weights != k.route.Result || s.Func.Class != ir.ExactStep ||
		s.Target.Workgroup < weighLanes || weighLanes%k.wave != 0 {
		return nil
	}
	var ok bool
	if k.rows, ok = site.ExtentOf(s, k.result); !ok {
		return nil
	}
	if k.width = int(k.result.Type.Last()); k.width%4 != 0 {
		return nil
	}
	tile := 4 * weighLanes
	return []site.Candidate{site.Implement(site.Candidate{
		Kernel: fmt.Sprintf("expert_weigh %s + %s of %d w=%d%s", k.key(), gatingOf(k.route).key(), k.route.Args[0].Type.Last(), k.wave, k.rows.Key()),
		Early:  true,
		Grid:   [3]int{site.CeilDiv(k.width, tile), k.rows.Max, 1},
		Cover:  []plans.Cover{{Arg: "y", Dims: []int{k.rows.Max, k.width}, Tile: []int{1, tile}, Axis: []int{1, 0}}},
	}, "expert_weigh", k.kernel)}
}

func (k *expertWeigh) kernel(s *site.Signature) func(b *kernel.Builder) {
	extent, x := k.rows.Declare(s), s.Read("x", k.x)
	of := routeArgs{op: k.route, scores: s.Read("scores", k.route.Args[0]), ids: s.Read("ids", k.route.Args[1])}
	if len(k.route.Args) > 2 {
		of.scales = s.Read("scales", k.route.Args[2])
	}
	var gate *kernel.Buffer
	terms := make([]*kernel.Buffer, len(k.terms))
	for i, t := range k.terms {
		if k.isGated(t) {
			terms[i], gate = s.Read("gated", k.gated.Args[0]), s.Read("gate", k.gated.Args[1])
		} else {
			terms[i] = s.Read(fmt.Sprint("add", i), t)
		}
	}
	y, width := s.Write("y", k.result), s.U32("width", k.width, 2048, "elements of a row of the result")
	return func(b *kernel.Builder) {
		b.Workgroup(weighLanes)
		rows, row := extent.Load(b), b.WorkgroupID(1)
		b.ReturnIf(b.Ge(row, rows)) // others have no ids
		n := b.Div(width, 4)        // vec4 of a row
		i := b.Add(b.Mul(b.WorkgroupID(0), weighLanes), b.LocalID())
		own := b.Min(i, b.Sub(n, 1))
		at := b.Add(b.Mul(row, n), own)
		// What the two dispatches before do not make comes before the products, for which it may have to wait, and what
		// the shared expert has behind them.
		weights := of.weights(b, row, k.slots, k.wave)
		var products, added []kernel.Value
		for j, t := range k.terms {
			if k.isGated(t) {
				added = append(added, gate.Load(kernel.F32, row))
			} else {
				added = append(added, terms[j].Load(lane.F32x4, at))
			}
		}
		for slot := range k.slots {
			products = append(products, x.Load(lane.F32x4, b.Add(b.Mul(b.Add(b.Mul(row, k.slots), slot), n), own)))
		}
		for j, t := range k.terms {
			if !k.isGated(t) {
				continue
			}
			var list []kernel.Operand
			for _, e := range lane.Elements(b, terms[j].Load(lane.F32x4, at)) {
				list = append(list, lane.Logistic(b, e, added[j]))
			}
			added[j] = b.Vec(list...)
		}
		var sum kernel.Value
		for slot, p := range products {
			p = b.Add(p, b.Splat(b.F32(0), 4)) // no zero of expert_down is negative
			if w := b.Splat(weights[slot], 4); slot == 0 {
				sum = b.Mul(w, p)
			} else {
				sum = b.FMA(w, p, sum)
			}
		}
		for _, v := range added {
			sum = b.Add(sum, v)
		}
		b.If(b.Lt(i, n), func() { y.Store(at, sum) })
	}
}

// routeArgs are the arguments of op route.
type routeArgs struct {
	op                  *ir.Op
	scores, ids, scales *kernel.Buffer // scales may be nil
}

// weights returns the weights of a row's slots, in all lanes.
func (r routeArgs) weights(b *kernel.Builder, row kernel.Value, slots, wave int) []kernel.Value {
	g, experts, first := gatingOf(r.op), int(r.op.Args[0].Type.Last()), b.Mul(row, slots)
	list := make([]kernel.Value, slots)
	var scales []kernel.Value
	for i := range list {
		id := r.ids.Load(kernel.U32, b.Add(first, i))
		list[i] = r.scores.Load(kernel.F32, b.Add(b.Mul(row, experts), id))
		if r.scales != nil {
			scales = append(scales, r.scales.Load(kernel.F32, id))
		}
	}
	var all *scoreRow
	if g.all() {
		all = loadScores(b, r.scores, row, experts, wave)
	}
	return scaledBy(b, g.weights(b, all, list), scales)
}

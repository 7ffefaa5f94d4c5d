package matmul

import (
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// routerLanes is topk or route on a processor: one subgroup a row, which goes over the scores, so that one kernel
// serves all numbers of experts. For route, each lane has a slot.
type routerLanes struct {
	op     *ir.Op
	gating gating // of route, or of what the choice adds a bias to
	rows   site.Extent
}

func RouterLanesCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	k := routerLanes{op: op}
	if k.route() && int(op.Result.Type.Last()) > laneRows {
		return nil
	}
	if k.op.Attrs.Int("groups") > 0 {
		return nil
	}
	var ok bool
	if k.rows, ok = site.ExtentOf(s, k.op.Result); !ok {
		return nil
	}
	if k.route() {
		k.gating = gatingOf(k.op)
	} else if len(k.op.Args) > 1 {
		k.gating = gating{kind: k.op.Attrs.Str("gating"), scale: 1}
	}
	slots := int(k.op.Result.Type.Last())
	return []site.Candidate{site.Implement(site.Candidate{
		Kernel: fmt.Sprintf("router_lanes %s %s%s", k.op.Kind.Name, k.key(), k.rows.Key()),
		Grid:   [3]int{k.rows.Max, 1, 1},
		Cover:  []plans.Cover{{Arg: "y", Dims: []int{k.rows.Max, slots}, Tile: []int{1, slots}, Axis: []int{0, -1}}},
	}, "router_lanes", k.declare)}
}

func (k routerLanes) route() bool { return k.op.Kind.Name == "route" }

func (k routerLanes) key() string {
	key := k.gating.kind
	if k.gating.each {
		key += "*each"
	}
	return key
}

func (k routerLanes) declare(s *site.Signature) func(b *kernel.Builder) {
	extent, args := k.rows.Declare(s), s.ReadArgs(k.op)
	y := s.Write("y", k.op.Result)
	experts := s.U32("experts", int(k.op.Args[0].Type.Last()), 64, "scores of a row")
	slots := s.U32("slots", int(k.op.Result.Type.Last()), 8, "experts of a row")
	norm, scale := kernel.Value{}, kernel.Value{}
	if k.route() {
		n := 0
		if k.gating.norm {
			n = 1
		}
		norm, scale = s.U32("norm", n, 0, "1: weights have the sum 1"), s.F32("scale", float64(k.gating.scale), 1, "factor of the weights")
	}
	return func(b *kernel.Builder) {
		rows := extent.Load(b)
		b.Workgroup(laneRows)
		row := b.WorkgroupID(0)
		b.ReturnIf(b.Ge(row, rows))
		scores := rowScores{b: b, buf: args[0], first: b.Mul(row, experts), experts: experts}
		first := b.Mul(row, slots)
		if !k.route() {
			var bias *kernel.Buffer
			if len(args) > 1 {
				bias = args[1]
			}
			k.choose(scores, bias, slots, func(i, index kernel.Value) { y.Store(b.Add(first, i), index) })
			return
		}
		slot := b.Min(b.LocalID(), b.Sub(slots, 1))
		exists := b.Lt(b.LocalID(), slots)
		id := args[1].Load(kernel.U32, b.Add(first, slot))
		w := k.weight(scores, scores.at(id), exists)
		b.If(b.Ne(norm, 0), func() {
			w.Set(b.Div(w.Get(), b.Max(b.SubgroupAdd(b.Select(exists, w.Get(), 0)), minWeights)))
		})
		w.Set(b.Mul(w.Get(), scale))
		if k.gating.each {
			w.Set(b.Mul(w.Get(), args[2].Load(kernel.F32, id)))
		}
		b.If(exists, func() { y.Store(b.Add(first, slot), w.Get()) })
	}
}

// weight returns the weight of a score of each lane, which counts where it exists.
func (k routerLanes) weight(r rowScores, score, exists kernel.Value) *kernel.Var {
	b := r.b
	switch k.gating.kind {
	case "softmax":
		top, sum := r.softmax()
		return b.Var(kernel.F32, b.Div(b.Exp(b.Sub(score, top)), sum))
	case "topk_softmax":
		top := b.SubgroupMax(b.Select(exists, score, float32(math.Inf(-1))))
		w := b.Exp(b.Sub(score, top))
		return b.Var(kernel.F32, b.Div(w, b.SubgroupAdd(b.Select(exists, w, 0))))
	}
	return b.Var(kernel.F32, lane.Logistic(b, b.F32(1), score))
}

// choose calls body with the ranks and indices of the largest scores, of equal ones the first.
func (k routerLanes) choose(r rowScores, bias *kernel.Buffer, slots kernel.Value, body func(i, index kernel.Value)) {
	b := r.b
	keys := b.Shared(kernel.U32, r.experts) // those that are taken are 0
	p := func(i, x kernel.Value) kernel.Value { return x }
	if bias != nil {
		all := func(x kernel.Value) kernel.Value { return lane.Logistic(b, b.F32(1), x) }
		if k.gating.all() {
			top, sum := r.softmax()
			all = func(x kernel.Value) kernel.Value { return b.Div(b.Exp(b.Sub(x, top)), sum) }
		}
		p = func(i, x kernel.Value) kernel.Value { return b.Add(all(x), bias.Load(kernel.F32, i)) }
	}
	r.each(func(i kernel.Value) { keys.Store(i, orderedBits(b, p(i, r.at(i)))) })
	b.For(0, slots, 1, func(rank kernel.Value) {
		top, at := b.Var(kernel.U32, 0), b.Var(kernel.U32, 0)
		r.each(func(i kernel.Value) {
			key := keys.Load(i)
			b.If(b.Gt(key, top.Get()), func() {
				top.Set(key)
				at.Set(i)
			})
		})
		most := b.SubgroupMax(top.Get())
		index := b.SubgroupMin(b.Select(b.Eq(top.Get(), most), at.Get(), math.MaxInt32))
		b.If(b.Eq(b.LocalID(), b.Mod(index, laneRows)), func() { // whose score it is
			keys.Store(index, b.U32(0))
			body(rank, index)
		})
	})
}

// rowScores is a row of a router's scores in memory.
type rowScores struct {
	b              *kernel.Builder
	buf            *kernel.Buffer
	first, experts kernel.Value
}

func (r rowScores) at(i kernel.Value) kernel.Value {
	return r.buf.Load(kernel.F32, r.b.Add(r.first, i))
}

// each calls body with the indices of the lane's scores.
func (r rowScores) each(body func(i kernel.Value)) {
	r.b.For(r.b.LocalID(), r.experts, laneRows, body)
}

// softmax returns the largest score, and the sum of the exponentials of all relative to it.
func (r rowScores) softmax() (top, sum kernel.Value) {
	b := r.b
	most, all := b.Var(kernel.F32, float32(math.Inf(-1))), b.Var(kernel.F32, 0.0)
	r.each(func(i kernel.Value) { most.Set(b.Max(most.Get(), r.at(i))) })
	top = b.SubgroupMax(most.Get())
	r.each(func(i kernel.Value) { all.Set(b.Add(all.Get(), b.Exp(b.Sub(r.at(i), top)))) })
	return top, b.SubgroupAdd(all.Get())
}

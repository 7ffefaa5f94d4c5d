package passes

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// turnWork is the least work of the larger one of two projections that take turns, in products of all rows: 4 rows of
// the 27B have 3.4e8 and gain 1.3 %, 8 of the 35B have 2.0e8 and gain 2 %.
const turnWork = 1 << 27

// behindFloats is the least rows of a step in which a projection with float32 weights comes behind a larger one, and
// behindExperts the least in which any comes behind one of experts. There it takes longer than the end of one more
// dispatch does (docs/lab/hybrids.md).
const (
	behindFloats  = 8
	behindExperts = 32
)

// inTurn gives two groups that share a stage a stage each, where they are projections that take turns. Side by side
// they begin when all before has ended, and what follows begins when both have. In turn each begins while the one
// before it runs, and the smaller one has the units while weights come for the larger one (docs/lab/hybrids.md). In
// steps of more rows the larger one leaves no registers: then the smaller one comes second and gets units that end
// first.
func inTurn(f *ir.Func) {
	besideProducts(f)
	added := 0
	for i := 0; i < len(f.Groups); {
		n := 1
		for i+n < len(f.Groups) && f.Groups[i+n].Stage == f.Groups[i].Stage {
			n++
		}
		step := f.Groups[i : i+n]
		for _, g := range step {
			g.Stage += added
		}
		if n == 2 {
			if second := takesTurns(f, step[0], step[1]); second != nil {
				if second == step[0] {
					step[0], step[1] = step[1], step[0]
				}
				second.Stage++
				added++
			}
		}
		i += n
	}
}

// besideProducts moves projections that would share a stage with what packs x for others, such as those in float32 of
// the same x, to the stage of these, which are larger.
func besideProducts(f *ir.Func) {
	next := make([]int, len(f.Groups)) // first stage of those that depend on a group
	for i, list := range dependencies(f) {
		for _, j := range list {
			if next[j] == 0 {
				next[j] = f.Groups[i].Stage
			}
			next[j] = min(next[j], f.Groups[i].Stage)
		}
	}
	packs := map[int]bool{} // stages
	for _, g := range f.Groups {
		if g.Ops[0].Kind.Name == "pack12" {
			packs[g.Stage] = true
		}
	}
	for i, g := range f.Groups {
		if products, _ := projected(f, g); packs[g.Stage] && products > 0 && next[i] > g.Stage+1 {
			g.Stage++
		}
	}
	byStage(f)
}

// takesTurns returns which of two groups comes second, the larger one in steps of few rows. Those take turns of which
// one has much work with weights of a few bits and the other float32 weights (see apartRows), or one has experts, in
// steps of more rows than a sequence has; of others it is nil.
func takesTurns(f *ir.Func, a, b *ir.Group) *ir.Group {
	for _, two := range [][2]*ir.Group{{a, b}, {b, a}} {
		small, large := two[0], two[1]
		if hasExperts(large) && !hasExperts(small) && f.Rows > f.Run {
			if products, _ := projected(f, small); products > 0 {
				if f.Rows >= behindExperts {
					return small
				}
				return large
			}
		}
		if _, precise := projected(f, small); precise {
			if work, other := projected(f, large); !other && work >= turnWork {
				if f.Rows >= behindFloats {
					return small
				}
				return large
			}
		}
	}
	return nil
}

// hasExperts reports whether a group projects by experts.
func hasExperts(g *ir.Group) bool {
	return slices.ContainsFunc(g.Ops, func(op *ir.Op) bool { return op.Kind.Name == "expert_linear" })
}

// projected returns the products of a group's linear ops, and whether it has some, all with float32 weights.
func projected(f *ir.Func, g *ir.Group) (products int64, precise bool) {
	precise = true
	for _, op := range g.Ops {
		if op.Kind.Name == "linear" || op.Kind.Name == "linear_parts" {
			w := op.Args[1].Type
			precise = precise && w.DType == ir.F32
			products += int64(rowsOf(f, op.Result)) * int64(w.Shape[0]) * int64(w.Last())
		}
	}
	return products, precise && products > 0
}

package attention

import (
	"math"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

// A lane has, of 16 rows of scores and sums, pairs of neighbours of its row and of that 8 below; four neighbouring
// lanes have a row.

// weigh turns the scores of the positions from `from` on into weights, where they are. It reports whether the sums from
// before must fade: where a score exceeds by too much what the weights of its row are relative to. Where copies are one
// tile ahead, it waits on the way for what the lane has begun to copy: that came while the scores were computed.
func (r *wgmmaAttentionRun) weigh(from kernel.Value) (changed kernel.Value) {
	b := r.b
	b.If(r.masked(from, b.Add(from, r.tileKV), r.firstOfAll), func() { r.mask(from) })
	over := b.Bool(false)
	var most [2]kernel.Value
	for i, row := range r.ofRow {
		for _, s := range r.scores {
			for e := 2 * i; e < 2*i+2; e++ {
				if most[i] == (kernel.Value{}) {
					most[i] = s.Elem(e)
				} else {
					most[i] = b.Max(most[i], s.Elem(e))
				}
			}
		}
		if r.partial {
			row.largest.Set(b.Max(row.largest.Get(), most[i]))
		}
		over = b.Or(over, b.Gt(b.FMA(most[i], r.factor, b.Neg(row.top.Get())), growth))
	}
	changed = b.SubgroupAny(over)
	if r.ahead == 1 {
		r.arrived()
	}
	b.If(changed, func() {
		for i, row := range r.ofRow {
			old := row.top.Get()
			top := b.Max(old, b.Mul(r.overRow(largestOf, most[i]), r.factor))
			fade := b.Exp2(b.Sub(old, top))
			row.top.Set(top)
			row.fade.Set(fade)
			row.weight.Set(b.Mul(row.weight.Get(), fade))
		}
	})
	for i, row := range r.ofRow {
		under, sum := b.Neg(row.top.Get()), row.weight.Get()
		for _, s := range r.scores {
			for e := 2 * i; e < 2*i+2; e++ {
				w := b.Exp2(b.FMA(s.Elem(e), r.factor, under))
				s.SetElem(e, w)
				sum = b.Add(sum, w)
			}
		}
		row.weight.Set(sum)
	}
	return changed
}

// mask makes the scores of positions that rows do not see -Inf.
func (r *wgmmaAttentionRun) mask(from kernel.Value) {
	b := r.b
	for c, s := range r.scores {
		for e := range 4 {
			p, limit := b.Add(from, r.pair, c*sumSide+e%2), r.ofRow[e/2].limit
			s.SetElem(e, b.Select(r.sees(b, b.Lt(p, limit), p, limit), s.Elem(e), math.Inf(-1)))
		}
	}
}

// keep makes the weights those that are multiplied with the next values.
func (r *wgmmaAttentionRun) keep() {
	b := r.b
	for i, w := range r.weights {
		var words []kernel.Operand
		for row := range 2 {
			for _, s := range r.scores[2*i : 2*i+2] {
				words = append(words, b.PackHalf(b.Vec(s.Elem(2*row), s.Elem(2*row+1))))
			}
		}
		w.Set(b.MatPairs(wgmmaWeight, words...))
	}
}

// overRow folds a number over the lanes that have a row.
func (r *wgmmaAttentionRun) overRow(f folding, x kernel.Value) kernel.Value {
	b := r.b
	for apart := 1; apart < 4; apart *= 2 {
		x = f(b, x, b.SubgroupShuffleXor(x, apart))
	}
	return x
}

// write stores the quotients of the rows that this step has, or what a split has. Two neighbouring lanes hold two dims
// each of two times four; they exchange them, so that each has four.
func (r *wgmmaAttentionRun) write() {
	b := r.b
	odd := b.Eq(b.Mod(b.SubgroupLane(), 2), 1)
	for i := range r.ofRow {
		inTile := b.Add(r.own, 8*i)
		number := b.Splat(r.finish(i, inTile), 4)
		quad := b.Add(b.Div(r.pair, 4), b.Select(odd, b.U32(sumSide/4), b.U32(0)))
		for d := 0; d < len(r.sums); d += 2 {
			var own, other [2]kernel.Value
			for e := range own {
				left, right := r.sums[d].Elem(2*i+e), r.sums[d+1].Elem(2*i+e)
				own[e] = b.Select(odd, right, left)
				other[e] = b.SubgroupShuffleXor(b.Select(odd, left, right), 1)
			}
			var four [4]kernel.Operand
			for e := range 2 {
				four[e], four[2+e] = b.Select(odd, other[e], own[e]), b.Select(odd, own[e], other[e])
			}
			v := b.Vec(four[:]...)
			if r.tile != nil {
				r.stage(inTile, quad, d, v, number)
			} else {
				r.place(inTile, func(head kernel.Value) { r.writeQuad(head, b.Add(quad, d*sumSide/4), v, number) })
			}
		}
	}
	if r.tile != nil {
		r.writeTiles()
	}
}

// finish sums up the weights of one of the lane's rows, and returns the factor of its sums: over the weights or, of a
// split, to what the largest score is, which is stored with the weights.
func (r *wgmmaAttentionRun) finish(i int, inTile kernel.Value) kernel.Value {
	b, row := r.b, r.ofRow[i]
	weight := row.weight.Get()
	if r.merge == nil {
		weight = r.overRow(sumOf, weight)
	}
	if sinks := r.promptRun.sinks; sinks != nil {
		head := b.Add(r.head, b.Mod(inTile, r.fold))
		weight = withSink(b, sinks, head, func() kernel.Value { return b.Mul(row.top.Get(), math.Ln2) }, weight)
	}
	if !r.partial {
		return b.Div(1.0, weight)
	}
	largest := b.Mul(r.overRow(largestOf, row.largest.Get()), r.factor)
	seen := b.Gt(weight, 0)
	number := b.Select(seen, b.Exp2(b.Sub(row.top.Get(), largest)), 0)
	b.If(b.Eq(r.pair, 0), func() {
		r.place(inTile, func(head kernel.Value) {
			top := b.Select(seen, b.Mul(largest, math.Ln2), emptyScore)
			r.y.Store(b.Add(r.pairs(head), r.headDim/2), b.Vec(top, b.Mul(weight, number)))
		})
	})
	return number
}

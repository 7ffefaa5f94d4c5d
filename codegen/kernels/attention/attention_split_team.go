package attention

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
)

// teamSums are rangeSums in teams of lanes. A lane's sums are those of its chunks over the
// positions of its team.
type teamSums struct {
	*splitRun
	member       kernel.Value  // the lane in its team
	queries      *kernel.Array // q of all heads
	scores       teamScores
	base         cachedHead
	first        kernel.Value        // of the team in a round
	keys, values [][][]*kernel.Var   // by position, part: what is loaded, not unpacked
	ofQuery      [][][2]kernel.Value // by head, part
	sum          [][][2]*kernel.Var  // by head, part
	top, weight  *kernel.Var         // of the lane's head: see teamScores
	firstFresh   kernel.Value        // of the rows of this row's sequence the first position
}

// part returns the chunk of a head that is part p of this lane, and whether
// there is one; the chunk is one of the head's in any case.
func (r *teamSums) part(p int) (kernel.Value, kernel.Value) {
	b, chunks := r.b, r.headDim/chunk
	c := b.Add(r.member, p*r.team)
	if (p+1)*r.team <= chunks {
		return c, b.Bool(true)
	}
	return b.Min(c, chunks-1), b.Lt(c, chunks)
}

func newTeamSums(of *splitRun, laneID kernel.Value) *teamSums {
	r := &teamSums{splitRun: of, member: of.b.And(laneID, of.team-1)}
	b := r.b
	r.base = r.cachedBase()
	r.first = b.Add(b.Mul(b.SubgroupID(), splitAhead*r.teams()), b.Shr(laneID, site.Log2(r.team)))
	for j := range splitAhead {
		row := r.cachedRow(r.lo, j)
		r.keys = append(r.keys, lane.Vars(b, r.cached(r.k, row)))
		r.values = append(r.values, lane.Vars(b, r.cached(r.v, row)))
	}
	r.startScores(laneID)
	r.queries = b.Shared(kernel.F32.Vec(r.maker.vec), r.share*r.headDim/r.maker.vec)
	return r
}

func (r *teamSums) query(h, j, v kernel.Value) {
	b, vec := r.b, r.maker.vec
	r.queries.Store(b.Add(b.Mul(h, r.headDim/vec), j), b.Mul(v, b.Splat(r.scale, vec)))
}

// eachFresh emits body for the rows of the step that are of this row's sequence.
func (r *teamSums) eachFresh(body func(i, pos kernel.Value)) {
	b := r.b
	if r.attentionShape.rows.Max == 1 { // without a loop, which would wait for all loads
		body(b.U32(0), r.at)
		return
	}
	from, to := kernel.Value{}, r.attentionArgs.rows
	from = b.U32(0)
	if r.attentionShape.rows.Tiled() {
		from, to = r.runFrom, b.Min(to, b.Add(r.row, 1))
	}
	b.For(from, to, 1, func(i kernel.Value) {
		pos, slot := r.pos.Load(kernel.U32, i), r.attentionArgs.slot.Load(kernel.U32, i)
		b.If(b.Eq(slot, r.slot), func() { body(i, pos) })
	})
}

// findFresh finds out from which position on rows of the step may be attended to.
func (r *teamSums) findFresh() {
	first := r.b.Var(kernel.U32, r.at)
	r.eachFresh(func(_, pos kernel.Value) { first.Set(r.b.Min(first.Get(), pos)) })
	r.firstFresh = first.Get()
}

// teams is the number of teams of a subgroup, round the number of positions that a workgroup loads at once.
func (r *teamSums) teams() int { return r.wave / r.team }

func (r *teamSums) round() int { return r.subgroups * splitAhead * r.teams() }

// position returns the j-th position that the team takes in the round from position
// `from` on, and cachedRow where it is in the caches; past the end it is the last.
func (r *teamSums) position(from kernel.Value, j int) kernel.Value {
	return r.b.Add(from, r.first, j*r.teams())
}

func (r *teamSums) cachedRow(from kernel.Value, j int) cachedHead {
	b := r.b
	return r.attentionArgs.at(b, r.base, b.Min(r.position(from, j), b.Sub(r.hi, 1)))
}

// cached returns the words of the lane's chunks of a cached row, which may be being written:
// takeFresh replaces those, and past the end weights are 0.
func (r *teamSums) cached(cache *kernel.Buffer, row cachedHead) [][]kernel.Value {
	out := make([][]kernel.Value, r.parts)
	for p := range out {
		c, _ := r.part(p)
		out[p] = r.loadWords(r.b, r.attentionShape, cache.Ahead(), row, c)
	}
	return out
}

// start clears the sums, too, and finds out where positions are of rows of the step. Lanes without a chunk hold zeros,
// which add nothing to a score.
func (r *teamSums) start() {
	b := r.b
	if r.fresh() {
		r.findFresh()
	}
	r.ofQuery, r.sum = make([][][2]kernel.Value, r.share), make([][][2]*kernel.Var, r.share)
	r.top, r.weight = b.Var(kernel.F32, emptyScore), b.Var(kernel.F32, 0)
	for h := range r.share {
		r.ofQuery[h], r.sum[h] = make([][2]kernel.Value, r.parts), make([][2]*kernel.Var, r.parts)
		for p := range r.parts {
			c, real := r.part(p)
			factor := b.Splat(b.Select(real, 1.0, b.F32(0)), 4)
			words := sharedWords(b, r.queries, b.Add(b.Mul(c, chunk/r.maker.vec), h*r.headDim/r.maker.vec), r.maker.vec, chunk, 4)
			for i := range 2 {
				r.ofQuery[h][p][i] = b.Mul(words[i], factor)
				r.sum[h][p][i] = b.Var(lane.F32x4, b.Splat(b.F32(0), 4))
			}
		}
	}
}

func (r *teamSums) attend() {
	b := r.b
	b.For(r.lo, r.hi, r.round(), func(from kernel.Value) {
		if r.fresh() {
			b.If(b.Gt(b.Add(from, r.round()), r.firstFresh), func() { r.takeFresh(from) })
		}
		keys, values := make([][][]kernel.Value, splitAhead), make([][][]kernel.Value, splitAhead)
		for j := range keys {
			keys[j], values[j] = lane.GetVars(r.keys[j]), lane.GetVars(r.values[j])
		}
		next := b.Add(from, r.round()) // past the end the last position is loaded again
		for j := range r.keys {
			row := r.cachedRow(next, j)
			lane.SetVars(r.keys[j], r.cached(r.k, row))
			lane.SetVars(r.values[j], r.cached(r.v, row))
		}
		scores := make([]kernel.Value, r.share*splitAhead) // by head, position
		for j := range keys {
			key := r.unpacked(keys[j])
			for h := range r.share {
				scores[h*splitAhead+j] = r.score(h, key)
			}
		}
		scores = r.scatter(scores)
		for i, s := range scores {
			p := b.Add(from, r.scores.offset[i])
			scores[i] = b.Select(r.inWindow(b.Lt(p, r.hi), p), s, emptyScore)
		}
		r.take(scores, values)
	})
}

// unpacked returns the elements of a row's chunks.
func (r *teamSums) unpacked(chunks [][]kernel.Value) []unpacked {
	out := make([]unpacked, len(chunks))
	for p, words := range chunks {
		out[p] = r.unpack(r.b, words)
	}
	return out
}

// score returns the lane's part of the product of q of head h with a row.
func (r *teamSums) score(h int, key []unpacked) kernel.Value {
	b := r.b
	var sum kernel.Value
	var dot lane.Partial
	for p, chunk := range key {
		for i, x := range chunk.elems {
			for e := range 4 {
				dot.Product(b, b.Elem(r.ofQuery[h][p][i], e), b.Elem(x, e))
			}
		}
		switch {
		case chunk.scale == (kernel.Value{}): // one sum
		case p == 0:
			sum, dot = b.Mul(dot.Sum, chunk.scale), lane.Partial{}
		default:
			sum, dot = b.FMA(dot.Sum, chunk.scale, sum), lane.Partial{}
		}
	}
	if sum == (kernel.Value{}) {
		return dot.Sum
	}
	return sum
}

// take adds positions, whose scores are scattered, to the sums of all heads. Those
// past the end have emptyScore and weigh nothing beside a real one; a team that saw no
// real one weighs nothing when teams are merged, and some team of the range has one.
func (r *teamSums) take(scores []kernel.Value, words [][][]kernel.Value) {
	b := r.b
	old := r.top.Get()
	top := scores[0]
	for _, s := range scores[1:] {
		top = b.Max(top, s)
	}
	top = b.Max(old, lane.Fold(b, top, r.scores.copies, r.scores.lanes, func(x, y kernel.Value) kernel.Value { return b.Max(x, y) }))
	fade := b.Exp(b.Sub(old, top))
	weight := b.Mul(r.weight.Get(), fade)
	for i, s := range scores {
		scores[i] = b.Exp(b.Sub(s, top))
		weight = b.Add(weight, scores[i])
	}
	r.top.Set(top)
	r.weight.Set(weight)
	fades := r.perHead(fade)
	values := make([][]unpacked, len(words))
	for j := range values {
		values[j] = r.unpacked(words[j])
	}
	for h := range r.share {
		weights := make([]kernel.Value, splitAhead)
		for j := range weights {
			i := h*splitAhead + j
			weights[j] = b.SubgroupShuffle(scores[i%r.scores.each], r.holder(i))
		}
		for p := range r.parts {
			scaled := make([]kernel.Value, splitAhead)
			for j, w := range weights {
				scaled[j] = w
				if s := values[j][p].scale; s != (kernel.Value{}) {
					scaled[j] = b.Mul(w, s)
				}
			}
			for i := range 2 {
				sum := b.Mul(r.sum[h][p][i].Get(), b.Splat(fades[h], 4))
				for j, w := range scaled {
					sum = b.FMA(b.Splat(w, 4), values[j][p].elems[i], sum)
				}
				r.sum[h][p][i].Set(sum)
			}
		}
	}
}

// mergeTeams leaves in every team the sums of its subgroup.
func (r *teamSums) mergeTeams() {
	b := r.b
	old := r.top.Get()
	top := lane.Fold(b, old, r.team, r.teams(), func(x, y kernel.Value) kernel.Value { return b.Max(x, y) })
	add := func(x, y kernel.Value) kernel.Value { return b.Add(x, y) }
	fade := b.Exp(b.Sub(old, top))
	weight := lane.Fold(b, b.Mul(r.weight.Get(), fade), r.scores.copies, r.scores.lanes, add)
	r.top.Set(top)
	r.weight.Set(lane.Fold(b, weight, r.team, r.teams(), add))
	for h, fade := range r.perHead(fade) {
		for p := range r.parts {
			for _, sum := range r.sum[h][p] {
				sum.Set(lane.Fold(b, b.Mul(sum.Get(), b.Splat(fade, 4)), r.team, r.teams(), add))
			}
		}
	}
}

// apart: no position is.
func (r *teamSums) apart(h, quad kernel.Value) (score, v kernel.Value) { return }

func (r *teamSums) finish(alone kernel.Value) { r.mergeSubgroups(r, alone) }

// store leaves it to the first team of each subgroup.
func (r *teamSums) store(to subgroupSums, _ kernel.Value) {
	r.mergeTeams()
	b, quads := r.b, r.headDim/4
	b.If(b.Lt(r.b.SubgroupLane(), r.team), func() {
		first := b.Mul(b.SubgroupID(), r.share)
		ofHead := r.scores.copies * r.scores.lanes // lanes
		h := b.Div(r.member, ofHead)
		b.If(b.And(b.Eq(b.Mod(r.member, ofHead), 0), b.Lt(h, r.share)), func() {
			to.tops.Store(b.Add(first, h), r.top.Get())
			to.weights.Store(b.Add(first, h), r.weight.Get())
		})
		for h := range r.share {
			at := b.Add(first, h)
			for p := range r.parts {
				c, real := r.part(p)
				b.If(real, func() {
					for i, sum := range r.sum[h][p] {
						to.sums.Store(b.Add(b.Mul(at, quads), b.Add(b.Mul(c, 2), i)), sum.Get())
					}
				})
			}
		}
	})
}

// takeFresh puts k and v of the step's rows in place of what the caches had there.
func (r *teamSums) takeFresh(from kernel.Value) {
	b := r.b
	r.eachFresh(func(row, pos kernel.Value) {
		row = r.inRun(row)
		for j := range r.keys {
			is := b.Eq(b.Min(r.position(from, j), b.Sub(r.hi, 1)), pos)
			for part := range r.parts {
				c, _ := r.part(part)
				for m, held := range [][]*kernel.Var{r.keys[j][part], r.values[j][part]} {
					list := []freshRows{r.freshK, r.freshV}[m].chunk(r.splitRun, row, c)
					for w, v := range held {
						v.Set(b.Select(is, list[w], v.Get()))
					}
				}
			}
		}
	})
}

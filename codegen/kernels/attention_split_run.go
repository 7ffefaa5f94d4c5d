package kernels

import "github.com/zincc-dev/zincc/codegen/kernel"

func (k *splitKernel) build() (*kernel.Func, error) {
	return kernel.Build("attention_split", func(b *kernel.Builder) {
		r := &splitRun{splitKernel: k, b: b, maker: headMaker{headsGroup: k.chains, b: b}}
		r.attentionArgs = attentionArgs{rows: k.rows.bound(b), gate: k.gate.declare(b)}
		r.declareCaches(k.attentionShape, b, k.cacheAccess())
		if k.chains.norm != nil {
			r.maker.epsilon = b.SpecF32("eps", 1e-6)
		}
		if k.chains.rope != nil {
			r.maker.cosSin = b.Arg("table", kernel.Read)
		}
		for i := range k.chains.chains {
			r.chains = append(r.chains, r.maker.declareChain(i))
		}
		block := b.U32(1)
		r.splits = b.U32(1)
		var counts *kernel.Buffer
		if k.merge != nil {
			r.partial, counts = b.Arg("partial", kernel.ReadWrite), b.Arg("arrivals", kernel.ReadWrite)
			r.splits, block = b.SpecU32("splits", 1), b.SpecU32("block", 1)
		}
		r.y = b.Arg("y", kernel.Write)
		b.Workgroup(k.subgroups * k.wave)

		r.row, r.split = b.WorkgroupID(2), b.WorkgroupID(1)
		writer := b.Bool(false)
		if k.fresh() {
			writer = b.Eq(r.split, 0)
			r.split = b.Select(writer, r.splits, b.Sub(r.split, 1)) // a split without positions
		}
		r.head = b.Mul(b.WorkgroupID(0), k.share)
		lane := b.SubgroupLane()
		r.member = b.And(lane, k.team-1)
		r.at = r.pos.Load(kernel.U32, r.row)
		r.slot = r.attentionArgs.slot.Load(kernel.U32, r.row)

		n := b.Add(r.at, 1)
		round := b.Mul(r.splits, block)
		step := b.Mul(b.Div(b.Sub(b.Add(n, round), 1), round), block)
		if k.merge == nil {
			step = n
		}
		r.lo = b.Mul(r.split, step)
		r.hi = b.Min(n, b.Add(r.lo, step))
		idle := b.Ge(r.lo, n)
		dead := b.Or(b.Ge(r.row, r.attentionArgs.rows), b.Ge(r.at, r.ctx)) // beyond the step or the cache
		b.ReturnIf(b.Or(dead, b.And(idle, b.Not(writer))))

		r.prepare(b.Shr(lane, log2(k.team)))
		r.startDealing(lane)
		r.makeHeads(writer)
		if k.fresh() {
			b.ReturnIf(writer)
			r.findFresh()
		}
		b.Barrier()
		r.start()
		r.attend()
		r.mergeTeams()
		r.mergeSubgroups(lane)
		if k.merge != nil {
			active := b.Div(b.Sub(b.Add(n, step), 1), step)
			index := b.Add(b.Mul(r.row, b.NumWorkgroups(0)), b.WorkgroupID(0))
			b.If(meet(b, counts, index, active), func() { r.mergeSplits(active) })
		}
	})
}

// splitRun is the kernel while it is built. A lane's sums are those of its
// chunks over the positions of its team.
type splitRun struct {
	*splitKernel
	attentionArgs
	b                *kernel.Builder
	maker            headMaker
	chains           []*chainArgs // of q, k and v
	splits           kernel.Value
	partial, y       *kernel.Buffer
	row, head, split kernel.Value // head is the first of share
	lo, hi           kernel.Value // positions of the split
	member           kernel.Value // the lane in its team

	// In shared memory: q of all heads, k and v of the step's rows. firstFresh is the
	// first position of the rows that are of this row's sequence.
	queries        *kernel.Array
	freshK, freshV freshRows
	at, slot       kernel.Value // of the row
	firstFresh     kernel.Value

	dealt        dealt
	base         cachedHead
	first        kernel.Value      // of the team in a round
	keys, values [][][]*kernel.Var // by position, part: what is loaded, not unpacked
	query        [][][2]kernel.Value
	sum          [][][2]*kernel.Var // by head, part
	top, weight  *kernel.Var        // of the lane's head: see dealt
}

// part returns the chunk of a head that is part p of this lane, and whether
// there is one; the chunk is one of the head's in any case.
func (r *splitRun) part(p int) (kernel.Value, kernel.Value) {
	b, chunks := r.b, r.headDim/chunk
	c := b.Add(r.member, p*r.team)
	if (p+1)*r.team <= chunks {
		return c, b.Bool(true)
	}
	return b.Min(c, chunks-1), b.Lt(c, chunks)
}

// prepare loads the first positions of the split, for they are farthest away.
func (r *splitRun) prepare(team kernel.Value) {
	b := r.b
	r.base = r.cachedHead(b, r.attentionShape, r.slot, b.Div(r.head, r.group))
	r.first = b.Add(b.Mul(b.SubgroupID(), splitAhead*r.teams()), team)
	for j := range splitAhead {
		row := r.cachedRow(r.lo, j)
		r.keys = append(r.keys, vars(b, r.cached(r.k, row)))
		r.values = append(r.values, vars(b, r.cached(r.v, row)))
	}
}

// teams are those of a subgroup, round the positions that a workgroup loads at once.
func (r *splitRun) teams() int { return r.wave / r.team }
func (r *splitRun) round() int { return r.subgroups * splitAhead * r.teams() }

// position returns the j-th position that the team takes in the round from position
// `from` on, and cachedRow where it is in the caches; past the end it is the last.
func (r *splitRun) position(from kernel.Value, j int) kernel.Value {
	return r.b.Add(from, r.first, j*r.teams())
}

func (r *splitRun) cachedRow(from kernel.Value, j int) cachedHead {
	b := r.b
	return r.attentionArgs.at(b, r.base, b.Min(r.position(from, j), b.Sub(r.hi, 1)))
}

// cached returns the words of the lane's chunks of a cached row.
func (r *splitRun) cached(cache *kernel.Buffer, row cachedHead) [][]kernel.Value {
	out := make([][]kernel.Value, r.parts)
	for p := range out {
		c, _ := r.part(p)
		out[p] = r.loadWords(r.b, r.attentionShape, cache, row, c)
	}
	return out
}

// start takes the lane's chunks of q, and clears the sums. Lanes without a chunk hold
// zeros, which add nothing to a score.
func (r *splitRun) start() {
	b := r.b
	r.query, r.sum = make([][][2]kernel.Value, r.share), make([][][2]*kernel.Var, r.share)
	r.top, r.weight = b.Var(kernel.F32, emptyScore), b.Var(kernel.F32, 0)
	for h := range r.share {
		r.query[h], r.sum[h] = make([][2]kernel.Value, r.parts), make([][2]*kernel.Var, r.parts)
		for p := range r.parts {
			c, real := r.part(p)
			factor := b.Splat(b.Select(real, 1.0, b.F32(0)), 4)
			words := sharedWords(b, r.queries, b.Add(b.Mul(c, chunk/r.maker.vec), h*r.headDim/r.maker.vec), r.maker.vec, chunk, 4)
			for i := range 2 {
				r.query[h][p][i] = b.Mul(words[i], factor)
				r.sum[h][p][i] = b.Var(f32x4, b.Splat(b.F32(0), 4))
			}
		}
	}
}

// attend runs over the positions of the split.
func (r *splitRun) attend() {
	b := r.b
	b.For(r.lo, r.hi, r.round(), func(from kernel.Value) {
		if r.fresh() {
			b.If(b.Gt(b.Add(from, r.round()), r.firstFresh), func() { r.takeFresh(from) })
		}
		keys, values := make([][][]kernel.Value, splitAhead), make([][][]kernel.Value, splitAhead)
		for j := range keys {
			keys[j], values[j] = getVars(r.keys[j]), getVars(r.values[j])
		}
		next := b.Add(from, r.round()) // past the end the last position is loaded again
		for j := range r.keys {
			row := r.cachedRow(next, j)
			setVars(r.keys[j], r.cached(r.k, row))
			setVars(r.values[j], r.cached(r.v, row))
		}
		scores := make([]kernel.Value, r.share*splitAhead) // by head, position
		for j := range keys {
			key := r.unpacked(keys[j])
			for h := range r.share {
				scores[h*splitAhead+j] = r.score(h, key)
			}
		}
		scores = r.deal(scores)
		for i, s := range scores {
			scores[i] = b.Select(b.Lt(b.Add(from, r.dealt.offset[i]), r.hi), s, emptyScore)
		}
		r.take(scores, values)
	})
}

// unpacked returns the elements of a row's chunks.
func (r *splitRun) unpacked(chunks [][]kernel.Value) []unpacked {
	out := make([]unpacked, len(chunks))
	for p, words := range chunks {
		out[p] = r.unpack(r.b, words)
	}
	return out
}

// score returns the lane's part of the product of q of head h with a row.
func (r *splitRun) score(h int, key []unpacked) kernel.Value {
	b := r.b
	var sum kernel.Value
	var dot partial
	for p, chunk := range key {
		for i, x := range chunk.elems {
			for e := range 4 {
				dot.product(b, b.Elem(r.query[h][p][i], e), b.Elem(x, e))
			}
		}
		switch {
		case chunk.scale == (kernel.Value{}): // one sum
		case p == 0:
			sum, dot = b.Mul(dot.sum, chunk.scale), partial{}
		default:
			sum, dot = b.FMA(dot.sum, chunk.scale, sum), partial{}
		}
	}
	if sum == (kernel.Value{}) {
		return dot.sum
	}
	return sum
}

// take adds positions, whose scores are dealt out, to the sums of all heads. Those
// past the end have emptyScore and weigh nothing beside a real one; a team that saw no
// real one weighs nothing when teams are merged, and some team of the range has one.
func (r *splitRun) take(scores []kernel.Value, words [][][]kernel.Value) {
	b := r.b
	old := r.top.Get()
	top := scores[0]
	for _, s := range scores[1:] {
		top = b.Max(top, s)
	}
	top = b.Max(old, xorLanes(b, top, r.dealt.copies, r.dealt.lanes, func(x, y kernel.Value) kernel.Value { return b.Max(x, y) }))
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
			weights[j] = b.SubgroupShuffle(scores[i%r.dealt.each], r.holder(i))
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

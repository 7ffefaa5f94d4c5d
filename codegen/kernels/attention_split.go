package kernels

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

func attentionSplitCandidates(s *Site) []Candidate {
	op, gate, result := onlyGated(s, "attention")
	splits, block := 1, 1
	if op == nil {
		if op = only(s, "attention_split"); op == nil || op.Attrs.Int("rows") != 1 {
			return nil
		}
		result = op.Result
		splits, block = op.Attrs.Int("splits"), op.Attrs.Int("block")
	}
	shape, ok := attentionOf(s, op, gate)
	if !ok || !shape.exact(op) || op.Kind.Name == "attention" && shape.rows.max > decodeRows {
		return nil
	}
	k := splitKernel{attentionShape: shape, partial: op.Kind.Name == "attention_split"}
	k.divide()
	subgroups := k.subgroups(s.Target)
	if subgroups == 0 {
		return nil
	}
	rows, heads := shape.rows.max, shape.heads
	cover := plans.Cover{Arg: "y", Dims: []int{rows, heads * k.headDim}, Tile: []int{1, k.share * k.headDim}, Axis: []int{2, 0}}
	if k.partial {
		cover = plans.Cover{Arg: "y", Dims: []int{rows, heads, splits, k.headDim + 2}, Tile: []int{1, k.share, 1, k.headDim + 2}, Axis: []int{2, 0, 1, -1}}
	}
	return []Candidate{{
		Kernel: k.key(),
		Build:  k.build,
		Consts: append(shape.consts(),
			ir.Const{Name: "splits", Value: uint32(splits)},
			ir.Const{Name: "block", Value: uint32(block)},
			ir.Const{Name: "subgroups", Value: uint32(subgroups)}),
		Grid:     [3]int{heads / k.share, splits, rows},
		Operands: append(shape.operands(op), Operand{"y", result, kernel.Write}),
		Cover:    []plans.Cover{cover},
	}}
}

// splitKernel is attention with the online softmax of Milakov and Gimelshein
// (arXiv:1805.02867) over a range of positions that is divided once more, among
// the subgroups of a workgroup and the teams of lanes in them. A team holds one
// cached row, 8 elements a lane and part; all heads that share the row use it
// where it is. Ranges, and so the order of all sums, depend on the row's position
// alone.
type splitKernel struct {
	attentionShape
	partial bool // write sums, maximum and weight of each split, not the quotient

	share int // heads of a workgroup
	team  int // lanes of a team: a power of two
	parts int // chunks of a head that a lane holds
}

const (
	// splitRegisters bounds the chunks that a lane holds of q, and of the sums.
	// With 8 an H200 takes half as long again for heads of 128, 2.6 times as long
	// for heads of 256, though the cache is read half as often.
	splitRegisters = 4
	// emptyScore is the maximum of a range without positions.
	emptyScore = float32(-1e30)
)

// divide chooses team, parts and share.
func (k *splitKernel) divide() {
	chunks := k.headDim / chunk
	for k.team = 1; k.team < min(chunks, k.wave); k.team *= 2 {
	}
	k.parts = ceilDiv(chunks, k.team)
	for k.share = k.group; k.group%k.share != 0 || k.share > 1 && k.share*k.parts > splitRegisters; k.share-- {
	}
}

// subgroups returns the subgroups of a workgroup: as many as hide the latency of
// the loads and leave shared memory for a second workgroup; 0 if even one does
// not fit.
func (k *splitKernel) subgroups(t *target.Target) int {
	for n := 4; n > 0; n /= 2 {
		if bytes := n * k.share * 4 * (k.headDim + 2); bytes <= t.Shared/2 && n*k.wave <= t.Workgroup {
			return n
		}
	}
	return 0
}

// ahead is the positions that a team loads before it uses the first.
func (k *splitKernel) ahead() int {
	if k.kv == ir.F32 || k.parts > 1 {
		return 2
	}
	return 4
}

func (k *splitKernel) key() string {
	whole := " whole"
	if k.partial {
		whole = ""
	}
	return fmt.Sprintf("attention_split %s hd=%d g=%d w=%d%s%s%s", k.kv, k.headDim, k.share, k.wave, whole, k.gate.key(), k.rows.key())
}

func (k *splitKernel) build() (*kernel.Func, error) {
	return kernel.Build("attention_split", func(b *kernel.Builder) {
		r := &splitRun{splitKernel: k, b: b, attentionArgs: k.declare(b)}
		splits, block := b.SpecU32("splits", 1), b.SpecU32("block", 1)
		r.subgroups = b.SpecU32("subgroups", 4)
		r.y = b.Arg("y", kernel.Write)
		b.Workgroup(b.Mul(r.subgroups, k.wave))

		r.row, r.split = b.WorkgroupID(2), b.WorkgroupID(1)
		r.splits = splits
		r.head = b.Mul(b.WorkgroupID(0), k.share)
		lane := b.SubgroupLane()
		r.member = b.And(lane, k.team-1)
		r.start()
		at, slot := r.pos.Load(kernel.U32, r.row), r.slot.Load(kernel.U32, r.row)
		b.ReturnIf(b.Or(b.Ge(r.row, r.attentionArgs.rows), b.Ge(at, r.ctx))) // beyond the step or the cache

		n := b.Add(at, 1)
		round := b.Mul(splits, block)
		step := b.Mul(b.Div(b.Sub(b.Add(n, round), 1), round), block)
		lo := b.Mul(r.split, step)
		hi := b.Min(n, b.Add(lo, step))

		r.attend(b.Mul(slot, r.ctx), lo, hi, b.Shr(lane, log2(k.team)))
		r.mergeTeams()
		r.mergeSubgroups(lane)
	})
}

// splitRun is the kernel while it is built. A lane's sums are those of its
// chunks over the positions of its team.
type splitRun struct {
	*splitKernel
	attentionArgs
	b                 *kernel.Builder
	subgroups, splits kernel.Value
	y                 *kernel.Buffer
	row, head, split  kernel.Value // head is the first of share
	member            kernel.Value // the lane in its team
	query             [][][2]kernel.Value
	sum               [][][2]*kernel.Var // by head, part
	top, weight       []*kernel.Var      // by head
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

// start loads the lane's chunks of q, times scale, and clears the sums. Lanes
// without a chunk hold zeros, which add nothing to a score.
func (r *splitRun) start() {
	b := r.b
	r.query, r.sum = make([][][2]kernel.Value, r.share), make([][][2]*kernel.Var, r.share)
	r.top, r.weight = make([]*kernel.Var, r.share), make([]*kernel.Var, r.share)
	row := b.Mul(b.Add(b.Mul(r.row, r.heads), r.head), r.headDim/4)
	for h := range r.share {
		r.top[h], r.weight[h] = b.Var(kernel.F32, emptyScore), b.Var(kernel.F32, 0)
		r.query[h], r.sum[h] = make([][2]kernel.Value, r.parts), make([][2]*kernel.Var, r.parts)
		for p := range r.parts {
			c, real := r.part(p)
			factor := b.Splat(b.Select(real, r.scale, 0), 4)
			for i := range 2 {
				at := b.Add(b.Add(row, h*r.headDim/4), b.Add(b.Mul(c, 2), i))
				r.query[h][p][i] = b.Mul(r.q.Load(f32x4, at), factor)
				r.sum[h][p][i] = b.Var(f32x4, b.Splat(b.F32(0), 4))
			}
		}
	}
}

// attend runs over the positions from lo to hi of the sequence whose first cached
// row is sequence. team is this lane's team in its subgroup.
func (r *splitRun) attend(sequence, lo, hi, team kernel.Value) {
	b, ahead, teams := r.b, r.ahead(), r.wave/r.team
	kvHead := b.Mul(b.Div(r.head, r.group), r.headDim/chunk)
	base := b.Add(b.Mul(sequence, r.kvRow), kvHead)
	first := b.Add(b.Mul(b.SubgroupID(), ahead*teams), team)
	b.For(lo, hi, b.Mul(r.subgroups, ahead*teams), func(from kernel.Value) {
		from = b.Add(from, first)
		valid, rows := make([]kernel.Value, ahead), make([]kernel.Value, ahead)
		keys, values := make([][][2]kernel.Value, ahead), make([][][2]kernel.Value, ahead)
		for j := range ahead {
			p := b.Add(from, j*teams)
			valid[j] = b.Lt(p, hi)
			rows[j] = b.Add(base, b.Mul(b.Min(p, b.Sub(hi, 1)), r.kvRow))
			keys[j] = r.cached(r.k, rows[j])
		}
		for j := range ahead {
			values[j] = r.cached(r.v, rows[j])
		}
		for h := range r.share {
			r.take(h, valid, keys, values)
		}
	})
}

// cached returns the lane's chunks of a cached row.
func (r *splitRun) cached(cache *kernel.Buffer, row kernel.Value) [][2]kernel.Value {
	out := make([][2]kernel.Value, r.parts)
	for p := range out {
		c, _ := r.part(p)
		out[p] = r.loadChunk(r.b, cache, r.b.Add(row, c))
	}
	return out
}

// take adds positions to the sums of head h. Those past the end have emptyScore
// and weigh nothing beside a real one; a team that saw no real one weighs nothing
// when teams are merged, and some team of the range has one.
func (r *splitRun) take(h int, valid []kernel.Value, keys, values [][][2]kernel.Value) {
	b := r.b
	old := r.top[h].Get()
	top := old
	scores := make([]kernel.Value, len(keys))
	for j, key := range keys {
		var dot kernel.Value
		for p := range key {
			for i, x := range key[p] {
				if p == 0 && i == 0 {
					dot = b.Mul(r.query[h][p][i], x)
				} else {
					dot = b.FMA(r.query[h][p][i], x, dot)
				}
			}
		}
		score := xorLanes(b, sum4(b, dot), 1, r.team, func(x, y kernel.Value) kernel.Value { return b.Add(x, y) })
		scores[j] = b.Select(valid[j], score, emptyScore)
		top = b.Max(top, scores[j])
	}
	fade := b.Exp(b.Sub(old, top))
	weight := b.Mul(r.weight[h].Get(), fade)
	weights := make([]kernel.Value, len(keys))
	for j := range weights {
		weights[j] = b.Exp(b.Sub(scores[j], top))
		weight = b.Add(weight, weights[j])
	}
	r.top[h].Set(top)
	r.weight[h].Set(weight)
	for p := range r.parts {
		for i := range 2 {
			sum := b.Mul(r.sum[h][p][i].Get(), b.Splat(fade, 4))
			for j, w := range weights {
				sum = b.FMA(b.Splat(w, 4), values[j][p][i], sum)
			}
			r.sum[h][p][i].Set(sum)
		}
	}
}

// mergeTeams leaves in every team the sums of its subgroup.
func (r *splitRun) mergeTeams() {
	b := r.b
	for h := range r.share {
		old := r.top[h].Get()
		top := xorLanes(b, old, r.team, r.wave/r.team, func(x, y kernel.Value) kernel.Value { return b.Max(x, y) })
		fade := b.Exp(b.Sub(old, top))
		add := func(x kernel.Value) kernel.Value {
			return xorLanes(b, x, r.team, r.wave/r.team, func(x, y kernel.Value) kernel.Value { return b.Add(x, y) })
		}
		r.top[h].Set(top)
		r.weight[h].Set(add(b.Mul(r.weight[h].Get(), fade)))
		for p := range r.parts {
			for _, sum := range r.sum[h][p] {
				sum.Set(add(b.Mul(sum.Get(), b.Splat(fade, 4))))
			}
		}
	}
}

// mergeSubgroups adds up the sums of all subgroups and writes the result.
func (r *splitRun) mergeSubgroups(lane kernel.Value) {
	b, quads := r.b, r.headDim/4
	sums := b.Shared(f32x4, b.Mul(r.subgroups, r.share*quads))
	tops, weights := b.Shared(kernel.F32, b.Mul(r.subgroups, r.share)), b.Shared(kernel.F32, b.Mul(r.subgroups, r.share))
	b.If(b.Lt(lane, r.team), func() {
		for h := range r.share {
			at := b.Add(b.Mul(b.SubgroupID(), r.share), h)
			b.If(b.Eq(lane, 0), func() {
				tops.Store(at, r.top[h].Get())
				weights.Store(at, r.weight[h].Get())
			})
			for p := range r.parts {
				c, real := r.part(p)
				b.If(real, func() {
					for i, sum := range r.sum[h][p] {
						sums.Store(b.Add(b.Mul(at, quads), b.Add(b.Mul(c, 2), i)), sum.Get())
					}
				})
			}
		}
	})
	b.Barrier()
	b.For(b.LocalID(), r.share*quads, b.WorkgroupSize(), func(i kernel.Value) {
		h, quad := b.Div(i, quads), b.Mod(i, quads)
		top := b.Var(kernel.F32, emptyScore)
		b.For(0, r.subgroups, 1, func(s kernel.Value) {
			top.Set(b.Max(top.Get(), tops.Load(b.Add(b.Mul(s, r.share), h))))
		})
		sum, weight := b.Var(f32x4, b.Splat(b.F32(0), 4)), b.Var(kernel.F32, 0)
		b.For(0, r.subgroups, 1, func(s kernel.Value) {
			at := b.Add(b.Mul(s, r.share), h)
			fade := b.Exp(b.Sub(tops.Load(at), top.Get()))
			weight.Set(b.FMA(weights.Load(at), fade, weight.Get()))
			sum.Set(b.FMA(sums.Load(b.Add(b.Mul(at, quads), quad)), b.Splat(fade, 4), sum.Get()))
		})
		r.write(b.Add(r.head, h), quad, sum.Get(), top.Get(), weight.Get())
	})
}

// write stores elements 4*quad and on of a head.
func (r *splitRun) write(head, quad, sum, top, weight kernel.Value) {
	b := r.b
	at := b.Add(b.Mul(r.row, r.heads), head)
	if !r.partial {
		gated := r.attentionArgs.gate.load(b, f32x4, at, quad, r.headDim/4)
		r.y.Store(b.Add(b.Mul(at, r.headDim/4), quad), gated(b.Div(sum, b.Splat(weight, 4))))
		return
	}
	pairs := b.Mul(b.Add(b.Mul(at, r.splits), r.split), (r.headDim+2)/2)
	to := b.Add(pairs, b.Mul(quad, 2))
	r.y.Store(to, b.Vec(b.Elem(sum, 0), b.Elem(sum, 1)))
	r.y.Store(b.Add(to, 1), b.Vec(b.Elem(sum, 2), b.Elem(sum, 3)))
	b.If(b.Eq(quad, 0), func() {
		r.y.Store(b.Add(pairs, r.headDim/2), b.Vec(top, weight))
	})
}

// log2 returns the logarithm of a power of two.
func log2(n int) int {
	k := 0
	for ; n > 1; n /= 2 {
		k++
	}
	return k
}

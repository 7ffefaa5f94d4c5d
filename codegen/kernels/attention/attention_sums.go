package attention

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
)

// spreadSums are sums that subgroups have parts of.
type spreadSums interface {
	// apart returns the score of a position that is not among the sums, if there is one, and
	// four elements of its value; of a head of the workgroup.
	apart(h, quad kernel.Value) (score, v kernel.Value)
	// store puts the sums of the heads that are kept at a time, from one on, into shared memory.
	store(to subgroupSums, from kernel.Value)
}

// subgroupSums are what subgroups, or other parts of a workgroup, have added up, in shared memory.
type subgroupSums struct {
	sums          *kernel.Array // by subgroup, head, four elements
	tops, weights *kernel.Array // by subgroup, head
}

// mergeSubgroups adds up the sums of all subgroups and writes the split's, or the result if
// the split is alone.
func (r *splitRun) mergeSubgroups(of spreadSums, alone kernel.Value) {
	b, quads := r.b, r.headDim/4
	n := r.subgroups * r.together()
	r.kept = subgroupSums{b.Shared(lane.F32x4, n*quads), b.Shared(kernel.F32, n), b.Shared(kernel.F32, n)}
	if r.eights() {
		first, end := b.U32(0), b.U32(uint32(r.share))
		if r.halves() {
			first = b.Select(r.inHalves, b.Mul(r.split, r.together()), first)
			end = b.Select(r.inHalves, b.Add(first, r.together()), end)
		}
		b.ForRolled(first, end, r.together(), func(from kernel.Value) {
			r.mergeKept(of, from, alone)
			b.Barrier()
		})
		return
	}
	r.mergeKept(of, b.U32(0), alone)
}

// mergeKept is mergeSubgroups of the heads that are kept at a time.
func (r *splitRun) mergeKept(of spreadSums, from, alone kernel.Value) {
	b := r.b
	of.store(r.kept, from)
	b.Barrier()
	r.eachQuad(r.together(), func(h, quad kernel.Value) {
		s := r.joined(r.subgroups, h, quad, func(h, quad kernel.Value) (score, v kernel.Value) {
			if r.eights() {
				h = b.Add(h, from)
			}
			return of.apart(h, quad)
		})
		if r.eights() {
			h = b.Add(h, from)
		}
		var gate kernel.Value
		for i, g := range r.gates { // an item is in each turn
			if gate = g; i > 0 {
				gate = b.Select(b.Eq(from, i*r.together()), g, r.gates[0])
			}
		}
		if r.merge == nil {
			r.write(h, quad, s, gate)
			return
		}
		b.IfElse(alone, func() { r.write(h, quad, s, gate) }, func() { r.put(h, quad, r.split, s) })
	})
}

// joined returns what n parts have kept of four elements of a head. apart, which may be nil, is that of spreadSums.
func (r *splitRun) joined(n int, h, quad kernel.Value, apart func(h, quad kernel.Value) (score, v kernel.Value)) splitSums {
	b, quads := r.b, r.headDim/4
	s := splitSums{top: b.Var(kernel.F32, emptyScore)}
	b.For(0, n, 1, func(part kernel.Value) {
		s.top.Set(b.Max(s.top.Get(), r.kept.tops.Load(b.Add(b.Mul(part, r.together()), h))))
	})
	var score, v kernel.Value
	if apart != nil {
		score, v = apart(h, quad)
	}
	is := score != (kernel.Value{})
	if is {
		s.top.Set(b.Max(s.top.Get(), score))
	}
	s.sum, s.weight = b.Var(lane.F32x4, b.Splat(b.F32(0), 4)), b.Var(kernel.F32, 0)
	b.For(0, n, 1, func(part kernel.Value) {
		at := b.Add(b.Mul(part, r.together()), h)
		fade := b.Exp(b.Sub(r.kept.tops.Load(at), s.top.Get()))
		s.weight.Set(b.FMA(r.kept.weights.Load(at), fade, s.weight.Get()))
		s.sum.Set(b.FMA(r.kept.sums.Load(b.Add(b.Mul(at, quads), quad)), b.Splat(fade, 4), s.sum.Get()))
	})
	if is {
		fade := b.Exp(b.Sub(score, s.top.Get()))
		s.weight.Set(b.Add(s.weight.Get(), fade))
		s.sum.Set(b.FMA(v, b.Splat(fade, 4), s.sum.Get()))
	}
	return s
}

// eachQuad hands the lanes the elements of so many heads, four at a time.
func (r *splitRun) eachQuad(heads int, body func(h, quad kernel.Value)) {
	b, quads := r.b, r.headDim/4
	b.For(b.LocalID(), heads*quads, r.subgroups*r.wave, func(i kernel.Value) { body(b.Div(i, quads), b.Mod(i, quads)) })
}

// scratch counts the splits of one of the workgroup's heads through all heads and rows.
// In memory the sums of all splits lie before the pairs of maximum and weight, which
// begin at tail.
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

// mergeAtOnce is the splits whose sums a lane loads at once. With 16, fetching the code
// takes longer than the loads that it saves.
const mergeAtOnce = 8

// mergeSplits is that of rangeSums; of several mergers each has a range of the splits.
func (r *splitRun) mergeSplits(active kernel.Value) {
	b, quads := r.b, r.headDim/4
	if r.mergers == 1 {
		r.eachQuad(r.share, func(h, quad kernel.Value) { r.write(h, quad, r.addUp(h, quad, b.U32(0), active), kernel.Value{}) })
		return
	}
	items := r.share * quads
	merger, i := b.Div(b.LocalID(), items), b.Mod(b.LocalID(), items)
	h, quad := b.Div(i, quads), b.Mod(i, quads)
	each := b.Div(b.Add(active, r.mergers-1), r.mergers)
	s := r.addUp(h, quad, b.Mul(merger, each), b.Min(active, b.Mul(b.Add(merger, 1), each)))
	at := b.Add(b.Mul(merger, r.share), h)
	r.kept.sums.Store(b.Add(b.Mul(at, quads), quad), s.sum.Get())
	b.If(b.Eq(quad, 0), func() {
		r.kept.tops.Store(at, s.top.Get())
		r.kept.weights.Store(at, s.weight.Get())
	})
	b.Barrier()
	b.If(b.Eq(merger, 0), func() { r.write(h, quad, r.joined(r.mergers, h, quad, nil), kernel.Value{}) })
}

// addUp adds up four elements of the splits from one to another.
func (r *splitRun) addUp(h, quad, from, end kernel.Value) splitSums {
	b := r.b
	s := splitSums{top: b.Var(kernel.F32, emptyScore), weight: b.Var(kernel.F32, 0)}
	s.sum = b.Var(lane.F32x4, b.Splat(b.F32(0), 4))
	b.For(from, end, mergeAtOnce, func(first kernel.Value) {
		var tails, sums [mergeAtOnce]kernel.Value // all loads before the first use
		for j := range sums {
			at := r.scratch(h, b.Min(b.Add(first, j), b.Sub(end, 1)))
			tails[j] = r.partial.Load(lane.F32x2, r.tail(at))
			sums[j] = r.partial.Load(lane.F32x4, b.Add(b.Mul(at, r.headDim/4), quad))
		}
		addSplits(b, s, tails[:], sums[:], first, end)
	})
	return s
}

// mergeTwice is mergeSplits in two turns, for more splits than a workgroup reads in a moment: the last split of each
// few adds these up, and the last of those adds up the rest. Counters are as many as the workgroup's heads.
func (r *splitRun) mergeTwice(counts *kernel.Buffer, index, active kernel.Value) {
	b := r.b
	each := b.U32(uint32(r.inTurn()))
	group := b.Div(r.split, each)
	first := b.Mul(group, each)
	end := b.Min(active, b.Add(first, each))
	index = b.Mul(index, r.share)
	arrived := b.Shared(kernel.U32, 1)
	b.ReturnIf(b.Not(site.LastBlockBy(b, arrived, counts, b.Add(index, group, 1), b.Sub(end, first))))
	sums := r.addUpAll(first, end, 1, r.inTurn())
	groups := b.Div(b.Add(active, r.inTurn()-1), each)
	last := b.Eq(groups, 1)
	b.BarrierBuffers() // all have read
	r.eachItem(func(i int, h, quad kernel.Value) {
		b.IfElse(last, func() { r.write(h, quad, sums[i], r.gateOf(i)) }, func() { r.put(h, quad, first, sums[i]) })
	})
	b.ReturnIf(last)
	b.If(site.LastBlockBy(b, arrived, counts, index, groups), func() {
		sums := r.addUpAll(b.U32(0), groups, r.inTurn(), site.CeilDiv(r.splitKernel.splits(), r.inTurn()))
		r.eachItem(func(i int, h, quad kernel.Value) { r.write(h, quad, sums[i], r.gateOf(i)) })
	})
}

// inTurn is the number of splits that are added up in the first turn, such that each sum has a counter.
func (r *splitRun) inTurn() int {
	return max(mergeAtOnce, site.CeilDiv(r.splitKernel.splits(), r.share-1))
}

// eachItem hands each lane its fours of elements of all of the workgroup's heads.
func (r *splitRun) eachItem(body func(i int, h, quad kernel.Value)) {
	b, quads, lanes := r.b, r.headDim/4, r.subgroups*r.wave
	for i := range r.share * quads / lanes {
		at := b.Add(b.LocalID(), i*lanes)
		body(i, b.Div(at, quads), b.Mod(at, quads))
	}
}

// addUpAll is addUp for all of eachItem, of at most n splits, which are `stride` apart.
func (r *splitRun) addUpAll(from, end kernel.Value, stride, n int) (all []splitSums) {
	b := r.b
	r.eachItem(func(int, kernel.Value, kernel.Value) {
		all = append(all, splitSums{top: b.Var(kernel.F32, emptyScore), weight: b.Var(kernel.F32, 0), sum: b.Var(lane.F32x4, b.Splat(b.F32(0), 4))})
	})
	tails, sums := make([][]kernel.Value, len(all)), make([][]kernel.Value, len(all)) // all loads before the first use
	r.eachItem(func(i int, h, quad kernel.Value) {
		for j := range n {
			at := r.scratch(h, b.Mul(b.Min(b.Add(from, j), b.Sub(end, 1)), stride))
			tails[i] = append(tails[i], r.partial.Load(lane.F32x2, r.tail(at)))
			sums[i] = append(sums[i], r.partial.Load(lane.F32x4, b.Add(b.Mul(at, r.headDim/4), quad)))
		}
	})
	for i, s := range all {
		addSplits(b, s, tails[i], sums[i], from, end)
	}
	return all
}

// put stores a split's sums.
func (r *splitRun) put(h, quad, split kernel.Value, s splitSums) {
	b, at := r.b, r.scratch(h, split)
	r.partial.Store(b.Add(b.Mul(at, r.headDim/4), quad), s.sum.Get())
	b.If(b.Eq(quad, 0), func() { r.partial.Store(r.tail(at), b.Vec(s.top.Get(), s.weight.Get())) })
}

// loadGates loads the gates of the lane's items, so that nothing waits for them in the end.
func (r *splitRun) loadGates() {
	if r.attentionArgs.gate.x == nil {
		return
	}
	r.eachItem(func(_ int, h, quad kernel.Value) {
		r.gates = append(r.gates, r.attentionArgs.gate.access(r.b, lane.F32x4, r.headOf(h), quad, r.headDim/4))
	})
}

func (r *splitRun) gateOf(item int) kernel.Value {
	if len(r.gates) == 0 {
		return kernel.Value{}
	}
	return r.gates[item]
}

// headOf counts one of the workgroup's heads through all rows.
func (r *splitRun) headOf(h kernel.Value) kernel.Value {
	return r.b.Add(r.b.Mul(r.row, r.heads), r.head, h)
}

// write stores elements 4*quad and on of one of the workgroup's heads. It loads their gate, if there is one and that is
// none.
func (r *splitRun) write(h, quad kernel.Value, s splitSums, gate kernel.Value) {
	b, sum, weight := r.b, s.sum.Get(), s.weight.Get()
	if sinks := r.attentionArgs.sinks; sinks != nil {
		weight = withSink(b, sinks, b.Add(r.head, h), s.top.Get, weight)
	}
	head := r.headOf(h)
	gated := func(v kernel.Value) kernel.Value { return gatedBy(b, v, gate) }
	if gate == (kernel.Value{}) {
		gated = r.attentionArgs.gate.load(b, lane.F32x4, head, quad, r.headDim/4)
	}
	y := gated(b.Div(sum, b.Splat(weight, 4)))
	if r.splitKernel.gate.half {
		y = lane.RoundHalf(b, y)
	}
	r.y.Store(b.Add(b.Mul(head, r.headDim/4), quad), y)
}

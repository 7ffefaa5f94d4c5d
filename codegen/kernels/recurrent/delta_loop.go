package recurrent

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
)

// deltaRun is the kernel while it is built.
type deltaRun struct {
	*deltaKernel
	deltaBuffers
	b                           *kernel.Builder
	row, rows, last             kernel.Value // of this workgroup: the first, how many, the last
	slot                        kernel.Value // of these rows
	heads, scale, eps, gatedEps kernel.Value
	keys, run, ringPart         kernel.Value
	firsts                      [3]kernel.Value // q, k, v: where they start in a row
	from                        [3]kernel.Value // q, k, v of the head: where they start in a row
	widths                      [3]kernel.Value // and the length of the row
	conv                        *convArgs
	group, head, part           kernel.Value
	mine, member                kernel.Value // the lane's team, and the lane in it
	inputs, results             *kernel.Array
	tokens                      *kernel.Array   // decay and beta of each
	constants                   *deltaConstants // nil where they are loaded as they are used
	fetched                     []*kernel.Var   // elements of q, k and v for this lane to prepare
	decay, beta                 *kernel.Var     // of the token that this lane prepares
	state                       [deltaColumns][]*kernel.Var
	waiting                     kernel.Value              // updates that the state lacked
	deltas                      [deltaColumns]*kernel.Var // what the row at hand adds of its key; nil unless it may wait
}

// declareRun declares the arguments, and what tells the rows of a step.
func (k *deltaKernel) declareRun(s *site.Signature) (*deltaRun, site.StepRows) {
	r := &deltaRun{deltaKernel: k}
	extent := k.rows.Declare(s)
	r.deltaBuffers = k.declare(s)
	r.heads = s.U32("heads", k.heads, 1, "value heads")
	r.keys, r.run = s.U32("keys", k.keys, 1, "key heads"), s.U32("run", k.run, 1, "value heads side by side with the same key head")
	r.scale = s.F32("scale", k.delta.Attrs.Float("scale"), 1, "factor of q")
	for i, in := range k.inputs {
		r.firsts[i], r.widths[i] = in.declarePlace(s, k.delta.Kind.Params[i])
	}
	if k.norm != nil {
		r.eps = s.F32("eps", k.norm.Attrs.Float("eps"), 1e-6, "added to the sum of squares of q and k")
	}
	if k.gated != nil {
		r.gatedEps = s.F32("gated_eps", k.gated.Attrs.Float("eps"), 1e-6, "added to the mean square of a result")
	}
	if k.conv != nil {
		r.conv = &convArgs{convKernel: convKernel{taps: k.taps()}, x: r.deltaBuffers.inputs[0], weight: r.weight, ring: r.ring,
			pos: r.pos, slot: r.slots, alone: k.rows.Max == 1, width: r.widths[0], depth: declareDepth(s, k.conv.Args[2])}
	}
	if k.write != nil {
		r.ringPart = s.U32("ring_tile", k.ringTile(), 128, "channels that a workgroup writes into the ring")
	}
	return r, extent
}

func (k *deltaKernel) kernel(s *site.Signature) func(b *kernel.Builder) {
	r, extent := k.declareRun(s)
	return func(b *kernel.Builder) {
		r.b, r.rows = b, extent.Load(b)
		r.findHead()
		b.Workgroup(k.lanes())
		if k.wide {
			newDeltaLanes(r).run()
			return
		}
		places, tokens := k.block(), k.block()
		if k.every > 0 {
			places, tokens = turnsPlaces, turnsPlaces+1 // whole fours of words
		}
		r.inputs = b.Shared(lane.F32x4, places*3*k.headDim/4)
		r.results = b.Shared(lane.F32x4, places*k.width()/4)
		r.tokens = b.Shared(lane.F32x2, tokens)
		if k.defers {
			for c := range r.deltas {
				r.deltas[c] = b.Var(kernel.F32, 0)
			}
		}
		if k.every > 0 {
			newDeltaTurns(r).run()
			return
		}
		if k.asks {
			r.askFor()
			r.loadConstants()
		}
		r.findRows()
		r.loadState()
		r.startFetch()
		if k.asks {
			write := r.keepRow()
			b.SubgroupHint() // else loads stand where one lane needs them
			r.tokensFrom(r.row, r.storeState)
			write()
			return
		}
		if k.write != nil {
			r.writeRing()
		}
		if k.rows.Run <= k.block() && !k.defers {
			r.tokensFrom(r.row, r.storeState)
			return
		}
		b.For(0, r.rows, k.block(), func(first kernel.Value) {
			if k.mixes || k.rows.Part > 0 {
				first = b.Add(r.row, first)
			}
			r.tokensFrom(first, func() {})
		})
		if k.defers {
			r.leaveState(r.pos.Load(kernel.U32, r.row), b.Gt(r.rows, 1), b.U32(0))
		} else {
			r.storeState()
		}
	}
}

// findHead finds the head of this workgroup, and the lane's team.
func (r *deltaRun) findHead() {
	b := r.b
	r.group = b.WorkgroupID(0)
	r.head, r.part = b.Div(r.group, r.parts), b.Mod(r.group, r.parts)
	keyHead := b.Mod(b.Div(r.head, r.run), r.keys)
	for i, head := range []kernel.Value{keyHead, keyHead, r.head} {
		r.from[i] = b.Add(r.firsts[i], b.Mul(head, r.headDim))
	}
	r.mine, r.member = b.Div(b.LocalID(), r.team()), b.Mod(b.LocalID(), r.team())
}

// findRows finds the rows of this workgroup, and ends it if there are none.
func (r *deltaRun) findRows() {
	b, slots, n := r.b, r.slots, r.rows
	if of := r.deltaKernel.rows; of.Part > 0 {
		run := runOf(b, of, r.wave, n, b.WorkgroupID(1), r.pos, slots)
		r.row, r.slot, r.rows, r.last = run.first, run.slot, b.Sub(run.end, run.first), b.Sub(run.end, 1)
		return
	}
	if r.runs() == 1 {
		r.row, r.slot, r.last = b.U32(0), b.U32(0), b.Sub(n, 1)
		if slots != nil {
			r.slot = slots.Load(kernel.U32, r.row)
		}
		return
	}
	r.row = b.WorkgroupID(1)
	r.slot = slots.Load(kernel.U32, r.row)
	before := slots.Load(kernel.U32, b.Sub(b.Max(r.row, 1), 1))
	same := b.Bool(true)
	r.rows = b.U32(1)
	for i := 1; i < r.deltaKernel.rows.Run; i++ {
		next := b.Add(r.row, i)
		same = b.And(same, b.Lt(next, n), b.Eq(slots.Load(kernel.U32, b.Min(next, r.runs()-1)), r.slot))
		r.rows = b.Add(r.rows, b.Select(same, b.U32(1), b.U32(0)))
	}
	r.last = b.Sub(b.Add(r.row, r.rows), 1)
	b.ReturnIf(b.Or(b.Ge(r.row, n), b.And(b.Gt(r.row, 0), b.Eq(before, r.slot))))
}

// askFor asks for the workgroup's part of the state and for its channels in the ring, of the one slot: a lane for a
// line of 128 bytes. While the dispatch before runs, memory brings them.
func (r *deltaRun) askFor() {
	b := r.b
	const line = 32 // words
	lines := r.width() * r.headDim / line
	first := b.Mul(b.Add(b.Mul(r.head, r.stateRows()), b.Mul(r.part, r.width())), r.headDim)
	b.For(b.LocalID(), lines, r.lanes(), func(i kernel.Value) { r.stateBuffer.Prefetch(b.Add(first, b.Mul(i, line))) })
	if r.conv == nil {
		return
	}
	each := site.CeilDiv(r.headDim, line)
	b.For(b.LocalID(), b.Mul(r.conv.depth, 3*each), r.lanes(), func(i kernel.Value) {
		input := b.Mod(b.Div(i, each), 3)
		channel := b.Add(b.Select(b.Eq(input, 0), r.from[0], b.Select(b.Eq(input, 1), r.from[1], r.from[2])), b.Mul(b.Mod(i, each), line))
		r.conv.ring.Prefetch(b.Add(b.Mul(b.Div(i, 3*each), r.conv.width), channel))
	})
}

// deltaConstants are the weights that a lane needs for one token. They are there when the dispatch before has ended;
// from memory they would come later than what that has made, some of them behind the last barrier.
type deltaConstants struct {
	taps     [][]kernel.Value // of the convolution, by element that the lane prepares
	dt, rate kernel.Value     // of the head's decay
	gain     kernel.Value     // of the norm of the result
}

func (r *deltaRun) loadConstants() {
	b, c := r.b, &deltaConstants{}
	if r.conv != nil {
		for j := range r.prepared() {
			_, input, i := r.item(j)
			c.taps = append(c.taps, r.conv.weights(b, r.channel(input, i)))
		}
	}
	if s := r.deltaBuffers.scales; s.dt != nil {
		c.dt, c.rate = s.dt.Load(kernel.F32, r.head), s.rate.Load(kernel.F32, r.head)
	}
	if r.gated != nil {
		c.gain = r.gain.Load(lane.F32x4, b.Mod(b.LocalID(), r.width()/4))
	}
	r.constants = c
}

// column returns the column c of this lane's team, among those of the workgroup.
func (r *deltaRun) column(c int) kernel.Value {
	return r.b.Add(r.mine, c*r.teams())
}

// eachState calls do for the accesses to the state of a slot that are this lane's: access p
// of column c, and its place in the state.
func (r *deltaRun) eachState(slot kernel.Value, do func(c, p int, at kernel.Value)) {
	b, row := r.b, r.headDim/4
	head := b.Mul(b.Add(b.Mul(slot, r.heads), r.head), r.stateRows()*row)
	for c := range r.state {
		column := r.valueDim(c)
		for p := range r.held() {
			do(c, p, b.Add(head, b.Mul(column, row), b.Add(r.member, p*r.team())))
		}
	}
}

// valueDim returns the value dim of column c of this lane's team.
func (r *deltaRun) valueDim(c int) kernel.Value {
	return r.b.Add(r.b.Mul(r.part, r.width()), r.column(c))
}

// logAt is the element of the state where the log of the head in a slot begins.
func (r *deltaRun) logAt(slot kernel.Value) kernel.Value {
	b := r.b
	return b.Mul(b.Add(b.Mul(b.Add(b.Mul(slot, r.heads), r.head), r.stateRows()), r.headDim), r.headDim)
}

// loadState loads the state, which is 0 before position 0.
func (r *deltaRun) loadState() {
	b := r.b
	begun := b.Splat(b.Gt(r.pos.Load(kernel.U32, r.row), 0), 4)
	r.eachState(r.slot, func(c, _ int, at kernel.Value) {
		s := b.Select(begun, r.stateBuffer.Load(lane.F32x4, at), 0)
		r.state[c] = append(r.state[c], b.Var(lane.F32x4, s))
	})
	if r.log > 0 {
		r.apply(logIn(b, r.log, r.headDim, r.stateBuffer, r.logAt(r.slot)), b.Eq(r.pos.Load(kernel.U32, r.row), 0))
	}
}

// apply applies the updates of a log that wait.
func (r *deltaRun) apply(log *deltaLog, begins kernel.Value) {
	b := r.b
	r.waiting = log.waiting(begins, r.valueDim(0))
	var fours []kernel.Value
	for p := range r.held() {
		fours = append(fours, b.Add(r.member, p*r.team()))
	}
	log.apply(r.waiting, []kernel.Value{r.valueDim(0), r.valueDim(1)}, fours, func(c, p int, by func(s kernel.Value) kernel.Value) {
		s := r.state[c][p]
		s.Set(by(s.Get()))
	})
}

// storeState stores the state, which then lacks no updates.
func (r *deltaRun) storeState() {
	r.eachState(r.slot, func(c, p int, at kernel.Value) { r.stateBuffer.Store(at, r.state[c][p].Get()) })
	if r.log > 0 {
		r.b.If(r.b.Eq(r.member, 0), func() { r.keepWaiting(r.b.U32(0)) })
	}
}

// keepWaiting stores how many updates this lane's columns lack.
func (r *deltaRun) keepWaiting(n kernel.Value) {
	b := r.b
	for c := range r.state {
		r.stateBuffer.Store(b.Add(r.logAt(r.slot), r.valueDim(c)), b.Convert(kernel.F32, n))
	}
}

// leaveState leaves what a row, or with more a run of rows, makes of the state: the state or, if the update of the one
// row may wait, that.
func (r *deltaRun) leaveState(pos, more, token kernel.Value) {
	b := r.b
	now := b.Or(more, b.Eq(pos, 0), b.Eq(b.Mod(b.Add(pos, r.slot, 1), r.log), 0), b.Eq(r.waiting, r.log-1))
	b.IfElse(now, r.storeState, func() { r.storeUpdate(token) })
}

// storeUpdate adds the update of the one row to those that wait.
func (r *deltaRun) storeUpdate(token kernel.Value) {
	b, at := r.b, r.logAt(r.slot)
	log := logIn(b, r.log, r.headDim, r.stateBuffer, at)
	b.If(b.Eq(r.member, 0), func() {
		for c, delta := range r.deltas {
			r.stateBuffer.Store(b.Add(at, log.deltaAt(r.waiting), r.valueDim(c)), delta.Get())
		}
		r.keepWaiting(b.Add(r.waiting, 1))
	})
	quads := r.headDim / 4
	b.If(b.Lt(b.LocalID(), quads), func() {
		key := b.Add(b.Div(b.Add(at, log.keyAt(r.waiting)), 4), b.LocalID())
		r.stateBuffer.Store(key, r.inputs.Load(b.Add(b.Mul(token, 3*quads), b.LocalID(), quads)))
	})
	b.If(b.Eq(b.LocalID(), 0), func() {
		r.stateBuffer.Store(b.Add(at, log.decayAt(r.waiting)), b.Elem(r.tokens.Load(token), 0))
	})
}

// writeRing copies this workgroup's channels of its rows into the ring.
func (r *deltaRun) writeRing() {
	b, c := r.b, r.conv
	tile := r.ringPart
	b.For(b.LocalID(), b.Mul(r.rows, tile), r.lanes(), func(i kernel.Value) {
		row, channel := b.Add(r.row, b.Div(i, tile)), b.Add(b.Mul(r.group, tile), b.Mod(i, tile))
		b.If(b.Lt(channel, c.width), func() {
			at := b.Add(b.Mul(c.slotOf(b, row), c.depth), b.Mod(c.pos.Load(kernel.U32, row), c.depth))
			c.ring.Store(b.Add(b.Mul(at, c.width), channel), c.x.Load(kernel.F32, b.Add(b.Mul(row, c.width), channel)))
		})
	})
}

// keepRow loads this workgroup's channels of the row, and returns what writes them into the ring, for which nothing in
// the dispatch waits.
func (r *deltaRun) keepRow() (write func()) {
	if r.write == nil {
		return func() {}
	}
	b, c := r.b, r.conv
	at := b.Mod(c.pos.Load(kernel.U32, r.row), c.depth)
	if r.every > 0 {
		at = b.Add(b.Mul(r.slot, c.depth), at)
	}
	var stores []func()
	for j := range r.ringAccesses() {
		i := b.Add(b.LocalID(), j*r.lanes())
		channel := b.Add(b.Mul(r.group, r.ringPart), i)
		from := b.Min(channel, b.Sub(c.width, 1))
		if r.every > 0 {
			from = b.Add(b.Mul(r.row, c.width), from)
		}
		v := c.x.Load(kernel.F32, from)
		stores = append(stores, func() {
			b.If(b.And(b.Lt(i, r.ringPart), b.Lt(channel, c.width)), func() { c.ring.Store(b.Add(b.Mul(at, c.width), channel), v) })
		})
	}
	return func() {
		for _, store := range stores {
			store()
		}
	}
}

// prepared is how many elements of a block of tokens a lane prepares.
func (r *deltaRun) prepared() int { return site.CeilDiv(r.block()*3*r.headDim, r.lanes()) }

// startFetch fetches the first block.
func (r *deltaRun) startFetch() {
	b := r.b
	r.fetched = nil
	for range r.prepared() {
		r.fetched = append(r.fetched, b.Var(kernel.F32, 0))
	}
	r.decay, r.beta = b.Var(kernel.F32, 0), b.Var(kernel.F32, 0)
	r.fetch(r.row)
}

// fetch loads what this lane prepares of the block of tokens that starts at row
// first. Rows past the end repeat the last one.
func (r *deltaRun) fetch(first kernel.Value) {
	b := r.b
	for j, v := range r.fetched {
		token, input, i := r.item(j)
		row := b.Min(b.Add(first, token), r.last)
		if r.constants != nil && r.conv != nil {
			v.Set(r.conv.sum(b, row, r.channel(input, i), r.constants.taps[j], nil))
			continue
		}
		v.Set(r.input(row, input, i))
	}
	r.scales(b.Min(b.Add(first, b.Min(b.LocalID(), r.block()-1)), r.last))
}

// scales loads decay and beta of a row.
func (r *deltaRun) scales(row kernel.Value) {
	b := r.b
	at := b.Add(b.Mul(row, r.heads), r.head)
	r.beta.Set(r.deltaBuffers.scales.beta.Load(kernel.F32, at))
	if c, s := r.constants, r.deltaBuffers.scales; c != nil && s.dt != nil {
		r.decay.Set(lane.LogDecay(b, s.a.Load(kernel.F32, at), c.dt, c.rate))
		return
	}
	r.decay.Set(r.deltaBuffers.scales.logDecay(b, at, r.head))
}

// item returns the token of a block, the input (0 to 2 for q, k, v) and the dim
// that are this lane's j-th. Items past the block repeat its last token.
func (r *deltaRun) item(j int) (token, input, i kernel.Value) {
	b, d := r.b, r.headDim
	at := b.Add(b.LocalID(), j*r.lanes())
	return b.Min(b.Div(at, 3*d), r.block()-1), b.Mod(b.Div(at, d), 3), b.Mod(at, d)
}

// channel is where element i of an input is in a row, if all are parts of the same rows.
func (r *deltaRun) channel(input, i kernel.Value) kernel.Value {
	b := r.b
	return b.Add(b.Select(b.Eq(input, 0), r.from[0], b.Select(b.Eq(input, 1), r.from[1], r.from[2])), i)
}

// input returns an element of q, k or v.
func (r *deltaRun) input(row, input, i kernel.Value) kernel.Value {
	b := r.b
	if r.joint() {
		channel := r.channel(input, i)
		if r.conv != nil {
			return r.conv.at(b, row, channel)
		}
		return r.deltaBuffers.inputs[0].Load(kernel.F32, b.Add(b.Mul(row, r.widths[0]), channel))
	}
	v := b.Var(kernel.F32, 0)
	for n, x := range r.deltaBuffers.inputs {
		b.If(b.Eq(input, n), func() {
			v.Set(x.Load(kernel.F32, b.Add(b.Mul(row, r.widths[n]), r.from[n], i)))
		})
	}
	return v.Get()
}

// tokensFrom runs the block of tokens that has been fetched, from row first on,
// and fetches the next one if there may be one. then follows the last token.
func (r *deltaRun) tokensFrom(first kernel.Value, then func()) {
	b := r.b
	live := b.Min(b.Sub(b.Add(r.last, 1), first), r.block())
	r.prepare()
	b.Barrier()
	if r.norm != nil {
		r.normalize()
	}
	finish := r.finish(first, live)
	if r.deltaKernel.rows.Run > r.block() {
		next := b.Add(first, r.block())
		if r.manyRuns() {
			b.If(b.Le(next, r.last), func() { r.fetch(next) })
		} else {
			r.fetch(next)
		}
	}
	r.barrier()
	each := func() { b.For(0, live, 1, r.step) }
	switch {
	case r.block() == 1:
		r.step(b.U32(0))
	case r.whole():
		b.IfElse(b.Eq(live, r.block()), r.steps, each)
	default:
		each()
	}
	then()
	b.Barrier()
	finish()
}

// barrier is the last one in front of what changes the state. Behind it all have read the log.
func (r *deltaRun) barrier() {
	if r.log > 0 {
		r.b.BarrierBuffers()
		return
	}
	r.b.Barrier()
}

// prepare puts what was fetched into shared memory.
func (r *deltaRun) prepare() {
	b, size := r.b, r.block()*3*r.headDim
	for j, v := range r.fetched {
		at := b.Add(b.LocalID(), j*r.lanes())
		store := func() { r.inputs.StoreElem(b.Div(at, 4), b.Mod(at, 4), v.Get()) }
		if (j+1)*r.lanes() <= size {
			store()
		} else {
			b.If(b.Lt(at, size), store)
		}
	}
	r.keepScales()
}

// keepScales puts decay and beta of a block of tokens into shared memory.
func (r *deltaRun) keepScales() {
	b := r.b
	b.If(b.Lt(b.LocalID(), r.block()), func() {
		beta := r.beta.Get()
		if r.sigmoid != nil {
			beta = lane.Sigmoid(b, beta)
		}
		fade := b.Exp(r.decay.Get())
		r.tokens.Store(b.LocalID(), b.Vec(fade, beta))
	})
}

// normalize divides each q and k in shared memory by its length, a team each.
func (r *deltaRun) normalize() {
	b := r.b
	b.For(r.mine, 2*r.block(), r.lanes()/r.team(), func(i kernel.Value) {
		r.normalizeOne(b.Mul(b.Add(b.Mul(b.Div(i, 2), 3), b.Mod(i, 2)), r.headDim/4))
	})
}

// normalizeOne has the team divide the vector that begins there by its length.
func (r *deltaRun) normalizeOne(from kernel.Value) {
	b := r.b
	list, squares := r.squares4(r.inputs, from)
	scale := b.InverseSqrt(b.Add(squares, r.eps))
	for p, v := range list {
		r.inputs.Store(b.Add(from, b.Add(r.member, p*r.team())), b.Mul(v, b.Splat(scale, 4)))
	}
}

// squares4 loads this lane's elements of a vector of headDim in shared memory, and
// sums the squares of all its elements.
func (r *deltaRun) squares4(array *kernel.Array, from kernel.Value) (list []kernel.Value, squares kernel.Value) {
	list = r.vector(array, from)
	return list, lane.TeamSquares(r.b, list, r.team())
}

// vector loads this lane's elements of a vector of headDim in shared memory.
func (r *deltaRun) vector(array *kernel.Array, from kernel.Value) []kernel.Value {
	list := make([]kernel.Value, r.held())
	for p := range list {
		list[p] = array.Load(r.b.Add(from, r.b.Add(r.member, p*r.team())))
	}
	return list
}

// teamSum returns the sum of all elements of v of all lanes of the team.
func (r *deltaRun) teamSum(v kernel.Value) kernel.Value { return lane.TeamSum(r.b, v, r.team()) }

// step is one token: it changes the state and puts what it says into results.
func (r *deltaRun) step(token kernel.Value) {
	b := r.b
	for c, said := range r.change(token) {
		y := b.Mul(r.teamSum(said), r.scale)
		b.If(b.Eq(r.member, 0), func() { r.say(token, c, y) })
	}
}

// whole reports whether a block of tokens in one go pays: each lane of a team gets one of
// the sums that they leave, and there are enough of them for the code, which is long.
func (k *deltaKernel) whole() bool {
	return !k.wide && k.team() == k.block() && k.rows.Max >= 32*deltaBlock
}

// steps is a block of tokens. Behind all of them the team adds up their results, since no
// state waits for these: the lanes exchange half of the sums that they have left, and end
// with that of one token each.
func (r *deltaRun) steps() {
	b := r.b
	var said [deltaColumns][]kernel.Value
	for token := range r.block() {
		for c, v := range r.change(b.U32(uint32(token))) {
			said[c] = append(said[c], lane.Sum4(b, v))
		}
	}
	for c, list := range said {
		r.say(r.member, c, b.Mul(lane.SumEach(b, list, r.member, 1), r.scale))
	}
}

// say puts what a token says in column c into results.
func (r *deltaRun) say(token kernel.Value, c int, y kernel.Value) {
	b := r.b
	at := b.Add(b.Mul(token, r.width()), r.column(c))
	r.results.StoreElem(b.Div(at, 4), b.Mod(at, 4), y)
}

// change lets a token change the state and returns what it says, by column: this lane's
// part of it.
func (r *deltaRun) change(token kernel.Value) (says [deltaColumns]kernel.Value) {
	b, quads := r.b, r.headDim/4
	t := r.tokens.Load(token)
	decay, beta := b.Elem(t, 0), b.Elem(t, 1)
	from := b.Mul(token, 3*quads)
	q, k := r.vector(r.inputs, from), r.vector(r.inputs, b.Add(from, quads))
	for c, column := range r.state {
		place := b.Add(b.Mul(r.part, r.width()), r.column(c))
		v := r.inputs.LoadElem(b.Add(from, 2*quads, b.Div(place, 4)), b.Mod(place, 4))
		dot := b.Splat(b.F32(0), 4)
		for p, s := range column {
			s.Set(b.Mul(s.Get(), b.Splat(decay, 4)))
			dot = b.FMA(s.Get(), k[p], dot)
		}
		change := b.Mul(beta, b.Sub(v, r.teamSum(dot)))
		if r.deltas[c] != nil {
			r.deltas[c].Set(change)
		}
		delta := b.Splat(change, 4)
		said := b.Splat(b.F32(0), 4)
		for p, s := range column {
			s.Set(b.FMA(delta, k[p], s.Get()))
			said = b.FMA(s.Get(), q[p], said)
		}
		says[c] = said
	}
	return says
}

// finish returns what writes the results of a block of tokens, four elements a
// lane, and loads what that needs. The four of all lanes of a team are of one
// token.
func (r *deltaRun) finish(first, live kernel.Value) func() {
	b, quads := r.b, r.width()/4
	token, quad := b.Div(b.LocalID(), quads), b.Mod(b.LocalID(), quads)
	row := b.Min(b.Add(first, token), r.last)
	at := b.Add(b.Mul(b.Add(b.Mul(row, r.heads), r.head), r.headDim/4), b.Mul(r.part, quads), quad)
	var z, gain kernel.Value
	if r.gated != nil {
		z = r.z.Load(lane.F32x4, at)
		if r.constants != nil {
			gain = r.constants.gain
		} else {
			gain = r.gain.Load(lane.F32x4, quad)
		}
	}
	return func() {
		b.If(b.Lt(token, live), func() {
			y := r.results.Load(b.LocalID())
			if r.gated != nil {
				_, squares := r.squares4(r.results, b.Mul(token, quads))
				y = lane.GatedHead(b, y, lane.HeadScale(b, squares, r.headDim, r.gatedEps), gain, z)
			}
			r.yBuffer.Store(at, y)
		})
	}
}

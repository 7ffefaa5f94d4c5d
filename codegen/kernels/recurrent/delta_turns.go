package recurrent

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
)

// Steps of many sequences read as many states and write some of them (deltaLog), which is what bounds them. So each
// workgroup takes several rows in turn, and while it computes one, the state of the next is on its way to shared
// memory: each lane copies what it holds later. The first states come while the dispatch before ends
// (docs/lab/hybrids.md).
//
// A load waits until the states that a unit has asked for before have come. So all else that rows need is copied as
// well, a turn before, and what all rows need lies in shared memory from the begin on. A turn has one barrier, behind
// which all lanes change the state of a row. Besides, some lanes each make q, k and v of the row two turns later,
// normalize those of the next row, and finish the result of the row before.

// turnsUse is the share of the units' room that workgroups have at least, in percent, two of them on a unit.
const turnsUse = 90

const (
	turnsPlaces = 3 // rows whose inputs and results are in shared memory
	turnsRaw    = 2 // rows that what these are made of is copied of
	turnsLead   = 3 // in how many turns the row comes whose inputs are asked for
)

// everyRow returns how many workgroups share the rows of a head in turn, the fewest that leave few units without work;
// 0 if there are none.
func (k *deltaKernel) everyRow(t *target.Target) int {
	if k.room == 0 || !k.defers || !t.Copies() || !k.copiesFours() || 2*k.turnsBytes() > t.SharedOptIn {
		return 0
	}
	for n := 1; n <= k.rows.Max/2; n++ {
		workgroups, atOnce := k.heads*k.parts*n, 2*t.Units
		if k.rows.Max%n == 0 && 100*workgroups >= turnsUse*site.CeilDiv(workgroups, atOnce)*atOnce {
			return n
		}
	}
	return 0
}

// deltaTurns is the kernel that takes rows in turn.
type deltaTurns struct {
	*deltaRun
	ahead    *kernel.Array // the state of the next row, by access, lane
	logs     *kernel.Array // that of the next row, and that of the row at hand
	logFirst *kernel.Var   // where the one that was copied last begins
	table    *kernel.Array // the workgroup's rows: slot, position, flags
	raw      *kernel.Array // what the inputs of some rows are made of
	scalars  *kernel.Array // and what decay and beta are made of
	gates    *kernel.Array // z of the row at hand and that before
	// Of all rows:
	weights *kernel.Array // of the convolution, by channel
	gains   *kernel.Array
	rates   *kernel.Array // of the head's decay: dt and rate, in a four of words
}

func newDeltaTurns(r *deltaRun) *deltaTurns {
	b := r.b
	t := &deltaTurns{deltaRun: r, logFirst: b.Var(kernel.U32, 0),
		ahead: b.Shared(lane.U32x4, r.headDim*r.width()/4), logs: b.Shared(lane.U32x4, 2*r.logSize()),
		table: b.Shared(lane.U32x4, r.deltaKernel.rows.Max/r.every+turnsLead), raw: b.Shared(lane.U32x4, turnsRaw*r.rawSize()),
		scalars: b.Shared(kernel.U32, 2*turnsRaw), gates: b.Shared(lane.U32x4, 2*r.width()/4), gains: b.Shared(lane.F32x4, r.width()/4),
		rates: b.Shared(kernel.F32, 4)}
	if r.conv != nil {
		vec := site.Widest(r.taps())
		t.weights = b.Shared(kernel.F32.Vec(vec), 3*r.headDim*r.taps()/vec)
	}
	return t
}

func (r *deltaTurns) run() {
	b, n := r.b, r.rows
	first := b.WorkgroupID(1)
	of := r.find(first, n)
	r.copyState(of)
	b.If(of.begins, func() { r.copyLog(of.slot) })
	b.For(b.LocalID(), r.deltaKernel.rows.Max/r.every+turnsLead, r.lanes(), func(i kernel.Value) {
		of := r.find(b.Add(first, b.Mul(i, r.every)), n)
		flags := b.Or(b.Select(of.begins, b.U32(1), b.U32(0)), b.Select(of.more, b.U32(2), b.U32(0)))
		r.table.Store(i, b.Vec(of.slot, of.pos, flags, 0))
	})
	r.loadCommon()
	b.Await()
	b.Barrier()
	at := func(turn kernel.Value) deltaNext { return r.at(first, turn) }
	for i := range turnsRaw {
		r.ask(at(b.U32(uint32(i))), b.U32(uint32(i)))
	}
	b.CopyGroup()
	b.CopyWait(0)
	b.Barrier()
	for i := range turnsRaw {
		r.prepareFirst(at(b.U32(uint32(i))), b.U32(uint32(i)), b.U32(uint32(i)))
	}
	b.Barrier()
	r.ask(at(b.U32(turnsRaw)), b.U32(0))
	b.CopyGroup()
	r.normalizeFirst(at(b.U32(0)), b.U32(0))
	turns := b.Div(b.Add(b.Sub(b.Max(n, first), first), r.every-1), r.every)
	b.For(0, turns, 1, func(turn kernel.Value) {
		place := func(i int) kernel.Value { return b.Mod(b.Add(turn, i), turnsPlaces) }
		odd := b.And(turn, 1)
		of, next := at(turn), at(b.Add(turn, 1))
		ask := func() {
			r.barrier() // here, so that the driver's compiler knows that all lanes come together
			b.If(next.begins, func() { r.copyLog(next.slot) })
			r.ask(at(b.Add(turn, turnsLead)), b.Xor(odd, 1))
			r.askGate(of, odd)
			b.CopyGroup()
		}
		b.CopyWait(0)
		b.IfElse(of.begins, func() { r.turn(of, next, place(0), ask) }, func() {
			r.copyState(next)
			ask()
		})
		r.prepareFirst(at(b.Add(turn, 2)), place(2), odd)
		r.normalizeFirst(next, place(1))
		r.finishBefore(at(b.Sub(b.Max(turn, 1), 1)), b.Gt(turn, 0), place(2), b.Xor(odd, 1))
		b.If(of.more, func() { r.rest(of, n, place(0)) })
	})
	b.CopyWait(0)
	b.Barrier()
	last := b.Sub(b.Max(turns, 1), 1)
	r.finishBefore(at(last), b.Gt(turns, 0), b.Mod(last, turnsPlaces), b.And(last, 1))
}

// deltaNext is the row of a turn: its slot and position, whether there is such a row and it is the first of its
// sequence, and whether the next row is of the same one.
type deltaNext struct{ row, slot, pos, begins, more kernel.Value }

// find finds a row of n.
func (r *deltaTurns) find(row, n kernel.Value) deltaNext {
	b := r.b
	last := b.Sub(n, 1)
	at, behind := b.Min(row, last), b.Add(row, 1)
	slot, before, after := r.slots.Load(kernel.U32, at), r.slots.Load(kernel.U32, b.Sub(b.Max(at, 1), 1)), r.slots.Load(kernel.U32, b.Min(behind, last))
	begins := b.And(b.Lt(row, n), b.Or(b.Eq(at, 0), b.Ne(before, slot)))
	return deltaNext{at, slot, r.pos.Load(kernel.U32, at), begins, b.And(begins, b.Lt(behind, n), b.Eq(after, slot))}
}

// at returns the row of a turn, which was found before.
func (r *deltaTurns) at(first, turn kernel.Value) deltaNext {
	b := r.b
	e := r.table.Load(turn)
	flags := b.Elem(e, 2)
	return deltaNext{b.Add(first, b.Mul(turn, r.every)), b.Elem(e, 0), b.Elem(e, 1), b.Ne(b.And(flags, 1), 0), b.Ne(b.And(flags, 2), 0)}
}

// among calls do for each of n items in one lane, from the lane first on.
func (r *deltaTurns) among(first, n int, do func(i kernel.Value)) {
	b, lanes := r.b, r.lanes()
	first %= lanes
	own := b.LocalID()
	if first > 0 {
		own = b.Mod(b.Add(own, lanes-first), lanes)
	}
	for from := 0; from < n; from += lanes {
		i := b.Add(own, from)
		if n-from >= lanes {
			do(i)
		} else {
			b.If(b.Lt(i, n), func() { do(i) })
		}
	}
}

// resultAt is where the result of a row begins, in fours of elements.
func (r *deltaTurns) resultAt(row kernel.Value) kernel.Value {
	b := r.b
	return b.Add(b.Mul(b.Add(b.Mul(row, r.heads), r.head), r.headDim/4), b.Mul(r.part, r.width()/4))
}

// turn changes the state of a row, whose inputs are in a place, and begins to copy that of the next one. ask asks for
// what else is needed, behind a barrier.
func (r *deltaTurns) turn(of, next deltaNext, place kernel.Value, ask func()) {
	b := r.b
	r.row, r.slot = of.row, of.slot
	begins := b.Eq(of.pos, 0)
	log := r.copiedLog()
	r.takeState(begins)
	r.copyState(next)
	ask()
	r.apply(log, begins)
	r.step(place)
	r.leaveState(of.pos, of.more, place)
}

// rest finishes the row, and takes those of the same sequence behind it, of n rows.
func (r *deltaTurns) rest(of deltaNext, n, place kernel.Value) {
	b := r.b
	r.row, r.slot = of.row, of.slot
	b.Barrier()
	r.finishRow(of.row, place, r.gateOf(of.row))
	count, same := b.U32(1), b.Bool(true)
	for i := 1; i < r.deltaKernel.rows.Run; i++ {
		next := b.Add(of.row, i)
		same = b.And(same, b.Lt(next, n), b.Eq(r.slots.Load(kernel.U32, b.Min(next, b.Sub(n, 1))), r.slot))
		count = b.Add(count, b.Select(same, b.U32(1), b.U32(0)))
	}
	for c := range r.state {
		r.state[c] = nil
	}
	r.eachState(r.slot, func(c, _ int, at kernel.Value) { // in registers it would be in the way of all rows
		r.state[c] = append(r.state[c], b.Var(lane.F32x4, r.stateBuffer.Load(lane.F32x4, at)))
	})
	b.For(1, count, 1, func(i kernel.Value) {
		r.row = b.Add(of.row, i)
		r.last = r.row
		r.prepareRow(r.row, place)
		b.Barrier()
		r.normalizeAt(place)
		b.Barrier()
		r.step(place)
		b.Barrier()
		r.finishRow(r.row, place, r.gateOf(r.row))
	})
	r.storeState()
}

// prepareFirst makes the inputs of a row of what was copied for it, if it is the first of its sequence.
func (r *deltaTurns) prepareFirst(of deltaNext, place, raw kernel.Value) {
	b, quads := r.b, r.headDim/4
	from := b.Mul(raw, r.rawSize())
	b.If(of.begins, func() {
		element := func(first int, at kernel.Value) kernel.Value {
			return b.Bitcast(kernel.F32, r.raw.LoadElem(b.Add(from, first, b.Div(at, 4)), b.Mod(at, 4)))
		}
		r.among(0, 3*r.headDim, func(at kernel.Value) {
			v := element(0, at)
			if r.conv != nil {
				vec := site.Widest(r.taps())
				var weights []kernel.Value
				for i := range r.taps() / vec {
					weights = append(weights, lane.Elements(b, r.weights.Load(b.Add(b.Mul(at, r.taps()/vec), i)))...)
				}
				past := func(d int) kernel.Value { return b.Select(b.Ge(of.pos, d), element(d*3*quads, at), 0) }
				v = r.conv.act(b, lane.Ring{Taps: r.taps()}.Sum(b, b.F32(0), weights, past, v))
			}
			to := b.Add(b.Mul(place, 3*r.headDim), at)
			r.inputs.StoreElem(b.Div(to, 4), b.Mod(to, 4), v)
		})
		r.among(3*r.headDim+2*r.wave, 1, func(kernel.Value) {
			scalar := func(i int) kernel.Value { return b.Bitcast(kernel.F32, r.scalars.Load(b.Add(b.Mul(raw, 2), i))) }
			decay := scalar(0)
			if r.decayOp() {
				decay = lane.LogDecay(b, decay, r.rates.Load(b.U32(0)), r.rates.Load(b.U32(1)))
			}
			r.keepToken(place, decay, scalar(1))
		})
		if r.write != nil {
			c := r.conv
			r.among(r.lanes()/2, r.deltaKernel.ringTile()/4, func(i kernel.Value) {
				channel := b.Add(b.Mul(r.group, r.ringPart), b.Mul(i, 4))
				b.If(b.Lt(channel, c.width), func() {
					at := b.Add(b.Mul(of.slot, c.depth), b.Mod(of.pos, c.depth))
					v := r.raw.Load(b.Add(from, r.rawSize()-r.deltaKernel.ringTile()/4, i))
					c.ring.Store(b.Div(b.Add(b.Mul(at, c.width), channel), 4), b.Bitcast(lane.F32x4, v))
				})
			})
		}
	})
}

// decayOp reports whether the kernel computes the log decay.
func (r *deltaTurns) decayOp() bool { return r.deltaBuffers.scales.g == nil }

// keepToken puts decay and beta of a row into a place.
func (r *deltaTurns) keepToken(place, decay, beta kernel.Value) {
	if r.sigmoid != nil {
		beta = lane.Sigmoid(r.b, beta)
	}
	r.tokens.Store(place, r.b.Vec(r.b.Exp(decay), beta))
}

// prepareRow makes the inputs of any row, and puts it into the ring.
func (r *deltaTurns) prepareRow(row, place kernel.Value) {
	b := r.b
	r.among(0, 3*r.headDim, func(at kernel.Value) {
		to := b.Add(b.Mul(place, 3*r.headDim), at)
		r.inputs.StoreElem(b.Div(to, 4), b.Mod(to, 4), r.input(row, b.Div(at, r.headDim), b.Mod(at, r.headDim)))
	})
	r.among(0, 1, func(kernel.Value) {
		at := b.Add(b.Mul(row, r.heads), r.head)
		r.keepToken(place, r.deltaBuffers.scales.logDecay(b, at, r.head), r.deltaBuffers.scales.beta.Load(kernel.F32, at))
	})
	r.keepRow()()
}

// normalizeFirst divides q and k in a place by their lengths, if a row is the first of its sequence.
func (r *deltaTurns) normalizeFirst(of deltaNext, place kernel.Value) {
	if r.norm != nil {
		r.b.If(of.begins, func() { r.normalizeAt(place) })
	}
}

func (r *deltaTurns) normalizeAt(place kernel.Value) {
	if r.norm == nil {
		return
	}
	b := r.b
	r.among(3*r.headDim, 2*r.team(), func(i kernel.Value) {
		r.normalizeOne(b.Mul(b.Add(b.Mul(place, 3), b.Div(i, r.team())), r.headDim/4))
	})
}

// finishBefore writes the result of a row, if there is one and it is all of its sequence.
func (r *deltaTurns) finishBefore(of deltaNext, is, place, gate kernel.Value) {
	b := r.b
	b.If(b.And(is, of.begins, b.Not(of.more)), func() {
		r.finishRow(of.row, place, func(i kernel.Value) kernel.Value {
			return b.Bitcast(lane.F32x4, r.gates.Load(b.Add(b.Mul(gate, r.width()/4), i)))
		})
	})
}

// gateOf loads what gates the result of a row.
func (r *deltaTurns) gateOf(row kernel.Value) func(i kernel.Value) kernel.Value {
	return func(i kernel.Value) kernel.Value { return r.z.Load(lane.F32x4, r.b.Add(r.resultAt(row), i)) }
}

// finishRow writes the result of a row that lies in a place.
func (r *deltaTurns) finishRow(row, place kernel.Value, gate func(i kernel.Value) kernel.Value) {
	b, quads := r.b, r.width()/4
	r.among(3*r.headDim+r.wave, quads, func(i kernel.Value) {
		y := r.results.Load(b.Add(b.Mul(place, quads), i))
		if r.gated != nil {
			_, squares := r.squares4(r.results, b.Mul(place, quads))
			y = lane.GatedHead(b, y, lane.HeadScale(b, squares, r.headDim, r.gatedEps), r.gains.Load(i), gate(i))
		}
		r.yBuffer.Store(b.Add(r.resultAt(row), i), y)
	})
}

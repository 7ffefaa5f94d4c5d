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

// turnsUse is the share of the units' room that workgroups have at least, in percent, two of them on a unit.
const turnsUse = 90

// everyRow returns how many workgroups share the rows of a head in turn, the fewest that leave few units without work;
// 0 if there are none.
func (k *deltaKernel) everyRow(t *target.Target) int {
	if k.room == 0 || !k.defers || !t.Copies() || 2*(k.sharedBytes()+k.aheadBytes()) > t.SharedOptIn {
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

// aheadBytes is the size of the state that is on its way, and of two logs: lanes read that of one row while the next
// comes.
func (k *deltaKernel) aheadBytes() int { return 4 * k.headDim * (k.width() + 2*2*k.log) }

// deltaTurns is the kernel that takes rows in turn.
type deltaTurns struct {
	*deltaRun
	ahead        *kernel.Array // the state of the next row, by access, lane
	next, begins *kernel.Var   // the slot of the next row; 1 if it is the first of its sequence, else 0
	logs         *kernel.Array // that of the next row, and that of the row at hand
	logFirst     *kernel.Var   // where the one that was copied last begins
}

func newDeltaTurns(r *deltaRun) *deltaTurns {
	b := r.b
	return &deltaTurns{deltaRun: r, next: b.Var(kernel.U32, 0), begins: b.Var(kernel.U32, 0), logFirst: b.Var(kernel.U32, 0),
		ahead: b.Shared(lane.U32x4, r.headDim*r.width()/4), logs: b.Shared(lane.U32x4, 2*r.logSize())}
}

// logSize is the accesses of 4 elements that a log has.
func (k *deltaKernel) logSize() int { return 2 * k.log * k.headDim / 4 }

func (r *deltaTurns) run() {
	b, n := r.b, r.rows
	first := b.WorkgroupID(1)
	r.copyState(r.find(first, n))
	b.For(first, n, r.every, func(row kernel.Value) {
		next := r.find(b.Add(row, r.every), n)
		r.slot = r.next.Get()
		b.IfElse(b.Ne(r.begins.Get(), 0), func() { r.turn(row, n, next) }, func() { r.copyState(next) })
	})
}

// deltaNext is the row of the next turn.
type deltaNext struct{ slot, begins kernel.Value }

// find finds the slot of a row, and whether there is such a row and it is the first of its sequence.
func (r *deltaTurns) find(row, n kernel.Value) deltaNext {
	b := r.b
	at := b.Min(row, b.Sub(n, 1))
	slot, before := r.slots.Load(kernel.U32, at), r.slots.Load(kernel.U32, b.Sub(b.Max(at, 1), 1))
	return deltaNext{slot, b.And(b.Lt(row, n), b.Or(b.Eq(at, 0), b.Ne(before, slot)))}
}

// copyState starts to copy the state of the next row.
func (r *deltaTurns) copyState(next deltaNext) {
	b := r.b
	r.next.Set(next.slot)
	r.begins.Set(b.Select(next.begins, b.U32(1), b.U32(0)))
	b.If(next.begins, func() {
		r.eachState(next.slot, func(c, p int, at kernel.Value) { r.stateBuffer.Copy(lane.U32x4, r.ahead, r.aheadAt(c, p), at) })
		r.copyLog(next.slot)
	})
	b.CopyGroup()
}

// copyLog starts to copy the log of the next row to where that of the row at hand is not.
func (r *deltaTurns) copyLog(slot kernel.Value) {
	b := r.b
	r.logFirst.Set(b.Sub(r.logSize(), r.logFirst.Get()))
	first := b.Div(r.logAt(slot), 4)
	for from := 0; from < r.logSize(); from += r.lanes() {
		at := b.Add(b.LocalID(), from)
		copy := func() { r.stateBuffer.Copy(lane.U32x4, r.logs, b.Add(r.logFirst.Get(), at), b.Add(first, at)) }
		if from+r.lanes() <= r.logSize() {
			copy()
		} else {
			b.If(b.Lt(at, r.logSize()), copy)
		}
	}
}

// copiedLog is the log that was copied last.
func (r *deltaTurns) copiedLog() *deltaLog {
	b, first := r.b, r.logFirst.Get()
	load4 := func(at kernel.Value) kernel.Value { return b.Bitcast(lane.F32x4, r.logs.Load(b.Add(first, at))) }
	load := func(at kernel.Value) kernel.Value {
		return b.Bitcast(kernel.F32, r.logs.LoadElem(b.Add(first, b.Div(at, 4)), b.Mod(at, 4)))
	}
	return &deltaLog{b, r.log, r.headDim, load, load4}
}

// aheadAt is where an access of the lane waits.
func (r *deltaTurns) aheadAt(c, p int) kernel.Value {
	return r.b.Add(r.b.LocalID(), (c*r.held()+p)*r.lanes())
}

// takeState takes the state that was copied, which is 0 where a sequence begins.
func (r *deltaTurns) takeState(begins kernel.Value) {
	b := r.b
	for c := range r.state {
		r.state[c] = nil
		for p := range r.held() {
			r.state[c] = append(r.state[c], b.Var(lane.F32x4, b.Bitcast(lane.F32x4, r.ahead.Load(r.aheadAt(c, p)))))
		}
	}
	b.If(begins, func() {
		for _, column := range r.state {
			for _, s := range column {
				s.Set(b.Splat(b.F32(0), 4))
			}
		}
	})
}

// turn takes a row and those of the same sequence behind it, of n rows.
func (r *deltaTurns) turn(row, n kernel.Value, next deltaNext) {
	b := r.b
	begins := b.Eq(r.pos.Load(kernel.U32, row), 0)
	last := b.Sub(n, 1)
	follows := func(i kernel.Value) kernel.Value {
		return b.And(b.Le(i, last), b.Eq(r.slots.Load(kernel.U32, b.Min(i, last)), r.slot))
	}
	more := follows(b.Add(row, 1))
	write := r.prepareRow(row)
	b.CopyWait(0)
	r.barrier()
	r.takeState(begins)
	r.apply(r.copiedLog(), begins)
	r.copyState(next)
	r.step(b.U32(0))
	r.leaveState(row, more)
	r.finishRow(row, write)
	b.If(more, func() {
		same := b.Bool(true)
		count := b.U32(1)
		for i := 1; i < r.deltaKernel.rows.Run; i++ {
			same = b.And(same, follows(b.Add(row, i)))
			count = b.Add(count, b.Select(same, b.U32(1), b.U32(0)))
		}
		b.For(1, count, 1, func(i kernel.Value) {
			row := b.Add(row, i)
			write := r.prepareRow(row)
			r.barrier()
			r.step(b.U32(0))
			r.finishRow(row, write)
		})
		r.storeState()
	})
}

// prepareRow prepares a row, but for a barrier, and returns what writes it into the ring.
func (r *deltaTurns) prepareRow(row kernel.Value) (write func()) {
	r.row, r.last = row, row
	r.startFetch()
	write = r.keepRow()
	r.prepare()
	r.b.Barrier()
	if r.norm != nil {
		r.normalize()
	}
	return write
}

// finishRow writes what a row says.
func (r *deltaTurns) finishRow(row kernel.Value, write func()) {
	write()
	finish := r.finish(row, r.b.U32(1)) // loads what registers would hold over the step
	r.b.Barrier()
	finish()
}

package recurrent

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
)

// Steps of many sequences read and write as many states, which is what bounds them. So each workgroup takes several
// rows in turn, and while it computes one, the state of the next is on its way to shared memory: each lane copies what
// it holds later. The first states come while the dispatch before ends (docs/lab/hybrids.md).

// turnsUse is the share of the units' room that workgroups have at least, in percent, two of them on a unit.
const turnsUse = 90

// everyRow returns how many workgroups share the rows of a head in turn, the fewest that leave few units without work;
// 0 if there are none.
func (k *deltaKernel) everyRow(t *target.Target) int {
	if k.room == 0 || !t.Copies() || 2*(k.sharedBytes()+k.aheadBytes()) > t.SharedOptIn {
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

// aheadBytes is the size of the state that is on its way.
func (k *deltaKernel) aheadBytes() int { return 4 * k.headDim * k.width() }

// deltaTurns is the kernel that takes rows in turn.
type deltaTurns struct {
	*deltaRun
	ahead        *kernel.Array // the state of the next row, by access, lane
	next, begins *kernel.Var   // the slot of the next row; 1 if it is the first of its sequence, else 0
}

func newDeltaTurns(r *deltaRun) *deltaTurns {
	b := r.b
	return &deltaTurns{deltaRun: r, ahead: b.Shared(lane.U32x4, r.aheadBytes()/16), next: b.Var(kernel.U32, 0), begins: b.Var(kernel.U32, 0)}
}

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
	})
	b.CopyGroup()
}

// aheadAt is where an access of the lane waits.
func (r *deltaTurns) aheadAt(c, p int) kernel.Value {
	return r.b.Add(r.b.LocalID(), (c*r.held()+p)*r.lanes())
}

// takeState takes the state that was copied, which is 0 before position 0.
func (r *deltaTurns) takeState(begun kernel.Value) {
	b := r.b
	b.CopyWait(0)
	for c := range r.state {
		r.state[c] = nil
		for p := range r.held() {
			s := b.Bitcast(lane.F32x4, r.ahead.Load(r.aheadAt(c, p)))
			r.state[c] = append(r.state[c], b.Var(lane.F32x4, b.Select(begun, s, 0)))
		}
	}
}

// turn takes a row and those of the same sequence behind it, of n rows.
func (r *deltaTurns) turn(row, n kernel.Value, next deltaNext) {
	b := r.b
	begun := b.Splat(b.Gt(r.pos.Load(kernel.U32, row), 0), 4)
	r.token(row, func() {
		r.takeState(begun)
		r.copyState(next)
	}, r.storeState)
	same := b.Bool(true)
	count := b.U32(1)
	for i := 1; i < r.deltaKernel.rows.Run; i++ {
		next := b.Add(row, i)
		same = b.And(same, b.Lt(next, n), b.Eq(r.slots.Load(kernel.U32, b.Min(next, b.Sub(n, 1))), r.slot))
		count = b.Add(count, b.Select(same, b.U32(1), b.U32(0)))
	}
	b.If(b.Gt(count, 1), func() {
		b.For(1, count, 1, func(i kernel.Value) { r.token(b.Add(row, i), func() {}, func() {}) })
		r.storeState()
	})
}

// token runs one row. before is called before it changes the state, then behind that.
func (r *deltaTurns) token(row kernel.Value, before, then func()) {
	b := r.b
	r.row, r.last = row, row
	r.startFetch()
	write := r.keepRow()
	r.prepare()
	b.Barrier()
	if r.norm != nil {
		r.normalize()
	}
	b.Barrier()
	before()
	r.step(b.U32(0))
	then()
	write()
	finish := r.finish(row, b.U32(1)) // loads what registers would hold over the step
	b.Barrier()
	finish()
}

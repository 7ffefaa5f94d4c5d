package recurrent

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// chunkedRule is deltanet_chunked with the slices that make its operands. A workgroup has a part of the value columns
// of a head, with their state in registers. Kernels differ in how they multiply: delta_chunked in lanes, delta_tf32x3
// on matrices.
type chunkedRule struct {
	chunkOp
	run   int // neighbours among the value heads that share a key head
	parts int // workgroups of a head
	log   int // R of the state's log; 0: it has none
	wave  int
}

func (k *chunkedRule) match(s *site.Site, op *ir.Op) bool {
	m := k.matchOp(s, op, 3)
	if m == nil {
		return false
	}
	k.run, k.wave, k.log = 1, s.Target.Wave, ir.DeltaLog(k.state().Type)
	if k.op.Attrs.Str("map") == "div" {
		k.run = k.heads / k.keys
	}
	return m.whole(k.op.Result) && site.Indexable(s, k.state(), 4)
}

func (k *chunkedRule) state() *ir.Value { return k.op.Args[4] }

// slots is how many have a state.
func (k *chunkedRule) slots() int { return int(k.state().Type.Shape[0]) }

// width is the value columns of a workgroup.
func (k *chunkedRule) width() int { return k.headDim / k.parts }

// candidate returns that of a family, whose words are added to the kernel's name and to the shape's.
func (k *chunkedRule) candidate(family, words, shape string, kernel site.Kernel) site.Candidate {
	key := fmt.Sprintf("%s hd=%d parts=%d", family, k.headDim, k.parts)
	if k.slots() > 1 {
		key += " slots"
	}
	if k.log > 0 {
		key += fmt.Sprintf(" log=%d", k.log)
	}
	return site.Implement(site.Candidate{
		Kernel: key + words + runsKey(k.rows, k.wave) + k.rows.Key(),
		Shape:  fmt.Sprintf("%d parts%s", k.parts, shape),
		Parts:  k.rows.FollowsParts(ir.DeltaChunk),
		Grid:   [3]int{k.heads * k.parts, 1, 1},
		Cover: []plans.Cover{
			{Arg: "y", Dims: []int{k.rows.Max, k.heads * k.headDim}, Tile: []int{k.rows.Max, k.width()}, Axis: []int{1, 0}},
			{Arg: "state", Dims: []int{1, k.heads * k.headDim, k.headDim}, Tile: []int{1, k.width(), k.headDim}, Axis: []int{1, 0, -1}},
		},
	}, family, kernel)
}

// chunkedArgs is what kernels of deltanet_chunked take, and which of it is the workgroup's.
type chunkedArgs struct {
	b            *kernel.Builder
	rows         site.StepRows
	inputBuffers [3]*kernel.Buffer // q, k, v
	chunks, pos  *kernel.Buffer
	slotBuffer   *kernel.Buffer // nil if there is one only
	stateBuffer  *kernel.Buffer
	y            *kernel.Buffer
	origin       kernel.Operand // the first row of the run; rows are counted from there on
	n, last      kernel.Value   // rows of the run, and the last one
	heads        kernel.Value
	keys, run    kernel.Value // key heads; value heads side by side with the same one
	slot         kernel.Value
	head         kernel.Value
	first        kernel.Value    // the head of the first row, among those of all rows of the step
	from, widths [3]kernel.Value // q, k, v of the head: where they start in the first row, and the row's length
}

func (k *chunkedRule) declare(s *site.Signature) *chunkedArgs {
	a := &chunkedArgs{rows: k.rows.Declare(s)}
	for i, in := range k.inputs {
		a.inputBuffers[i] = s.Read(k.op.Kind.Params[i], in.x)
	}
	a.chunks, a.pos = s.Read("chunk", k.op.Args[3]), s.Read("pos", k.op.Args[5])
	if k.slots() > 1 {
		a.slotBuffer = s.Read("slot", k.op.Args[6])
	}
	a.stateBuffer, a.y = s.Update("state", k.state()), s.Write("y", k.op.Result)
	a.heads = s.U32("heads", k.heads, 1, "value heads")
	a.keys, a.run = s.U32("keys", k.keys, 1, "key heads"), s.U32("run", k.run, 1, "value heads side by side with the same key head")
	for i, in := range k.inputs {
		a.from[i], a.widths[i] = in.declarePlace(s, k.op.Kind.Params[i])
	}
	return a
}

// find finds the head of the workgroup and its part of that.
func (a *chunkedArgs) find(k *chunkedRule) {
	b := a.b
	group := b.WorkgroupID(0)
	a.head = b.Div(group, k.parts)
	keyHead := b.Mod(b.Div(a.head, a.run), a.keys)
	for i, head := range []kernel.Value{keyHead, keyHead, a.head} {
		a.from[i] = b.Add(a.from[i], b.Mul(head, k.headDim))
	}
	a.from[2] = b.Add(a.from[2], k.part(b, group))
	if k.rows.Part > 0 {
		return
	}
	a.origin, a.first = 0, a.head
	a.last, a.slot = b.Sub(a.n, 1), b.U32(0)
	if a.slotBuffer != nil {
		a.slot = a.slotBuffer.Load(kernel.U32, 0)
	}
}

// eachRun runs body for the rows of the step or, where that has parts, for each run, one behind the other: as many
// workgroups more as there may be runs would be in the way of those that work.
func (a *chunkedArgs) eachRun(k *chunkedRule, body func()) {
	b := a.b
	if k.rows.Part == 0 {
		body()
		return
	}
	n, from, next := a.n, a.from, b.Var(kernel.U32, 0)
	b.ForRolled(0, n, k.rows.Part, func(first kernel.Value) {
		b.If(b.Ge(first, next.Get()), func() {
			r := findRun(b, k.rows, k.wave, n, first, a.pos, a.slotBuffer)
			next.Set(r.end)
			a.origin, a.n, a.slot = r.first, b.Sub(r.end, r.first), r.slot
			a.last, a.first = b.Sub(a.n, 1), b.Add(a.head, b.Mul(r.first, a.heads))
			for i, width := range a.widths {
				a.from[i] = b.Add(from[i], b.Mul(r.first, width))
			}
			body()
			b.Barrier() // the next run has the same shared memory
		})
	})
}

// stateAt is the element of the state where the head of the workgroup begins in the slot of the run.
func (a *chunkedArgs) stateAt(k *chunkedRule) kernel.Value {
	b := a.b
	return b.Mul(b.Add(b.Mul(a.slot, a.heads), a.head), (k.headDim+2*k.log)*k.headDim)
}

// logFirst is the element of the state where its log begins.
func (a *chunkedArgs) logFirst(k *chunkedRule) kernel.Value {
	return a.b.Add(a.stateAt(k), k.headDim*k.headDim)
}

// applyLog applies the updates that the state of the run lacks, see deltaLog.apply. Columns are those of the head.
func (a *chunkedArgs) applyLog(k *chunkedRule, columns, fours []kernel.Value, change func(c, p int, by func(s kernel.Value) kernel.Value)) {
	log := logIn(a.b, k.log, k.headDim, a.stateBuffer, a.logFirst(k))
	log.apply(log.waiting(a.b.Eq(a.pos.Load(kernel.U32, a.origin), 0), columns[0]), columns, fours, change)
}

// settle says that the state of the run lacks no updates; a lane in which mine holds does so for its columns.
func (a *chunkedArgs) settle(k *chunkedRule, mine kernel.Value, columns []kernel.Value) {
	b := a.b
	b.BarrierBuffers() // all have read
	b.If(mine, func() {
		for _, column := range columns {
			a.stateBuffer.Store(b.Add(a.logFirst(k), column), b.F32(0))
		}
	})
}

// part is the first column of a workgroup in its head.
func (k *chunkedRule) part(b *kernel.Builder, group kernel.Value) kernel.Value {
	return b.Mul(b.Mod(group, k.parts), k.width())
}

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
	wave  int
}

func (k *chunkedRule) match(s *site.Site, op *ir.Op) bool {
	m := k.matchOp(s, op, 3)
	if m == nil {
		return false
	}
	k.run, k.wave = 1, s.Target.Wave
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

// part is the first column of a workgroup in its head.
func (k *chunkedRule) part(b *kernel.Builder, group kernel.Value) kernel.Value {
	return b.Mul(b.Mod(group, k.parts), k.width())
}

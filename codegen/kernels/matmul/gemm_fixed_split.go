package matmul

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
)

// fixedSplit is where the workgroups that share the elements of a row leave sums of chunks, which
// the last of them adds.
type fixedSplit struct {
	partial  *kernel.Buffer // by column, chunk, workgroup, see left
	arrivals *kernel.Buffer
	index    kernel.Value // of the workgroup's split
	count    kernel.Value // workgroups of a split
}

// workspaceWidth is what the workgroups leave of a column, 0 if they do not share rows.
func (k gemmFixed) workspaceWidth() int {
	if k.splits == 1 {
		return 0
	}
	return k.chunks() * k.workgroups() * k.left()
}

// left is what a workgroup leaves of a chunk of a column: sums of its outputs by tile and, for a
// norm, of squares of 128 elements.
func (k gemmFixed) left() int {
	n := slices.Max(k.series) * fixedSide
	if k.gain != nil {
		n += fixedSquares
	}
	return n
}

// fixedSquares is the sums of squares of a chunk.
const fixedSquares = fixedChunk * fixedBlock / 128

// declareSplit declares what the workgroups share; nil if they share nothing.
func (k gemmFixed) declareSplit(s *site.Signature) *fixedSplit {
	if k.splits == 1 {
		return nil
	}
	return &fixedSplit{partial: s.Update("partial", k.workspace), arrivals: s.Update("arrivals", k.counts),
		count: s.U32("workgroups", k.workgroups(), 32, "workgroups of a split")}
}

// counter is which arrivals count the workgroups of the split's outputs.
func (s *fixedSplit) counter(b *kernel.Builder, k gemmFixed) kernel.Value {
	if k.tiles() > 1 {
		return b.Add(b.Mul(b.WorkgroupID(2), s.count), b.WorkgroupID(0))
	}
	return b.WorkgroupID(0)
}

// leftAt is where element i of what the workgroup leaves of a chunk of a column is.
func (r *fixedTask) leftAt(column kernel.Value, chunk, i kernel.Operand) kernel.Value {
	b := r.b
	if r.wide > 0 {
		return b.Add(r.leftOf(chunk), b.Mul(b.U32(uint32(r.wide)), i), column)
	}
	return b.Add(b.Mul(b.Add(b.Mul(b.Add(b.Mul(r.rowOf(column), r.chunks()), chunk), r.split.count), b.WorkgroupID(0)), r.left()), i)
}

// leftOf is where what the workgroup of gemm_wide leaves of a chunk begins, of all columns.
func (r *fixedTask) leftOf(chunk kernel.Operand) kernel.Value {
	b := r.b
	if r.tiles() > 1 {
		chunk = b.Add(b.Mul(b.WorkgroupID(2), r.chunks()), chunk)
	}
	at := b.WorkgroupID(0)
	if chunk != 0 {
		at = b.Add(b.Mul(r.split.count, chunk), at)
	}
	return b.Mul(at, r.left()*r.wide)
}

// leave writes the lane's two sums of a chunk, in the i-th tile, to the workspace.
func (r *fixedTask) leave(column, chunk, i, sums kernel.Value) {
	b := r.b
	b.If(b.And(b.Lt(column, r.columns), b.Lt(chunk, r.chunks())), func() {
		at := r.leftAt(column, chunk, b.Add(b.Mul(i, fixedSide), r.place))
		r.split.partial.Store(at, b.Elem(sums, 0))
		r.split.partial.Store(b.Add(at, fixedSide/2), b.Elem(sums, 1))
	})
}

// addedAtOnce is the most outputs whose sums a lane adds up before it stores any.
const addedAtOnce = 8

// addUp adds what the workgroups of all splits have left, in the order of chunks, and stores the
// results. If a lane has few, their loads are begun before the norm's scale is computed, which waits for loads, too.
func (r *fixedTask) addUp() {
	b := r.b
	outputs, lanes := r.outputsOf(r.index), r.groups*fragment.Lanes
	if outputs*r.widest() <= addedAtOnce*lanes {
		var finish []func()
		for from := 0; from < outputs*r.widest(); from += lanes {
			finish = append(finish, r.addUpOne(b.Add(b.LocalID(), from)))
		}
		r.scaleSplit()
		for _, do := range finish {
			do()
		}
		return
	}
	r.scaleSplit()
	b.ForRolled(b.LocalID(), b.Mul(r.columns, outputs), addedAtOnce*lanes, func(first kernel.Value) {
		var finish []func()
		for n := range addedAtOnce {
			finish = append(finish, r.addUpOne(b.Add(first, n*lanes)))
		}
		for _, do := range finish {
			do()
		}
	})
}

// addUpOne adds up the i-th result of the workgroup, and returns what stores it.
func (r *fixedTask) addUpOne(i kernel.Value) func() {
	b, outputs := r.b, r.outputsOf(r.index)
	column, n := b.Div(i, outputs), b.Mod(i, outputs)
	out := b.Add(r.col, n)
	live := b.And(b.Lt(column, r.columns), b.Lt(out, r.p.width))
	column, out = b.Select(live, column, 0), b.Select(live, out, r.col)
	var sums []kernel.Value
	for m := range r.p.matrices {
		at := b.Add(b.Mul(b.Div(n, r.each()), fixedSide), b.Mod(n, r.each()), m*r.each())
		sum := r.split.partial.Load(kernel.F32, r.leftAt(column, 0, at))
		for chunk := 1; chunk < r.chunks(); chunk++ {
			sum = b.Add(sum, r.split.partial.Load(kernel.F32, r.leftAt(column, chunk, at)))
		}
		sums = append(sums, sum)
	}
	row := r.rowOf(column)
	residuals := r.p.loadResiduals(b, row, out)
	return func() {
		b.If(live, func() { r.p.store(b, sums, r.scaleOf(column), residuals, row, out) })
	}
}

// scaleSplit computes the scales of the norm, if there is one, from the squares that all splits have left.
func (r *fixedTask) scaleSplit() {
	if r.gain == nil {
		return
	}
	b := r.b
	b.If(b.Lt(b.LocalID(), r.columns), func() {
		var squares []kernel.Value
		for i := range r.k / 128 {
			squares = append(squares, r.split.partial.Load(kernel.F32, r.leftAt(b.LocalID(), i/fixedSquares, r.left()-fixedSquares+i%fixedSquares)))
		}
		r.rstd.Store(b.LocalID(), r.a.rstd(b, inTurn(b, squares)))
	})
	b.Barrier()
}

// inTurn adds values one after the other.
func inTurn(b *kernel.Builder, values []kernel.Value) kernel.Value {
	sum := values[0]
	for _, v := range values[1:] {
		sum = b.Add(sum, v)
	}
	return sum
}

// scaleOf is the norm's scale of a column, nil without norm.
func (r *fixedTask) scaleOf(column kernel.Value) *kernel.Value {
	if r.gain == nil {
		return nil
	}
	v := r.rstd.Load(column)
	return &v
}

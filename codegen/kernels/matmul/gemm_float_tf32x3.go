package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
)

// tf32x3Run is a tile of gemm_float whose products are made by matrices of TF32, which have 11 bits of mantissa. Each
// number is the sum of two of these, and three of their four products count. They lose 2^-21 of the product of f32,
// half of it in the fourth product, half in the last bits of both numbers. Lanes load their factors straight from
// memory, where four neighbouring lanes have 16 elements of a row; which of a matrix's columns an element is in does
// not matter, as it is the same in both matrices.
type tf32x3Run struct {
	*floatRun
	p    *projectArgs
	col  kernel.Value
	sums []*kernel.Var // by 16 rows, then by 8 outputs
}

const (
	// tf32x3Depth is the elements of a row that a subgroup takes at a time.
	tf32x3Depth = 16
	// tf32x3Part is the sums of as many lanes as a subgroup has that go through shared memory at a time.
	tf32x3Part = 256
)

func (r *tf32x3Run) run() {
	b := r.b
	if r.shared == nil {
		r.shared = b.Shared(lane.F32x4, r.sharedVec4())
	}
	for range r.tileRows() / fragment.Side * (r.tileOutputs() / fragment.Columns) {
		r.sums = append(r.sums, b.Var(fragment.TF32Sum, b.MatFill(fragment.TF32Sum, 0)))
	}
	length, stride := b.Div(r.a.k, 4), tf32x3Depth/4*r.subgroups
	var from []kernel.Value
	var of []*kernel.Buffer
	place, quad := b.Div(r.lane, 4), b.Add(b.Mul(r.id, tf32x3Depth/4), b.Mod(r.lane, 4))
	lines := func(buf *kernel.Buffer, n int, first, end kernel.Value) {
		for i := range n / fragment.Columns {
			line := b.Min(b.Add(first, place, i*fragment.Columns), b.Sub(end, 1))
			from, of = append(from, b.Add(b.Mul(line, length), quad)), append(of, buf)
		}
	}
	lines(r.a.x, r.tileRows(), r.row, r.rows)
	lines(r.p.matrices[0].Buf, r.tileOutputs(), r.col, r.p.width)
	load := func(i kernel.Value) (list []kernel.Value) {
		i = b.Select(b.Lt(i, length), i, 0)
		for j, at := range from {
			list = append(list, of[j].Load(lane.F32x4, b.Add(at, i)))
		}
		return list
	}
	var ahead []*kernel.Var
	for _, v := range load(b.U32(0)) {
		ahead = append(ahead, b.Var(v.Type(), v))
	}
	b.ForRolled(0, length, stride, func(i kernel.Value) {
		now := gets(ahead)
		sets(ahead, load(b.Add(i, stride)))
		rows := r.tileRows() / fragment.Columns
		r.multiply(now[:rows], now[rows:])
	})
	r.finish()
}

// multiply adds the products of rows and outputs, of which a lane has four elements each.
func (r *tf32x3Run) multiply(rows, outputs []kernel.Value) {
	b := r.b
	for half := range 2 {
		var ws []fragment.Split
		for _, v := range outputs {
			ws = append(ws, fragment.SplitTF32(b, fragment.TF32Right, b.Elem(v, 2*half), b.Elem(v, 2*half+1)))
		}
		for i := 0; i < len(rows); i += 2 {
			var elems [4]kernel.Value
			for e := range elems {
				elems[e] = b.Elem(rows[i+e%2], 2*half+e/2)
			}
			x := fragment.SplitTF32(b, fragment.TF32Left, elems[:]...)
			sums := r.sums[i/2*len(ws):][:len(ws)]
			for _, part := range fragment.TF32x3 {
				for c, sum := range sums {
					sum.Set(b.MatMulAdd(x[part[0]], ws[c][part[1]], sum.Get()))
				}
			}
		}
	}
}

// finish adds up what the subgroups have, some sums of each lane at a time, and writes the results.
func (r *tf32x3Run) finish() {
	b := r.b
	matrices := tf32x3Part / fragment.Sums / r.subgroups
	for first := 0; first < len(r.sums); first += matrices {
		part := r.sums[first:min(first+matrices, len(r.sums))]
		if first > 0 {
			b.Barrier()
		}
		place := func(id kernel.Value, i kernel.Operand) kernel.Value {
			return b.Add(b.Mul(b.Add(b.Mul(id, matrices), i), r.wave), r.lane)
		}
		for i, sum := range part {
			r.shared.Store(place(r.id, i), b.Vec(sum.Elem(0), sum.Elem(1), sum.Elem(2), sum.Elem(3)))
		}
		b.Barrier()
		for i := 0; i < len(part); i += r.subgroups {
			mine := b.Add(r.id, i)
			add := func() { r.store(part, first, mine, place) }
			if len(part)-i < r.subgroups {
				b.If(b.Lt(mine, len(part)), add)
			} else {
				add()
			}
		}
	}
}

// store adds up matrix i of a part, whose first is that many, and writes it.
func (r *tf32x3Run) store(part []*kernel.Var, first int, i kernel.Value, place func(id kernel.Value, i kernel.Operand) kernel.Value) {
	b := r.b
	v := r.shared.Load(place(b.U32(0), i))
	for id := 1; id < r.subgroups; id++ {
		v = b.Add(v, r.shared.Load(place(b.U32(uint32(id)), i)))
	}
	across := r.tileOutputs() / fragment.Columns
	i = b.Add(i, first)
	row := b.Add(r.row, b.Mul(b.Div(i, across), fragment.Side), b.Div(r.lane, 4))
	col := b.Add(r.col, b.Mul(b.Mod(i, across), fragment.Columns), b.Mul(b.Mod(r.lane, 4), 2))
	for e := range fragment.Sums {
		row, n := b.Add(row, e/2*8), b.Add(col, e%2)
		b.If(b.And(b.Lt(row, r.rows), b.Lt(n, r.p.width)), func() {
			r.p.store(b, []kernel.Value{b.Elem(v, e)}, nil, r.p.loadResiduals(b, row, n), row, n)
		})
	}
}

package matmul

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// rowsKernel computes a linear group on a processor: a lane has a row of the weights, whose words
// lie interleaved (layout.Rows16), and x is the same in all lanes. Nothing is added up between lanes.
// A workgroup has 16 rows of the weights, and some rows of x, which are called columns here. It
// rounds x to fixed point in shared memory, once for all workgroups of a line of the grid. Then it takes the
// columns a few at a time, image by image of the weights, so that entries of every width add in one order.
type rowsKernel struct {
	*linearGroup
	step    site.Extent
	columns int // at a time
	tile    int // of a workgroup, a multiple of columns
}

// rowsColumns is the columns at a time: their sums stay in registers.
const rowsColumns = 8

// matchRows is matchLinear for processors. Weights whose rows are not interleaved are read row by row, with
// x as it is.
func matchRows(s *site.Site) *linearGroup {
	g := matchWithWorkspace(s)
	if g == nil || g.workspace != nil || !g.allF32() || s.Target.Backend != plans.CPU {
		return nil
	}
	for _, p := range g.projects {
		rows := 0
		for _, w := range p.matrices {
			if w.rows != nil {
				rows++
			}
		}
		if rows > 0 && (rows < len(p.matrices) || g.k%64 != 0) || p.fixed != (rows > 0 && g.fixed != nil) {
			return nil
		}
	}
	return g
}

// RowsWants asks for x in fixed point: 12 bits for few rows, 8 for many.
func RowsWants(s *site.Site) []site.Rewrite {
	g := matchRows(s)
	if g == nil || g.fixed != nil || !g.inRows() {
		return nil
	}
	rows := map[*ir.Value]bool{}
	for _, p := range g.projects {
		for _, w := range p.matrices {
			rows[w.value] = w.rows != nil
		}
	}
	var ops []*ir.Op
	for _, op := range s.Group.Ops {
		if op.Kind.Name == "linear" && rows[op.Args[1]] {
			ops = append(ops, op)
		}
	}
	if g.rows <= ir.DecodeRows {
		return site.Fixed("fixed12", ops)
	}
	return site.Fixed("fixed8", ops)
}

func RowsCandidates(s *site.Site) []site.Candidate {
	g := matchRows(s)
	if g == nil || g.inRows() && g.fixed == nil {
		return nil
	}
	step, ok := site.ExtentOf(s, g.projects[0].result)
	if !ok {
		return nil
	}
	k := rowsKernel{linearGroup: g, step: step, columns: min(rowsColumns, step.Max)}
	if !k.divide(s.Target) {
		return nil
	}
	return []site.Candidate{k.candidate()}
}

// divide chooses the tile: rounding x costs as much as some rows of the weights, and weights are taken
// apart again for the columns of every tile.
func (k *rowsKernel) divide(t *target.Target) bool {
	k.tile = k.columns
	for 2*k.tile <= 64 && k.tile < k.step.Max && k.bytes(2*k.tile) <= t.Shared/2 {
		k.tile *= 2
	}
	return k.bytes(k.tile) <= t.Shared
}

// group is the elements of x that share a scale.
func (k rowsKernel) group() int {
	if k.bits == 12 {
		return weight.ScaleElements(k.k)
	}
	return weight.FixedRun
}

// bytes is the shared memory of so many columns.
func (k rowsKernel) bytes(columns int) int {
	words := 1
	if k.fixed != nil {
		words += k.k/4*(k.bits/8) + k.k/16 + k.k/k.group()
	}
	if k.bits == 12 {
		words += k.k / 4
	}
	return 4 * words * columns
}

func (k rowsKernel) key() string {
	whole := ""
	if k.group() == weight.SuperElements {
		whole = " whole"
	}
	return fmt.Sprintf("rows %s cols=%d of %d%s%s", k.linearGroup.key(), k.columns, k.tile, whole, k.step.Key())
}

func (k rowsKernel) candidate() site.Candidate {
	firsts := k.firsts(laneRows)
	c := site.Candidate{
		Kernel:   k.key(),
		Order:    fmt.Sprintf("rows%d", k.bits),
		Shape:    fmt.Sprintf("%d of %d", k.columns, k.tile),
		Build:    k.build,
		Operands: k.operands(false),
		Grid:     [3]int{k.tiles(laneRows), site.CeilDiv(k.step.Max, k.tile), 1},
		Consts:   k.consts(firsts),
	}
	switch {
	case k.last: // of which there is one
		c.Operands = k.operands(true)
	default:
		c.Operands, c.Consts = append(c.Operands, k.step.Operands()...), append(c.Consts, k.step.Consts()...)
	}
	for i, p := range k.projects {
		c.Cover = append(c.Cover, plans.Cover{
			Arg: fmt.Sprint("y", i), Dims: []int{k.step.Max, p.width}, Tile: []int{k.tile, laneRows},
			Axis: []int{1, 0}, First: []int{0, firsts[i]},
		})
	}
	return c
}

// laneRows is the rows of the weights of a workgroup: one a lane.
const laneRows = 16

// rowsRun is the kernel while it is built.
type rowsRun struct {
	rowsKernel
	b         *kernel.Builder
	a         *linearArgs
	rows      kernel.Value // of this step
	row       kernel.Value // of x: the first of the tile
	high, low *kernel.Array
	sums      *kernel.Array // of the integers of 16 elements
	scales    *kernel.Array
	rstds     *kernel.Array // by column; nil without norm
}

func (k rowsKernel) build() (*kernel.Func, error) {
	return kernel.Build("rows", func(b *kernel.Builder) {
		r := &rowsRun{rowsKernel: k, b: b, a: k.declare(b, k.last)}
		if k.last {
			r.rows = b.U32(1)
		} else {
			r.rows = k.step.Bound(b)
		}
		b.Workgroup(laneRows)
		words := func(n int) kernel.Value { return b.Mul(b.Div(r.a.k, n), k.tile) }
		if k.fixed != nil {
			r.high, r.sums, r.scales = b.Shared(kernel.U32, words(4)), b.Shared(kernel.I32, words(16)), b.Shared(kernel.F32, words(k.group()))
		}
		if k.bits == 12 {
			r.low = b.Shared(kernel.U32, words(4))
		}
		if k.gain != nil {
			r.rstds = b.Shared(kernel.F32, k.tile)
		}
		r.row = b.Mul(b.WorkgroupID(1), k.tile)
		b.ReturnIf(b.Ge(r.row, r.rows))
		columns := b.Min(b.Sub(r.rows, r.row), k.tile)
		switch {
		case k.fixed != nil:
			b.Line(func() { b.For(0, columns, 1, r.round) })
		case k.gain != nil:
			b.Line(func() { b.For(0, columns, 1, r.norm) })
		}
		b.Barrier()
		r.a.join(b, b.WorkgroupID(0))
		r.a.each(b, b.WorkgroupID(0), func(p *projectArgs, at kernel.Value) {
			if k.tile == k.columns {
				r.project(p, at, b.U32(0))
				return
			}
			b.For(0, columns, k.columns, func(first kernel.Value) { r.project(p, at, first) })
		})
	})
}

// source returns the row of x of a column.
func (r *rowsRun) source(c kernel.Value) kernel.Value {
	if r.last {
		return r.b.Sub(r.a.n.Load(kernel.U32, 0), 1)
	}
	return r.b.Add(r.row, c)
}

// round puts a column of x into shared memory in fixed point. A lane takes 4 neighbours of 64 elements.
func (r *rowsRun) round(c kernel.Value) {
	b, laneID := r.b, r.b.LocalID()
	row := b.Mul(r.source(c), b.Div(r.a.k, 4))
	squares := b.Var(kernel.F32, 0.0)
	group := r.group()
	chunk := max(group, 64) / 4 // vec4 of a round
	most := map[int]float32{12: weight.FixedMost, 8: fixed8Max}[r.bits]
	b.For(0, b.Div(r.a.k, 4), chunk, func(from kernel.Value) {
		var x []kernel.Value
		for j := range chunk / laneRows {
			at := b.Add(from, j*laneRows, laneID)
			v := r.a.x.Load(lane.F32x4, b.Add(row, at))
			if r.gain != nil {
				s := squares.Get()
				for e := range 4 {
					s = b.FMA(b.Elem(v, e), b.Elem(v, e), s)
				}
				squares.Set(s)
				v = b.Mul(v, r.a.gain.Load(lane.F32x4, at))
			}
			x = append(x, v)
		}
		largest := weight.Largest(b, x)
		if group == weight.FixedRun {
			largest = lane.Fold(b, largest, 1, group/4, func(x, y kernel.Value) kernel.Value { return b.Max(x, y) })
		} else {
			largest = b.SubgroupMax(largest)
		}
		inverse := b.Select(b.Gt(largest, 1e-30), b.Div(b.F32(most), b.Max(largest, 1e-30)), 0)
		for j, v := range x {
			at := b.Add(b.Mul(c, b.Div(r.a.k, 4)), from, j*laneRows, laneID)
			sum := r.store(v, inverse, at)
			sum = lane.Sum(b, sum, 1, 4)
			b.If(b.Eq(b.And(laneID, 3), 0), func() { r.sums.Store(b.Shr(at, 2), sum) })
		}
		at := b.Add(b.Mul(c, b.Div(r.a.k, 4)), from)
		scale := b.Mul(largest, 1/most)
		if group == weight.FixedRun {
			b.If(b.Eq(b.And(laneID, 7), 0), func() { r.scales.Store(b.Shr(b.Add(at, laneID), 3), scale) })
		} else {
			b.If(b.Eq(laneID, 0), func() { r.scales.Store(b.Div(at, group/4), scale) })
		}
	})
	if r.gain != nil {
		rstd := r.a.rstd(b, b.SubgroupAdd(squares.Get()))
		b.If(b.Eq(laneID, 0), func() { r.rstds.Store(c, rstd) })
	}
}

// norm keeps the scale of the norm of a column.
func (r *rowsRun) norm(c kernel.Value) {
	b := r.b
	row, squares := b.Mul(r.source(c), b.Div(r.a.k, 4)), b.Var(kernel.F32, 0.0)
	b.For(b.LocalID(), b.Div(r.a.k, 4), laneRows, func(i kernel.Value) {
		v := r.a.x.Load(lane.F32x4, b.Add(row, i))
		for e := range 4 {
			squares.Set(b.FMA(b.Elem(v, e), b.Elem(v, e), squares.Get()))
		}
	})
	rstd := r.a.rstd(b, b.SubgroupAdd(squares.Get()))
	b.If(b.Eq(b.LocalID(), 0), func() { r.rstds.Store(c, rstd) })
}

// store rounds four elements, keeps their bytes at a word and returns the sum of the integers.
func (r *rowsRun) store(v, inverse, at kernel.Value) kernel.Value {
	b := r.b
	ones := b.U32(0x01010101)
	if r.bits == 12 {
		high, low := weight.FixedWords(b, v, inverse)
		r.high.Store(at, high)
		r.low.Store(at, low)
		return b.Add(b.Shl(b.DotU8(high, ones), 8), b.DotU8(low, ones))
	}
	n := b.Bitcast(lane.U32x4, b.FMA(v, b.Splat(inverse, 4), b.Splat(b.F32(3<<22), 4)))
	even := b.Or(b.And(b.Elem(n, 0), 0xff), b.Shl(b.And(b.Elem(n, 2), 0xff), 16))
	odd := b.Or(b.And(b.Elem(n, 1), 0xff), b.Shl(b.And(b.Elem(n, 3), 0xff), 16))
	word := b.Or(even, b.Shl(odd, 8))
	r.high.Store(at, word)
	return b.DotU8(word, ones)
}

// project computes 16 rows of a projection, from row 16*at on, for the columns from first on.
func (r *rowsRun) project(p *projectArgs, at, first kernel.Value) {
	b := r.b
	col := b.Add(b.Mul(at, laneRows), b.LocalID())
	sums := make([][]*kernel.Var, len(p.matrices))
	for m := range p.matrices {
		for range r.columns {
			sums[m] = append(sums[m], b.Var(kernel.F32, 0.0))
		}
		if p.spec.fixed {
			r.images(p, m, at, first, sums[m])
		} else {
			r.floats(p, m, b.Min(col, b.Sub(p.width, 1)), first, sums[m])
		}
	}
	b.If(b.Lt(col, p.width), func() {
		for c := range r.columns {
			column := b.Add(first, c)
			b.If(b.Lt(b.Add(r.row, column), r.rows), func() {
				var rstd *kernel.Value
				if r.rstds != nil {
					v := r.rstds.Load(column)
					rstd = &v
				}
				var list []kernel.Value
				for m := range sums {
					list = append(list, sums[m][c].Get())
				}
				row := b.Add(r.row, column)
				p.store(b, list, rstd, p.loadResiduals(b, row, col), row, col)
			})
		}
	})
}

// images adds the products of a matrix whose rows are interleaved.
func (r *rowsRun) images(p *projectArgs, m int, at, first kernel.Value, sums []*kernel.Var) {
	b, f := r.b, p.spec.matrices[m].rows
	images := b.Div(r.a.k, f.Cols)
	words := b.Div(r.a.k, 4)
	b.For(0, images, 1, func(i kernel.Value) {
		from := b.Mul(b.Add(b.Mul(at, images), i), f.Words*laneRows)
		x := b.Mul(i, f.Cols/4) // word
		column := func(c int) kernel.Value { return b.Add(b.Mul(b.Add(first, c), words), x) }
		dot := func(a *kernel.Array, c, word int, codes []kernel.Value) (sum kernel.Value) {
			for j, code := range codes {
				d := b.DotU8(a.Load(b.Add(column(c), word+j)), code)
				if j > 0 {
					d = b.Add(d, sum)
				}
				sum = d
			}
			return sum
		}
		loaded := map[int]kernel.Value{}
		list := f.Product(b, weight.RowsImage{
			Word: func(k int) kernel.Value {
				w, ok := loaded[k]
				if !ok {
					w = p.matrices[m].Buf.Load(kernel.U32, b.Add(from, k*laneRows, b.LocalID()))
					loaded[k] = w
				}
				return w
			},
			Columns: r.columns,
			X: weight.RowsX{
				Dot: func(c, word int, codes []kernel.Value) kernel.Value {
					d := dot(r.high, c, word, codes)
					if r.bits == 12 {
						d = b.Add(b.Shl(d, 8), dot(r.low, c, word, codes))
					}
					return d
				},
				Sum: func(c, half int) kernel.Value { return r.sums.Load(b.Add(b.Shr(column(c), 2), half)) },
				Scale: func(c, run int) kernel.Value {
					return r.scales.Load(b.Div(b.Add(column(c), 8*run), r.group()/4))
				},
				Whole: r.group() == weight.SuperElements && f.Cols == weight.SuperElements,
			},
		})
		for c, s := range sums {
			s.Set(b.Add(s.Get(), list[c]))
		}
	})
}

// floats adds the products of a matrix that lies row by row with x as it is.
func (r *rowsRun) floats(p *projectArgs, m int, row, first kernel.Value, sums []*kernel.Var) {
	b, matrix := r.b, p.matrices[m]
	f := matrix.Format
	b.For(0, b.Div(r.a.k, f.Unit), 1, func(u kernel.Value) {
		runs := f.Load(b, matrix, row, u)
		begin := b.Div(f.Begin(b, u), 4)
		for i := range f.Unit / 4 {
			w := runs[4*i/f.Run].Value(b, f, i%(f.Run/4))
			at := b.Add(begin, f.At(i)/4)
			for c, s := range sums {
				source := b.Min(b.Add(first, c), b.Sub(r.rows, 1))
				x := r.a.x.Load(lane.F32x4, b.Add(b.Mul(r.source(source), b.Div(r.a.k, 4)), at))
				if r.gain != nil {
					x = b.Mul(x, r.a.gain.Load(lane.F32x4, at))
				}
				for e := range 4 {
					s.Set(b.FMA(b.Elem(w, e), b.Elem(x, e), s.Get()))
				}
			}
		}
	})
}

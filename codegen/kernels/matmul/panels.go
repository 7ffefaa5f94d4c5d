package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// panelRun is how family rows multiplies with many columns. It takes 256 elements of 16 rows of the weights apart, once
// for all columns of the tile, into a panel: a line of 64 bytes for each word of their codes, for each scale and for
// each least value. Then it multiplies the panel with some columns at a time, whose sums stay in registers. x lies in
// blocks of 64 elements of 8 columns, so that all that a turn of the inner loop reads is at constant distances.
type panelRun struct {
	*rowsRun
	panel  *weight.Panel
	x      *kernel.Array // by 8 columns, block, column and word
	scales *kernel.Array // by 8 columns, run of 32 and column
	totals *kernel.Array // of formats with least values: scale times the sum of the run's integers
	biased *kernel.Array // of formats with a bias: that times the sum of the integers of a run of the panel's, negative

	codes, ofCodes, leasts *kernel.Array // the panel: codes, and scales and least values of runs
}

const (
	panelBlock  = 64                     // elements of x of a column that lie in a row
	panelWords  = panelBlock / 4         // of such
	panelCols   = 256                    // elements of a panel
	panelBlocks = panelCols / panelBlock // of a panel
)

// panelLines is how many lines a panel has.
func panelLines(f *weight.Panel) int {
	return panelCols/4 + panelCols/f.Run + panelCols/weight.FixedRun
}

// panelBytes is the shared memory of that many columns.
func (k rowsKernel) panelBytes(columns int) int {
	f := k.p.matrices[0].rows.Panel
	words := 3 + k.k/4 + k.k/weight.FixedRun + laneRows*len(k.p.matrices)
	if f.Least {
		words += k.k / weight.FixedRun
	}
	if f.Bias != 0 {
		words += k.k / f.Run
	}
	return 4 * (3 + words*columns + laneRows*panelLines(f))
}

func newPanelRun(r *rowsRun) *panelRun {
	b, f := r.b, r.p.matrices[0].rows.Panel
	p := &panelRun{rowsRun: r, panel: f}
	per := func(elements int) kernel.Value { return b.Mul(b.Div(r.cols, elements), r.size) }
	p.x, p.scales = b.Shared(kernel.U32, per(4)), b.Shared(kernel.F32, per(weight.FixedRun))
	if f.Least {
		p.totals = b.Shared(kernel.F32, per(weight.FixedRun))
	}
	if f.Bias != 0 {
		p.biased = b.Shared(kernel.I32, per(f.Run))
	}
	p.codes, p.ofCodes = b.Shared(kernel.U32, panelCols/4*laneRows), b.Shared(kernel.F32, panelCols/f.Run*laneRows)
	p.leasts = b.Shared(kernel.F32, panelCols/weight.FixedRun*laneRows)
	r.products = b.Shared(kernel.F32, b.Mul(r.size, len(r.matrices)*laneRows))
	return p
}

// block numbers the blocks of 8 columns, from those of the first 8 on.
func (r *panelRun) block(column, block kernel.Value) kernel.Value {
	b := r.b
	return b.Add(b.Mul(b.Div(column, rowsColumns), b.Div(r.cols, panelBlock)), block)
}

// keep stores a block of a column: in each lane a word, and the scale of its run.
func (r *panelRun) keep(column, block, word, scale kernel.Value) {
	b := r.b
	at, in := r.block(column, block), b.Mod(column, rowsColumns)
	r.x.Store(b.Add(b.Mul(b.Add(b.Mul(at, rowsColumns), in), panelWords), b.LocalID()), word)
	half := lane.Sum(b, b.DotU8(word, b.U32(0x01010101)), 1, 4) // of 16 elements
	whole := lane.Sum(b, half, 4, 2)
	var stores []func()
	each := func(elements int, to *kernel.Array, v kernel.Value) {
		n := panelBlock / elements
		for i := range n {
			one := b.SubgroupShuffle(v, b.U32(uint32(i*elements/4)))
			stores = append(stores, func() { to.Store(b.Add(b.Mul(b.Add(b.Mul(at, n), i), rowsColumns), in), one) })
		}
	}
	each(weight.FixedRun, r.scales, scale)
	if r.panel.Least {
		each(weight.FixedRun, r.totals, b.Mul(scale, b.Convert(kernel.F32, whole)))
	}
	if r.panel.Bias != 0 {
		if r.panel.Run == weight.FixedRun {
			half = whole
		}
		each(r.panel.Run, r.biased, b.Mul(half, -r.panel.Bias))
	}
	b.If(b.Eq(b.LocalID(), 0), func() {
		for _, store := range stores {
			store()
		}
	})
}

// project computes 16 rows of the weights, from row 16*at on, for the columns of the tile.
func (r *panelRun) project(at, columns kernel.Value) {
	b := r.b
	for m := range r.matrices {
		b.For(0, columns, 1, func(c kernel.Value) { r.products.Store(r.product(m, c), 0.0) })
		b.For(0, b.Div(r.cols, panelBlock), panelBlocks, func(block kernel.Value) {
			blocks := b.Min(b.Sub(b.Div(r.cols, panelBlock), block), panelBlocks)
			r.unpack(m, r.group16(m, at), block, blocks)
			b.Barrier()
			b.For(0, columns, rowsColumns, func(c kernel.Value) {
				r.multiplyAll(m, c, b.Min(b.Sub(columns, c), rowsColumns), block, blocks)
			})
			b.Barrier()
		})
	}
	r.storeAll(at, b.U32(0), columns)
}

// unpack makes the panel of some blocks of the at-th 16 rows of a matrix.
func (r *panelRun) unpack(m int, at, block, blocks kernel.Value) {
	b, f := r.b, r.p.matrices[m].rows
	perImage, images := f.Cols/panelBlock, b.Div(r.cols, f.Cols)
	b.For(0, b.Div(blocks, perImage), 1, func(i kernel.Value) {
		from := b.Mul(b.Add(b.Mul(at, images), b.Div(block, perImage), i), f.Words*laneRows)
		line := func(a *kernel.Array, elements int) func(n, v kernel.Value) {
			return func(n, v kernel.Value) {
				a.Store(b.Add(b.Mul(b.Add(b.Mul(i, f.Cols/elements), n), laneRows), b.LocalID()), v)
			}
		}
		r.panel.Unpack(b, weight.RowsImage{Word: func(k kernel.Value) kernel.Value {
			return r.matrices[m].Buf.Load(kernel.U32, b.Add(from, b.Mul(k, laneRows), b.LocalID()))
		}}, weight.PanelLines{Code: line(r.codes, 4), Scale: line(r.ofCodes, r.panel.Run), Least: line(r.leasts, r.panel.Run)})
	})
}

// multiplyAll is multiply for up to 8 columns from c on: as many at a time as there are registers for, and two where
// that is at least half of them to no purpose, as of an expert that few rows chose.
func (r *panelRun) multiplyAll(m int, c, columns, block, blocks kernel.Value) {
	b := r.b
	some := func(in kernel.Value) {
		left := b.Sub(columns, in)
		b.IfElse(b.Gt(left, r.columns/2), func() { r.multiply(m, r.columns, c, in, block, blocks) }, func() {
			b.For(0, left, fewColumns, func(i kernel.Value) { r.multiply(m, fewColumns, c, b.Add(in, i), block, blocks) })
		})
	}
	if r.columns == rowsColumns {
		some(b.U32(0))
		return
	}
	b.For(0, columns, r.columns, some)
}

// fewColumns is the columns at a time where there are few.
const fewColumns = 2

// multiply adds the products of the panel, which has some blocks from one on, and of some columns from c+in on to their
// products with a matrix. c is a multiple of 8.
func (r *panelRun) multiply(m, columns int, c, in, block, blocks kernel.Value) {
	b, f := r.b, r.panel
	sums := make([]*kernel.Var, columns)
	for i := range sums {
		sums[i] = b.Var(kernel.F32, r.products.Load(r.product(m, b.Add(c, in, i))))
	}
	b.For(0, blocks, 1, func(i kernel.Value) {
		at := r.block(c, b.Add(block, i))
		line := func(a *kernel.Array, elements, n int) kernel.Value {
			return a.Load(b.Add(b.Mul(b.Add(b.Mul(i, panelBlock/elements), n), laneRows), b.LocalID()))
		}
		// of is what belongs to a run of a column.
		of := func(a *kernel.Array, elements, run, column int) kernel.Value {
			return a.Load(b.Add(b.Mul(at, panelBlock/elements*rowsColumns), in, run*rowsColumns+column))
		}
		words := f.Run / 4
		for run := range panelBlock / f.Run {
			dots := make([]kernel.Value, len(sums))
			for w := range words {
				codes := line(r.codes, 4, run*words+w)
				if !r.unsigned {
					codes = b.And(codes, f.Mask) // which says how many products 16 bits hold
				}
				for column := range dots {
					d := r.dots(r.x.Load(b.Add(b.Mul(b.Add(b.Mul(at, rowsColumns), in), panelWords), column*panelWords+run*words+w)), codes)
					switch {
					case w > 0:
						d = b.Add(d, dots[column])
					case f.Bias != 0:
						d = b.Add(d, of(r.biased, f.Run, run, column))
					}
					dots[column] = d
				}
			}
			scale := line(r.ofCodes, f.Run, run)
			for column, s := range sums {
				by := b.Mul(scale, of(r.scales, weight.FixedRun, run*f.Run/weight.FixedRun, column))
				s.Set(b.FMA(b.Convert(kernel.F32, dots[column]), by, s.Get()))
			}
			if f.Least {
				least := line(r.leasts, f.Run, run)
				for column, s := range sums {
					s.Set(b.FMA(least, of(r.totals, weight.FixedRun, run, column), s.Get()))
				}
			}
		}
	})
	for i, s := range sums {
		r.products.Store(r.product(m, b.Add(c, in, i)), s.Get())
	}
}

// dots is the product of a word of x and one of codes.
func (r *panelRun) dots(x, codes kernel.Value) kernel.Value {
	if r.p.matrices[0].rows.Signed {
		return r.b.DotI8(x, codes)
	}
	return r.b.DotU8(x, codes)
}

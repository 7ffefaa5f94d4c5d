package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/ir"
)

// How family rows reads weights of types whose rows lie as they are: lanes have elements of one row beside each other,
// where a row in each lane would be a gather for every 16 numbers. The sums of the lanes are added up at the end.

// elements load an element in each lane, of types that keep each by itself.
var elements = map[ir.DType]func(b *kernel.Builder, m weight.Matrix, i kernel.Value) kernel.Value{
	ir.F32: func(_ *kernel.Builder, m weight.Matrix, i kernel.Value) kernel.Value {
		return m.Buf.Load(kernel.F32, i)
	},
	ir.F16: func(b *kernel.Builder, m weight.Matrix, i kernel.Value) kernel.Value {
		return b.Elem(b.UnpackHalf(m.Buf.Load16(i)), 0)
	},
	ir.BF16: func(b *kernel.Builder, m weight.Matrix, i kernel.Value) kernel.Value {
		return b.Bitcast(kernel.F32, b.Shl(m.Buf.Load16(i), 16))
	},
}

// runsAlong reports whether lanes have elements of one row.
func (k rowsKernel) runsAlong() bool {
	_, ok := elements[k.p.matrices[0].value.Type.DType]
	return ok && !k.p.fixed && k.k%laneRows == 0
}

// alongSums are the sums at a time where registers hold a value of all lanes, and elsewhere.
const alongSums, alongSumsNarrow = 16, 4

// along adds the products of 16 rows of a matrix, from row on, as many rows at a time as there are registers for.
func (r *rowsRun) along(m int, at, first kernel.Value, sums []*kernel.Var) {
	b, matrix := r.b, r.matrices[m]
	element := elements[r.p.matrices[m].value.Type.DType]
	most := alongSumsNarrow
	if r.unsigned {
		most = alongSums
	}
	rows := max(1, most/len(sums))
	var sources []kernel.Value
	for c := range sums {
		sources = append(sources, b.Mul(r.sources.Load(b.Min(b.Add(first, c), b.Sub(r.columnsHere(), 1))), r.cols))
	}
	before := b.Add(b.Mul(r.expert(), r.height), r.from[m])
	b.For(0, laneRows, rows, func(group kernel.Value) {
		var totals []*kernel.Var // by row, then column
		var begins []kernel.Value
		for i := range rows {
			row := b.Min(b.Add(b.Mul(at, laneRows), group, i), b.Sub(r.width, 1))
			begins = append(begins, b.Mul(b.Add(before, row), r.cols))
			for range sums {
				totals = append(totals, b.Var(kernel.F32, 0.0))
			}
		}
		b.For(0, r.cols, laneRows, func(from kernel.Value) {
			e := b.Add(from, b.LocalID())
			gain := b.Var(kernel.F32, 1.0)
			b.If(r.is(r.norm), func() { gain.Set(r.gain.Load(kernel.F32, e)) })
			var x []kernel.Value
			for _, source := range sources {
				x = append(x, b.Mul(r.x.Load(kernel.F32, b.Add(source, e)), gain.Get()))
			}
			for i, begin := range begins {
				w := element(b, matrix, b.Add(begin, e))
				for c := range sums {
					t := totals[i*len(sums)+c]
					t.Set(b.FMA(w, x[c], t.Get()))
				}
			}
		})
		for i := range rows {
			mine := b.Eq(b.LocalID(), b.Add(group, i))
			for c, s := range sums {
				s.Set(b.Select(mine, b.SubgroupAdd(totals[i*len(sums)+c].Get()), s.Get()))
			}
		}
	})
}

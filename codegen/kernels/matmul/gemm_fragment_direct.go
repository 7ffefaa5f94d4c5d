package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
)

// directRows is the 8 rows of sums whose places are asked for before any of them is stored.
const directRows = 4

// laneOutputs is the outputs of each matrix that a lane holds of a row of x, if they are stored from there.
func (k gemmFragment) laneOutputs() int { return k.each() / fragment.Columns }

// storeDirect finishes and writes the tile of sorted rows whose first output of each matrix is col, right
// from the lanes that hold its sums: each has neighbours of a row of x, see items.
func (t *fragmentRun) storeDirect(col kernel.Value) {
	b := t.b
	first := b.Add(col, t.mine, b.Mul(t.place, t.laneOutputs()))
	inside := b.Lt(first, t.p.width)
	all := t.tileRows() / fragment.Columns
	for from := 0; from < all; from += directRows {
		var rows, exist []kernel.Value
		for c := from; c < min(from+directRows, all); c++ {
			for j := range 2 {
				r := b.Add(t.row, c*fragment.Columns+j, b.Mul(t.quad, 2))
				exist = append(exist, b.And(inside, b.Lt(r, t.rows)))
				rows = append(rows, t.sorted.target(b.Min(r, b.Sub(t.rows, 1))))
			}
		}
		for i := range len(rows) / 2 {
			t.storeRows([2][]kernel.Value{t.finished(from+i, 0, first), t.finished(from+i, 1, first)}, rows[2*i:], exist[2*i:], first)
		}
	}
}

// finished returns the lane's outputs, from first on, of one of its two rows of those that sums c are of.
func (t *fragmentRun) finished(c, j int, first kernel.Value) []kernel.Value {
	b, each := t.b, t.laneOutputs()
	of := func(m, i int) kernel.Value {
		n := m*each + i
		sum := t.sums[n/2][c].Elem(n%2*2 + j)
		if bias := t.p.bias[m]; bias != nil {
			at := t.p.biasAt(b, t.p.width, b.Min(b.Add(first, i), b.Sub(t.p.width, 1)))
			sum = b.Add(sum, bias.Load(kernel.F32, at))
		}
		return sum
	}
	var list []kernel.Value
	for i := range each {
		y := of(0, i)
		if act := t.p.spec.act; act != "" {
			y = lane.GLU(b, act, y)(of(1, i))
		}
		list = append(list, y)
	}
	return list
}

// storeRows writes outputs, from first on, of two rows.
func (t *fragmentRun) storeRows(y [2][]kernel.Value, rows, exist []kernel.Value, first kernel.Value) {
	b := t.b
	at := func(row kernel.Value, each int) kernel.Value {
		return b.Div(b.Add(b.Mul(row, t.p.width), first), each)
	}
	pair := func(x, y kernel.Value) kernel.Value { return b.PackHalf(b.Clamp(b.Vec(x, y), -65504.0, 65504.0)) }
	if t.p.spec.half && len(y[0]) == 1 {
		// Lanes of neighbour outputs exchange what they have of a row, so that each has a pair.
		odd := b.Eq(b.And(t.place, 1), 1)
		got := b.SubgroupShuffleXor(b.Select(odd, y[0][0], y[1][0]), 4)
		both := pair(b.Select(odd, got, y[0][0]), b.Select(odd, y[1][0], got))
		exists := b.Or(b.And(odd, exist[1]), b.And(b.Not(odd), exist[0]))
		b.If(exists, func() { t.p.out.Store(at(b.Select(odd, rows[1], rows[0]), 2), both) })
		return
	}
	for j, list := range y {
		var words []kernel.Operand
		for i, v := range list {
			if !t.p.spec.half {
				words = append(words, v)
			} else if i%2 == 1 {
				words = append(words, pair(list[i-1], v))
			}
		}
		b.If(exist[j], func() { t.p.out.Store(at(rows[j], len(list)), lane.Vector(b, words)) })
	}
}

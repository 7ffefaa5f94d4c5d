package kernels

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

// loadFixed loads the lane's elements of x and rounds them to fixed point.
func (r *gemvRun) loadFixed(k *residentX) {
	b, f := r.b, r.p.matrices[0].format.dot
	for _, column := range r.starts {
		var units []fixedUnit
		for j, u := range k.units {
			begin := b.Div(f.begin(b, u), 4)
			var halves [2][]kernel.Value
			for h := range halves {
				for v := range fixedHalf / 4 {
					halves[h] = append(halves[h], r.element(column, b.Add(begin, h*f.stride/4+v), j, nil))
				}
			}
			units = append(units, f.toFixed(b, halves, r.odd()))
		}
		k.fixed = append(k.fixed, units)
	}
}

// odd holds in lanes of odd number.
func (r *gemvRun) odd() kernel.Value { return r.b.Ne(r.b.And(r.lane, 1), 0) }

// dotFixed is dot for an x in fixed point.
func (r *gemvRun) dotFixed(k *residentX, words [][]kernel.Value) []kernel.Value {
	b, f := r.b, r.p.matrices[0].format.dot
	sums := make([][]kernel.Value, len(r.starts))
	for j, u := range k.units {
		w := f.decode(b, words[j], u)
		for c := range sums {
			sums[c] = append(sums[c], f.product(b, w, k.fixed[c][j], r.odd()))
		}
	}
	return slices.Concat(sums...)
}

// Beside an x in fixed point, squares of x are added up in one order, too: four elements,
// then as many fours as a subgroup has lanes, then these groups in turn.

// squareGroups is how many groups a column has.
func (k gemv) squareGroups() int { return ceilDiv(k.k/4, k.wave) }

// sumSquares adds up the squares of all columns.
func (r *gemvRun) sumSquares() {
	b, quads := r.b, r.k/4
	for c := range r.columns {
		b.For(b.LocalID(), r.squareGroups()*r.wave, r.lanes(), func(i kernel.Value) {
			v := r.a.x.Load(f32x4, b.Add(r.starts[c], b.Min(i, quads-1)))
			if quads%r.wave != 0 {
				v = b.Select(b.Lt(i, quads), v, b.Splat(b.F32(0), 4))
			}
			r.addSquares(c, i, v)
		})
	}
}

// addSquares adds up those of the i-th four elements of column c and of its neighbours'.
func (r *gemvRun) addSquares(c int, i, v kernel.Value) {
	b := r.b
	var square partial
	for e := range 4 {
		square.product(b, b.Elem(v, e), b.Elem(v, e))
	}
	sum := xorLanes(b, square.sum, 1, r.wave, func(x, y kernel.Value) kernel.Value { return b.Add(x, y) })
	b.If(b.SubgroupElect(), func() { r.squares.Store(b.Add(b.Div(i, r.wave), c*r.squareGroups()), sum) })
}

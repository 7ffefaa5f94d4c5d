package matmul

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// In fixed point a lane of expert_down keeps half as many words of x, and dot products of bytes take the place of
// conversions and products: that pays where rows are long or are loaded all at once.

// wantsFixed reports whether x may be in fixed point, and whether a lane can keep its elements then.
func (g *expertDown) wantsFixed() bool {
	if g.fixed != nil || g.down.format.Bytes == nil || !weight.FitsDot(g.k) {
		return false
	}
	s := g.fixedShape()
	return s.units*s.unit*5/8 <= residentElements
}

// fixedShape is the shape of the slots' rows with x in fixed point.
func (g *expertDown) fixedShape() downShape {
	return newDownShape(g.down.format, weight.DotUnitElements, g.k, g.wave)
}

// oneUnit reports whether lanes have one unit each of the rows of the slots and of a projection, with x in fixed point.
func (g *expertDown) oneUnit(t *downTerm) bool {
	return t.x != nil && t.w.format.Bytes != nil && weight.FitsDot(t.k) && g.fixedShape().units == 1 &&
		newDownShape(t.w.format, weight.DotUnitElements, t.k, g.wave).units == 1
}

// mostParts is the most members that share the rows of a projection.
const mostParts = 4

// share has members share the rows of the projections that takes names, in fixed point, where a workgroup has subgroups
// for all members: else each has one.
func (g *expertDown) share(workgroup int, takes func(t *downTerm) bool) {
	for _, t := range g.terms {
		if t.x == nil || !takes(t) {
			continue
		}
		if t.parts = g.partsOf(t); g.subgroups()*g.wave > workgroup {
			t.parts = 1
		}
	}
}

// partsOf is how many members would share the rows of a projection with x in fixed point, so that no part is longer
// than the slots' rows: all would wait for it.
func (g *expertDown) partsOf(t *downTerm) int {
	most := g.fixedShape().units
	for n := 1; n <= mostParts; n++ {
		part := t.k / n
		if t.k%n != 0 || !weight.FitsDot(part) || part%weight.ScaleElements(t.k) != 0 {
			continue
		}
		if newDownShape(t.w.format, weight.DotUnitElements, part, g.wave).units <= most {
			return n
		}
	}
	return 1
}

// termShape is that of a part of the rows of a projection.
func (g *expertDown) termShape(t *downTerm) downShape {
	unit := t.w.format.Unit
	if t.fixed {
		unit = weight.DotUnitElements
	}
	s := newDownShape(t.w.format, unit, t.k/t.parts, g.wave)
	s.fixed, s.part = t.fixed, t.parts > 1
	return s
}

// alike is how many neighbouring lanes have the same sum of a row: the lanes of a super-block.
func (s downShape) alike() int {
	if s.fixed && s.format.Bytes.Super {
		return weight.SuperElements / weight.DotUnitElements
	}
	return 1
}

// orZero returns a vec4 of x, or zeros in a lane that has no j-th unit.
func (s downShape) orZero(b *kernel.Builder, laneID kernel.Value, j int, x kernel.Value) kernel.Value {
	if s.exact {
		return x
	}
	return b.Select(b.Lt(b.Add(laneID, j*s.team), s.k/s.unit), x, b.Splat(b.F32(0), 4))
}

// loadFixed loads the lane's elements of x, by unit and half.
func (r *downRun) loadFixed(s downShape, x *kernel.Buffer, column, laneID kernel.Value, units []kernel.Value) (list [][2][]kernel.Value) {
	b, f := r.b, s.format.Bytes
	for j, u := range units {
		at := f.Place(b, u)
		var halves [2][]kernel.Value
		for h := range halves {
			for v := range weight.FixedHalf / 4 {
				i := b.Add(column, b.Mul(at.Half, weight.FixedHalf/4), h*at.Stride*weight.FixedHalf/4+v)
				halves[h] = append(halves[h], s.orZero(b, laneID, j, x.Load(lane.F32x4, i)))
			}
		}
		list = append(list, halves)
	}
	return list
}

// roundFixed rounds what loadFixed has loaded.
func (r *downRun) roundFixed(s downShape, loaded [][2][]kernel.Value, odd kernel.Value) (fixed []weight.FixedUnit) {
	for _, halves := range loaded {
		fixed = append(fixed, s.format.Bytes.ToFixed(r.b, halves, weight.FixedLanes{Group: weight.ScaleElements(s.k), Odd: odd}))
	}
	return fixed
}

// dotFixed is dotFloats for an x that it rounds to fixed point.
func (r *downRun) dotFixed(s downShape, x *kernel.Buffer, column, laneID kernel.Value, units []kernel.Value) func(words [][]kernel.Value) kernel.Value {
	b, f := r.b, s.format.Bytes
	odd := b.Ne(b.And(laneID, 1), 0)
	fixed := r.roundFixed(s, r.loadFixed(s, x, column, laneID, units), odd)
	return func(words [][]kernel.Value) kernel.Value {
		sum := b.F32(0)
		for j, u := range units {
			w := f.Decode(b, words[j], u)
			if !f.Super {
				sum = b.Add(sum, f.Product(b, w, fixed[j], odd))
				continue
			}
			block := f.SuperProduct(b, w, fixed[j])
			block.Products = lane.Sum(b, block.Products, 1, s.alike())
			if block.Mins != (kernel.Value{}) {
				block.Mins = lane.Sum(b, block.Mins, 1, s.alike())
			}
			sum = b.Add(sum, block.Number(b))
		}
		return sum
	}
}

// A subgroup may load all of its rows before it multiplies the first. Then x is loaded before them, rounded while they
// are on their way, and lanes exchange the sums of several rows as projections do. The sums are those of one row after
// the other.

// mostAtOnce bounds the batches of rows that a lane holds.
const mostAtOnce = 8

// batches is how many batches of rows a subgroup has of a tile, if it can load them at once, else 0: lanes that have
// the same sum get one each.
func (g *expertDown) batches(s downShape) int {
	n := g.tile * s.team / g.wave
	whole := n > 1 && n*g.wave == g.tile*s.team && n&(n-1) == 0 && g.width%g.tile == 0
	if !whole || !s.fixed || s.units > 1 || n > min(mostAtOnce, s.team) || s.format.Bytes.Super && n > s.alike() {
		return 0
	}
	return n
}

// fitsAtOnce reports whether all members can load their rows at once.
func (g *expertDown) fitsAtOnce() bool {
	if g.alone || g.down.bias != nil || g.batches(g.downShape()) == 0 {
		return false
	}
	return !slices.ContainsFunc(g.terms, func(t *downTerm) bool { return t.x != nil && g.batches(g.termShape(t)) == 0 })
}

// memberAtOnce computes the products of n batches of rows, whose words fetch loads, and gives each to put in one lane.
func (r *downRun) memberAtOnce(s downShape, n int, x *kernel.Buffer, column, laneID, unit kernel.Value, fetch func(batch int) []kernel.Value, put func(batch, sum kernel.Value)) {
	b, f := r.b, s.format.Bytes
	odd := b.Ne(b.And(laneID, 1), 0)
	loaded := r.loadFixed(s, x, column, laneID, []kernel.Value{unit})
	var words [][]kernel.Value
	for i := range n {
		words = append(words, fetch(i))
	}
	b.SubgroupHint() // else the driver's compiler loads one batch after the other
	fixed := r.roundFixed(s, loaded, odd)[0]
	var supers []weight.SuperSum
	var sums []kernel.Value
	for _, w := range words {
		if unit := f.Decode(b, w, unit); f.Super {
			supers = append(supers, f.SuperProduct(b, unit, fixed))
		} else {
			sums = append(sums, f.Product(b, unit, fixed, odd))
		}
	}
	var sum kernel.Value
	from := n
	if f.Super {
		from = s.alike()
		sums, _ = addSupers(b, laneID, supers, masks(1, from))
		sum = sums[0]
	} else {
		sum = lane.SumEach(b, sums, laneID, 1)
	}
	sum = lane.Sum(b, b.Add(b.F32(0), sum), from, s.team/from)
	b.If(b.Lt(laneID, n), func() { put(laneID, sum) })
}

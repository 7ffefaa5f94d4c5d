package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// In fixed point a lane of expert_down keeps half as many words of x, and dot products of bytes take the place of
// conversions and products: that pays where rows are long.

// downFixedFrom is the units of a lane from which on expert_down wants x in fixed point. Of one unit, as in the 35B's
// rows of 512 elements, it made no difference (docs/lab/decode-experts.md).
const downFixedFrom = 2

// wantsFixed reports whether rows are so long, and whether a lane can keep its elements.
func (g *expertDown) wantsFixed() bool {
	if g.fixed != nil || g.down.format.Bytes == nil || !weight.FitsDot(g.k) {
		return false
	}
	s := newDownShape(g.down.format, weight.DotUnitElements, g.k, g.wave)
	return s.units >= downFixedFrom && s.units*s.unit*5/8 <= residentElements
}

// mostParts is the most members that share the rows of a projection.
const mostParts = 4

// share has members share the rows of the projections that takes names, in fixed point, where a workgroup has subgroups for
// all members: else each has one.
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

// partsOf is how many members would share the rows of a projection with x in fixed point, so that none has more of a row than those
// of the slots: else all would wait for it.
func (g *expertDown) partsOf(t *downTerm) int {
	most := newDownShape(g.down.format, weight.DotUnitElements, g.k, g.wave).units
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

// alike is how many lanes that lie together have the same sum of a row: those of a super-block.
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

// dotFixed is dotFloats for an x that it rounds to fixed point.
func (r *downRun) dotFixed(s downShape, x *kernel.Buffer, column, laneID kernel.Value, units []kernel.Value) func(words [][]kernel.Value) kernel.Value {
	b, f := r.b, s.format.Bytes
	odd := b.Ne(b.And(laneID, 1), 0)
	var fixed []weight.FixedUnit
	for j, u := range units {
		at := f.Place(b, u)
		var halves [2][]kernel.Value
		for h := range halves {
			for v := range weight.FixedHalf / 4 {
				i := b.Add(column, b.Mul(at.Half, weight.FixedHalf/4), h*at.Stride*weight.FixedHalf/4+v)
				halves[h] = append(halves[h], s.orZero(b, laneID, j, x.Load(lane.F32x4, i)))
			}
		}
		fixed = append(fixed, f.ToFixed(b, halves, weight.FixedLanes{Group: weight.ScaleElements(s.k), Odd: odd}))
	}
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

package weight

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
)

// FixedUnit is the elements of x that multiply a unit of the weights, in 12-bit
// fixed point: x = scale*(256*high + low), four signed bytes a word.
type FixedUnit struct {
	High, Low [2][]kernel.Value // of the halves
	// For the run with which the unit ends, or for both halves if scales are fine: the scale and,
	// if the format has offsets, the result of Total for the sum of x.
	Scales, Totals []kernel.Value
	Sums           [2]kernel.Value // of the halves' integers, if the format has super-blocks; then there is one scale and no total
}

// FixedMost is the largest magnitude of 256*high + low, an integer that is exact in f16.
const FixedMost = 1<<11 - 1

// ScaleElements is the number of elements of x that share a scale in op fixed12, in rows of k.
func ScaleElements(k int) int {
	if k%SuperElements == 0 {
		return SuperElements
	}
	return FixedRun
}

// SuperElements is the number of elements of a super-block.
const SuperElements = 256

// FixedLanes says which elements of x the lanes that round it hold.
type FixedLanes struct {
	Group int  // see ScaleElements
	Wide  bool // see DotFormat.wide
	Wave  int
	Odd   kernel.Value // holds in lanes of odd number
	Brief bool         // bytes are put in order by instructions for that, and a subgroup finds its largest value by one
}

// most returns the largest magnitudes that the elements of a unit's halves share their scale with, from
// those of the halves.
func (l FixedLanes) most(b *kernel.Builder, f *DotFormat, halves [2]kernel.Value) [2]kernel.Value {
	most := func(x kernel.Value, lanes int) kernel.Value {
		return lane.Fold(b, x, 1, lanes, func(x, y kernel.Value) kernel.Value { return b.Max(x, y) })
	}
	switch {
	case l.Group == SuperElements && l.Wide && l.Wave > SuperElements/FixedRun: // halves that lie together are of neighbours
		return [2]kernel.Value{most(halves[0], SuperElements/FixedHalf), most(halves[1], SuperElements/FixedHalf)}
	case l.Group == SuperElements:
		both := most(b.Max(halves[0], halves[1]), SuperElements/FixedRun)
		return [2]kernel.Value{both, both}
	case f.Whole():
		both := b.Max(halves[0], halves[1])
		return [2]kernel.Value{both, both}
	}
	return [2]kernel.Value{most(halves[0], 2), most(halves[1], 2)}
}

// ToFixed rounds the elements of a unit, four vec4 a half, as op fixed12 does.
func (f *DotFormat) ToFixed(b *kernel.Builder, x [2][]kernel.Value, l FixedLanes) FixedUnit {
	var u FixedUnit
	var sums, scales [2]kernel.Value
	most := l.most(b, f, [2]kernel.Value{Largest(b, x[0]), Largest(b, x[1])})
	for h := range x {
		inverse := InverseScale(b, most[h])
		scales[h] = b.Mul(most[h], 1.0/FixedMost)
		for _, v := range x[h] {
			high, low := l.words(b, v, inverse)
			u.High[h], u.Low[h] = append(u.High[h], high), append(u.Low[h], low)
		}
		ones := b.U32(0x01010101)
		sums[h] = u.product(b, h, []kernel.Value{ones, ones, ones, ones}, b.DotI8)
	}
	switch {
	case f.Super:
		u.Scales, u.Sums = scales[:1], sums
		return u
	case f.Fine:
		u.Scales = scales[:]
	case f.Whole():
		u.Scales = scales[:1]
	default:
		u.Scales = []kernel.Value{b.Select(l.Odd, scales[1], scales[0])}
	}
	if f.Offset {
		for i, sum := range f.perScale(b, sums, l.Odd) {
			u.Totals = append(u.Totals, f.Total(b, u.Scales[i], b.Convert(kernel.F32, sum)))
		}
	}
	return u
}

// Total returns the factor of offsets, from scale and sum of some integers of x; for
// a biased format it returns what is to be added to their products with codes.
func (f *DotFormat) Total(b *kernel.Builder, scale, sum kernel.Value) kernel.Value {
	if f.Bias != 0 {
		return b.Mul(sum, -float32(f.Bias)) // exact
	}
	return b.Mul(scale, sum)
}

// Largest returns the largest magnitude of some vec4.
func Largest(b *kernel.Builder, x []kernel.Value) kernel.Value {
	most := b.Abs(b.Elem(x[0], 0))
	for i, v := range x {
		for e := range 4 {
			if i+e > 0 {
				most = b.Max(most, b.Abs(b.Elem(v, e)))
			}
		}
	}
	return most
}

// InverseScale returns the factor that scales the largest magnitude of a run to FixedMost. Below
// 1e-30 x counts as 0, since the quotient would leave the range of f32.
func InverseScale(b *kernel.Builder, most kernel.Value) kernel.Value {
	return b.Select(b.Gt(most, 1e-30), b.Div(b.F32(FixedMost), b.Max(most, 1e-30)), 0)
}

// fixedSums returns 256*high + low + 128 of the elements of a vec4 of x in the low 16 bits of words: there 3*2^22 + n
// has n. Their low byte is low + 128.
func fixedSums(b *kernel.Builder, v, inverse kernel.Value) kernel.Value {
	return b.Bitcast(lane.U32x4, b.FMA(v, b.Splat(inverse, 4), b.Splat(b.F32(3<<22+128), 4)))
}

// FixedWords returns the high and the low bytes of a vec4 of x.
func FixedWords(b *kernel.Builder, v, inverse kernel.Value) (high, low kernel.Value) {
	n := fixedSums(b, v, inverse)
	even := b.Or(b.And(b.Elem(n, 0), 0xffff), b.Shl(b.Elem(n, 2), 16))
	odd := b.Or(b.And(b.Elem(n, 1), 0xffff), b.Shl(b.Elem(n, 3), 16))
	low = b.Or(b.And(even, 0x00ff00ff), b.Shl(b.And(odd, 0x00ff00ff), 8))
	return b.Or(b.And(b.Shr(even, 8), 0x00ff00ff), b.And(odd, uint32(0xff00ff00))), b.Xor(low, uint32(0x80808080))
}

// words is FixedWords, in fewer instructions where there are some that put bytes in order.
func (l FixedLanes) words(b *kernel.Builder, v, inverse kernel.Value) (high, low kernel.Value) {
	if !l.Brief {
		return FixedWords(b, v, inverse)
	}
	n := fixedSums(b, v, inverse)
	first, last := b.Permute(b.Elem(n, 0), b.Elem(n, 1), 0x5140), b.Permute(b.Elem(n, 2), b.Elem(n, 3), 0x5140) // low bytes, then high ones
	return b.Permute(first, last, 0x7632), b.Xor(b.Permute(first, last, 0x5410), uint32(0x80808080))
}

// product returns the sum of the products of half h with bytes, by dot, without the scale.
func (u *FixedUnit) product(b *kernel.Builder, h int, codes []kernel.Value, dot func(x, code kernel.Operand) kernel.Value) kernel.Value {
	var high, low kernel.Value
	for i, c := range codes {
		p, q := dot(u.High[h][i], c), dot(u.Low[h][i], c)
		if i > 0 {
			p, q = b.Add(p, high), b.Add(q, low)
		}
		high, low = p, q
	}
	return b.Add(b.Shl(high, 8), low)
}

// perScale returns what the halves' sums are for each scale of the unit: themselves, or
// that of the run that it ends with.
func (f *DotFormat) perScale(b *kernel.Builder, halves [2]kernel.Value, odd kernel.Value) []kernel.Value {
	switch {
	case f.Fine:
		return halves[:]
	case f.Whole():
		return []kernel.Value{b.Add(halves[0], halves[1])}
	}
	return []kernel.Value{addNeighbour(b, halves, odd)}
}

// addNeighbour returns the sum of what the lane and its neighbour have of a run: the
// first run in lanes of even number, the second in odd ones.
func addNeighbour(b *kernel.Builder, halves [2]kernel.Value, odd kernel.Value) kernel.Value {
	given := b.SubgroupShuffleXor(b.Select(odd, halves[0], halves[1]), 1)
	return b.Add(b.Select(odd, halves[1], halves[0]), given)
}

// Product returns the product of x and the run of the weights with which a unit ends, from the
// parts of the lane and its neighbour. It does not depend on which lanes these are, since
// the products of bytes are summed exactly for each scale of the weights.
func (f *DotFormat) Product(b *kernel.Builder, w DotUnit, x FixedUnit, odd kernel.Value) kernel.Value {
	halves := x.products(b, w)
	sums, scales := f.perScale(b, halves, odd), w.Scales()
	var parts [2]kernel.Value
	for i, sum := range sums {
		product := b.Convert(kernel.F32, sum)
		if f.Bias != 0 {
			product = b.Add(product, x.Totals[i]) // exact
		}
		parts[i] = b.Mul(b.Mul(scales[i].Scale, x.Scales[i]), product)
		if f.Offset && f.Bias == 0 {
			parts[i] = b.FMA(scales[i].Offset, x.Totals[i], parts[i])
		}
	}
	if f.Fine {
		return b.Add(parts[0], parts[1])
	}
	return parts[0]
}

// products returns the products of both halves.
func (u *FixedUnit) products(b *kernel.Builder, w DotUnit) [2]kernel.Value {
	first := u.product(b, 0, w.Codes[0], b.DotI8)
	if w.Times16 {
		return [2]kernel.Value{first, b.Shr(u.product(b, 1, w.Codes[1], b.DotU8), 4)}
	}
	return [2]kernel.Value{first, u.product(b, 1, w.Codes[1], b.DotI8)}
}

// SuperSum is a lane's part of the sum over a super-block, in integers. The integers of all lanes are added
// before they become floats.
type SuperSum struct {
	Products, Mins kernel.Value // mins only if the format has them
	Header, ScaleX kernel.Value // which all lanes have
}

// SuperProduct returns the unit's part of the product of x and its super-block.
func (f *DotFormat) SuperProduct(b *kernel.Builder, w DotUnit, x FixedUnit) SuperSum {
	of, halves := w.super(), x.products(b, w)
	sum := SuperSum{Header: of.header, ScaleX: x.Scales[0]}
	for h, p := range halves {
		p = b.Bitcast(kernel.U32, p)
		if f.Bias != 0 {
			p = b.Sub(p, b.Mul(b.Bitcast(kernel.U32, x.Sums[h]), uint32(f.Bias)))
		}
		sum.Products = Plus(b, sum.Products, b.Mul(of.scales[h], p))
		if f.Bias == 0 {
			sum.Mins = Plus(b, sum.Mins, b.Mul(of.mins[h], b.Bitcast(kernel.U32, x.Sums[h])))
		}
	}
	return sum
}

// Plus adds y to x, which may be none.
func Plus(b *kernel.Builder, x, y kernel.Value) kernel.Value {
	if x == (kernel.Value{}) {
		return y
	}
	return b.Add(x, y)
}

// Number is the product of x and the super-block, after all lanes' parts have been added.
func (s SuperSum) Number(b *kernel.Builder) kernel.Value {
	number := func(n kernel.Value) kernel.Value { return b.Convert(kernel.F32, b.Bitcast(kernel.I32, n)) }
	header := b.UnpackHalf(s.Header)
	product := b.Mul(b.Mul(b.Elem(header, 0), s.ScaleX), number(s.Products))
	if s.Mins == (kernel.Value{}) {
		return product
	}
	return b.FMA(b.Neg(b.Elem(header, 1)), b.Mul(s.ScaleX, number(s.Mins)), product)
}

// FixedEighth is eight elements of x, with their scale, and the sums of the integers of their run and of their
// half.
type FixedEighth struct {
	High, Low           []kernel.Value
	Scale, Sum, HalfSum kernel.Value
}

// EighthsFixed is like ToFixed for lanes that have eight elements at a time, two vec4, and whose neighbours have the
// next eight. A lane's parts are as many lanes apart as share a scale.
func EighthsFixed(b *kernel.Builder, parts [][]kernel.Value, lanes int, l FixedLanes) (list []FixedEighth) {
	var all []kernel.Value
	for _, x := range parts {
		all = append(all, x...)
	}
	most := Largest(b, all)
	if l.Brief && lanes == l.Wave { // magnitudes are in the order of their bits
		most = b.Bitcast(kernel.F32, b.SubgroupMax(b.Bitcast(kernel.U32, most)))
	} else {
		most = lane.Fold(b, most, 1, lanes, func(x, y kernel.Value) kernel.Value { return b.Max(x, y) })
	}
	inverse, scale := InverseScale(b, most), b.Mul(most, 1.0/FixedMost)
	for _, x := range parts {
		q := FixedEighth{Scale: scale}
		ones := b.U32(0x01010101)
		var sums [2]kernel.Value
		for j, v := range x {
			high, low := l.words(b, v, inverse)
			q.High, q.Low = append(q.High, high), append(q.Low, low)
			sums[j] = b.Add(b.Shl(b.DotI8(ones, high), 8), b.DotI8(ones, low))
		}
		half := lane.Sum(b, b.Add(sums[0], sums[1]), 1, 2)
		q.Sum, q.HalfSum = b.Convert(kernel.F32, lane.Sum(b, half, 2, 2)), b.Convert(kernel.F32, half)
		list = append(list, q)
	}
	return
}

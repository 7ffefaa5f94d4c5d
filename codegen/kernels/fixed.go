package kernels

import "github.com/zincc-dev/zincc/codegen/kernel"

// fixedUnit is the elements of x that a unit of the weights is multiplied with, in 12-bit
// fixed point: x = scale*(256*high + low), four signed bytes a word.
type fixedUnit struct {
	high, low [2][]kernel.Value // of the halves
	// Of the run that the unit ends with, or of both halves if they are fine: the scale and,
	// if the format has offsets, what total makes of the sum of x.
	scales, totals []kernel.Value
}

// fixedMost is the largest magnitude of 256*high + low: an integer that is exact in f16.
const fixedMost = 1<<11 - 1

// toFixed rounds the elements of a unit, four vec4 a half, as op fixed12 does. odd says
// which of the two runs is the lane's.
func (f *dotFormat) toFixed(b *kernel.Builder, x [2][]kernel.Value, odd kernel.Value) fixedUnit {
	var u fixedUnit
	var most, sums, scales [2]kernel.Value
	for h := range x {
		most[h] = largest(b, x[h])
	}
	if f.whole() {
		most[0] = b.Max(most[0], most[1])
		most[1] = most[0]
	} else {
		for h := range most {
			most[h] = b.Max(most[h], b.SubgroupShuffleXor(most[h], 1))
		}
	}
	for h := range x {
		inverse := inverseScale(b, most[h])
		scales[h] = b.Mul(most[h], 1.0/fixedMost)
		for _, v := range x[h] {
			high, low := fixedWords(b, v, inverse)
			u.high[h], u.low[h] = append(u.high[h], high), append(u.low[h], low)
		}
		ones := b.U32(0x01010101)
		sums[h] = u.product(b, h, []kernel.Value{ones, ones, ones, ones}, b.DotI8)
	}
	switch {
	case f.fine:
		u.scales = scales[:]
	case f.whole():
		u.scales = scales[:1]
	default:
		u.scales = []kernel.Value{b.Select(odd, scales[1], scales[0])}
	}
	if f.offset {
		for i, sum := range f.perScale(b, sums, odd) {
			u.totals = append(u.totals, f.total(b, u.scales[i], b.Convert(kernel.F32, sum)))
		}
	}
	return u
}

// total returns what offsets are multiplied with, from scale and sum of some integers of x; of
// a biased format what is to be added to their products with codes.
func (f *dotFormat) total(b *kernel.Builder, scale, sum kernel.Value) kernel.Value {
	if f.bias != 0 {
		return b.Mul(sum, -float32(f.bias)) // exact
	}
	return b.Mul(scale, sum)
}

// largest returns the largest magnitude of some vec4.
func largest(b *kernel.Builder, x []kernel.Value) kernel.Value {
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

// inverseScale returns what brings the largest magnitude of a run to fixedMost. Below
// 1e-30 x counts as 0: the quotient would leave the range of f32.
func inverseScale(b *kernel.Builder, most kernel.Value) kernel.Value {
	return b.Select(b.Gt(most, 1e-30), b.Div(b.F32(fixedMost), b.Max(most, 1e-30)), 0)
}

// fixedWords returns the high and the low bytes of a vec4 of x.
func fixedWords(b *kernel.Builder, v, inverse kernel.Value) (high, low kernel.Value) {
	// In the low 16 bits of 3*2^22 + n is n: here that of 256*high + low + 128, whose
	// low byte is low + 128.
	n := b.Bitcast(u32x4, b.FMA(v, b.Splat(inverse, 4), b.Splat(b.F32(3<<22+128), 4)))
	even := b.Or(b.And(b.Elem(n, 0), 0xffff), b.Shl(b.Elem(n, 2), 16))
	odd := b.Or(b.And(b.Elem(n, 1), 0xffff), b.Shl(b.Elem(n, 3), 16))
	low = b.Or(b.And(even, 0x00ff00ff), b.Shl(b.And(odd, 0x00ff00ff), 8))
	return b.Or(b.And(b.Shr(even, 8), 0x00ff00ff), b.And(odd, uint32(0xff00ff00))), b.Xor(low, uint32(0x80808080))
}

// product returns the sum of the products of half h with bytes, by dot, without the scale.
func (u *fixedUnit) product(b *kernel.Builder, h int, codes []kernel.Value, dot func(x, code kernel.Operand) kernel.Value) kernel.Value {
	var high, low kernel.Value
	for i, c := range codes {
		p, q := dot(u.high[h][i], c), dot(u.low[h][i], c)
		if i > 0 {
			p, q = b.Add(p, high), b.Add(q, low)
		}
		high, low = p, q
	}
	return b.Add(b.Shl(high, 8), low)
}

// perScale returns what the halves' sums are for each scale of the unit: themselves, or
// that of the run that it ends with.
func (f *dotFormat) perScale(b *kernel.Builder, halves [2]kernel.Value, odd kernel.Value) []kernel.Value {
	switch {
	case f.fine:
		return halves[:]
	case f.whole():
		return []kernel.Value{b.Add(halves[0], halves[1])}
	}
	return []kernel.Value{meetNeighbour(b, halves, odd)}
}

// meetNeighbour returns the sum of what the lane and its neighbour have of a run: of the
// first in lanes of even number, of the second in odd ones.
func meetNeighbour(b *kernel.Builder, halves [2]kernel.Value, odd kernel.Value) kernel.Value {
	given := b.SubgroupShuffleXor(b.Select(odd, halves[0], halves[1]), 1)
	return b.Add(b.Select(odd, halves[1], halves[0]), given)
}

// product returns the product of x and the run of the weights that a unit ends with: of
// what the lane and its neighbour have of it. It is the same whichever lanes those are:
// the products of bytes are summed exactly for each scale of the weights.
func (f *dotFormat) product(b *kernel.Builder, w dotUnit, x fixedUnit, odd kernel.Value) kernel.Value {
	halves := [2]kernel.Value{x.product(b, 0, w.codes[0], b.DotI8)}
	if w.times16 {
		halves[1] = b.Shr(x.product(b, 1, w.codes[1], b.DotU8), 4)
	} else {
		halves[1] = x.product(b, 1, w.codes[1], b.DotI8)
	}
	sums := f.perScale(b, halves, odd)
	var parts [2]kernel.Value
	for i, sum := range sums {
		product := b.Convert(kernel.F32, sum)
		if f.bias != 0 {
			product = b.Add(product, x.totals[i]) // exact
		}
		parts[i] = b.Mul(b.Mul(w.scales[i].scale, x.scales[i]), product)
		if f.offset && f.bias == 0 {
			parts[i] = b.FMA(w.scales[i].offset, x.totals[i], parts[i])
		}
	}
	if f.fine {
		return b.Add(parts[0], parts[1])
	}
	return parts[0]
}

// fixedQuarter is eight elements of a run, with the scale and the sums of the integers of the run
// and of the half.
type fixedQuarter struct {
	high, low           []kernel.Value
	scale, sum, halfSum kernel.Value
}

// quarterFixed is toFixed by four neighbouring lanes, of which each has two vec4 of the run.
func quarterFixed(b *kernel.Builder, x []kernel.Value) fixedQuarter {
	most := xorLanes(b, largest(b, x), 1, 4, func(x, y kernel.Value) kernel.Value { return b.Max(x, y) })
	q, inverse := fixedQuarter{scale: b.Mul(most, 1.0/fixedMost)}, inverseScale(b, most)
	ones := b.U32(0x01010101)
	var sums [2]kernel.Value
	for j, v := range x {
		high, low := fixedWords(b, v, inverse)
		q.high, q.low = append(q.high, high), append(q.low, low)
		sums[j] = b.Add(b.Shl(b.DotI8(ones, high), 8), b.DotI8(ones, low))
	}
	half := addLanes(b, b.Add(sums[0], sums[1]), 1, 2)
	q.sum, q.halfSum = b.Convert(kernel.F32, addLanes(b, half, 2, 2)), b.Convert(kernel.F32, half)
	return q
}

package matmul

import (
	"math"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// Sums over a super-block are integers of 32 bits: of products of codes and x, times scales. Those of a
// run come out of the matrices as f32. To get them as integers without a conversion, the matrices add them
// to a number whose last bit of the mantissa has their unit: they are then its last bits. The share of that
// number in the whole sum is known.

// window is 1.5 times a power of two: sums of less than 22 bits, times 2 to the exponent, change its
// mantissa alone.
func window(exponent int) float32 { return float32(math.Ldexp(1.5, 23+exponent)) }

// superBlock is block for formats whose blocks are super-blocks.
func (r *fixedTask) superBlock(rows fixedRows, words [2][]kernel.Value, x fixedX, follow func(slot int)) (sums [4]kernel.Value) {
	b := r.b
	var scales [2]weight.SuperScales
	var total [4]kernel.Value
	for h := range scales {
		scales[h] = rows[h].Super(words[h])
		start := r.windows(scales[h].Scales)
		total[2*h], total[2*h+1] = start, start
	}
	rests := r.minimums(scales, x)
	follow(-1)
	for slot := range weight.FixedRuns {
		run := r.format.Run(slot)
		codes := r.codes(rows, words, slot)
		begin := b.MatFill(sumMatrix, window(r.format.Exponents[slot%2]))
		for h, products := range r.products(codes, x.codes(run), func(int) kernel.Value { return begin }) {
			for e := range total {
				s := r.scaleByte(scales[e/2].Scales, run*r.format.Halves()+h)
				total[e] = b.Add(total[e], b.Mul(s, b.Bitcast(kernel.U32, products[e])))
			}
		}
		follow(slot)
	}
	for e, n := range total {
		of, xs := scales[e/2], x.scale[e%2]
		if of.Mins == nil {
			n = b.Sub(n, rests[e])
		}
		sums[e] = b.Mul(b.Mul(of.Factor, xs), b.Convert(kernel.F32, b.Bitcast(kernel.I32, n)))
		if of.Mins != nil {
			sums[e] = b.FMA(of.Offset, b.Mul(xs, rests[e]), sums[e])
		}
	}
	return
}

// windows returns what takes the windows of all runs out of the sum.
func (r *fixedTask) windows(scales []kernel.Value) kernel.Value {
	b := r.b
	slots := []uint32{0x00010001, 0x01000100} // bytes of slots of even and of odd number
	if exponents := r.format.Exponents; exponents[0] == exponents[1] {
		slots = []uint32{0x01010101}
	}
	var sum kernel.Value
	for i, ones := range slots {
		count := r.dot(scales[0], ones)
		for _, w := range scales[1:] {
			count = b.Add(count, r.dot(w, ones))
		}
		part := b.Mul(count, -math.Float32bits(window(r.format.Exponents[i])))
		sum = weight.Plus(b, sum, part)
	}
	return sum
}

// dot is the sum of the products of bytes, of which those of w are as those of scales.
func (r *fixedTask) dot(w kernel.Value, bytes uint32) kernel.Value {
	if r.format.Fine {
		return r.b.Bitcast(kernel.U32, r.b.DotI8(w, bytes))
	}
	return r.b.Bitcast(kernel.U32, r.b.DotU8(w, bytes))
}

// scaleByte is the i-th scale.
func (r *fixedTask) scaleByte(scales []kernel.Value, i int) kernel.Value {
	w := scales[i/4]
	if r.format.Fine {
		return r.b.Bitcast(kernel.U32, r.b.BitExtract(r.b.Bitcast(kernel.I32, w), i%4*8, 8))
	}
	return r.b.BitExtract(w, i%4*8, 8)
}

// minimums returns the sums of products of minimums and totals of x, as f32 or, if there is a
// bias in their stead, of bias, scales and totals, as integers. Totals are 64 times some integers
// plus others, which are exact in f16.
func (r *fixedTask) minimums(scales [2]weight.SuperScales, x fixedX) (sums [4]kernel.Value) {
	b := r.b
	a, start := b.MatPairs(weightMatrix, r.minimumPairs(scales)...), float32(0)
	if scales[0].Mins == nil {
		start = window(0)
	}
	begin := b.MatFill(sumMatrix, start)
	upper, lower := r.elems(b.MatMulAdd(a, x.totals[0], begin)), r.elems(b.MatMulAdd(a, x.totals[1], begin))
	for e := range sums {
		sums[e] = r.rest(scales[e/2], upper[e], lower[e])
	}
	return
}

// rest joins what the matrices make of the upper and the lower parts of totals.
func (r *fixedTask) rest(scales weight.SuperScales, upper, lower kernel.Value) kernel.Value {
	b := r.b
	if scales.Mins != nil {
		return b.Mul(b.FMA(upper, 64, lower), math.Ldexp(1, -weight.Subnormal)) // minimums are subnormal
	}
	bias := uint32(r.format.Bias)
	sum := b.Add(b.Mul(b.Bitcast(kernel.U32, upper), 64*bias), b.Mul(b.Bitcast(kernel.U32, lower), bias))
	return b.Sub(sum, 65*bias*math.Float32bits(window(0)))
}

// minimumPairs returns the words of a lane's two numbers of each of two matrices of 8 columns, by row: of minimums or,
// if there is a bias in their stead, of scales.
func (r *fixedTask) minimumPairs(scales [2]weight.SuperScales) []kernel.Operand {
	b := r.b
	pairs := make([]kernel.Operand, 4)
	for h, of := range scales {
		if of.Mins != nil {
			pairs[2*h], pairs[2*h+1] = r.bytePair(of.Mins), b.U32(0)
			continue
		}
		for i := range 2 {
			w := b.Xor(r.bytePair(of.Scales[2*i:]), 0x00800080)
			pairs[2*h+i] = b.FMAHalf(b.Or(w, 0x64006400), weight.Half2(1), weight.Half2(-1024-128))
		}
	}
	return pairs
}

// bytePair returns bytes 2i and 2i+1 of two words, in lane i of four, as halves of a word.
func (r *fixedTask) bytePair(words []kernel.Value) kernel.Value {
	b := r.b
	w := b.Select(b.Ge(r.quad, 2), words[1], words[0])
	if r.pairOrder.Type() != kernel.Void {
		return b.Permute(w, 0, r.pairOrder)
	}
	w = b.Shr(w, b.Mul(b.And(r.quad, 1), 16))
	return b.Or(b.And(w, 0xff), b.Shl(b.And(w, 0xff00), 8))
}

// totalsOf returns the words of the matrices of totals of x: of runs or, if scales are fine, of their halves.
func (r *fixedTask) totalsOf(sums [][]kernel.Value) (words [2][]kernel.Value) {
	b := r.b
	for from := 0; from < len(sums); from += len(sums) / r.format.Halves() {
		var list []kernel.Value
		for _, s := range sums[from : from+len(sums)/r.format.Halves()] {
			list = append(list, s...)
		}
		upper, lower := digits(b, r.share(list))
		words[0], words[1] = append(words[0], upper), append(words[1], lower)
	}
	for i, w := range words {
		if len(w) == 1 {
			words[i] = append(w, b.U32(0))
		}
	}
	return
}

// digits returns two totals as pairs of f16: 64 times upper and lower.
func digits(b *kernel.Builder, totals [2]kernel.Value) (upper, lower kernel.Value) {
	var high, rest [2]kernel.Value
	for i, n := range totals {
		high[i] = b.Sub(b.FMA(n, float32(1.0/64), float32(3<<22)), float32(3<<22))
		rest[i] = b.FMA(high[i], float32(-64), n)
	}
	return b.PackHalf(b.Vec(high[0], high[1])), b.PackHalf(b.Vec(rest[0], rest[1]))
}

// share adds up eight values over four lanes, and gives each lane two.
func (r *fixedTask) share(values []kernel.Value) [2]kernel.Value {
	b := r.b
	for mask := 2; mask > 0; mask /= 2 {
		upper := b.Ne(b.And(r.quad, mask), 0)
		half := make([]kernel.Value, len(values)/2)
		for i := range half {
			low, high := values[i], values[len(half)+i]
			half[i] = b.Add(b.Select(upper, high, low), b.SubgroupShuffleXor(b.Select(upper, low, high), mask))
		}
		values = half
	}
	return [2]kernel.Value(values)
}

package attention

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/ir"
)

// scaled is the elements that share a scale.
const scaled = 32

// A scaledFormat is how a cache holds codes, of which scaled elements share a scale: package layout says where both
// lie. The codes of four neighbours are a word, or the lower bits of one.
type scaledFormat struct {
	bits int     // of a code
	bias float64 // what codes are more by

	// pairs returns the codes of four neighbours as two pairs of f16.
	pairs func(b *kernel.Builder, four kernel.Value) [2]kernel.Value
	// code loads that of element i.
	code func(b *kernel.Builder, i kernel.Value, cache *kernel.Buffer) kernel.Value
	// round rounds x, the four elements of a lane, eight of which have a block, as op kvwrite does. The scale, an f16
	// in the low half of a word, all eight have.
	round func(b *kernel.Builder, x kernel.Value) (four, scale kernel.Value)
}

// scaledFormats are the caches that have scales.
var scaledFormats = map[ir.DType]*scaledFormat{
	ir.Q8_0: {bits: 8, bias: 128, pairs: bytePairs, code: byteCode, round: roundQ8},
	ir.Q4_0: {bits: 4, bias: 8, pairs: nibblePairs, code: nibbleCode, round: roundQ4},
}

// four returns what the i-th four neighbours have in words that have been loaded.
func (f *scaledFormat) four(b *kernel.Builder, words kernel.Value, i int) kernel.Value {
	if f.bits == 8 {
		return b.Elem(words, i)
	}
	w := words
	if words.Type().Lanes() > 1 {
		w = b.Elem(words, i/2)
	}
	if i%2 == 1 {
		return b.Shr(w, 16)
	}
	return b.And(w, 0xffff)
}

// fourBytes is the bytes of what four neighbours have.
func (f *scaledFormat) fourBytes() int { return f.bits / 2 }

// store stores what four neighbours have, or, without a format, an access, at place i of a cache, counted in as many
// elements.
func (f *scaledFormat) store(cache *kernel.Buffer, i, four kernel.Value) {
	if f != nil && f.fourBytes() == 2 {
		cache.Store16(i, four)
		return
	}
	cache.Store(i, four)
}

// floats returns the codes of four neighbours as F32x4.
func (f *scaledFormat) floats(b *kernel.Builder, four kernel.Value) kernel.Value {
	pairs := f.pairs(b, four)
	low, high := b.UnpackHalf(pairs[0]), b.UnpackHalf(pairs[1])
	return b.Vec(b.Elem(low, 0), b.Elem(low, 1), b.Elem(high, 0), b.Elem(high, 1))
}

// octet returns the i-th 8 elements that have been loaded as 8 f16. both is their scale twice, a pair of f16: each
// product is rounded once.
func (f *scaledFormat) octet(b *kernel.Builder, words kernel.Value, i int, both kernel.Value) kernel.Value {
	var out []kernel.Operand
	for _, four := range []kernel.Value{f.four(b, words, 2*i), f.four(b, words, 2*i+1)} {
		for _, pair := range f.pairs(b, four) {
			out = append(out, b.FMAHalf(pair, both, uint32(0)))
		}
	}
	return b.Vec(out...)
}

// Pairs of f16: 1, 1024, and what takes 1024 and the bias of codes away. Codes in the low bits of 1024 are added to it.
const (
	halfOnes, halfMagic  = uint32(0x3c003c00), uint32(0x64006400)
	byteBias, nibbleBias = uint32(0xe480e480), uint32(0xe408e408)
)

func bytePairs(b *kernel.Builder, four kernel.Value) [2]kernel.Value {
	const mask = 0x00ff00ff
	return [2]kernel.Value{
		b.FMAHalf(b.Or(b.And(four, mask), halfMagic), halfOnes, byteBias),
		b.FMAHalf(b.Or(b.And(b.Shr(four, 8), mask), halfMagic), halfOnes, byteBias),
	}
}

func nibblePairs(b *kernel.Builder, four kernel.Value) [2]kernel.Value {
	const mask = 0x000f000f
	apart := b.Or(four, b.Shl(four, 12)) // the first two, each in the low bits of a half, and the others 8 above
	return [2]kernel.Value{
		b.FMAHalf(b.Or(b.And(apart, mask), halfMagic), halfOnes, nibbleBias),
		b.FMAHalf(b.Or(b.And(b.Shr(apart, 8), mask), halfMagic), halfOnes, nibbleBias),
	}
}

// byteCode: a word has elements 0, 2, 1 and 3 of four.
func byteCode(b *kernel.Builder, i kernel.Value, cache *kernel.Buffer) kernel.Value {
	shift := b.Or(b.Shl(b.And(i, 1), 4), b.Shl(b.And(i, 2), 2))
	return b.And(b.Shr(cache.Load(kernel.U32, b.Shr(i, 2)), shift), 0xff)
}

// nibbleCode: a word has 8 elements in order.
func nibbleCode(b *kernel.Builder, i kernel.Value, cache *kernel.Buffer) kernel.Value {
	return b.And(b.Shr(cache.Load(kernel.U32, b.Shr(i, 3)), b.Shl(b.And(i, 7), 2)), 15)
}

// overBlock folds a number over the lanes that have a block.
func overBlock(b *kernel.Builder, x kernel.Value, f func(x, y kernel.Value) kernel.Value) kernel.Value {
	return lane.Fold(b, x, 1, scaled/4, f)
}

// inverseOf returns 1/d for a d that is not negative, as op kvwrite computes it, and 0 if scale, d as f16, is.
func inverseOf(b *kernel.Builder, d, scale kernel.Value) kernel.Value {
	inverse := b.Bitcast(kernel.F32, b.Sub(b.U32(0x7ef311c7), b.Bitcast(kernel.U32, d)))
	for range 4 {
		inverse = b.Add(inverse, b.Mul(inverse, b.Sub(1.0, b.Mul(d, inverse))))
	}
	return b.Select(b.Eq(scale, 0), 0, inverse)
}

func roundQ8(b *kernel.Builder, x kernel.Value) (four, scale kernel.Value) {
	most := b.Abs(b.Elem(x, 0))
	for e := 1; e < 4; e++ {
		most = b.Max(most, b.Abs(b.Elem(x, e)))
	}
	most = overBlock(b, most, func(x, y kernel.Value) kernel.Value { return b.Max(x, y) })
	d := b.Mul(most, 1.0/127)
	scale = positiveHalf(b, d)
	inverse := inverseOf(b, d, scale)
	four = b.U32(0)
	for e, at := range []int{0, 16, 8, 24} {
		v := b.Elem(x, e)
		magnitude := b.Convert(kernel.U32, b.Add(b.Mul(b.Abs(v), inverse), 0.5))
		code := b.Select(b.Lt(v, 0), b.Sub(128, magnitude), b.Add(magnitude, 128))
		four = b.Or(four, b.Shl(code, at))
	}
	return four, scale
}

func roundQ4(b *kernel.Builder, x kernel.Value) (four, scale kernel.Value) {
	most, least := b.Elem(x, 0), b.Elem(x, 0)
	for e := 1; e < 4; e++ {
		most, least = b.Max(most, b.Elem(x, e)), b.Min(least, b.Elem(x, e))
	}
	most = overBlock(b, most, func(x, y kernel.Value) kernel.Value { return b.Max(x, y) })
	least = overBlock(b, least, func(x, y kernel.Value) kernel.Value { return b.Min(x, y) })
	isMost := b.Ge(most, b.Neg(least))
	d := b.Mul(b.Select(isMost, most, b.Neg(least)), 1.0/8)
	scale = positiveHalf(b, d)
	inverse := inverseOf(b, d, scale)
	inverse = b.Select(isMost, b.Neg(inverse), inverse)
	scale = b.Or(scale, b.Select(isMost, b.U32(0x8000), b.U32(0)))
	four = b.U32(0)
	for e := range 4 {
		code := b.Min(b.Convert(kernel.U32, b.Add(b.Mul(b.Elem(x, e), inverse), 8.5)), 15)
		four = b.Or(four, b.Shl(code, 4*e))
	}
	return four, scale
}

// positiveHalf returns x, which is not negative, as the nearest f16, ties to even, in the
// low half of a word. PackHalf leaves the rounding to the device.
func positiveHalf(b *kernel.Builder, x kernel.Value) kernel.Value {
	bits := b.Bitcast(kernel.U32, x)
	normal := b.Sub(b.Shr(b.Add(bits, 0xfff, b.And(b.Shr(bits, 13), 1)), 13), 112<<10)
	small := b.Sub(b.Bitcast(kernel.U32, b.Add(x, 0.5)), 0x3f000000) // the unit of subnormals is that of f32 at 0.5
	return b.Select(b.Lt(x, 0x1p-14), small, b.Min(normal, 0x7c00))
}

// storeScale stores the scale of the block that access j of a head, of four elements, is
// a part of. scales is where the position's scale of the head's first block is.
func storeScale(b *kernel.Builder, cache *kernel.Buffer, scales, stride, j, scale kernel.Value) {
	ofBlock(b, j, func(block kernel.Value) { cache.Store16(b.Add(scales, b.Mul(block, stride)), scale) })
}

// ofBlock emits body for the first of the accesses of a block, which is the head's
// block-th.
func ofBlock(b *kernel.Builder, j kernel.Value, body func(block kernel.Value)) {
	const accesses = scaled / 4
	b.If(b.Eq(b.Mod(j, accesses), 0), func() { body(b.Div(j, accesses)) })
}

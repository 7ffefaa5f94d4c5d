package gguf

import (
	"math"

	"github.com/zincc-dev/zincc/ir"
)

// A Quantizer makes blocks of a type that caches have.
type Quantizer struct {
	// scale returns the scale of a block as a float16, and what its elements are
	// multiplied with to become codes.
	scale func(x []float32) (scale uint16, inverse float32)
	code  func(v, inverse float32) int8
	put   func(b []byte, codes []int8) []byte
}

// quantizers are the types of caches that have blocks.
var quantizers = map[ir.DType]*Quantizer{
	ir.Q8_0: {scaleQ8_0, codeQ8_0, putQ8_0},
	ir.Q4_0: {scaleQ4_0, codeQ4_0, putQ4_0},
}

// QuantizerOf returns what makes blocks of a type that caches have, nil if there is none.
func QuantizerOf(t ir.DType) *Quantizer { return quantizers[t] }

// quantized is the elements of a block.
const quantized = 32

// Encode appends the blocks of x, whole blocks, to b. It rounds like ggml's
// reference, but for its two divisions by and of d, which are done with float32 sums and
// products alone, so that every device has the same bits: op kvwrite says how.
func (q *Quantizer) Encode(b []byte, x []float32) []byte {
	var codes [quantized]int8
	for ; len(x) >= quantized; x = x[quantized:] {
		scale, inverse := q.scale(x[:quantized])
		for i := range codes {
			codes[i] = q.code(x[i], inverse)
		}
		b = q.put(le.AppendUint16(b, scale), codes[:])
	}
	return b
}

// Round rounds x, whole blocks, to what its blocks hold.
func (q *Quantizer) Round(x []float32) {
	for ; len(x) >= quantized; x = x[quantized:] {
		scale, inverse := q.scale(x[:quantized])
		d := F16ToF32(scale)
		for i, v := range x[:quantized] {
			x[i] = float32(q.code(v, inverse)) * d
		}
	}
}

func scaleQ8_0(x []float32) (scale uint16, inverse float32) {
	most := float32(0)
	for _, v := range x {
		most = max(most, abs(v))
	}
	return halfAndInverse(most * (1.0 / 127))
}

// halfAndInverse returns d, which is not negative, as a float16, and 1/d; 0 if that float16 is.
func halfAndInverse(d float32) (scale uint16, inverse float32) {
	if scale = F32ToF16(d); scale == 0 {
		return 0, 0
	}
	// Newton's method. The conversions keep processors from rounding product and
	// difference at once.
	inverse = math.Float32frombits(0x7ef311c7 - math.Float32bits(d))
	for range 4 {
		inverse += float32(inverse * (1 - float32(d*inverse)))
	}
	return scale, inverse
}

func codeQ8_0(v, inverse float32) int8 {
	magnitude := int8(float32(abs(v)*inverse) + 0.5)
	if v < 0 {
		return -magnitude
	}
	return magnitude
}

func putQ8_0(b []byte, codes []int8) []byte {
	for _, c := range codes {
		b = append(b, byte(c))
	}
	return b
}

// scaleQ4_0: the element of the largest magnitude has code -8, the positive one of two.
func scaleQ4_0(x []float32) (scale uint16, inverse float32) {
	most, least := x[0], x[0]
	for _, v := range x {
		most, least = max(most, v), min(least, v)
	}
	if most >= -least {
		scale, inverse = halfAndInverse(most * (1.0 / 8))
		return scale | 1<<15, -inverse
	}
	return halfAndInverse(-least * (1.0 / 8))
}

func codeQ4_0(v, inverse float32) int8 { return int8(min(float32(v*inverse)+8.5, 15)) - 8 }

func putQ4_0(b []byte, codes []int8) []byte {
	half := len(codes) / 2
	for i := range half {
		b = append(b, byte(codes[i]+8)|byte(codes[half+i]+8)<<4)
	}
	return b
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

package synth

import (
	"math"
	"math/rand/v2"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// scales are where blocks have their f16 scale, and which ones keep their elements below about 4; and where they have
// that of what is added (of Q4_1 and Q5_1, added itself), which is so many times as large, so that elements are around
// 0.
var scales = map[ir.DType]struct {
	d         float64
	at, minAt int
	min       float64
}{
	ir.Q4_0: {d: .1}, ir.Q4_1: {d: .1, minAt: 2, min: -7.5}, ir.Q5_0: {d: .05}, ir.Q5_1: {d: .05, minAt: 2, min: -15.5},
	ir.Q8_0: {d: .01}, ir.Q2_K: {d: .03, at: 80, minAt: 82, min: 1.5}, ir.Q3_K: {d: .01, at: 108}, ir.Q4_K: {d: .002, minAt: 2, min: 7.5},
	ir.Q5_K: {d: .001, minAt: 2, min: 15.5}, ir.Q6_K: {d: .0005, at: 208}, ir.IQ4_NL: {d: .01}, ir.IQ4_XS: {d: .0005},
	ir.IQ1_S: {d: .1}, ir.IQ2_XXS: {d: .01}, ir.IQ2_XS: {d: .01}, ir.IQ2_S: {d: .01}, ir.IQ3_XXS: {d: .01},
	ir.IQ3_S: {d: .01}, ir.TQ1_0: {d: 1, at: 52}, ir.TQ2_0: {d: 1, at: 64}, ir.Q1_0: {d: 1}, ir.Q2_0: {d: 1},
}

// Blocks returns n random elements of a weight type, as a file has them: of a few units, times a power of two.
func Blocks(rng *rand.Rand, d ir.DType, n int64, power int) []byte {
	data := make([]byte, d.Bytes(n))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	put16 := func(at int, x uint16) { data[at], data[at+1] = byte(x), byte(x>>8) }
	for b := 0; b < len(data); b += d.BlockBytes() {
		x := float32(math.Ldexp(rng.NormFloat64(), power))
		switch d {
		case ir.F32:
			bits := math.Float32bits(x)
			put16(b, uint16(bits))
			put16(b+2, uint16(bits>>16))
		case ir.F16:
			put16(b, gguf.F32ToF16(x))
		case ir.BF16:
			put16(b, uint16(math.Float32bits(x)>>16))
		case ir.MXFP4:
			data[b] = byte(124 + power + rng.IntN(3))
		case ir.NVFP4:
			for i := range 4 {
				data[b+i] = byte(0x28 + 8*max(power, -4) + rng.IntN(16)) // 1/4 to 1
			}
		case ir.IQ1_M: // a nibble each
			h := gguf.F32ToF16(float32(math.Ldexp(.1, power)))
			for i := range 4 {
				data[b+49+2*i] = data[b+49+2*i]&15 | byte(h>>(4*i)&15)<<4
			}
		default:
			s := scales[d]
			scale := math.Ldexp(s.d*(rng.Float64()+.5), power)
			put16(b+s.at, gguf.F32ToF16(float32(scale)))
			if s.min != 0 {
				put16(b+s.minAt, gguf.F32ToF16(float32(s.min*scale)))
			}
		}
	}
	return data
}

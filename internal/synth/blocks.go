package synth

import (
	"math"
	"math/rand/v2"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// scales are where blocks have their f16 scales, and which ones keep their elements below about 4.
var scales = map[ir.DType]struct {
	d  float64
	at []int
}{
	ir.Q4_0: {.1, []int{0}}, ir.Q4_1: {.1, []int{0, 2}}, ir.Q5_0: {.05, []int{0}}, ir.Q5_1: {.05, []int{0, 2}},
	ir.Q8_0: {.01, []int{0}}, ir.Q2_K: {.03, []int{80, 82}}, ir.Q3_K: {.01, []int{108}}, ir.Q4_K: {.002, []int{0, 2}},
	ir.Q5_K: {.001, []int{0, 2}}, ir.Q6_K: {.0005, []int{208}}, ir.IQ4_NL: {.01, []int{0}}, ir.IQ4_XS: {.0005, []int{0}},
	ir.IQ1_S: {.1, []int{0}}, ir.IQ2_XXS: {.01, []int{0}}, ir.IQ2_XS: {.01, []int{0}}, ir.IQ2_S: {.01, []int{0}}, ir.IQ3_XXS: {.01, []int{0}},
	ir.IQ3_S: {.01, []int{0}}, ir.TQ1_0: {1, []int{52}}, ir.TQ2_0: {1, []int{64}}, ir.Q1_0: {1, []int{0}}, ir.Q2_0: {1, []int{0}},
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
			for _, at := range scales[d].at {
				put16(b+at, gguf.F32ToF16(float32(math.Ldexp(scales[d].d*(rng.Float64()+.5), power))))
			}
		}
	}
	return data
}

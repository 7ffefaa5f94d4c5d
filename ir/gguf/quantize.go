package gguf

import (
	"math"

	"github.com/zincc-dev/zincc/ir"
)

// EncodeQ8_0 appends the q8_0 blocks of x, whole blocks, to b. It rounds like ggml's
// reference, but for its two divisions by and of d, which are done with float32 sums and
// products alone, so that every device has the same bits: op kvwrite says how.
func EncodeQ8_0(b []byte, x []float32) []byte {
	for n := ir.Q8_0.Block(); len(x) >= n; x = x[n:] {
		scale, inverse := scaleQ8_0(x[:n])
		b = le.AppendUint16(b, scale)
		for _, v := range x[:n] {
			b = append(b, byte(codeQ8_0(v, inverse)))
		}
	}
	return b
}

// RoundQ8_0 rounds x, whole blocks, to what its q8_0 blocks hold.
func RoundQ8_0(x []float32) {
	for n := ir.Q8_0.Block(); len(x) >= n; x = x[n:] {
		scale, inverse := scaleQ8_0(x[:n])
		d := F16ToF32(scale)
		for i, v := range x[:n] {
			x[i] = float32(codeQ8_0(v, inverse)) * d
		}
	}
}

// scaleQ8_0 returns the scale of a block as a float16, and what its elements are
// multiplied with to become codes.
func scaleQ8_0(x []float32) (scale uint16, inverse float32) {
	most := float32(0)
	for _, v := range x {
		most = max(most, abs(v))
	}
	d := most * (1.0 / 127)
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

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

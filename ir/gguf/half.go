package gguf

import "math"

// F16ToF32 converts the bits of an IEEE 754 half, exactly; a signalling NaN
// becomes quiet.
func F16ToF32(h uint16) float32 {
	mag := uint32(h & 0x7fff)
	// The half's exponent and mantissa, read as those of a float32, are the
	// value times 2^-112, also for subnormals.
	b := math.Float32bits(math.Float32frombits(mag<<13) * 0x1p112)
	if mag >= 0x7c00 {
		b |= 0x7f800000
		if mag > 0x7c00 {
			b |= 0x00400000
		}
	}
	return math.Float32frombits(b | uint32(h&0x8000)<<16)
}

// F32ToF16 rounds to the nearest half, ties to even; what is too large becomes
// infinite, NaN becomes 0x7e00 with its sign.
func F32ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign, mag := uint16(b>>16)&0x8000, b&0x7fffffff
	switch {
	case mag > 0x7f800000:
		return sign | 0x7e00
	case mag >= 0x47800000: // 2^16
		return sign | 0x7c00
	case mag < 0x38800000: // 2^-14: the unit of subnormals, 2^-24, is that of float32 at 0.5
		return sign | uint16(math.Float32bits(math.Float32frombits(mag)+0.5)-0x3f000000)
	}
	mag += 0xfff + mag>>13&1 - 0x38000000
	return sign | uint16(mag>>13)
}

// bf16ToF32 converts the bits of a bfloat16.
func bf16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

package gguf

import "math"

// F16ToF32 converts the bits of an IEEE 754 half, exactly; a signalling NaN
// becomes quiet.
func F16ToF32(h uint16) float32 {
	// Sign-extended and shifted, the half read as a float32 has its sign and is
	// the value times 2^-112, also if subnormal.
	b := uint32(int16(h)) << 13 & 0x8fffffff
	if h&0x7c00 == 0x7c00 {
		b |= 0x7f800000
	}
	return float32(math.Float32frombits(b) * 0x1p112) // converted, so as not to be fused
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

// E4M3ToF32 converts the bits of an 8-bit float of 4 exponent and 3 mantissa bits, without its sign. As in
// ggml 0x7f, which would be NaN, is 0.
func E4M3ToF32(x byte) float32 {
	exponent, mantissa := int(x>>3&15), float64(x&7)
	switch {
	case x == 0x7f:
		return 0
	case exponent == 0:
		return float32(math.Ldexp(mantissa, -9))
	}
	return float32(math.Ldexp(8+mantissa, exponent-10))
}

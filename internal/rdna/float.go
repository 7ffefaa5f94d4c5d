package rdna

import "math"

// f16 returns the number that 16 bits are.
func f16(b uint64) float64 {
	sign, rest := uint32(b)>>15<<31, uint32(b)&0x7fff
	switch {
	case rest < 0x400: // denormals and zero
		return float64(math.Float32frombits(math.Float32bits(float32(rest)*0x1p-24) | sign))
	case rest > 0x7c00:
		return math.NaN()
	case rest == 0x7c00:
		return float64(math.Float32frombits(0x7f800000 | sign))
	}
	return float64(math.Float32frombits((rest<<13 + 112<<23) | sign))
}

// toF16 rounds to 16 bits: to nearest even, or toward zero.
func toF16(x float64, toZero bool) uint64 {
	sign := math.Float64bits(x) >> 63 << 15
	a := math.Abs(x)
	switch {
	case x != x:
		return sign | 0x7e00
	case math.IsInf(a, 0):
		return sign | 0x7c00
	case a == 0:
		return sign
	}
	e := int(math.Float64bits(a)>>52) - 1022 // a = f * 2^e, f in [0.5, 1)
	e = max(e, -13)                          // below are denormals
	if e > 16 {
		e = 17 // too large, whatever the rest
	}
	units := a * math.Float64frombits(uint64(1023+11-e)<<52)
	n := math.Floor(units)
	if !toZero {
		n = math.RoundToEven(units)
	}
	// n is the significand with its leading bit, so its carry goes to the exponent.
	bits := uint64(n) + uint64(e+13)<<10
	if bits >= 0x7c00 {
		if toZero {
			return sign | 0x7bff
		}
		return sign | 0x7c00
	}
	return sign | bits
}

// bf16 returns the number that 16 bits of bfloat16 are.
func bf16(b uint64) float64 { return float64(math.Float32frombits(uint32(b) << 16)) }

// toBF16 rounds to nearest even.
func toBF16(x float64) uint64 {
	b := math.Float32bits(float32(x))
	if x != x {
		return uint64(b>>16 | 0x40)
	}
	return uint64((b + 0x7fff + b>>16&1) >> 16)
}

// fma32 is a*b+c, rounded once.
func fma32(a, b, c float32) float32 {
	p, z := float64(a)*float64(b), float64(c) // p is exact
	s := p + z
	// Rounded twice, s is wrong only if it lies halfway between two numbers of 32 bits, or where those have fewer bits.
	if bits := math.Float64bits(s); bits&0x1fffffff != 0x10000000 && math.Abs(s) >= 0x1p-125 || s == 0 {
		return float32(s)
	}
	if math.IsInf(s, 0) || s != s {
		return float32(s)
	}
	// What s lacks, by Knuth's sum of two.
	t := s - p
	rest := (p - (s - t)) + (z - t)
	if bits := math.Float64bits(s); rest != 0 && bits&1 == 0 {
		// Rounding to odd makes the second rounding right.
		if (rest > 0) == (s > 0) {
			bits++
		} else {
			bits--
		}
		s = math.Float64frombits(bits)
	}
	return float32(s)
}

// flush is a float32 with its sign alone if it is a denormal.
func flush(b uint64) uint64 {
	if b&0x7f800000 == 0 {
		return b & 0x80000000
	}
	return b
}

// minNum and maxNum return the other number where one is none.
func minNum[F float32 | float64](a, b F) F {
	switch {
	case a != a:
		return b
	case b != b:
		return a
	case a == 0 && b == 0 && math.Signbit(float64(b)):
		return b
	case b < a:
		return b
	}
	return a
}

func maxNum[F float32 | float64](a, b F) F {
	switch {
	case a != a:
		return b
	case b != b:
		return a
	case a == 0 && b == 0 && math.Signbit(float64(a)):
		return b
	case b > a:
		return b
	}
	return a
}

func med3[F float32 | float64](a, b, c F) F {
	if a != a || b != b || c != c {
		return minNum(minNum(a, b), c)
	}
	return max(min(a, b), min(max(a, b), c))
}

// toInt converts to an integer as conversions do: what is no number is 0, what is too large the nearest.
func toInt(x, low, high float64) int64 {
	switch {
	case x != x:
		return 0
	case x <= low:
		return int64(low)
	case x >= high:
		return int64(high)
	}
	return int64(x)
}

func fract[F float32 | float64](x F) F {
	f := x - F(math.Floor(float64(x)))
	if f == 1 {
		return F(math.Nextafter32(1, 0))
	}
	return f
}

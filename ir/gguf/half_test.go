package gguf

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// halfValue computes a finite half from the definition.
func halfValue(h uint16) float64 {
	exponent, mantissa := int(h>>10&31), float64(h&1023)
	v := math.Ldexp(mantissa, -24)
	if exponent > 0 {
		v = math.Ldexp(1024+mantissa, exponent-25)
	}
	if h&0x8000 != 0 {
		return math.Copysign(v, -1)
	}
	return v
}

func TestF16ToF32(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		got := F16ToF32(h)
		var ok bool
		switch {
		case h&0x7fff > 0x7c00:
			// quiet, with sign and payload
			ok = math.Float32bits(got) == uint32(h&0x8000)<<16|0x7fc00000|uint32(h&0x3ff)<<13
		case h&0x7fff == 0x7c00:
			ok = math.IsInf(float64(got), 1-2*int(h>>15))
		default:
			ok = math.Float64bits(float64(got)) == math.Float64bits(halfValue(h))
		}
		if !ok {
			t.Errorf("F16ToF32(%#04x) = %v (%#08x)", h, got, math.Float32bits(got))
		}
		if want := h; h&0x7fff <= 0x7c00 && F32ToF16(got) != want {
			t.Errorf("F32ToF16(%v) = %#04x, want %#04x", got, F32ToF16(got), want)
		}
	}
}

func TestF32ToF16(t *testing.T) {
	tests := []struct {
		f    float32
		want uint16
	}{
		{65504, 0x7bff},
		{65519.996, 0x7bff},
		{65520, 0x7c00}, // a tie goes to even, which is 2^16
		{-1e9, 0xfc00},
		{float32(math.Inf(1)), 0x7c00},
		{float32(math.NaN()), 0x7e00},
		{0x1p-24, 1},
		{0x1p-25, 0}, // a tie goes to even
		{0x1.000002p-25, 1},
		{0x3p-25, 2}, // 1.5 units
		{math.SmallestNonzeroFloat32, 0},
		{float32(math.Copysign(0, -1)), 0x8000},
		{0x1.ffcp-15, 0x0400}, // a tie between the largest subnormal and 2^-14
	}
	for _, test := range tests {
		if got := F32ToF16(test.f); got != test.want {
			t.Errorf("F32ToF16(%v) = %#04x, want %#04x", test.f, got, test.want)
		}
	}
}

// No other half may be nearer, and of two equally near the even one is taken.
func TestF32ToF16Nearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := rapid.Uint16Range(0, 0x7bfe).Draw(t, "half")
		low, high := halfValue(h), halfValue(h+1)
		f := float32(low + (high-low)*rapid.OneOf(rapid.Float64Range(0, 1), rapid.Just(0.5)).Draw(t, "between"))
		want := h
		below, above := float64(f)-low, high-float64(f)
		if above < below || above == below && h&1 == 1 {
			want = h + 1
		}
		if got := F32ToF16(f); got != want {
			t.Fatalf("F32ToF16(%v) = %#04x, want %#04x", f, got, want)
		}
		if got := F32ToF16(-f); got != want|0x8000 {
			t.Fatalf("F32ToF16(%v) = %#04x, want %#04x", -f, got, want|0x8000)
		}
	})
}

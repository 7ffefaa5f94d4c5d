package rdna

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// TestF16 reads all numbers of 16 bits and writes them back, and rounds what lies between two.
func TestF16(t *testing.T) {
	for b := range uint64(1 << 16) {
		x := f16(b)
		if x != x {
			continue
		}
		if toF16(x, false) != b || toF16(x, true) != b {
			t.Fatalf("%#x is %g, which is %#x", b, x, toF16(x, false))
		}
		if b&0x7fff >= 0x7bff || b>>15 != 0 {
			continue
		}
		y := f16(b + 1)
		if got, want := toF16((x+y)/2, false), b+b&1; got != want {
			t.Fatalf("half way above %#x is %#x", b, got)
		}
		if got := toF16(math.Nextafter(y, 0), true); got != b {
			t.Fatalf("%#x, want %#x toward zero", got, b)
		}
	}
	for x, want := range map[float64]uint64{65519.9: 0x7bff, 65520: 0x7c00, 1e9: 0x7c00, 0x1p-25: 0, 0x1.1p-25: 1} {
		if got := toF16(x, false); got != want {
			t.Errorf("%g is %#x, want %#x", x, got, want)
		}
	}
	if toF16(1e9, true) != 0x7bff || toF16(math.Inf(-1), true) != 0xfc00 {
		t.Error("toward zero above the largest")
	}
}

// TestFMA compares with exact numbers, many of them near ties.
func TestFMA(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) float32 {
			man := rapid.SampledFrom([]uint32{0, 1, 2, 3, 0x400000, 0x400001, 0x7fffff, 0x7ffffe, 0x155555}).Draw(t, name+" significand")
			exp := rapid.Uint32Range(90, 165).Draw(t, name+" exponent")
			sign := rapid.Uint32Range(0, 1).Draw(t, name+" sign")
			return math.Float32frombits(sign<<31 | exp<<23 | man)
		}
		a, b, c := draw("a"), draw("b"), draw("c")
		exact := new(big.Float).SetPrec(400)
		exact.Mul(exact.SetFloat64(float64(a)), new(big.Float).SetFloat64(float64(b)))
		exact.Add(exact, new(big.Float).SetFloat64(float64(c)))
		if want, _ := exact.Float32(); want != fma32(a, b, c) {
			t.Fatalf("%g*%g+%g is %g, want %g", a, b, c, fma32(a, b, c), want)
		}
	})
}

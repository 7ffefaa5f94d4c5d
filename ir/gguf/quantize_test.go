package gguf

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

// TestQ8_0 holds blocks against ggml's formula in float64, of magnitudes from where
// scales are 0 to the largest float16.
func TestQ8_0(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 0))
	for e := -30; e <= 15; e++ {
		for range 200 {
			x := make([]float32, 32)
			most := 0.0
			for i := range x {
				x[i] = float32(math.Ldexp(rng.NormFloat64(), e))
				most = max(most, math.Abs(float64(x[i])))
			}
			b := QuantizerOf(ir.Q8_0).Encode(nil, x)
			d := F32ToF16(float32(most / 127))
			if got := le.Uint16(b); int(got)-int(d) < -1 || int(got)-int(d) > 1 {
				t.Fatalf("scale of %g is %#x, want %#x", x, got, d)
			}
			for i, v := range x {
				exact := float64(v) * 127 / most
				if le.Uint16(b) == 0 {
					exact = 0
				}
				if got := float64(int8(b[2+i])); math.Abs(got-exact) > 0.5001 {
					t.Fatalf("code of %g, of at most %g, is %g, want %g", v, most, got, exact)
				}
			}
			held := make([]float32, 32)
			if err := Dequantize(held, b, ir.Q8_0); err != nil {
				t.Fatal(err)
			}
			QuantizerOf(ir.Q8_0).Round(x)
			if !slices.Equal(x, held) {
				t.Fatalf("rounded to %g, the block holds %g", x, held)
			}
			if again := QuantizerOf(ir.Q8_0).Encode(nil, held); !slices.Equal(again, b) {
				t.Fatalf("block %v becomes %v again", b, again)
			}
		}
	}
}

// TestQ8_0Halves holds how halves are rounded: away from zero.
func TestQ8_0Halves(t *testing.T) {
	x := make([]float32, 32)
	x[0], x[1], x[2], x[3] = -127, 0.5, -0.5, -2.5
	if b := QuantizerOf(ir.Q8_0).Encode(nil, x); le.Uint16(b) != 0x3c00 || !slices.Equal(b[2:6], []byte{0x81, 1, 0xff, 0xfd}) {
		t.Errorf("block is %v", b)
	}
}

// TestQ4_0 holds blocks against ggml's formula in float64: a code is at most one step off where it is the end of the
// range, else half of one.
func TestQ4_0(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 0))
	for e := -20; e <= 15; e++ {
		for range 200 {
			x := make([]float32, 32)
			for i := range x {
				x[i] = float32(math.Ldexp(rng.NormFloat64(), e))
			}
			most := 0.0
			for _, v := range x {
				if math.Abs(float64(v)) > math.Abs(most) {
					most = float64(v)
				}
			}
			b := QuantizerOf(ir.Q4_0).Encode(nil, x)
			if d := F32ToF16(float32(most / -8)); le.Uint16(b) != d {
				t.Fatalf("scale of %g is %#x, want %#x", x, le.Uint16(b), d)
			}
			for i, v := range x {
				exact := min(7, float64(v)*-8/most)
				if le.Uint16(b)&0x7fff == 0 {
					exact = 0
				}
				if got := float64(b[2+i%16]>>(i/16*4)&15) - 8; math.Abs(got-exact) > 0.5001 {
					t.Fatalf("code of %g, of at most %g, is %g, want %g", v, most, got, exact)
				}
			}
			held := make([]float32, 32)
			if err := Dequantize(held, b, ir.Q4_0); err != nil {
				t.Fatal(err)
			}
			QuantizerOf(ir.Q4_0).Round(x)
			if !slices.Equal(x, held) {
				t.Fatalf("rounded to %g, the block holds %g", x, held)
			}
			if again := QuantizerOf(ir.Q4_0).Encode(nil, held); le.Uint16(b)&0x7fff != 0 && !slices.Equal(again, b) {
				t.Fatalf("block %v becomes %v again", b, again)
			}
		}
	}
}

package rdna

import (
	"fmt"
	"testing"
)

// TestMatrices multiplies matrices of small integers, which no order of sums changes, as lanes of both generations hold
// them.
func TestMatrices(t *testing.T) {
	const a, b, c = firstVector, firstVector + 8, firstVector + 16
	for _, x := range []struct {
		gen   Gen
		words []uint32
		bits  int
	}{
		{GFX12, []uint32{0xcc404010, 0x1c421100}, 16},
		{GFX12, []uint32{0xcc444010, 0x7c421100}, 8},
		{GFX11, []uint32{0xcc404010, 0x1c421100}, 16},
		{GFX11, []uint32{0xcc444010, 0x7c421100}, 8},
	} {
		t.Run(fmt.Sprint(x.gen, " ", x.bits), func(t *testing.T) {
			in, err := decode(x.gen, 32, x.words, 0)
			if err != nil {
				t.Fatal(err)
			}
			m := &machine{Launch: &Launch{Gen: x.gen}}
			w := &wave{m: m, g: &group{m: m}, lanes: 32, all: 0xffffffff, exec: 0xffffffff, v: make([]uint32, 32*vectors)}
			number := func(i, k int) int { return (3*i+5*k)%7 - 3 }
			put := func(code, lane, at, value int) {
				bits := uint64(uint8(value))
				if x.bits == 16 {
					bits = toF16(float64(value), false)
				}
				each := 32 / x.bits
				w.register(code + at/each)[lane] |= uint32(bits) << (x.bits * (at % each))
			}
			for i := range 16 {
				for k := range 16 {
					if x.gen == GFX12 { // a half of the wave has each half of k
						put(a, i+16*(k/8), k%8, number(i, k))
						put(b, i+16*(k/8), k%8, number(k, i))
						continue
					}
					for _, half := range []int{0, 16} { // both halves have all
						put(a, i+half, k, number(i, k))
						put(b, i+half, k, number(k, i))
					}
				}
			}
			in.run(w, in)
			if w.fault != nil {
				t.Fatal(w.fault)
			}
			for i := range 16 {
				for j := range 16 {
					want := 0
					for k := range 16 {
						want += number(i, k) * number(k, j)
					}
					reg, lane := i%8, j+16*(i/8)
					if x.gen == GFX11 {
						reg, lane = i/2, j+16*(i%2)
					}
					got := w.register(c + reg)[lane]
					if x.bits == 16 && fval(uint64(got)) != float32(want) || x.bits == 8 && int(int32(got)) != want {
						t.Fatalf("row %d column %d is %#x, want %d", i, j, got, want)
					}
				}
			}
		})
	}
}

package ptx

import (
	"testing"

	"pgregory.net/rapid"
)

// TestByteOrder compares the bytes that an order takes with what it stands for.
func TestByteOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, shift := rapid.Uint32().Draw(t, "x"), rapid.Uint32Range(0, 3).Draw(t, "shift")
		part := func(name string) (bits uint32) {
			for i := range 4 {
				bits |= rapid.SampledFrom([]uint32{0, 0, 0xff, 0x0f, 0x64}).Draw(t, name) << (8 * i)
			}
			return bits
		}
		mask, fill := part("mask"), part("fill")
		order, ok := byteOrder(mask, fill, shift)
		if !ok {
			return
		}
		var got uint32
		for i := range 4 {
			from, at := x, order>>(4*i)&15
			if at >= 4 {
				from, at = fill, at-4
			}
			got |= from >> (8 * at) & 0xff << (8 * i)
		}
		if want := x>>(8*shift)&mask | fill; got != want {
			t.Fatalf("%#x, want %#x", got, want)
		}
	})
}

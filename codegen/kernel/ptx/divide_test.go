package ptx

import (
	"testing"

	"pgregory.net/rapid"
)

// TestReciprocal compares what quotient computes with a division.
func TestReciprocal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.OneOf(rapid.Uint32Range(3, 200), rapid.Uint32Min(3)).Filter(func(d uint32) bool { return d&(d-1) != 0 }).Draw(t, "d")
		x := rapid.OneOf(rapid.Uint32(), rapid.Map(rapid.Uint32(), func(q uint32) uint32 { return q/d*d - 1 })).Draw(t, "x")
		factor, shift := reciprocal(d)
		high := uint32(uint64(x) * uint64(factor) >> 32)
		if got := (high + (x-high)>>1) >> shift; got != x/d {
			t.Fatalf("%d/%d is %d, not %d", x, d, got, x/d)
		}
	})
}

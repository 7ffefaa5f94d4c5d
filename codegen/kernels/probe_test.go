package kernels_test

import (
	"math"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
)

// TestProbeDeal runs the probe where matrices are dealt as it expects.
func TestProbeDeal(t *testing.T) {
	f, err := kernels.ProbeDeal()
	if err != nil {
		t.Fatal(err)
	}
	y := make([]byte, 2*4*16*8)
	if err := f.Run(nil, 32, [3]int{1, 1, 1}, [][]byte{y}); err != nil {
		t.Fatal(err)
	}
	for at, got := range toF32(y) {
		i, j, want, depth := at/8%16, at%8, 0, 16
		bytes := at >= 16*8
		if bytes {
			depth = 32
		}
		for k := range depth {
			want += ((i*i+3*k)%17 - 8) * ((k*k+5*j)%13 - 6)
		}
		if bytes && math.Float32bits(got) != uint32(int32(want)) || !bytes && got != float32(want) {
			t.Errorf("bytes %t, row %d, column %d: %g, want %d", bytes, i, j, got, want)
		}
	}
}

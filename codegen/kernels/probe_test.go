package kernels_test

import (
	"math"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// TestProbeFragments runs the probe where matrices lie in lanes as it expects.
func TestProbeFragments(t *testing.T) {
	f, err := kernels.ProbeFragments()
	if err != nil {
		t.Fatal(err)
	}
	y := make([]byte, 4*16*8)
	if err := f.Run(nil, 32, [3]int{1, 1, 1}, [][]byte{y}); err != nil {
		t.Fatal(err)
	}
	for at, got := range kerneltest.ToF32(y) {
		i, j, want := at/8, at%8, 0
		for k := range 16 {
			want += 4 * (110 + (i*i+3*k)%17) * (2030 + (k*k+5*j)%13)
		}
		if float64(got) != math.Ldexp(float64(want), -24) {
			t.Errorf("row %d, column %d: %g, want %d", i, j, got, want)
		}
	}
}

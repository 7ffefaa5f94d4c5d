package runtime

import (
	"math"
	"testing"
)

// TestDiverge: equal predictions do not diverge, and a token that neither allows adds nothing.
func TestDiverge(t *testing.T) {
	never := float32(math.Inf(-1))
	even, odd := []float32{0, 0, never}, []float32{float32(math.Log(3)), 0, never}
	if kl, same := diverge(even, even); kl != 0 || same != 1 {
		t.Errorf("of itself: %g, %g", kl, same)
	}
	// 0.5 log(0.5/0.75) + 0.5 log(0.5/0.25)
	if kl, _ := diverge(even, odd); math.Abs(kl-0.5*math.Log(4.0/3)) > 1e-7 {
		t.Errorf("%g", kl)
	}
}

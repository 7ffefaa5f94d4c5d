package codebook

import (
	"crypto/sha256"
	"fmt"
	"testing"
)

// The sums are of the grids as ggml has them: one byte an element, in order of index.
func TestGrids(t *testing.T) {
	for _, c := range []struct {
		grid *Grid
		sum  string
	}{
		{IQ2XXS, "05826b5d3e472a3a"},
		{IQ2XS, "06e47aaca60b4dc1"},
		{IQ2S, "e1aa1473412b0552"},
		{IQ1S, "07540ffc1aeaf6ad"},
		{IQ3XXS, "46e35f5a997efdee"},
		{IQ3S, "bd1af4945a1717c6"},
	} {
		g := c.grid
		if n := len(g.vectors().codes) / g.Size; n != g.Count {
			t.Errorf("%s has %d vectors, want %d", g.Name, n, g.Count)
			continue
		}
		h := sha256.New()
		for i := range g.Count {
			for j, v := range g.Vector(i) {
				if v != g.Values[g.Codes(i)[j]] {
					t.Errorf("%s: element %d of vector %d is %d, of code %d", g.Name, j, i, v, g.Codes(i)[j])
				}
				h.Write([]byte{byte(v)})
			}
		}
		if sum := fmt.Sprintf("%x", h.Sum(nil)[:8]); sum != c.sum {
			t.Errorf("%s: sum %s, want %s", g.Name, sum, c.sum)
		}
	}
}

package rank

import (
	"math"
	"testing"
)

func TestCorrelation(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		want float64
	}{
		{[]float64{1, 2, 3}, []float64{10, 100, 1000}, 1},
		{[]float64{1, 2, 3}, []float64{3, 2, 1}, -1},
		{[]float64{1, 2, 3, 4}, []float64{2, 1, 4, 3}, 0.6},
		{[]float64{1, 1, 2}, []float64{1, 2, 2}, 0.5},
		{[]float64{5, 5}, []float64{1, 2}, 0},
		{nil, nil, 0},
	} {
		if got := Correlation(c.x, c.y); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v %v: %v, want %v", c.x, c.y, got, c.want)
		}
	}
}

package plans

import "testing"

// TestGrainOf: steps begin where no dispatch minds, and a whole step has whole grains.
func TestGrainOf(t *testing.T) {
	for _, c := range []struct {
		run    int
		grains []int
		want   int
	}{
		{512, nil, 1}, {512, []int{1, 1}, 1}, {512, []int{1, 32, 8}, 32}, {48, []int{4, 6}, 12}, {512, []int{512}, 512},
		{512, []int{32, 0, 1}, 0},               // a kernel whose rows all share
		{48, []int{32}, 0}, {16, []int{128}, 0}, // tiles that a whole step fills in part
		{48, []int{16, 3, 5}, 0},
		{1, []int{1}, 1},
	} {
		e := &Entry{Run: c.run}
		for _, g := range c.grains {
			e.Dispatches = append(e.Dispatches, Dispatch{Grain: g})
		}
		if got := GrainOf(e); got != c.want {
			t.Errorf("dispatches of %v in runs of %d have the grain %d, want %d", c.grains, c.run, got, c.want)
		}
	}
}

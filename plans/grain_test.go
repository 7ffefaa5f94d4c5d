package plans

import (
	"testing"

	"pgregory.net/rapid"
)

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

// TestGrainIsTheLeast: it is the least number of rows that all dispatches divide, of which a whole step has a multiple.
func TestGrainIsTheLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := &Entry{Run: rapid.IntRange(1, 96).Draw(t, "run")}
		for _, g := range rapid.SliceOfN(rapid.IntRange(0, 12), 0, 5).Draw(t, "grains") {
			e.Dispatches = append(e.Dispatches, Dispatch{Grain: g})
		}
		want := 0
		for n := e.Run; n > 0; n-- {
			fits := e.Run%n == 0
			for _, d := range e.Dispatches {
				fits = fits && d.Grain > 0 && n%d.Grain == 0
			}
			if fits {
				want = n
			}
		}
		if got := GrainOf(e); got != want {
			t.Errorf("dispatches %v in runs of %d: %d, want %d", e.Dispatches, e.Run, got, want)
		}
	})
}

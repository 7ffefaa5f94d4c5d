package sample

import (
	"math"
	"testing"
)

// behind returns what a chain leaves of logits behind a prompt.
func behind(p Params, prompt []int32, logits ...float32) map[int32]float64 {
	s := New(p, words)
	s.Read(prompt)
	return left(s, logits)
}

// TestRepetitionAtLimit: a repetition that is as long as is allowed, and one that fills the window or all behind a
// breaker, counts.
func TestRepetitionAtLimit(t *testing.T) {
	// e fg h * e fg: h would go on with a repetition of two tokens, which is all that follows the breaker.
	history := []int32{6, 7, 8, 5, 6, 7}
	for _, c := range []struct {
		window, allowed int
		want            float64
	}{{-1, 2, 1}, {6, 2, 1}, {5, 2, 0}, {-1, 1, 2}, {-1, 3, 0}} {
		p := Neutral()
		p.DRY = DRY{Multiplier: 1, Base: 2, AllowedLength: c.allowed, Window: c.window, Breakers: []string{"*"}}
		got := behind(p, history, make([]float32, 10)...)
		if lowered := math.Log(got[0] / got[8]); math.Abs(lowered-c.want) > 1e-6 {
			t.Errorf("window %d, %d allowed: h is lowered by %g, want %g", c.window, c.allowed, lowered, c.want)
		}
	}
}

// TestPenaltyBehindLimit: what a stage has left stays, also where a later stage lowers it below what the first one
// left.
func TestPenaltyBehindLimit(t *testing.T) {
	p := Neutral()
	p.MinP, p.TopNSigma, p.Presence, p.LastN, p.Samplers = 0.3, 5, 4, -1, []string{"min_p", "penalties", "top_n_sigma"}
	if got := behind(p, []int32{1}, 10, 9.5, 1, 0, -1); len(got) != 2 || got[1] == 0 {
		t.Errorf("%v are left, want 0 and 1", got)
	}
}

// TestAtThreshold: a token that lies right at a threshold is above it.
func TestAtThreshold(t *testing.T) {
	p := Neutral()
	p.TopNSigma = 2 // of 2 and 0 the deviation is 1
	if got := behind(p, nil, 2, 0); len(got) != 2 {
		t.Errorf("two deviations below the largest: %v are left", got)
	}
	p = Neutral()
	p.XTCProbability, p.XTCThreshold = 1, 0.5
	if got := behind(p, nil, 1, 1); len(got) != 1 {
		t.Errorf("of two with half of all each %v are left, want one", got)
	}
}

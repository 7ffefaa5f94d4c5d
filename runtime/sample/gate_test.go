package sample

import (
	"math"
	"math/rand/v2"
	"testing"
)

// some allows the tokens of a set, and counts how often all were asked for.
type some struct {
	words []uint64
	all   int
}

func (s *some) Allows(id int32) bool { return s.words[id>>6]>>(id&63)&1 != 0 }

func (s *some) Words() []uint64 {
	s.all++
	return s.words
}

// TestAllowed holds that choices within a set are those of logits that are -Inf outside of it, whatever the parameters.
func TestAllowed(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	asked, choices := 0, 0
	for n := range 240 {
		size := []int{100, 1000, 9000}[n%3]
		logits := make([]float32, size)
		for i := range logits {
			logits[i] = float32(r.NormFloat64() * 4)
		}
		a := &some{words: make([]uint64, (size+63)/64)}
		share := []float64{0.001, 0.05, 0.5, 0.99}[r.IntN(4)]
		for id := range size {
			if r.Float64() < share || id == size/2 {
				a.words[id>>6] |= 1 << (id & 63)
			}
		}
		p := Params{Temp: []float64{0, 0.7, 1.5}[r.IntN(3)], TopP: []float64{1, 0.9}[r.IntN(2)], TopK: []int{0, 1, 40, 200}[r.IntN(4)],
			MinP: []float64{0, 0.05}[r.IntN(2)], Typical: []float64{1, 0.8}[r.IntN(2)], TopNSigma: []float64{0, 1.5}[r.IntN(2)],
			XTCProbability: []float64{0, 0.5}[r.IntN(2)], XTCThreshold: 0.1, Repeat: 1.1, LastN: 8, Seed: uint64(n),
			Bias: map[int32]float64{int32(r.IntN(size)): 3}}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		banned := make([]float32, size)
		for id := range banned {
			if banned[id] = logits[id]; !a.Allows(int32(id)) {
				banned[id] = float32(math.Inf(-1))
			}
		}
		one, other := New(p, nil), New(p, nil)
		one.Allowed = a
		for range 5 {
			choices++
			have, err := one.Choose(logits, nil)
			want, err2 := other.Choose(banned, nil)
			if have != want || err != nil || err2 != nil {
				t.Fatalf("%d of %d allowed, %+v: %d and %v, want %d and %v", size, a.all, p, have, err, want, err2)
			}
			one.Accept(have)
			other.Accept(have)
		}
		asked += a.all
	}
	t.Logf("all tokens were asked for in %d of %d choices", asked, choices)
	none := &some{words: make([]uint64, 2)}
	s := New(Params{TopP: 1, Typical: 1}, nil)
	s.Allowed = none
	if _, err := s.Choose(make([]float32, 100), nil); err != ErrNothingLeft {
		t.Errorf("nothing is allowed: %v", err)
	}
}

package sample

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var inf = float32(math.Inf(1))

// TestSelection holds that what is selected is the beginning of what a full sort gives.
func TestSelection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logits := drawLogits(t, 9000)
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0: // what the samples see says nothing of the rest
			for i := range logits {
				if i%max(1, len(logits)/1024) == 0 {
					logits[i] = 100
				}
			}
		case 1:
			for i := range logits {
				logits[i] = 3
			}
		case 2:
			for i := range logits {
				if i%3 != 0 {
					logits[i] = -inf
				}
			}
		}
		var want []candidate
		for i, l := range logits {
			if l > -inf {
				want = append(want, pack(int32(i), l))
			}
		}
		slices.SortFunc(want, func(a, b candidate) int {
			switch {
			case a.logit() > b.logit():
				return -1
			case a.logit() < b.logit():
				return 1
			}
			return int(a.id() - b.id())
		})
		n := rapid.IntRange(1, len(logits)).Draw(t, "n")
		got, all := largest(nil, logits, n)
		if len(got) < min(n, len(want)) || len(got) > len(want) || !slices.Equal(got, want[:len(got)]) || all && len(got) < len(want) {
			t.Fatalf("%d of %d: %d, all %v, or another order", n, len(want), len(got), all)
		}
	})
}

func TestCandidate(t *testing.T) {
	order := []float32{inf, math.MaxFloat32, 2, 1, math.SmallestNonzeroFloat32, 0, -math.SmallestNonzeroFloat32, -1, -2, -math.MaxFloat32, -inf}
	for i, l := range order {
		c := pack(int32(i), l)
		if c.id() != int32(i) || c.logit() != l {
			t.Errorf("%g of %d: %g of %d", l, i, c.logit(), c.id())
		}
		if i > 0 && pack(9, order[i-1]) >= pack(0, l) {
			t.Errorf("%g does not come before %g", order[i-1], l)
		}
	}
	if pack(3, 1) >= pack(4, 1) {
		t.Error("of equal logits the larger id comes first")
	}
}

// TestNotNumbers holds that no choice is made of what is no number, wherever it is.
func TestNotNumbers(t *testing.T) {
	nan := float32(math.NaN())
	for _, x := range []struct {
		odd  float32
		want error
	}{{nan, ErrNotNumbers}, {float32(math.Copysign(math.NaN(), -1)), ErrNotNumbers}, {inf, ErrNotNumbers}, {-inf, nil}, {-math.MaxFloat32, nil}} {
		for _, at := range []int{0, 1, 4999, 2500} {
			for _, p := range []Params{{}, Neutral(), {Temp: 0.7, TopK: 20, TopP: 0.9}, {Temp: 1, TopP: 1, Typical: 1, TopNSigma: 1}} {
				logits := make([]float32, 5000)
				for i := range logits {
					logits[i] = float32(i % 100)
				}
				logits[at] = x.odd
				if _, err := New(p, words).Choose(logits, nil); err != x.want {
					t.Errorf("%g at %d, %+v: %v, want %v", x.odd, at, p, err, x.want)
				}
				if err := Check(logits); err != x.want {
					t.Errorf("check: %g at %d: %v, want %v", x.odd, at, err, x.want)
				}
			}
		}
	}
	for _, logits := range [][]float32{{-inf, -inf}, nil, {nan}} {
		if _, err := New(Neutral(), words).Choose(logits, nil); err != ErrNotNumbers || Check(logits) != ErrNotNumbers {
			t.Errorf("%v: %v and %v", logits, err, Check(logits))
		}
	}
	p := Neutral()
	p.Bias = map[int32]float64{0: math.Inf(-1)}
	if _, err := New(p, words).Choose([]float32{1, 2}, []int32{1}); err != ErrNothingLeft {
		t.Errorf("everything forbidden: %v", err)
	}
}

func TestExp(t *testing.T) {
	worst := 0.0
	for x := 0.0; x > -690; x -= 0.00937 {
		worst = max(worst, math.Abs(exp(x)/math.Exp(x)-1))
	}
	if worst > 1e-11 || exp(0) != 1 || exp(math.Inf(-1)) > 1e-300 {
		t.Errorf("off by %g; e^0 is %g, e^-Inf %g", worst, exp(0), exp(math.Inf(-1)))
	}
}

func TestLogprobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logits := drawLogits(t, 5000)
		id := int32(rapid.IntRange(0, len(logits)-1).Draw(t, "id"))
		n := rapid.IntRange(0, 20).Draw(t, "n")
		all := make([]weighted, len(logits))
		for i, l := range logits {
			all[i] = weighted{int32(i), float64(l)}
		}
		probs := softmax(all)
		got, top := Logprobs(logits, id, n)
		if math.Abs(float64(got)-math.Log(probs[id])) > 1e-5 || len(top) != min(n, len(logits)) {
			t.Fatalf("token %d: %g, want %g; %d alternatives", id, got, math.Log(probs[id]), len(top))
		}
		for i, c := range top {
			if math.Abs(float64(c.Logprob)-math.Log(probs[c.ID])) > 1e-5 || i > 0 && c.Logprob > top[i-1].Logprob {
				t.Fatalf("alternative %d: %+v, want %g", i, c, math.Log(probs[c.ID]))
			}
		}
	})
}

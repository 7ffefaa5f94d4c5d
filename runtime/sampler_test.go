package runtime

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// logits of probabilities 0.5, 0.3, 0.15 and 0.05 for tokens 2, 0, 3 and 1.
var fourTokens = []float32{float32(math.Log(0.3)), float32(math.Log(0.05)), float32(math.Log(0.5)), float32(math.Log(0.15))}

// TestSamplingKeeps checks which tokens each limit leaves to be drawn.
func TestSamplingKeeps(t *testing.T) {
	for _, c := range []struct {
		name string
		s    Sampling
		want []int32
	}{
		{"temperature 0", Sampling{TopP: 1}, []int32{2}},
		{"all", Sampling{Temp: 1, TopP: 1}, []int32{0, 1, 2, 3}},
		{"top-k 1", Sampling{Temp: 1, TopK: 1, TopP: 1}, []int32{2}},
		{"top-k 2", Sampling{Temp: 1, TopK: 2, TopP: 1}, []int32{0, 2}},
		{"top-p 0.7", Sampling{Temp: 1, TopP: 0.7}, []int32{0, 2}},
		{"min-p 0.2", Sampling{Temp: 1, TopP: 1, MinP: 0.2}, []int32{0, 2, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewSampler(c.s)
			seen := map[int32]bool{}
			for range 2000 {
				seen[s.Sample(fourTokens)] = true
			}
			var got []int32
			for id := range seen {
				got = append(got, id)
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("draws %v, want %v", got, c.want)
			}
		})
	}
}

// TestSamplingFrequencies checks that temperature 1 draws by probability, and
// that a higher one flattens it.
func TestSamplingFrequencies(t *testing.T) {
	const draws = 20000
	top := func(temp float64) float64 {
		s := NewSampler(Sampling{Temp: temp, TopP: 1, Seed: 1})
		n := 0
		for range draws {
			if s.Sample(fourTokens) == 2 {
				n++
			}
		}
		return float64(n) / draws
	}
	// At temperature 2 the weights are the square roots of the probabilities.
	hot := math.Sqrt(0.5) / (math.Sqrt(0.5) + math.Sqrt(0.3) + math.Sqrt(0.15) + math.Sqrt(0.05))
	for _, c := range []struct{ temp, want float64 }{{1, 0.5}, {2, hot}} {
		if got := top(c.temp); math.Abs(got-c.want) > 0.02 {
			t.Errorf("temperature %g draws the top token %.3f of the time, want %.3f", c.temp, got, c.want)
		}
	}
}

func TestSamplingSeed(t *testing.T) {
	draw := func(seed uint64) []int32 {
		s := NewSampler(Sampling{Temp: 1, TopP: 1, Seed: seed})
		var ids []int32
		for range 50 {
			ids = append(ids, s.Sample(fourTokens))
		}
		return ids
	}
	if !slices.Equal(draw(7), draw(7)) {
		t.Error("the same seed draws other tokens")
	}
	if slices.Equal(draw(7), draw(8)) {
		t.Error("two seeds draw the same 50 tokens")
	}
}

// TestSamplingCheck holds that what is out of range is named, NaN and infinities too.
func TestSamplingCheck(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, x := range []struct {
		s    Sampling
		want string // in the error; "" for none
	}{
		{Sampling{TopP: 1}, ""}, {Sampling{Temp: 1, TopK: 40, TopP: 0.9, MinP: 0.1}, ""},
		{Sampling{Temp: nan, TopP: 1}, "temp is NaN"}, {Sampling{Temp: inf, TopP: 1}, "temp is +Inf"}, {Sampling{Temp: -1, TopP: 1}, "temp is -1"},
		{Sampling{TopK: -1, TopP: 1}, "top-k is -1"},
		{Sampling{TopP: nan}, "top-p is NaN"}, {Sampling{TopP: 0}, "top-p is 0"}, {Sampling{TopP: 1.1}, "top-p is 1.1"},
		{Sampling{TopP: 1, MinP: nan}, "min-p is NaN"}, {Sampling{TopP: 1, MinP: -inf}, "min-p is -Inf"},
	} {
		have := ""
		if err := x.s.Check(); err != nil {
			have = err.Error()
		}
		if (have == "") != (x.want == "") || !strings.HasPrefix(have, x.want) {
			t.Errorf("%+v: %q, want %q", x.s, have, x.want)
		}
	}
}

func TestCheckLogits(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, x := range []struct {
		logits []float32
		ok     bool
	}{
		{fourTokens, true}, {[]float32{-inf, 1}, true}, {[]float32{-math.MaxFloat32}, true},
		{[]float32{1, nan}, false}, {[]float32{inf, 1}, false}, {[]float32{-inf, -inf}, false}, {nil, false},
	} {
		if err := CheckLogits(x.logits); (err == nil) != x.ok {
			t.Errorf("%v: %v", x.logits, err)
		}
	}
}

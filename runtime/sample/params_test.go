package sample

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/plans"
)

// logits of probabilities 0.5, 0.3, 0.15 and 0.05 for tokens 2, 0, 3 and 1.
var fourTokens = []float32{float32(math.Log(0.3)), float32(math.Log(0.05)), float32(math.Log(0.5)), float32(math.Log(0.15))}

// TestFrequencies checks that temperature 1 draws by probability, and that a higher one
// flattens it.
func TestFrequencies(t *testing.T) {
	const draws = 20000
	top := func(temp float64) float64 {
		p := Neutral()
		p.Temp, p.Seed = temp, 1
		s := New(p, words)
		n := 0
		for range draws {
			if id, err := s.Choose(fourTokens, nil); err != nil {
				t.Fatal(err)
			} else if id == 2 {
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

// TestTail checks that tokens behind the selected ones are drawn as often as they should be, also at a
// temperature that follows on top-p.
func TestTail(t *testing.T) {
	logits := make([]float32, 6000) // of which the selection sees a few hundred
	for i := range logits {
		logits[i] = float32(i%10) / 10
	}
	flat := Neutral()
	flat.TopP, flat.Temp = 0.9, 0.2
	for _, p := range []Params{Neutral(), flat} {
		var wants [10]float64
		for id, q := range define(logits, p, nil, words, nil) {
			wants[id%10] += q
		}
		s := New(p, words)
		var counts [10]int
		const draws = 4000
		for range draws {
			id, err := s.Choose(logits, nil)
			if err != nil {
				t.Fatal(err)
			}
			counts[id%10]++
		}
		for i, want := range wants {
			if got := float64(counts[i]) / draws; math.Abs(got-want) > 4*math.Sqrt(want/draws) {
				t.Errorf("top-p %g, temperature %g, logit %g: %.4f of the draws, want %.4f", p.TopP, p.Temp, float64(i)/10, got, want)
			}
		}
	}
}

// TestSeed holds that the seed and the place in the sequence decide, not what else was drawn.
func TestSeed(t *testing.T) {
	draw := func(seed uint64) []int32 {
		p := Neutral()
		p.Seed = seed
		s := New(p, words)
		var ids []int32
		for range 50 {
			id, err := s.Choose(fourTokens, nil)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
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

// TestGreedy holds that a device may choose where Greedy says so.
func TestGreedy(t *testing.T) {
	xtc, typical, biased, neutral := Params{XTCProbability: 1, XTCThreshold: 0.1}, Params{Typical: 0.5, TopP: 1}, Params{Bias: map[int32]float64{1: 9}}, Neutral()
	one := Neutral()
	one.TopK = 1
	for _, x := range []struct {
		p    Params
		want bool
	}{{Params{}, true}, {one, true}, {xtc, false}, {typical, false}, {biased, false}, {neutral, false}, {Params{Samplers: []string{}}, false}} {
		if x.p.Greedy() != x.want {
			t.Errorf("%+v: %v", x.p, !x.want)
		}
		if !x.want {
			continue
		}
		if id, err := New(x.p, words).Choose([]float32{1, 5, 2, 5}, nil); id != 1 || err != nil {
			t.Errorf("%+v: chooses %d, %v", x.p, id, err)
		}
	}
}

// TestValidate holds that what is out of range is named, NaN and infinities too.
func TestValidate(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, f := range map[string]struct {
		set func(p *Params, x float64)
		bad []float64
	}{
		"temperature":        {func(p *Params, x float64) { p.Temp = x }, []float64{-1}},
		"top_p":              {func(p *Params, x float64) { p.TopP = x }, []float64{-0.1, 1.1}},
		"min_p":              {func(p *Params, x float64) { p.MinP = x }, []float64{-0.1, 1.1}},
		"typical_p":          {func(p *Params, x float64) { p.Typical = x }, []float64{-0.1, 1.1}},
		"top_n_sigma":        {func(p *Params, x float64) { p.TopNSigma = x }, nil},
		"xtc_probability":    {func(p *Params, x float64) { p.XTCProbability = x }, []float64{2}},
		"xtc_threshold":      {func(p *Params, x float64) { p.XTCThreshold = x }, []float64{2}},
		"repeat_penalty":     {func(p *Params, x float64) { p.Repeat = x }, []float64{-1}},
		"presence_penalty":   {func(p *Params, x float64) { p.Presence = x }, nil},
		"frequency_penalty":  {func(p *Params, x float64) { p.Frequency = x }, nil},
		"dry_multiplier":     {func(p *Params, x float64) { p.Multiplier = x }, []float64{-1}},
		"dry_base":           {func(p *Params, x float64) { p.Base = x }, []float64{-1}},
		"logit_bias":         {func(p *Params, x float64) { p.Bias = map[int32]float64{5: max(x, -2e38)} }, nil},
		"repeat_last_n":      {func(p *Params, x float64) { p.LastN = -2 }, nil},
		"dry_penalty_last_n": {func(p *Params, x float64) { p.Window = -2 }, nil},
		"dry_allowed_length": {func(p *Params, x float64) { p.AllowedLength = -1 }, nil},
		"top_k":              {func(p *Params, x float64) { p.TopK = -5 }, nil},
		"samplers":           {func(p *Params, x float64) { p.Samplers = []string{"top_k", "mirostat"} }, nil},
	} {
		for _, x := range append(f.bad, nan, inf) {
			p := Neutral()
			if err := p.Validate(); err != nil {
				t.Fatal(err)
			}
			f.set(&p, x)
			var bad *Error
			if err := p.Validate(); !errors.As(err, &bad) || bad.Field != name {
				t.Errorf("%s %g: %v", name, x, err)
			}
		}
	}
}

// TestDefaults holds that the file decides over what is neutral, with the numbers that people wrote.
func TestDefaults(t *testing.T) {
	p := Defaults([]plans.Setting{{Name: "temp", Value: 0.6}, {Name: "top_k", Value: 20}, {Name: "top_p", Value: 0.95}, {Name: "mirostat", Value: 2}})
	if p.Temp != 0.6 || p.TopK != 20 || p.TopP != 0.95 || p.Typical != 1 || p.LastN != 64 {
		t.Errorf("%+v", p)
	}
	if p.Seed == Defaults(nil).Seed {
		t.Error("two calls have the same seed")
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
}

// TestJSON holds that fields are named as in the API and that those of DRY are beside the others.
func TestJSON(t *testing.T) {
	p := Neutral()
	if err := json.Unmarshal([]byte(`{"temperature": 0.5, "top_k": 3, "dry_multiplier": 0.8, "logit_bias": {"7": -1}}`), &p); err != nil {
		t.Fatal(err)
	}
	if p.Temp != 0.5 || p.TopK != 3 || p.Multiplier != 0.8 || p.Base != 1.75 || p.Bias[7] != -1 {
		t.Errorf("%+v", p)
	}
}

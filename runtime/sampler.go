package runtime

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Sampling says how the next token is drawn from the logits.
type Sampling struct {
	Temp float64 // 0: the most likely token
	TopK int     // keep the k most likely; 0: all
	TopP float64 // keep the smallest set of at least this probability (Holtzman et al. 2020); 1: all
	MinP float64 // keep what has at least this share of the top probability; 0: all
	Seed uint64
}

// Greedy reports whether the most likely token is always taken.
func (s Sampling) Greedy() bool { return s.Temp == 0 || s.TopK == 1 }

// Sampler draws tokens. The order is top-k, top-p, min-p, temperature, as in
// llama.cpp.
type Sampler struct {
	Sampling
	rng *rand.Rand
	buf []candidate
}

type candidate struct {
	id    int32
	logit float32
	p     float64
}

// NewSampler returns a sampler whose draws depend on nothing but s and the logits.
func NewSampler(s Sampling) *Sampler {
	return &Sampler{Sampling: s, rng: rand.New(rand.NewPCG(s.Seed, 0))}
}

// Sample draws one token.
func (s *Sampler) Sample(logits []float32) int32 {
	c := s.buf[:0]
	for i, l := range logits {
		if l == l {
			c = append(c, candidate{id: int32(i), logit: l})
		}
	}
	s.buf = c
	if len(c) == 0 {
		return 0
	}
	slices.SortFunc(c, func(a, b candidate) int {
		switch {
		case a.logit > b.logit:
			return -1
		case a.logit < b.logit:
			return 1
		}
		return int(a.id) - int(b.id)
	})
	if s.Greedy() {
		return c[0].id
	}
	if s.TopK > 0 && s.TopK < len(c) {
		c = c[:s.TopK]
	}
	softmax(c, 1)
	if s.TopP < 1 {
		sum := 0.0
		for i := range c {
			if sum += c[i].p; sum >= s.TopP {
				c = c[:i+1]
				break
			}
		}
	}
	for i := range c {
		if c[i].p < s.MinP*c[0].p {
			c = c[:i]
			break
		}
	}
	softmax(c, s.Temp)
	at := s.rng.Float64()
	for _, x := range c {
		if at -= x.p; at < 0 {
			return x.id
		}
	}
	return c[len(c)-1].id
}

// softmax sets p of the sorted candidates at the temperature.
func softmax(c []candidate, temp float64) {
	sum := 0.0
	for i := range c {
		c[i].p = math.Exp(float64(c[i].logit-c[0].logit) / temp)
		sum += c[i].p
	}
	for i := range c {
		c[i].p /= sum
	}
}

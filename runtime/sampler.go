package runtime

import (
	"errors"
	"fmt"
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

// Check names the first field that is out of its range, NaN and infinities included.
func (s Sampling) Check() error {
	for _, f := range []struct {
		ok   bool
		name string
		have any
		want string
	}{
		{s.Temp >= 0 && s.Temp <= math.MaxFloat64, "temp", s.Temp, "0 or more"},
		{s.TopK >= 0, "top-k", s.TopK, "0 or more"},
		{s.TopP > 0 && s.TopP <= 1, "top-p", s.TopP, "more than 0, at most 1"},
		{s.MinP >= 0 && s.MinP <= 1, "min-p", s.MinP, "0 to 1"},
	} {
		if !f.ok {
			return fmt.Errorf("%s is %v, want %s", f.name, f.have, f.want)
		}
	}
	return nil
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

// ErrNotNumbers says that logits cannot be compared: something before them has overflowed, or
// the weights are damaged.
var ErrNotNumbers = errors.New("the logits are not numbers")

// NotNumbersError is ErrNotNumbers with the sequence of tokens behind which it happened.
type NotNumbersError struct{ Sequence []int32 }

func (e *NotNumbersError) Error() string {
	return fmt.Sprintf("behind %d tokens %s", len(e.Sequence), ErrNotNumbers)
}

// Unwrap returns ErrNotNumbers.
func (e *NotNumbersError) Unwrap() error { return ErrNotNumbers }

// CheckLogits returns ErrNotNumbers if one is NaN or +Inf, or if none is more than -Inf.
func CheckLogits(logits []float32) error {
	top := float32(math.Inf(-1))
	for _, l := range logits {
		if !(l <= math.MaxFloat32) {
			return ErrNotNumbers
		}
		top = max(top, l)
	}
	if top < -math.MaxFloat32 {
		return ErrNotNumbers
	}
	return nil
}

// Sample draws one token. The logits are such that CheckLogits finds nothing.
func (s *Sampler) Sample(logits []float32) int32 {
	c := s.buf[:0]
	for i, l := range logits {
		c = append(c, candidate{id: int32(i), logit: l})
	}
	s.buf = c
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

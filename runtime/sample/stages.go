package sample

import (
	"math"
	"slices"
)

// maxScale keeps products with logits finite.
const maxScale = 1e30

// stage is a row of the chain.
type stage struct {
	name    string
	aliases []string
	apply   func(s *Sampler)
}

// stages are in the order of llama.cpp.
var stages = []stage{
	{"penalties", nil, (*Sampler).penalties},
	{"dry", nil, (*Sampler).dry},
	{"top_n_sigma", []string{"top-n-sigma"}, (*Sampler).topNSigma},
	{"top_k", []string{"top-k"}, (*Sampler).topK},
	{"typ_p", []string{"typical_p", "typical-p", "typical", "typ-p", "typ"}, (*Sampler).typical},
	{"top_p", []string{"top-p", "nucleus"}, (*Sampler).topP},
	{"min_p", []string{"min-p"}, (*Sampler).minP},
	{"xtc", nil, (*Sampler).xtc},
	{"temperature", []string{"temp"}, (*Sampler).temperature},
}

func (s *Sampler) topK() {
	if k := s.p.TopK; k > 0 {
		s.set.grow(k)
		s.set.keep(min(k, len(s.set.head)))
	}
}

func (s *Sampler) topP() {
	if s.p.TopP >= 1 {
		return
	}
	switch s.set.top(); {
	case s.set.open():
		s.set.nucleusOfCandidates(s.p.TopP)
		return
	case !s.set.cut:
		s.set.weights()
		s.set.grow(smallNucleus)
	}
	each, total := s.set.headWeights()
	left := s.p.TopP * total
	for i, w := range each {
		if left -= w; left <= 0 {
			s.set.keep(i + 1)
			return
		}
	}
	if !s.set.cut {
		limit, total := s.set.nucleus(s.p.TopP)
		s.set.restrict(limit)
		s.set.total = total
	}
}

// smallNucleus is how many tokens top-p sorts; of a larger set it sorts a few only, near its end.
const smallNucleus = 1024

// nucleus returns the last candidate of the smallest set with a share p of the weights, and the weights of the
// set: it sums them by the upper bits of the candidates, and sorts those of the sum with which the share is reached.
func (s *set) nucleus(p float64) (last candidate, weights float64) {
	const shift = 48 // 128 sums for logits of one exponent
	s.settle()
	mass := s.sums()
	top := s.top()
	for i, l := range s.logits {
		if c := pack(int32(i), l); l > negInf && c <= s.limit {
			mass[c>>shift] += exp(float64(l-top) * s.scale)
		}
	}
	total := 0.0
	for _, m := range mass {
		total += m
	}
	left, at := p*total, 0
	for at < len(mass)-1 && left > mass[at] {
		left -= mass[at]
		at++
	}
	var few []candidate
	for i, l := range s.logits {
		if c := pack(int32(i), l); int(c>>shift) == at && c <= s.limit {
			few = append(few, c)
		}
	}
	slices.Sort(few)
	for _, c := range few {
		if left -= exp(float64(c.logit()-top) * s.scale); left <= 0 {
			return c, p*total - left
		}
	}
	return noLimit, total // the sums are rounded: all of it
}

func (s *Sampler) minP() {
	if s.p.MinP > 0 {
		s.set.within(-math.Log(s.p.MinP))
	}
}

// within keeps the logits, times the scale, that are at most d below the largest.
func (s *set) within(d float64) {
	exact := (float64(s.top())*s.scale - d) / s.scale
	least := float32(exact)
	if float64(least) < exact {
		least = math.Nextafter32(least, s.top())
	}
	s.restrict(pack(-1, min(max(least, -math.MaxFloat32), s.top()))) // -1 is the last of all ids
}

func (s *Sampler) topNSigma() {
	if s.p.TopNSigma <= 0 {
		return
	}
	var n, sum, squares float64
	each := func(l float32) {
		if l > negInf {
			x := float64(l) * s.set.scale
			n, sum, squares = n+1, sum+x, squares+x*x
		}
	}
	s.set.whole()
	s.set.settle()
	if s.set.limit != noLimit {
		s.set.grow(len(s.set.logits))
	}
	if s.set.cut {
		for _, c := range s.set.head {
			each(c.logit())
		}
	} else {
		for _, l := range s.set.logits {
			each(l)
		}
	}
	mean := sum / n
	s.set.within(s.p.TopNSigma * math.Sqrt(max(0, squares/n-mean*mean)))
}

// xtc drops, as often as its probability says, all tokens above the threshold but the least
// likely of them.
func (s *Sampler) xtc() {
	if s.p.XTCProbability <= 0 || s.p.XTCThreshold > 0.5 {
		return
	}
	if s.uniform() >= s.p.XTCProbability {
		return
	}
	least, n := s.p.XTCThreshold*s.set.weights(), 0
	for {
		c, ok := s.set.at(n)
		if !ok || s.set.weight(c.logit()) < least {
			break
		}
		n++
	}
	if n < 2 {
		return
	}
	s.set.drop(n - 1)
}

func (s *Sampler) temperature() {
	if s.p.Temp == 0 {
		s.set.grow(1)
		s.set.keep(min(1, len(s.set.head)))
		return
	}
	s.set.scale = min(s.set.scale/s.p.Temp, maxScale)
	s.set.total = 0
}

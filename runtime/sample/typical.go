package sample

import (
	"cmp"
	"math"
	"slices"
)

// typical keeps the tokens whose surprise, minus the logarithm of their probability, is closest to the entropy, until
// they have the probability. (Meister et al., "Locally Typical Sampling", 2023)
func (s *Sampler) typical() {
	if s.p.Typical >= 1 {
		return
	}
	set := s.set
	set.whole()
	set.settle()
	set.grow(1)
	t := set.typicality()
	if !set.cut {
		set.trimTypical(t, s.p.Typical)
		return
	}
	left, n := s.p.Typical*t.total, 0
	byDistance := slices.Clone(set.head)
	slices.SortStableFunc(byDistance, t.compare)
	for left >= 0 && n < len(byDistance) {
		left -= set.weight(byDistance[n].logit())
		n++
	}
	slices.Sort(byDistance[:n])
	set.head = append(set.head[:0], byDistance[:n]...)
	set.keep(n)
}

// typicality is what the distance of a token's surprise from the entropy follows from.
type typicality struct {
	total float64 // weight of all that is left
	// center is the logit, less the largest and times the scale, of a token whose surprise is the entropy.
	center     float64
	top, scale float64
}

// distance of a logit's surprise from the entropy.
func (t *typicality) distance(logit float32) float64 {
	return math.Abs((float64(logit)-t.top)*t.scale - t.center)
}

// compare orders candidates by their distance, those of one distance as they are.
func (t *typicality) compare(a, b candidate) int {
	return cmp.Or(cmp.Compare(t.distance(a.logit()), t.distance(b.logit())), cmp.Compare(a, b))
}

func (s *set) typicality() *typicality {
	t := &typicality{top: float64(s.top()), scale: s.scale}
	sum := 0.0 // of weights times their logits
	add := func(l float32) {
		x := (float64(l) - t.top) * t.scale
		w := exp(x)
		t.total += w
		sum += w * x
	}
	if s.cut {
		for _, c := range s.head {
			add(c.logit())
		}
	} else {
		for i, l := range s.logits {
			if l > negInf && pack(int32(i), l) <= s.limit {
				add(l)
			}
		}
	}
	t.center = sum / t.total // surprise is log(total) - x, and the entropy its mean
	return t
}

// trimTypical leaves the closest with a share p of the weights, of all logits: it sums weights by the upper bits
// of the distances, and sorts those with which the share is reached. What is kept lies between two logits.
func (s *set) trimTypical(t *typicality, p float64) {
	const shift = 16 // 128 sums for distances of one exponent
	bucket := func(l float32) int { return int(math.Float32bits(float32(t.distance(l))) >> shift) }
	mass := s.sums()
	for i, l := range s.logits {
		if l > negInf && pack(int32(i), l) <= s.limit {
			mass[bucket(l)] += exp((float64(l) - t.top) * t.scale)
		}
	}
	left, at, last := p*t.total, 0, len(mass)-1
	for last > 0 && mass[last] == 0 {
		last--
	}
	for at < last && left >= mass[at] {
		left -= mass[at]
		at++
	}
	var few, above []candidate
	for i, l := range s.logits {
		if c := pack(int32(i), l); l > negInf && c <= s.limit && bucket(l) == at {
			few = append(few, c)
		}
	}
	slices.SortFunc(few, t.compare)
	n := 0
	for left >= 0 && n < len(few) {
		left -= exp((float64(few[n].logit()) - t.top) * t.scale)
		n++
	}
	if n == 0 {
		return // p is above 1, by rounding
	}
	edge, end := few[n-1], candidate(0) // the last that was taken, the last in order that is kept
	far := t.distance(edge.logit())
	for i, l := range s.logits {
		c := pack(int32(i), l)
		if l == negInf || c > s.limit {
			continue
		}
		x := (float64(l)-t.top)*t.scale - t.center
		switch d := math.Abs(x); {
		case d < far || d == far && c <= edge:
			end = max(end, c)
		case x > 0:
			above = append(above, c)
		}
	}
	s.ban(above)
	s.restrict(end)
}

// sums returns memory for a sum for each value of 16 bits, all 0.
func (s *set) sums() []float64 {
	if s.mass == nil {
		s.mass = make([]float64, 1<<16)
	}
	clear(s.mass)
	return s.mass
}

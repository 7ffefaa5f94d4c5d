package sample

import "math"

// Scored is a token with the logarithm of its probability.
type Scored struct {
	ID      int32
	Logprob float32
}

// Logprobs returns the log probability of a token and the n most likely tokens with theirs, by the model
// alone: no parameter counts.
func Logprobs(logits []float32, id int32, n int) (float32, []Scored) {
	var s set
	s.reset(logits)
	s.at(max(n, 1) - 1)
	norm := float64(s.top()) + math.Log(s.weights())
	var top []Scored
	for i := range n {
		c, ok := s.at(i)
		if !ok {
			break
		}
		top = append(top, Scored{c.id(), float32(float64(c.logit()) - norm)})
	}
	return float32(float64(logits[id]) - norm), top
}

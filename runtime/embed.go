package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// ErrNoVectors says that the plan's model predicts tokens and makes no vectors.
var ErrNoVectors = errors.New("the model predicts tokens: it makes no vectors of texts")

// ErrVectors says that the plan's model makes vectors and predicts no tokens.
var ErrVectors = errors.New("the model makes vectors of texts, it predicts no tokens: zincrun embed shows them, /v1/embeddings serves them")

// ErrRanks says that the plan's model ranks texts.
var ErrRanks = errors.New("the model ranks texts: /v1/rerank of zincrun serve asks it")

// NoTokens says what a model does that predicts no tokens.
func NoTokens(plan *plans.Plan) error {
	if Ranks(plan) {
		return ErrRanks
	}
	return ErrVectors
}

// Embeds reports whether the plan's model makes vectors of texts, and predicts no tokens.
func Embeds(plan *plans.Plan) bool {
	return slices.ContainsFunc(plan.Entries, func(e plans.Entry) bool { return e.Kind == "embed" })
}

// ErrNoDirection says that the vector of a text has length 0, or a length that is not a number.
var ErrNoDirection = errors.New("the vector of the text has no direction")

// Ranks says whether the vector of a text has probabilities: the first says that a document answers a query, where the
// text is what the plan's RankTemplate makes of both.
func Ranks(plan *plans.Plan) bool { return Embeds(plan) && plan.Vocab.RankTemplate != "" }

// Embed empties the sequence and returns the vector of a text, scaled to length 1: the model's result for the last
// token, or the mean over all tokens, as the model's file says. That of a model that ranks texts has probabilities,
// whose sum is 1.
func (s *Session) Embed(ctx context.Context, tokens []int32) ([]float32, error) {
	if !Embeds(s.plan) {
		return nil, ErrNoVectors
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("a text without tokens has no vector")
	}
	s.Reset()
	if err := s.admit(tokens, len(tokens)); err != nil {
		return nil, err
	}
	var sum []float64
	for len(tokens) > 0 {
		e := s.entry(len(tokens), "embed")
		n := min(len(tokens), e.Run)
		if err := s.step(ctx, e, tokens[:n], 1); err != nil {
			return nil, err
		}
		s.pos += n
		tokens = tokens[n:]
		all, err := s.exec.Floats(e.Logits)
		if err != nil {
			return nil, err
		}
		width, ofEach := vectorsOf(s.plan.Program.Func(e.Name))
		if !ofEach {
			n = 1
		}
		if width < 1 || len(all) < n*width || sum != nil && len(sum) != width {
			return nil, fmt.Errorf("entry %s: %d numbers of vectors, want %d of %d each", e.Name, len(all), n, width)
		}
		if sum == nil || !ofEach {
			sum = make([]float64, width)
		}
		for i, x := range all[:n*width] {
			sum[i%width] += float64(x)
		}
	}
	if Ranks(s.plan) {
		return probabilities(sum)
	}
	return unit(sum)
}

// probabilities are the softmax of scores.
func probabilities(scores []float64) ([]float32, error) {
	top, sum := slices.Max(scores), 0.0
	out := make([]float32, len(scores))
	for _, x := range scores {
		sum += math.Exp(x - top)
	}
	if !(sum > 0) {
		return nil, fmt.Errorf("%w: its scores are %g", ErrNoDirection, scores)
	}
	for i, x := range scores {
		out[i] = float32(math.Exp(x-top) / sum)
	}
	return out, nil
}

// VectorWidth is the number of dimensions of the model's vectors, 0 if it makes none.
func VectorWidth(plan *plans.Plan) int {
	for i := range plan.Entries {
		if e := &plan.Entries[i]; e.Kind == "embed" {
			width, _ := vectorsOf(plan.Program.Func(e.Name))
			return width
		}
	}
	return 0
}

// vectorsOf is how wide the vectors are that an entry gives, and whether it gives one of each row.
func vectorsOf(f *ir.Func) (width int, ofEach bool) {
	for _, op := range f.Ops() {
		if v := op.Result; v != nil && v.Class == ir.IO {
			return int(v.Type.Last()), v.Type.Shape[0] == ir.T
		}
	}
	return 0, false
}

// unit makes a vector of length 1; of its direction alone, so that a sum does for a mean.
func unit(v []float64) ([]float32, error) {
	length := 0.0
	for _, x := range v {
		length += x * x
	}
	if length = math.Sqrt(length); !(length > 0) || math.IsInf(length, 0) {
		return nil, fmt.Errorf("%w: its length is %g", ErrNoDirection, length)
	}
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(x / length)
	}
	return out, nil
}

// Shorten returns the first n numbers of a vector, again of length 1.
func Shorten(v []float32, n int) ([]float32, error) {
	short := make([]float64, n)
	for i := range short {
		short[i] = float64(v[i])
	}
	return unit(short)
}

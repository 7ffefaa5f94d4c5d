package runtime

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// Perplexity is the result of scoring a text.
type Perplexity struct {
	Perplexity float64
	NLL        float64 // mean negative log-likelihood of a scored token, in nats
	StdErr     float64 // standard error of Perplexity
	Tokens     int     // scored
	Windows    int
	Against    *Divergence `json:",omitempty"` // nil without a reference
}

// Divergence compares the predictions of a plan with those of a reference, over the scored tokens.
type Divergence struct {
	Perplexity float64 // of the reference
	KL         float64 // mean Kullback-Leibler divergence from the reference's probabilities, in nats
	StdErr     float64 // of KL
	SameTop    float64 // share of tokens of which both find the same one most probable
}

// ReferenceError is an error of the reference session.
type ReferenceError struct{ Err error }

func (e *ReferenceError) Error() string { return "the reference: " + e.Err.Error() }

// MinWindow is the smallest window with a position to score.
const MinWindow = 4

// ScoreText measures the perplexity of s by llama-perplexity's rule. It cuts the text into whole windows of window
// tokens, drops the rest, and evaluates each window from scratch (behind BOS if the vocabulary adds it). Positions
// window/2 to window-2 score the token after them. If reference is not nil, it is a session of the same model, and
// ScoreText compares each token's probabilities with its. It calls done after every window. The error is a
// sample.NotNumbersError if a score is not a number, and a ReferenceError if it comes from the reference.
func ScoreText(ctx context.Context, sess, reference *Session, tok *text.Tokenizer, s string, window int, done func(windows int)) (Perplexity, error) {
	ids := tok.Encode(s, text.EncodeOptions{AddSpecial: true, ParseSpecial: true})
	if window < MinWindow || len(ids) < window {
		return Perplexity{}, fmt.Errorf("text of %d tokens has no window of %d", len(ids), window)
	}
	var own, kl, referred, same tally
	n := len(ids) / window
	r := Perplexity{Windows: n}
	for w := range n {
		part := append([]int32(nil), ids[w*window:(w+1)*window]...)
		if tok.AddsBOS() {
			part[0] = tok.BOS()
		}
		next, stop := iter.Pull2(scores(ctx, reference, part))
		err := scoreWindow(ctx, sess, part, func(have scored) error {
			own.add(have.nll)
			r.Tokens++
			want, err, any := next()
			if err != nil {
				return &ReferenceError{err}
			}
			if any {
				referred.add(want.nll)
				far, top := diverge(want.logits, have.logits)
				kl.add(far)
				same.add(top)
			}
			return nil
		})
		stop()
		if err != nil {
			return r, err
		}
		done(w + 1)
	}
	nll, deviation := own.mean()
	r.NLL, r.Perplexity = nll, math.Exp(nll)
	r.StdErr = deviation * r.Perplexity
	if reference != nil {
		r.Against = &Divergence{}
		nll, _ := referred.mean()
		r.Against.Perplexity = math.Exp(nll)
		r.Against.KL, r.Against.StdErr = kl.mean()
		r.Against.SameTop, _ = same.mean()
	}
	return r, nil
}

// scored is a position that scores the token after it: what is predicted there, valid until the next, and the token's
// negative log-likelihood.
type scored struct {
	logits []float32
	nll    float64
}

// scores are the positions of a window that score a token, as scoreWindow has them, and at the end its error if it has
// one; none without a session. What two sessions predict is compared position by position, so that neither's logits of
// a window are kept.
func scores(ctx context.Context, sess *Session, part []int32) iter.Seq2[scored, error] {
	return func(yield func(scored, error) bool) {
		if sess == nil {
			return
		}
		enough := errors.New("no more are wanted")
		err := scoreWindow(ctx, sess, part, func(s scored) error {
			if !yield(s, nil) {
				return enough
			}
			return nil
		})
		if err != nil && err != enough {
			yield(scored{}, err)
		}
	}
}

// scoreWindow calls score for the positions of a window that score the token after them.
func scoreWindow(ctx context.Context, sess *Session, part []int32, score func(scored) error) error {
	sess.Reset()
	return sess.Score(ctx, part, func(i int, logits []float32) error {
		if i < len(part)/2 || i > len(part)-2 {
			return nil
		}
		nll := logSumExp(logits) - float64(logits[part[i+1]])
		if math.IsNaN(nll) || math.IsInf(nll, 0) {
			return &sample.NotNumbersError{Sequence: part[:i+1]}
		}
		return score(scored{logits, nll})
	})
}

// diverge returns the Kullback-Leibler divergence of what logits predict from what those wanted do, and 1 if the
// largest of both is of the same token.
func diverge(want, logits []float32) (kl, same float64) {
	of, to := logSumExp(want), logSumExp(logits)
	for i, v := range want {
		lp := float64(v) - of
		if p := math.Exp(lp); p > 0 { // tokens that never come add nothing
			kl += p * (lp - (float64(logits[i]) - to))
		}
	}
	if slices.Index(want, slices.Max(want)) == slices.Index(logits, slices.Max(logits)) {
		same = 1
	}
	return math.Max(0, kl), same
}

// tally is a sum of numbers and of their squares.
type tally struct{ count, sum, squares float64 }

func (t *tally) add(x float64) {
	t.count++
	t.sum += x
	t.squares += x * x
}

// mean returns the mean and its standard error.
func (t *tally) mean() (mean, deviation float64) {
	mean = t.sum / t.count
	return mean, math.Sqrt(math.Max(0, t.squares/t.count-mean*mean) / math.Max(1, t.count-1))
}

func logSumExp(x []float32) float64 {
	top := float64(x[0])
	for _, v := range x {
		top = math.Max(top, float64(v))
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(float64(v) - top)
	}
	return top + math.Log(sum)
}

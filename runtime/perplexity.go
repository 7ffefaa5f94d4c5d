package runtime

import (
	"context"
	"fmt"
	"math"

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
}

// MinWindow is the smallest window with a position to score.
const MinWindow = 4

// ScoreText measures the perplexity of s by llama-perplexity's rule: the text in
// whole windows of that many tokens, the rest dropped, each evaluated from
// scratch (behind BOS if the vocabulary adds it), and positions window/2 to
// window-2 score the token after them. done is called after every window. The error is a
// sample.NotNumbersError if a score is not a number.
func ScoreText(ctx context.Context, sess *Session, tok *text.Tokenizer, s string, window int, done func(windows int)) (Perplexity, error) {
	ids := tok.Encode(s, text.EncodeOptions{AddSpecial: true, ParseSpecial: true})
	if window < MinWindow || len(ids) < window {
		return Perplexity{}, fmt.Errorf("text of %d tokens has no window of %d", len(ids), window)
	}
	var sum, sq float64
	n := len(ids) / window
	r := Perplexity{Windows: n}
	for w := range n {
		part := append([]int32(nil), ids[w*window:(w+1)*window]...)
		if tok.AddsBOS() {
			part[0] = tok.BOS()
		}
		sess.Reset()
		err := sess.Score(ctx, part, func(i int, logits []float32) error {
			if i < window/2 || i > window-2 {
				return nil
			}
			nll := logSumExp(logits) - float64(logits[part[i+1]])
			if math.IsNaN(nll) || math.IsInf(nll, 0) {
				return &sample.NotNumbersError{Sequence: part[:i+1]}
			}
			sum += nll
			sq += nll * nll
			r.Tokens++
			return nil
		})
		if err != nil {
			return r, err
		}
		done(w + 1)
	}
	count := float64(r.Tokens)
	r.NLL = sum / count
	r.Perplexity = math.Exp(r.NLL)
	r.StdErr = math.Sqrt(math.Max(0, sq/count-r.NLL*r.NLL)/math.Max(1, count-1)) * r.Perplexity
	return r, nil
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

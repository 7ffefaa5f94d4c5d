package sample

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// leastHead is how many tokens are selected at least: more than most draws look at.
const leastHead = 64

// maxRank bounds the list of largest samples.
const maxRank = 64

var negInf = float32(math.Inf(-1))

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

// Check returns ErrNotNumbers if one is NaN or +Inf, or if none is more than -Inf.
func Check(logits []float32) error {
	top := negInf
	for _, l := range logits {
		if !(l <= math.MaxFloat32) {
			return ErrNotNumbers
		}
		top = max(top, l)
	}
	if top == negInf {
		return ErrNotNumbers
	}
	return nil
}

// largest appends the n largest logits or more to c, sorted, without any -Inf; all says that
// no others are left. A NaN, wherever it is, is the first of them.
//
// One pass collects what is not below a threshold: a value with a rank among evenly spaced samples such
// that twice n are expected. The result does not depend on how good the guess is.
func largest(c []candidate, logits []float32, n int) (_ []candidate, all bool) {
	t := threshold(logits, n)
	if c = collect(c, logits, t); len(c) < n && t > -math.MaxFloat32 {
		t = -math.MaxFloat32
		c = collect(c[:0], logits, t)
	}
	slices.Sort(c)
	return c, t == -math.MaxFloat32
}

// collect appends what is not below t, NaNs included.
func collect(c []candidate, logits []float32, t float32) []candidate {
	i := 0
	for ; i+4 <= len(logits); i += 4 {
		l := logits[i : i+4 : i+4]
		if l[0] < t && l[1] < t && l[2] < t && l[3] < t {
			continue
		}
		for j, x := range l {
			if !(x < t) {
				c = append(c, pack(int32(i+j), x))
			}
		}
	}
	for ; i < len(logits); i++ {
		if x := logits[i]; !(x < t) {
			c = append(c, pack(int32(i), x))
		}
	}
	return c
}

// threshold guesses a value that 2n logits reach, the least of all if that are most.
func threshold(logits []float32, n int) float32 {
	const samples = 1024
	step := len(logits) / samples
	rank := 4
	if step > 0 {
		rank += 2 * n / step
	}
	if step < 2 || rank > maxRank {
		return -math.MaxFloat32
	}
	var list [maxRank]float32 // the largest samples, descending
	top := list[:0]
	for i := step / 2; i < len(logits); i += step {
		l := logits[i]
		if len(top) == rank && !(l > top[rank-1]) {
			continue
		}
		if len(top) < rank {
			top = append(top, negInf)
		}
		j := len(top) - 1
		for ; j > 0 && top[j-1] < l; j-- {
			top[j] = top[j-1]
		}
		top[j] = l
	}
	return max(top[len(top)-1], -math.MaxFloat32)
}

// Package runtime is what runs entries of a plan: the interface Executor, a Session over it for one sequence, and tools
// that measure, profile and tune. Package device opens executors, package engine serves text.
package runtime

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/step"
)

// Burst is the number of greedy tokens in a submission: enough to hide the
// host, few enough that text flows.
const Burst = 8

// maxSubmission bounds what is submitted at once, in predicted seconds. Systems take a device that
// is busy for longer for a hung one, Windows after 2 s, and nothing else is drawn meanwhile. A processor
// ends a step at any of its dispatches: there the bound is for bursts of tokens alone.
const maxSubmission = 0.5

// Session is one sequence. Its tokens are in the KV cache of slot 0.
type Session struct {
	plan *plans.Plan
	exec Executor
	pos  int // positions in the KV cache
	end  int // the most that there ever were since it was empty
	// deep is the predicted time in seconds of a step of each entry at the end of the context.
	deep  map[*plans.Entry]float64
	block step.Block
	// The logits of the last token that was fed: where they are.
	logits string
	row    int
}

// NewSession starts an empty sequence.
func NewSession(plan *plans.Plan, exec Executor) *Session {
	s := &Session{plan: plan, exec: exec, deep: map[*plans.Entry]float64{}}
	for i := range plan.Entries {
		s.deep[&plan.Entries[i]] = plan.Entries[i].Predict(plan.Header.Ctx).Seconds()
	}
	return s
}

// Len is the number of tokens in the sequence.
func (s *Session) Len() int { return s.pos }

// Room is the number of further tokens that fit.
func (s *Session) Room() int { return s.plan.Header.Ctx - s.pos }

// Reset empties the sequence.
func (s *Session) Reset() { s.pos, s.end = 0, 0 }

// Prefill appends tokens and returns the most likely next one. No step has more
// than chunk rows; 0 leaves that to the plan. The error is sample.ErrNotNumbers if no logit is a
// number.
func (s *Session) Prefill(ctx context.Context, tokens []int32, chunk int) (int32, error) {
	var next int32
	if err := s.admit(tokens, len(tokens)); err != nil {
		return 0, err
	}
	for len(tokens) > 0 {
		n := len(tokens)
		if chunk > 0 {
			n = min(n, chunk)
		}
		e := s.entry(n, "prefill", "decode")
		if e == nil {
			return 0, s.lacks("for a prompt")
		}
		n = min(n, e.Run)
		if err := s.step(ctx, e, tokens[:n], 1); err != nil {
			return 0, err
		}
		s.pos += n
		s.logits, s.row = e.Logits, 0
		if e.Kind == "decode" {
			s.row = n - 1
		}
		ids, err := s.exec.Ints(e.Next)
		if err != nil {
			return 0, err
		}
		next = ids[s.row]
		tokens = tokens[n:]
	}
	return next, s.checkChoice(next)
}

// checkChoice returns sample.ErrNotNumbers if id was chosen for want of a logit that is a number: op
// argmax gives token 0 then. For every other token nothing is read.
func (s *Session) checkChoice(id int32) error {
	if id != 0 {
		return nil
	}
	logits, err := s.Logits()
	if err != nil {
		return err
	}
	return sample.Check(logits)
}

// Decode appends token and the n-1 most likely tokens after it, and returns the n tokens
// that follow token. The last of them is not yet in the sequence. Decode uses one submission, unless that
// would take long. The error is sample.ErrNotNumbers if no logit is a number at the end.
func (s *Session) Decode(ctx context.Context, token int32, n int) ([]int32, error) {
	e := s.entry(1, "decode")
	if e == nil {
		return nil, s.lacks("for one row")
	}
	if n > s.plan.Header.Ring {
		return nil, fmt.Errorf("%d tokens do not fit the output ring of %d", n, s.plan.Header.Ring)
	}
	if err := s.admit([]int32{token}, n); err != nil {
		return nil, err
	}
	burst := max(1, min(n, s.atOnce(e, n)))
	var chosen []int32
	for len(chosen) < n {
		more := min(burst, n-len(chosen))
		if err := s.step(ctx, e, []int32{token}, more); err != nil {
			return nil, err
		}
		s.pos += more
		s.logits, s.row = e.Logits, 0
		out, err := s.exec.Ints(ir.StepOut)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, out[:more]...)
		token = chosen[len(chosen)-1]
	}
	return chosen, s.checkChoice(token)
}

// Logits returns the logits after the last token, valid until the next step.
func (s *Session) Logits() ([]float32, error) {
	all, err := s.exec.Floats(s.logits, s.row)
	if err != nil {
		return nil, err
	}
	v := len(all) / s.rows(s.logits)
	return all[s.row*v : (s.row+1)*v], nil
}

// Score appends tokens and calls each with the logits after every token.
func (s *Session) Score(ctx context.Context, tokens []int32, each func(i int, logits []float32) error) error {
	if err := s.admit(tokens, len(tokens)); err != nil {
		return err
	}
	e := s.entry(len(tokens), "score", "decode")
	if e == nil {
		return s.lacks("that keeps all logits")
	}
	for done := 0; done < len(tokens); {
		part := tokens[done:min(len(tokens), done+e.Run)]
		if err := s.step(ctx, e, part, 1); err != nil {
			return err
		}
		s.pos += len(part)
		all, err := s.exec.Floats(e.Logits)
		if err != nil {
			return err
		}
		v := len(all) / e.Rows
		for i := range part {
			if err := each(done+i, all[i*v:(i+1)*v]); err != nil {
				return err
			}
		}
		done += len(part)
	}
	return nil
}

// admit checks tokens before the device sees them; total is how many positions
// they and what follows take.
func (s *Session) admit(tokens []int32, total int) error {
	for _, t := range tokens {
		if t < 0 || int(t) >= s.plan.Header.Model.Vocab {
			return fmt.Errorf("token %d is not in the vocabulary of %d", t, s.plan.Header.Model.Vocab)
		}
	}
	if total > s.Room() {
		return fmt.Errorf("%d tokens do not fit: the plan's context is %d and holds %d", total, s.plan.Header.Ctx, s.pos)
	}
	return nil
}

// step runs e times times on tokens at the end of the sequence.
func (s *Session) step(ctx context.Context, e *plans.Entry, tokens []int32, times int) error {
	if err := s.write(e, tokens); err != nil {
		return err
	}
	s.end = max(s.end, s.pos+len(tokens)+times-1)
	return Run(ctx, s.exec, e, times)
}

// write sets the step block for an entry to tokens at the end of the sequence.
func (s *Session) write(e *plans.Entry, tokens []int32) error {
	s.block.Reset()
	if e.Part > 0 {
		s.block.Heads = []int32{int32(len(tokens) - 1)}
	}
	for i, t := range tokens {
		s.block.Add(t, s.pos+i, 0)
	}
	return s.block.Store(s.exec)
}

// atOnce is how many of n steps of the entry one submission may have. Nothing is predicted
// anew where it would make no difference, as this comes before every submission.
func (s *Session) atOnce(e *plans.Entry, n int) int {
	if float64(n)*s.deep[e] <= maxSubmission {
		return n
	}
	return int(maxSubmission / e.Predict(s.pos+n).Seconds())
}

// entry returns the narrowest entry of the kinds that reaches as far as rows rows, else the widest. It takes those
// whose steps do not take long, if there are any, unless steps end in their middle. It is nil if there is no entry of
// the kinds.
func (s *Session) entry(rows int, kinds ...string) *plans.Entry {
	var fit, widest, narrowest *plans.Entry
	for i := range s.plan.Entries {
		e := &s.plan.Entries[i]
		if !slices.Contains(kinds, e.Kind) {
			continue
		}
		if narrowest == nil || e.Rows < narrowest.Rows {
			narrowest = e
		}
		if !s.plan.StopsInStep() && s.atOnce(e, 1) == 0 {
			continue
		}
		if e.Reach >= rows && (fit == nil || e.Rows < fit.Rows) {
			fit = e
		}
		if widest == nil || e.Rows > widest.Rows {
			widest = e
		}
	}
	return cmp.Or(fit, widest, narrowest)
}

// lacks says that the plan has no such entry.
func (s *Session) lacks(what string) error {
	if Embeds(s.plan) {
		return NoTokens(s.plan)
	}
	return fmt.Errorf("plan has no entry %s", what)
}

// rows is the number of rows of logits in an io region.
func (s *Session) rows(region string) int {
	for _, e := range s.plan.Entries {
		if e.Logits == region {
			return e.Heads()
		}
	}
	return 1
}

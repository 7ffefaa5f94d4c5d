package engine

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// seq is a request on its way.
type seq struct {
	req     *Request
	ctx     context.Context
	out     *feed
	sampler *sample.Sampler // nil: the device chooses
	format  *format         // nil: the answer may be anything
	bias    map[int32]float64
	ends    []int32 // tokens that end the answer
	slot    *slot
	ending  string // why it is to end
	ended   bool
	started bool    // the slot is ready for steps of the sequence
	exact   bool    // the slot holds what a run without cache would have written
	from    int     // where the slot's next steps of the prompt began
	parts   int     // where the prompt parts from what was read before
	forks   bool    // and others went on there
	state   int     // where its last recurrent state is that was kept, or was to be
	next    []int32 // known, not yet in the slot: the last one chosen, and before it those of a forced run
	joined  bool    // next has what is left of the prompt, too, which rounds of decoding read
	answer  []int32
	guess   *guesses // nil: nothing is guessed
	draft   []int32  // guessed to come behind next, with rows in the step that runs
	// lastHeld is the length of the answer when such a token was the last to hold.
	lastHeld int
	// forcedRun is the mean of the tokens that the format has come behind one, of late.
	forcedRun float64
	forced    []int32 // comes next, whatever the logits
	open      bool    // reasoning
	closing   bool    // what ends reasoning is forced
	owed      *Opening
	opening   [][]int32 // what one of may come next; an empty one: anything may
	usage     Usage
	names     []string // of the pieces of the prompt, as they are kept over restarts
	restoring
	turn     int64  // when it last had a row by turns, by the loop's clock
	waitsFor string // why its prompt is not read on; "": it is
	// When it was submitted, got a slot, got the first token, got the last.
	arrived, admitted, first, last time.Time
}

func newSeq(ctx context.Context, r *Request, tok *text.Tokenizer) *seq {
	s := &seq{req: r, ctx: ctx, out: newFeed(), ends: slices.Clone(r.StopTokens), arrived: time.Now()}
	s.usage.Prompt = len(r.Prompt)
	if !r.IgnoreEOG {
		s.ends = append(s.ends, tok.EOG()...)
	}
	if p := allowed(r.Sampling, tok.Suppressed()); !p.Greedy() || r.Min > 0 || r.Format != nil {
		s.bias = p.Bias
		if p.Greedy() {
			p = sample.Likeliest()
		}
		s.sampler = sample.New(p, func(id int32) string { return tok.Piece(id, true) })
		s.sampler.Read(r.Prompt)
	}
	if b := r.Reasoning; b != nil {
		s.open = b.Open
		s.force()
	}
	if s.owed = r.Opening; s.owed != nil && s.owed.Behind == nil {
		s.begin(s.owed.Plain)
	}
	return s
}

// allowed returns p with a bias that forbids the tokens which the model's file says never come.
func allowed(p sample.Params, suppressed []int32) sample.Params {
	if len(suppressed) == 0 {
		return p
	}
	p.Bias = maps.Clone(p.Bias)
	if p.Bias == nil {
		p.Bias = map[int32]float64{}
	}
	for _, id := range suppressed {
		p.Bias[id] = math.Inf(-1)
	}
	return p
}

// history is the prompt and the answer.
func (s *seq) history() history { return history{s.req.Prompt, s.answer} }

// reading says that a part of the prompt is not yet in the slot.
func (s *seq) reading() bool { return !s.started || len(s.slot.tokens) < len(s.req.Prompt) }

// onHost says that the next token is chosen, or looked at, on the host.
func (s *seq) onHost() bool {
	return s.sampler != nil || s.req.TopLogprobs >= 0 || len(s.forced) > 0 || s.owed != nil || s.opening != nil
}

// deviceChooses says that the device chooses tokens, or some of them.
func (s *seq) deviceChooses() bool { return s.sampler == nil || s.format != nil }

// row is what is known of the logits behind a token: all of them, or candidates of so many.
type row struct {
	logits     []float32
	candidates []int32
	vocab      int
}

// errUndecided says that candidates do not decide.
var errUndecided = errors.New("candidates do not decide")

// draw chooses a token by a row.
func (r row) draw(s *sample.Sampler, forbidden []int32) (int32, error) {
	if r.logits != nil {
		return s.Choose(r.logits, forbidden)
	}
	id, ok, err := s.ChooseAmong(r.candidates, r.vocab, forbidden)
	if !ok {
		err = errUndecided
	}
	return id, err
}

// needsLogits says that no candidates decide on the next token, or tell its probability.
func (s *seq) needsLogits() bool {
	return s.req.TopLogprobs >= 0 || len(s.forced) == 0 && (s.opening != nil || s.owed != nil && !s.open)
}

// choose returns the next token, by the logits if it is not as the device chose it. Where the error is errUndecided, it
// is to be chosen by all logits.
func (s *seq) choose(by row, device int32) (choice, error) {
	c := choice{id: device}
	switch {
	case len(s.forced) > 0:
		c.id, s.forced = s.forced[0], s.forced[1:]
	case s.sampler != nil:
		var forbidden []int32
		if len(s.answer) < s.req.Min {
			forbidden = s.ends
		}
		var err error
		if c.id, err = s.draw(by, forbidden); err != nil {
			return c, err
		}
		c.id = s.lead(by.logits, c.id)
	default:
		c.id = s.lead(by.logits, c.id)
	}
	if s.req.TopLogprobs >= 0 {
		c.logprob, c.top = sample.Logprobs(by.logits, c.id, s.req.TopLogprobs)
	}
	return c, nil
}

// accept takes a chosen token and returns why the answer ends with it, "" if it does not. room
// is how many tokens the slot can still take.
func (s *seq) accept(c choice, room int) string {
	s.last = time.Now()
	if s.first.IsZero() {
		s.first = s.last
	}
	if slices.Contains(s.ends, c.id) {
		return Stopped
	}
	over := s.format != nil && s.format.take(c.id)
	s.answer, s.next = append(s.answer, c.id), append(s.next, c.id)
	s.usage.Completion++
	if s.sampler != nil {
		s.sampler.Accept(c.id)
	}
	if s.guess != nil {
		s.guess.add(s.history())
	}
	c.reasoning = s.open
	s.reason()
	c.reasoning = c.reasoning || s.open
	s.out.put(c, s.last)
	if len(s.answer) == 1 || len(s.req.Stops) > 0 { // users wait for the first one, and a text may end the answer
		s.out.urgent = true
	}
	switch {
	case over:
		return Stopped
	case s.left() == 0:
		return Length
	case room == 0:
		return Context
	}
	return ""
}

// left is how many tokens may still come, -1 for any number.
func (s *seq) left() int {
	if s.req.Max < 0 {
		return -1
	}
	return max(0, s.req.Max-len(s.answer))
}

// reason follows the reasoning with the last token of the answer.
func (s *seq) reason() {
	b := s.req.Reasoning
	if b == nil {
		return
	}
	if !s.open {
		s.open = endsWith(s.answer, b.Begin)
		if s.open {
			s.force()
		}
		return
	}
	s.usage.Reasoning++
	if endsWith(s.answer, b.Close) || s.closing && len(s.forced) == 0 {
		s.open, s.closing = false, false
		if s.owed != nil {
			s.begin(s.owed.Behind)
		}
		if s.format != nil {
			s.format.begin()
		}
		return
	}
	if len(s.forced) == 0 {
		s.force()
	}
}

// force lets the closing tokens come, as far as they have not, once the budget is spent.
func (s *seq) force() {
	b := s.req.Reasoning
	if !s.open || b.Limit < 0 || s.usage.Reasoning < b.Limit {
		return
	}
	end := b.Force
	if end == nil {
		end = b.Close
	}
	n := len(end) - 1
	for n > 0 && !endsWith(s.answer, end[:n]) {
		n--
	}
	s.forced, s.closing = end[n:], true
}

// begin lets one of the openings come.
func (s *seq) begin(openings [][]int32) { s.owed, s.opening, s.forced = nil, openings, nil }

// lead returns the next token where the answer is to begin with an opening: of the openings the likeliest token, where
// none is at its end. drawn is what the model would go on with.
func (s *seq) lead(logits []float32, drawn int32) int32 {
	if s.owed != nil && !s.open && !s.reasons(drawn) {
		s.begin(s.owed.Plain)
	}
	if s.opening == nil {
		return drawn
	}
	next, over := int32(-1), false
	for _, o := range s.opening {
		if len(o) == 0 {
			over = true
		} else if next < 0 || logits[o[0]] > logits[next] {
			next = o[0]
		}
	}
	if over {
		next = drawn
	}
	var rest [][]int32
	for _, o := range s.opening {
		if len(o) > 0 && o[0] == next {
			rest = append(rest, o[1:])
		}
	}
	if len(rest) == 1 && len(rest[0]) == 0 {
		rest = nil
	}
	s.opening = rest
	return next
}

// reasons says whether the answer with one more token is a beginning of what opens reasoning.
func (s *seq) reasons(next int32) bool {
	b, n := s.req.Reasoning, len(s.answer)
	return b != nil && n < len(b.Begin) && b.Begin[n] == next && slices.Equal(s.answer, b.Begin[:n])
}

// free is how many tokens come before the budget of reasoning may force one; -1 for any number.
func (s *seq) free() int {
	if b := s.req.Reasoning; b != nil && b.Limit >= 0 {
		return max(1, b.Limit-s.usage.Reasoning)
	}
	return -1
}

func endsWith(list, end []int32) bool {
	return len(end) > 0 && len(list) >= len(end) && slices.Equal(list[len(list)-len(end):], end)
}

// done is the end of the answer.
func (s *seq) done(reason string, err error) *Done {
	now := time.Now()
	u := &s.usage
	switch {
	case s.admitted.IsZero():
		u.Queue = now.Sub(s.arrived)
	case s.first.IsZero():
		u.Queue, u.Prefill = s.admitted.Sub(s.arrived), now.Sub(s.admitted)
	default:
		u.Queue, u.Prefill, u.Decode = s.admitted.Sub(s.arrived), s.first.Sub(s.admitted), s.last.Sub(s.first)
	}
	return &Done{Reason: reason, Usage: *u, Err: err}
}

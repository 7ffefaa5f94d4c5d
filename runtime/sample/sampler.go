package sample

import (
	"errors"
	"math/rand/v2"
	"sync"
)

// ErrNothingLeft says that every token is forbidden.
var ErrNothingLeft = errors.New("no token is allowed")

// Sampler chooses the tokens of one sequence. A choice depends on the parameters, the logits,
// the tokens accepted before and how many were chosen: on nothing else.
type Sampler struct {
	p       Params
	chain   []*stage
	biased  []int32
	history []int32
	counts  map[int32]int // of the tokens in the penalties' window
	window  []int32       // the tokens in it, once each
	places  map[int32]int // of these in window
	repeats *repeats      // nil without DRY
	chosen  uint64
	rng     *rand.PCG
	set     *set // of a choice that is being made
	// Allowed, if it is not nil, bounds the next choices.
	Allowed Allowed
}

// New returns a sampler for parameters that are valid. piece gives the text of a token, for the
// breakers of DRY.
func New(p Params, piece func(id int32) string) *Sampler {
	s := &Sampler{p: p, counts: map[int32]int{}, places: map[int32]int{}, repeats: newRepeats(p.DRY, piece), rng: rand.NewPCG(0, 0)}
	names := p.Samplers
	if names == nil {
		names = Order()
	}
	for _, name := range names {
		s.chain = append(s.chain, stageOf(name))
	}
	for id := range p.Bias {
		s.biased = append(s.biased, id)
	}
	return s
}

// Read appends a prompt to the sequence: a choice then has little to do for its tokens.
func (s *Sampler) Read(prompt []int32) {
	for _, id := range prompt {
		s.Accept(id)
	}
	if s.repeats != nil {
		s.repeats.follow(s.history)
	}
}

// Accept appends a chosen token to the sequence.
func (s *Sampler) Accept(id int32) {
	s.history = append(s.history, id)
	s.count()
}

// Choose returns the next token. forbidden are not chosen. The logits are used as working memory and
// hold the same numbers in the end. The error is ErrNotNumbers or ErrNothingLeft.
func (s *Sampler) Choose(logits []float32, forbidden []int32) (int32, error) {
	w := s.work()
	defer s.rest(w)
	s.set.reset(logits)
	defer s.set.restore()
	id, err := s.choose(forbidden)
	s.chosen++
	return id, err
}

// working is the memory that a choice takes. Choices share it: what a processor has used for one is near when it makes
// the next.
type working struct {
	set        set
	candidates candidateRow
}

var workings = sync.Pool{New: func() any { return &working{} }}

func (s *Sampler) work() *working {
	w := workings.Get().(*working)
	s.set = &w.set
	return w
}

// rest gives the memory back. It keeps nothing of the caller's.
func (s *Sampler) rest(w *working) {
	s.set = nil
	w.set.reset(nil)
	w.candidates.words = nil
	workings.Put(w)
}

// ChooseAmong is Choose by a row of op candidates, of logits of so many tokens; false if these do not decide, and
// Choose is to.
func (s *Sampler) ChooseAmong(row []int32, vocab int, forbidden []int32) (id int32, ok bool, err error) {
	w := s.work()
	defer s.rest(w)
	if !w.candidates.read(row, vocab) {
		return 0, false, nil
	}
	s.set.reset(nil)
	s.set.candidates = &w.candidates
	if id, err = s.choose(forbidden); err == errMore {
		return 0, false, nil
	}
	s.chosen++
	return id, true, err
}

// choose takes one of the set.
func (s *Sampler) choose(forbidden []int32) (int32, error) {
	s.rng.Seed(s.p.Seed, s.chosen)
	s.set.gate = s.Allowed
	s.narrow(forbidden)
	id := s.set.pick(s.uniform())
	if err := s.set.err; err != nil {
		return 0, err
	}
	return id, nil
}

// narrow applies the chain to all logits.
func (s *Sampler) narrow(forbidden []int32) {
	s.set.change(func(id int32, l float64) float64 { return l + s.p.Bias[id] }, s.biased)
	s.set.change(forbid, forbidden)
	for _, stage := range s.chain {
		stage.apply(s)
	}
}

// uniform returns the next random number of this choice, at least 0 and below 1.
func (s *Sampler) uniform() float64 {
	return float64(s.rng.Uint64()>>11) / (1 << 53)
}

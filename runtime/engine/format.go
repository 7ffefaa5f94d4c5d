package engine

import (
	"slices"

	"github.com/zincc-dev/zincc/runtime/grammar"
)

// format holds an answer to a grammar, from where it begins.
type format struct {
	matcher *grammar.Matcher
	begun   bool
	stops   []int32 // tokens that end the answer, too
	plain   bool    // nothing but the grammar bounds a choice: what the device chose counts if it is allowed
}

func newFormat(r *Request, v *grammar.Vocabulary, greedy bool) *format {
	f := &format{matcher: r.Format.Match(v), stops: r.StopTokens}
	f.plain = greedy && r.Min == 0 && r.TopLogprobs < 0
	b := r.Reasoning
	f.begun = r.AtOnce || b == nil || !b.Open && len(b.Begin) == 0
	return f
}

func (f *format) begin() { f.begun = true }

// Allows says whether a token may come next.
func (f *format) Allows(id int32) bool {
	if slices.Contains(f.stops, id) {
		return f.matcher.Done()
	}
	return f.matcher.Allows(id)
}

// Words is the set of tokens that may come next.
func (f *format) Words() []uint64 {
	words := f.matcher.Words()
	if len(f.stops) == 0 || words == nil {
		return words
	}
	words = slices.Clone(words)
	done := f.matcher.Done()
	for _, id := range f.stops { // a text that goes on has no such token, whatever it stands for
		if words[id>>6] &^= 1 << (id & 63); done {
			words[id>>6] |= 1 << (id & 63)
		}
	}
	return words
}

// take follows a token of the answer and says whether the answer is over with it.
func (f *format) take(id int32) bool {
	if !f.begun {
		return false
	}
	f.matcher.Accept(id)
	return f.matcher.Over()
}

// Bounds of a forced run.
const (
	longestRun = 256 // bytes that are looked at at a time
	mostForced = 64  // tokens
)

// run returns the tokens that must come next: where one alone may, that one; else, of bytes that alone may, the tokens
// that encode writes. The last one of these is left to the model, if the answer goes on: there may be a longer one.
func (f *format) run(encode func(text string) []int32) (tokens []int32) {
	if !f.begun {
		return nil
	}
	if len(f.matcher.Forced(1)) == 0 {
		return nil
	}
	m := f.matcher.Clone()
	for len(tokens) < mostForced && !m.Over() && m.Err() == nil {
		text := string(m.Forced(longestRun))
		if text == "" {
			break
		}
		list := encode(text)
		if whole := m.Clone(); len(list) > 0 && !(whole.AcceptText(text) && whole.Over()) {
			list = list[:len(list)-1]
		}
		n := 0
		for n < len(list) && m.Accept(list[n]) {
			n++
		}
		if n == 0 {
			id, only := m.Mask().Only()
			if !only || !m.Accept(id) {
				break
			}
			list, n = []int32{id}, 1
		}
		tokens = append(tokens, list[:n]...)
	}
	return tokens
}

// draw chooses a token within the format, where it has begun. It begins with the first token that is no reasoning.
func (s *seq) draw(by row, forbidden []int32) (int32, error) {
	f := s.format
	if f == nil {
		return by.draw(s.sampler, forbidden)
	}
	if !f.begun && !s.open {
		id, err := by.draw(s.sampler, forbidden)
		if err != nil || s.reasons(id) {
			return id, err
		}
		f.begin()
	}
	s.sampler.Allowed = nil
	if f.begun {
		s.sampler.Allowed = f
	}
	id, err := by.draw(s.sampler, forbidden)
	if f.begun && f.matcher.Err() != nil {
		err = f.matcher.Err()
	}
	return id, err
}

// foreseen says whether what the device chooses counts if the format allows it.
func (s *seq) foreseen() bool {
	f := s.format
	return f != nil && f.plain && len(s.forced) == 0 && s.owed == nil && s.opening == nil
}

// follows says whether what the device chose is what the format and the parameters make of it, so that no logits are
// needed.
func (s *seq) follows(id int32) bool {
	switch f := s.format; {
	case !s.foreseen():
		return false
	case !f.begun:
		return s.open || s.reasons(id)
	default:
		return f.Allows(id)
	}
}

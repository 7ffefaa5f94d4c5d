package sample

import "math/bits"

// Allowed says which tokens may come next, beside what the parameters say.
type Allowed interface {
	// Allows says whether a token may come next.
	Allows(id int32) bool
	// Words is the set of all tokens that may: token id is bit id&63 of word id>>6. It takes longer than to ask for
	// some.
	Words() []uint64
}

const (
	// sieve is how many of the likeliest tokens are asked for one by one before all are asked for.
	sieve = 64
	// mostListed is up to how many tokens that may come are taken by themselves.
	mostListed = 4096
)

// sift lets the head have n tokens that may come, if so many are among the likeliest. false: these do not decide.
func (s *set) sift(n int) (all, ok bool) {
	if n > sieve {
		return false, false
	}
	s.head, all = largest(s.head[:0], s.logits, sieve)
	kept := s.head[:0]
	for i, c := range s.head {
		if s.gate.Allows(c.id()) {
			kept = append(kept, c)
		}
		if len(kept) == n {
			all = all && i == len(s.head)-1
			break
		}
	}
	s.head = kept
	return all, all || len(kept) >= n
}

// settle takes away what may not come, where what follows needs to know all that is left.
func (s *set) settle() {
	if s.gate == nil || s.cut {
		return
	}
	words := s.gate.Words()
	s.gate, s.shut, s.head, s.total = nil, true, s.head[:0], 0
	n := 0
	for _, w := range words {
		n += bits.OnesCount64(w)
	}
	if n <= mostListed {
		for i, w := range words {
			for ; w != 0; w &= w - 1 {
				id := i*64 + bits.TrailingZeros64(w)
				if id >= len(s.logits) || s.logits[id] == negInf {
					continue
				}
				if c := pack(int32(id), s.logits[id]); c <= s.limit {
					s.head = append(s.head, c)
				}
			}
		}
		s.sorted()
		return
	}
	for i := range s.logits {
		if (i>>6 >= len(words) || words[i>>6]>>(i&63)&1 == 0) && s.logits[i] > negInf {
			s.undo = append(s.undo, pack(int32(i), s.logits[i]))
			s.logits[i] = negInf
		}
	}
}

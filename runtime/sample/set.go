package sample

import (
	"math"
	"slices"
)

// candidate is a token with its logit, packed so that ascending candidates have descending
// logits, equal ones ascending ids. -0 is below 0, as in op candidates.
type candidate uint64

func pack(id int32, logit float32) candidate {
	bits := math.Float32bits(logit)
	if logit != logit {
		bits = math.MaxUint32 >> 1 // the first of all
	}
	return candidate(turn(bits))<<32 | candidate(uint32(id))
}

// turn turns the bits of floats of 0 and more round: those of others ascend as the floats descend. It is its
// own inverse, and has no branch, as signs are hard to predict.
func turn(bits uint32) uint32 { return bits ^ (math.MaxInt32 &^ uint32(int32(bits)>>31)) }

func (c candidate) id() int32 { return int32(uint32(c)) }

func (c candidate) logit() float32 {
	return math.Float32frombits(turn(uint32(c >> 32)))
}

// set is what is left to choose from: the head, sorted, and unless cut what follows it in the
// logits, up to the limit.
type set struct {
	logits     []float32     // of all tokens
	candidates *candidateRow // what is known, if it is not all logits; these are nil then
	scale      float64       // logits count times this: 1 over the temperature
	head       []candidate
	cut        bool        // nothing but the head is left
	limit      candidate   // the last in order that may be left
	undo       []candidate // logits before they were changed, last change last
	total      float64     // cached weight of all, 0: not known
	err        error       // of the logits
	gate       Allowed     // what may come next, as long as the logits do not say it; nil: they do
	shut       bool        // settle has taken away what may not
	mass       []float64   // weights by the upper bits of a candidate, in memory that is used again
	each       []float64   // of headWeights, in memory that is used again
}

// noLimit is behind all candidates.
const noLimit = ^candidate(0)

// reset begins with all logits.
func (s *set) reset(logits []float32) {
	*s = set{logits: logits, scale: 1, limit: noLimit, head: s.head[:0], undo: s.undo[:0], mass: s.mass, each: s.each[:0]}
}

// restore puts the logits back that were changed.
func (s *set) restore() {
	for _, c := range slices.Backward(s.undo) {
		s.logits[c.id()] = c.logit()
	}
}

// vocab is how many tokens there are.
func (s *set) vocab() int {
	if s.candidates != nil {
		return s.candidates.vocab
	}
	return len(s.logits)
}

// forbid is what change makes of a token that must not be chosen.
func forbid(int32, float64) float64 { return math.Inf(-1) }

// drop takes the first n of the head away.
func (s *set) drop(n int) {
	if s.cut {
		s.head = slices.Delete(s.head, 0, n)
		s.total = 0
		return
	}
	s.ban(s.head[:n])
}

// ban takes candidates away where not all that is left lies in the head: -Inf is behind every limit.
func (s *set) ban(list []candidate) {
	for _, c := range list {
		s.undo = append(s.undo, c)
		s.logits[c.id()] = negInf
	}
	s.head, s.total = s.head[:0], 0
}

// change replaces the logits of tokens, as far as they are left, by what f makes of them.
func (s *set) change(f func(id int32, logit float64) float64, ids []int32) {
	s.total = 0
	if s.open() {
		s.changeCandidates(f, ids)
		return
	}
	if s.limit != noLimit { // what is changed may go over it
		s.grow(len(s.logits))
		s.limit = noLimit
	}
	if !s.cut {
		for _, id := range ids {
			if id >= 0 && int(id) < len(s.logits) {
				old := s.logits[id]
				s.undo = append(s.undo, pack(id, old))
				s.logits[id] = s.changed(f, id, old)
			}
		}
		s.head = s.head[:0]
		return
	}
	if len(ids) == 0 {
		return
	}
	wanted := make(map[int32]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	for i, c := range s.head {
		if id := c.id(); wanted[id] {
			s.head[i] = pack(id, s.changed(f, id, c.logit()))
		}
	}
	slices.Sort(s.head)
}

func (s *set) changed(f func(int32, float64) float64, id int32, logit float32) float32 {
	return float32(min(f(id, float64(logit)*s.scale)/s.scale, math.MaxFloat32))
}

// restrict leaves what is not behind a candidate.
func (s *set) restrict(limit candidate) {
	s.grow(1)
	open := s.open()
	s.total, s.limit = 0, min(s.limit, limit)
	for n := 0; open && n < len(s.head) && n <= leastHead && s.head[n] <= s.limit; {
		n++
		s.fill(n + 1)
	}
	s.trim()
	if open && (!s.cut || len(s.head) > leastHead || s.candidates.bad) { // by all logits only so many are surely in order
		s.more()
	}
}

// trim drops what the head has behind the limit.
func (s *set) trim() {
	n, found := slices.BinarySearch(s.head, s.limit)
	if found {
		n++
	}
	if n < len(s.head) {
		s.keep(n)
	}
}

// keep leaves the first n of the head.
func (s *set) keep(n int) {
	s.head, s.cut, s.total = s.head[:n], true, 0
}

// grow lets the head have n tokens, if so many are left, and reports whether more may follow.
func (s *set) grow(n int) bool {
	if s.cut || len(s.head) >= n && n > 0 {
		return !s.cut
	}
	if s.candidates != nil {
		return s.growCandidates(n)
	}
	all := false
	if s.gate != nil {
		var ok bool
		if all, ok = s.sift(n); !ok {
			if s.settle(); s.cut {
				return false
			}
		}
	}
	if s.gate == nil {
		s.head, all = largest(s.head[:0], s.logits, n)
	}
	switch {
	case len(s.head) == 0 && (len(s.undo) > 0 || s.gate != nil || s.shut):
		s.err = ErrNothingLeft
	case len(s.head) == 0:
		s.err = ErrNotNumbers
	case !(s.head[0].logit() <= math.MaxFloat32):
		s.err = ErrNotNumbers
	}
	if s.err != nil {
		s.head, all = append(s.head[:0], pack(0, 0)), true // something to go on with
	}
	s.cut = all
	s.trim()
	return !s.cut
}

// at returns the token at place i of the order; false if there are not so many.
func (s *set) at(i int) (candidate, bool) {
	if i >= len(s.head) {
		n := max(i+1, min(4*i, len(s.logits)), leastHead)
		if s.candidates != nil {
			n = i + 1
		}
		s.grow(n)
		if i >= len(s.head) {
			return 0, false
		}
	}
	return s.head[i], true
}

// top is the largest logit.
func (s *set) top() float32 {
	c, _ := s.at(0)
	return c.logit()
}

// weight is the exponential of a logit, of which the largest has 1.
func (s *set) weight(logit float32) float64 {
	return exp(float64(logit-s.top()) * s.scale)
}

// sorted ends a head that has all that is left.
func (s *set) sorted() {
	slices.Sort(s.head)
	s.cut = true
	switch {
	case len(s.head) == 0:
		s.err = ErrNothingLeft
	case !(s.head[0].logit() <= math.MaxFloat32):
		s.err = ErrNotNumbers
	default:
		return
	}
	s.head = append(s.head[:0], pack(0, 0))
}

// weights is the sum over all that is left.
func (s *set) weights() float64 {
	if s.total == 0 {
		s.whole()
		s.settle()
		top := s.top()
		if s.cut {
			for _, c := range s.head {
				s.total += exp(float64(c.logit()-top) * s.scale)
			}
		} else if s.limit == noLimit {
			s.total = sumExp(s.logits, top, s.scale)
		} else {
			for i, l := range s.logits {
				if pack(int32(i), l) <= s.limit {
					s.total += exp(float64(l-top) * s.scale)
				}
			}
		}
	}
	return s.total
}

// headWeights returns the weights of the head, and that of all that is left, which is known unless that is the head.
func (s *set) headWeights() (each []float64, total float64) {
	top := s.top()
	s.each = s.each[:0]
	for _, c := range s.head {
		w := exp(float64(c.logit()-top) * s.scale)
		s.each, total = append(s.each, w), total+w
	}
	if s.total == 0 {
		s.total = total
	}
	return s.each, s.total
}

// pick returns the token at a share u, 0 to 1, of the weights.
func (s *set) pick(u float64) int32 {
	top := s.top()
	if s.open() {
		return s.pickCandidate(u)
	}
	if !s.cut {
		s.weights()
	}
	each, total := s.headWeights()
	if s.err != nil {
		return 0
	}
	u *= total
	for i, w := range each {
		if u -= w; u < 0 {
			return s.head[i].id()
		}
	}
	last := s.head[len(s.head)-1]
	if s.cut {
		return last.id()
	}
	id := last.id()
	for i, l := range s.logits {
		if c := pack(int32(i), l); l > negInf && c > last && c <= s.limit {
			id = int32(i)
			if u -= exp(float64(l-top) * s.scale); u < 0 {
				break
			}
		}
	}
	return id
}

package sample

import (
	"errors"
	"math"
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// A device may leave of a row of logits the likeliest tokens alone (op candidates). A choice among these goes through
// the same stages as one by all logits, as long as what is known decides; where it does not, there is no choice, and
// the row's logits are wanted. What is known: the tokens before a bound, all of them; some behind it; and between which
// sums the weight of all tokens lies. Whatever the others are, the choice must be the same.

// candidateRow is what is known of a row. Of its words no more is looked at than a choice takes.
type candidateRow struct {
	words   *[ir.CandidateRow]int32 // of the device
	bad     bool                    // the words are of no row
	bound   candidate               // what is not known is not before it; noLimit: all that is above -Inf is known
	first   candidate               // of all, before any change
	weighed bool                    // least and most are known
	least   float64                 // between this and most lies the weight of what is not known, of which first has 1
	most    float64
	vocab   int
	changed bool
	known   [knownMost]candidate // changed: all that is known, part by part, in order; noLimit is none
	lost    int                  // how many tokens that are not known may weigh nothing, as they are changed
	// next has the next candidate of each part from ir.CandidateParts on, and at each i before the first of those at 2i
	// and 2i+1; noLimit is none. gone is how many candidates of a part were next before.
	next [2 * ir.CandidateParts]candidate
	gone [ir.CandidateParts]uint8
}

// top is the largest logit, before any change.
func (r *candidateRow) top() float64 { return float64(r.first.logit()) }

const (
	// weightError is how far a sum of weights is off at most, as a share: see ir.CandidateWeight.
	weightError = 1e-5
	// sumError is that of sums of a few numbers on the host, with much to spare.
	sumError = 1e-9
	minusInf = 0xff800000 // its bits, and its key
	// knownMost is how many candidates a row has.
	knownMost = ir.CandidateParts * ir.CandidateKeep
)

// errMore says that what is known does not decide.
var errMore = errors.New("all logits are wanted")

// read takes a row of op candidates in; false if it is none.
func (r *candidateRow) read(row []int32, vocab int) bool {
	if len(row) != ir.CandidateRow {
		return false
	}
	r.words, r.vocab, r.bad, r.bound, r.changed = (*[ir.CandidateRow]int32)(row), vocab, false, noLimit, false
	r.weighed, r.least, r.most, r.lost = false, 0, 0, 0
	for part := range ir.CandidateParts {
		r.bound = min(r.bound, r.at(part, ir.CandidateKeep-1))
	}
	r.begin()
	r.first = r.next[1]
	return !r.bad
}

// begin lets the first candidate be the next one.
func (r *candidateRow) begin() {
	r.gone = [ir.CandidateParts]uint8{}
	for part := range ir.CandidateParts {
		r.next[ir.CandidateParts+part] = r.at(part, 0)
	}
	for i := ir.CandidateParts - 1; i > 0; i-- {
		r.next[i] = min(r.next[2*i], r.next[2*i+1])
	}
}

// at is candidate i of a part; noLimit if there are not so many.
func (r *candidateRow) at(part, i int) candidate {
	if r.changed {
		return r.known[part*ir.CandidateKeep+i]
	}
	at := part*ir.CandidateWords + 2*i
	bits, id := uint32(r.words[at]), uint32(r.words[at+1])
	if bits == minusInf {
		return noLimit
	}
	if id >= uint32(r.vocab) || partOf(id) != part {
		r.bad = true
		return noLimit
	}
	return pack(int32(id), math.Float32frombits(bits))
}

// partOf is the part that a token is in.
func partOf(id uint32) int { return int(id / ir.CandidateRun % ir.CandidateParts) }

// limit is before what may have others, which are not known, before it.
func (r *candidateRow) limit() candidate { return r.bound >> 32 << 32 }

// take returns the next one of those that are sure, in order; false if there is none.
func (r *candidateRow) take() (candidate, bool) {
	c := r.next[1]
	if c >= r.limit() {
		return 0, false
	}
	part := partOf(uint32(c))
	r.gone[part]++
	first := noLimit
	if gone := int(r.gone[part]); gone < ir.CandidateKeep {
		first = r.at(part, gone)
	}
	for i := ir.CandidateParts + part; i > 1; i /= 2 {
		r.next[i] = first
		first = min(first, r.next[i^1])
	}
	r.next[1] = first
	return c, true
}

// change replaces the logit of a token by what f makes of it, and says whether it is known. With the last change the
// candidates begin anew.
func (r *candidateRow) change(id int32, f func(logit float32) float32) bool {
	if !r.changed {
		for part := range ir.CandidateParts {
			for i := range ir.CandidateKeep {
				r.known[part*ir.CandidateKeep+i] = r.at(part, i)
			}
		}
		r.changed = true
	}
	part := r.known[partOf(uint32(id))*ir.CandidateKeep:][:ir.CandidateKeep]
	for i, c := range part {
		if c == noLimit || c.id() != id {
			continue
		}
		part[i] = noLimit
		if logit := f(c.logit()); logit != negInf {
			part[i] = pack(id, logit)
		}
		slices.Sort(part)
		return true
	}
	return false
}

// weights finds between what lies the weight of what is not in the list.
func (r *candidateRow) weights() (least, most float64) {
	if !r.weighed {
		for part := range ir.CandidateParts {
			r.weigh(r.words[part*ir.CandidateWords:][:ir.CandidateWords])
		}
		r.weighed = true
	}
	return max(0, r.least-float64(r.lost)*exp(float64(r.bound.logit())-r.top())*(1+weightError)), r.most
}

// weigh adds the weight of what a part has beside its candidates.
func (r *candidateRow) weigh(words []int32) {
	if uint32(words[2*ir.CandidateKeep-2]) == minusInf {
		return // there is nothing else
	}
	first := float64(math.Float32frombits(uint32(words[0])))
	known := 0.0
	for i := range ir.CandidateKeep {
		known += exp(float64(math.Float32frombits(uint32(words[2*i]))) - first)
	}
	all := partWeight(words)
	each := float64(r.vocab/ir.CandidateParts + ir.CandidateRun) // tokens of the part, at most
	scale := exp(first - r.top())
	r.least += scale * max(0, all*(1-weightError)-known)
	r.most += scale * max(0, (all+each*weightUnit)*(1+weightError)-known)
}

// weightUnit is the smallest weight that the device sums, where the first of a part has 1.
const weightUnit = 1.0 / (1 << ir.CandidateBits)

// partWeight is the weight of all tokens of a part, of which the first has 1.
func partWeight(words []int32) float64 {
	return (float64(uint32(words[2*ir.CandidateKeep]))*(1<<16) + float64(uint32(words[2*ir.CandidateKeep+1]))) * weightUnit
}

// changeCandidates replaces the logits of tokens by what f makes of them. It must not bring one that is not known
// before the bound: changes of the chain make the larger of two logits no smaller than the other.
func (s *set) changeCandidates(f func(id int32, logit float64) float64, ids []int32) {
	k := s.candidates
	for _, id := range ids {
		if id < 0 || int(id) >= k.vocab {
			continue
		}
		change := func(logit float32) float32 { return s.changed(f, id, logit) }
		if k.change(id, change) || k.bound == noLimit { // the others stay at -Inf
			continue
		}
		if k.lost++; !(change(k.bound.logit()) <= k.bound.logit()) {
			s.more()
			return
		}
	}
	switch {
	case k.bad:
		s.more()
	case k.changed:
		k.begin()
		s.head = s.head[:0]
	}
}

// fill lets the head have n tokens, if so many are known.
func (s *set) fill(n int) {
	for len(s.head) < n {
		c, ok := s.candidates.take()
		if !ok {
			s.cut = s.candidates.bound == noLimit
			return
		}
		if s.gate == nil || s.gate.Allows(c.id()) {
			s.head = append(s.head, c)
		}
	}
}

// growCandidates lets the head have n tokens.
func (s *set) growCandidates(n int) bool {
	k := s.candidates
	if k.bound == noLimit {
		n = knownMost + 1 // all
	}
	s.fill(n)
	switch {
	case k.bad:
		s.more()
		return false
	case len(s.head) > 0 && !(s.head[0].logit() <= math.MaxFloat32):
		s.err = ErrNotNumbers
	case !s.cut && len(s.head) < n:
		s.more()
		return false
	case len(s.head) == 0 && (k.changed || s.gate != nil):
		s.err = ErrNothingLeft
	case len(s.head) == 0:
		s.err = ErrNotNumbers
	}
	if s.err != nil {
		s.head, s.cut = append(s.head[:0], pack(0, 0)), true // something to go on with
	}
	return !s.cut
}

// more ends a choice that needs all logits.
func (s *set) more() {
	if s.err == nil {
		s.err = errMore
	}
	s.head, s.cut = append(s.head[:0], pack(0, 0)), true // something to go on with
}

// open says whether the set goes on behind what is known.
func (s *set) open() bool { return s.candidates != nil && !s.cut }

// whole ends a choice that needs all that is left, unless that is known.
func (s *set) whole() {
	if s.open() {
		s.more()
	}
}

// roughBounds are bounds of the weight of all that is left, by what the device has summed, where nothing is changed:
// they are hardly ever too wide to decide, and soon found.
func (s *set) roughBounds() (least, most float64, ok bool) {
	k := s.candidates
	if s.scale != 1 || k.changed {
		return 0, 0, false
	}
	each := float64(k.vocab/ir.CandidateParts + ir.CandidateRun) // tokens of a part, at most
	for part := range ir.CandidateParts {
		words := k.words[part*ir.CandidateWords:][:ir.CandidateWords]
		if uint32(words[0]) == minusInf {
			continue
		}
		scale, all := exp(float64(math.Float32frombits(uint32(words[0])))-k.top()), partWeight(words)
		least += scale * (all - each*weightUnit) * (1 - weightError)
		most += scale * (all + each*weightUnit) * (1 + weightError)
	}
	return least * (1 - sumError), most * (1 + sumError), true
}

// bounds are those of the weight of all that is left, of which the largest logit has 1; false if there are none.
func (s *set) bounds() (least, most float64, ok bool) {
	k := s.candidates
	top := float64(s.top())
	for part := range ir.CandidateParts {
		for i := range ir.CandidateKeep {
			c := k.at(part, i)
			if c == noLimit {
				break
			}
			least += exp((float64(c.logit()) - top) * s.scale)
		}
	}
	if k.bad {
		return 0, 0, false
	}
	most = least
	restLeast, restMost := k.weights()
	// A weight is that of k, times the exponential of what is left of its logit, which is largest at the bound.
	if s.scale == 1 {
		least += restLeast * math.Exp(k.top()-top)
	}
	most += restMost * math.Exp((s.scale-1)*float64(k.bound.logit())-s.scale*top+k.top())
	return least * (1 - sumError), most * (1 + sumError), !math.IsInf(most, 1) && !math.IsNaN(most)
}

// reaches returns the place in the head, before another one, at which the sum of weights surely reaches a share of all,
// or surely exceeds it; false if that may be another place.
func (s *set) reaches(share float64, before int, exceeds bool) (int, bool) {
	s.grow(1)
	if s.gate != nil || s.scale < 1 || s.err != nil || s.candidates.bound == noLimit {
		return 0, false
	}
	for _, bounds := range []func() (least, most float64, ok bool){s.roughBounds, s.bounds} {
		if least, most, ok := bounds(); ok {
			if n, ok := s.place(share*least*(1-sumError), share*most*(1+sumError), before, exceeds); ok {
				return n, true
			}
		}
	}
	return 0, false
}

// place is reaches of a share of all that lies between least and most.
func (s *set) place(least, most float64, before int, exceeds bool) (int, bool) {
	sum := 0.0
	for i := range before {
		if i > 0 && sum >= least {
			return 0, false
		}
		if s.fill(i + 1); i >= len(s.head) || s.candidates.bad {
			return 0, false
		}
		sum += s.weight(s.head[i].logit())
		if sum > most || sum == most && !exceeds {
			return i, true
		}
	}
	return 0, false
}

// nucleusOfCandidates keeps the smallest set with a share p of the weights.
func (s *set) nucleusOfCandidates(p float64) {
	n, ok := s.reaches(p, knownMost, false)
	if !ok {
		s.more()
		return
	}
	s.keep(n + 1)
}

// pickCandidate returns the token at a share u of the weights. By all logits the first leastHead alone are
// surely in order.
func (s *set) pickCandidate(u float64) int32 {
	n, ok := s.reaches(u, leastHead, true)
	if !ok {
		s.more()
		return 0
	}
	return s.head[n].id()
}

// CheckAmong is Check of the logits of which a row of op candidates is; false if that is no such row.
func CheckAmong(row []int32, vocab int) (ok bool, err error) {
	var r candidateRow
	if !r.read(row, vocab) {
		return false, nil
	}
	if r.first == noLimit || !(r.first.logit() <= math.MaxFloat32) {
		return true, ErrNotNumbers
	}
	return true, nil
}

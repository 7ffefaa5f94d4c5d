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
	words   []int32     // of the device
	list    []candidate // those that are sure are sorted, and come first
	sure    int         // how many of the list come before all that is not known
	whole   bool        // the list has all that is known; else the first of that
	bad     bool        // the words are of no row
	bound   candidate   // what is not known is not before it; noLimit: all that is above -Inf is known
	first   candidate   // of all, before any change
	weighed bool        // least and most are known
	least   float64     // between this and most lies the weight of what is not known, of which first has 1
	most    float64
	vocab   int
	changed bool
	heads   []head
}

// head is the next candidate of a part.
type head struct {
	candidate
	part, at int
}

// top is the largest logit, before any change.
func (r *candidateRow) top() float64 { return float64(r.first.logit()) }

const (
	// weightError is how far a sum of weights is off at most, as a share: see ir.CandidateWeight.
	weightError = 1e-5
	// sumError is that of sums of a few numbers on the host, with much to spare.
	sumError = 1e-9
	minusInf = 0xff800000 // its bits, and its key
)

// errMore says that what is known does not decide.
var errMore = errors.New("all logits are wanted")

// read takes a row of op candidates in; false if it is none.
func (r *candidateRow) read(row []int32, vocab int) bool {
	*r = candidateRow{words: row, list: r.list[:0], heads: r.heads[:0], bound: noLimit, first: noLimit, vocab: vocab}
	if len(row) != ir.CandidateRow {
		return false
	}
	for part := range ir.CandidateParts {
		if c, ok := r.at(part, 0); ok {
			r.first = min(r.first, c)
		}
		if c, ok := r.at(part, ir.CandidateKeep-1); ok {
			r.bound = min(r.bound, c)
		}
	}
	return !r.bad
}

// at is candidate i of a part; false if there are not so many.
func (r *candidateRow) at(part, i int) (candidate, bool) {
	words := r.words[part*ir.CandidateWords+2*i:][:2]
	if uint32(words[0]) == minusInf {
		return 0, false
	}
	if id := words[1]; id < 0 || int(id) >= r.vocab || int(id)/ir.CandidateRun%ir.CandidateParts != part {
		r.bad = true
		return 0, false
	}
	return pack(words[1], math.Float32frombits(uint32(words[0]))), true
}

// limit is before what may have others, which are not known, before it.
func (r *candidateRow) limit() candidate { return r.bound >> 32 << 32 }

// lead lets the list have the first n of those that are sure. Each part has its own in order.
func (r *candidateRow) lead(n int) {
	r.list, r.heads = r.list[:0], r.heads[:0]
	next := func(part, at int) (head, bool) {
		if at == ir.CandidateKeep {
			return head{}, false
		}
		c, ok := r.at(part, at)
		return head{c, part, at}, ok && c < r.limit()
	}
	for part := range ir.CandidateParts {
		if h, ok := next(part, 0); ok {
			r.heads = append(r.heads, h)
		}
	}
	for i := len(r.heads)/2 - 1; i >= 0; i-- {
		sink(r.heads, i)
	}
	for len(r.heads) > 0 && len(r.list) < n {
		first := r.heads[0]
		r.list = append(r.list, first.candidate)
		if h, ok := next(first.part, first.at+1); ok {
			r.heads[0] = h
		} else {
			last := len(r.heads) - 1
			r.heads[0], r.heads = r.heads[last], r.heads[:last]
		}
		sink(r.heads, 0)
	}
	r.sure, r.whole = len(r.list), false
}

// sink restores the order of a heap whose head i may be behind those below it.
func sink(heap []head, i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(heap); child++ {
			if heap[child].candidate < heap[least].candidate {
				least = child
			}
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}

// all lets the list have all that is known.
func (r *candidateRow) all() {
	if r.whole {
		return
	}
	r.list = r.list[:0]
	for part := range ir.CandidateParts {
		for i := range ir.CandidateKeep {
			c, ok := r.at(part, i)
			if !ok {
				break
			}
			r.list = append(r.list, c)
		}
	}
	r.whole = true
	r.order()
}

// order sorts the list as far as it comes before all that is not known.
func (r *candidateRow) order() {
	r.sure = 0
	for i, c := range r.list {
		if c < r.limit() {
			r.list[i], r.list[r.sure] = r.list[r.sure], c
			r.sure++
		}
	}
	slices.Sort(r.list[:r.sure])
}

// weights finds between what lies the weight of what is not in the list.
func (r *candidateRow) weights() (least, most float64) {
	if !r.weighed {
		for part := range ir.CandidateParts {
			r.weigh(r.words[part*ir.CandidateWords:][:ir.CandidateWords])
		}
		r.weighed = true
	}
	return r.least, r.most
}

// weigh adds the weight of what a part has beside its candidates.
func (r *candidateRow) weigh(words []int32) {
	if uint32(words[2*ir.CandidateKeep-2]) == minusInf {
		return // there is nothing else
	}
	const unit = 1.0 / (1 << ir.CandidateBits)
	first := float64(math.Float32frombits(uint32(words[0])))
	known := 0.0
	for i := range ir.CandidateKeep {
		known += exp(float64(math.Float32frombits(uint32(words[2*i]))) - first)
	}
	all := (float64(uint32(words[2*ir.CandidateKeep]))*(1<<16) + float64(uint32(words[2*ir.CandidateKeep+1]))) * unit
	each := float64(r.vocab/ir.CandidateParts + ir.CandidateRun) // tokens of the part, at most
	scale := exp(first - r.top())
	r.least += scale * max(0, all*(1-weightError)-known)
	r.most += scale * max(0, (all+each*unit)*(1+weightError)-known)
}

// change replaces the logits of tokens by what f makes of them. It must not bring one that is not known before the
// bound: changes of the chain make the larger of two logits no smaller than the other.
func (s *set) changeCandidates(f func(id int32, logit float64) float64, ids []int32) {
	k := s.candidates
	s.head = s.head[:0]
	if len(ids) == 0 {
		return
	}
	least, _ := k.weights()
	if k.all(); k.bad {
		s.more()
		return
	}
	wanted := make(map[int32]bool, len(ids))
	for _, id := range ids {
		if id >= 0 && int(id) < k.vocab {
			wanted[id] = true
		}
	}
	k.changed = k.changed || len(wanted) > 0
	for i, c := range k.list {
		if id := c.id(); wanted[id] {
			k.list[i] = pack(id, s.changed(f, id, c.logit()))
			delete(wanted, id)
		}
	}
	k.list = slices.DeleteFunc(k.list, func(c candidate) bool { return c.logit() == negInf })
	k.order()
	if k.bound == noLimit {
		return // the others stay at -Inf
	}
	bound := k.bound.logit()
	for id := range wanted {
		if !(s.changed(f, id, bound) <= bound) {
			s.more()
			return
		}
	}
	k.least = max(0, least-float64(len(wanted))*exp(float64(bound)-k.top())*(1+weightError))
}

// manyAtOnce is from how many tokens on they are brought in order alone, as a stage that keeps so many asks for them.
const manyAtOnce = 2

// growCandidates lets the head have n tokens, and maybe more that are known to come first.
func (s *set) growCandidates(n int) bool {
	k := s.candidates
	if s.head = s.head[:0]; n >= manyAtOnce && !k.whole && s.gate == nil {
		k.lead(n)
	} else {
		k.all()
	}
	for _, c := range k.list[:k.sure] {
		if s.gate == nil || s.gate.Allows(c.id()) {
			s.head = append(s.head, c)
		}
	}
	switch s.cut = k.bound == noLimit && (k.whole || len(k.heads) == 0); {
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

// bounds are those of the weight of all that is left, of which the largest logit has 1; false if there are none.
func (s *set) bounds() (least, most float64, ok bool) {
	k := s.candidates
	top := float64(s.top())
	if s.gate != nil || s.scale < 1 || s.err != nil || k.bound == noLimit {
		return 0, 0, false
	}
	if k.all(); k.bad {
		return 0, 0, false
	}
	for _, c := range k.list {
		least += exp((float64(c.logit()) - top) * s.scale)
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

// reaches returns the place in the head at which the sum of weights surely reaches a share of all, or surely exceeds
// it; false if that may be another place.
func (s *set) reaches(share float64, head []candidate, exceeds bool) (int, bool) {
	least, most, ok := s.bounds()
	if !ok {
		return 0, false
	}
	least, most = share*least*(1-sumError), share*most*(1+sumError)
	sum := 0.0
	for i, c := range head {
		if i > 0 && sum >= least {
			return 0, false
		}
		sum += s.weight(c.logit())
		if sum > most || sum == most && !exceeds {
			return i, true
		}
	}
	return 0, false
}

// nucleusOfCandidates keeps the smallest set with a share p of the weights.
func (s *set) nucleusOfCandidates(p float64) {
	s.grow(1)
	n, ok := s.reaches(p, s.head, false)
	if !ok {
		s.more()
		return
	}
	s.keep(n + 1)
}

// pickCandidate returns the token at a share u of the weights. By all logits the first leastHead alone are
// surely in order.
func (s *set) pickCandidate(u float64) int32 {
	s.grow(1)
	head := s.head[:min(len(s.head), leastHead)]
	n, ok := s.reaches(u, head, true)
	if !ok {
		s.more()
		return 0
	}
	return head[n].id()
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

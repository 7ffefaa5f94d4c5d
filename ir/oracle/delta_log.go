package oracle

import "math"

// deltaState is the state of a head of a delta rule: a row for each value dim, and behind them the log of updates that
// these lack, if it has one, see op deltanet.
type deltaState struct {
	d         int
	base, log []float32
}

// deltaStateOf returns the state of a head that lies in all; it is 0 and nothing waits if the sequence begins.
func deltaStateOf(all []float32, d int, begins bool) *deltaState {
	s := &deltaState{d, all[:d*d], all[d*d:]}
	if begins {
		clear(s.base)
		s.wait(0)
	}
	return s
}

// most is how many updates may wait.
func (s *deltaState) most() int { return max(0, len(s.log)/s.d/2-1) }

// waiting is how many updates wait.
func (s *deltaState) waiting() int {
	if len(s.log) == 0 || !(s.log[0] > 0) {
		return 0
	}
	return int(min(s.log[0], float32(s.most())))
}

// wait says that so many wait.
func (s *deltaState) wait(n int) {
	if len(s.log) == 0 {
		return
	}
	for j := range s.d {
		s.log[j] = float32(n)
	}
}

// update returns what update i adds of k to each row, its k, and where what it multiplies the state by is.
func (s *deltaState) update(i int) (deltas, k []float32, decay *float32) {
	row := func(r int) []float32 { return s.log[r*s.d:][:s.d] }
	every := s.most() + 1
	return row(1 + i), row(every + i), &row(2*every - 1)[i]
}

// apply applies the updates that wait to what the base is, or a copy of it.
func (s *deltaState) apply(base []float32) {
	for n := range s.waiting() {
		deltas, k, decay := s.update(n)
		for j, delta := range deltas {
			for i := range k {
				x := &base[j*s.d+i]
				*x *= *decay
				*x += delta * k[i]
			}
		}
	}
}

// add lets an update wait.
func (s *deltaState) add(deltas, k []float32, g float32) {
	n := s.waiting()
	toDeltas, toK, decay := s.update(n)
	copy(toDeltas, deltas)
	copy(toK, k)
	*decay = float32(math.Exp(float64(g)))
	s.wait(n + 1)
}

package engine

import (
	"math"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// A burst is several steps in one submission: the device chooses the likeliest tokens and feeds them itself. A
// sequence with a format takes part, too. Its matcher walks along what the device has chosen; at the first token that
// may not come, the sequence goes back to where it was, and the host chooses there. Rows behind that are written again.
// So an answer is the same whether its tokens come in bursts or one by one.

// burst is how many tokens the device chooses in one submission: one, if the host chooses, a prompt is
// read or somebody waits.
func (e *Engine) burst(entry *plans.Entry, group []*seq, depth int) int {
	e.mu.Lock()
	waiting := len(e.waiting)
	e.mu.Unlock()
	if waiting > 0 || len(e.decoding) < len(e.running) || len(e.decoding) > len(group) {
		return 1
	}
	n := min(runtime.Burst, e.plan.Header.Ring/len(group))
	sure := true // what the device chooses is taken
	for _, s := range group {
		if len(s.next) > 1 { // known already
			return 1
		}
		if s.onHost() {
			if !e.follow(s, n) {
				return 1
			}
			sure = false
		}
		n = min(n, e.plan.Header.Ctx-len(s.slot.tokens))
		for _, bound := range []int{s.left(), s.free()} {
			if bound >= 0 {
				n = min(n, bound)
			}
		}
	}
	if one := e.costs.most(entry, depth+n); one > 0 { // the tokens of all come together
		n = min(n, int((e.planned()-sinceLast(group)-seconds(e.host.most()))/one))
	}
	if !sure {
		n = e.pays(entry, group, depth, n)
	}
	return max(1, n)
}

// follow says whether the device may choose n tokens of a sequence that the host looks at: those of a format, if
// nothing but the format bounds them, and if the sequence can go back from there. Recurrent state would need a copy.
func (e *Engine) follow(s *seq, n int) bool {
	end := len(s.slot.tokens) + n
	return s.foreseen() && len(s.next) == 1 && !s.again && !e.recurrent && e.plan.Memory.Hold(max(s.slot.end, end), len(s.slot.tokens))
}

// advantage is how much faster a burst must be than single steps for a format.
const advantage = 1.01

// pays returns with how many steps a burst gives the most tokens a second, by what is known of the sequences. Single
// steps have the tokens of forced runs for nothing.
func (e *Engine) pays(entry *plans.Entry, group []*seq, depth, most int) int {
	step := e.costs.mean(entry, depth)
	single := 0.0
	for _, s := range group {
		single += 1 + s.luck.forced
	}
	best, rate := 1, advantage*single/(step+e.host.mean)
	for n := 2; n <= most; n++ {
		tokens := 0.0
		for _, s := range group {
			tokens += s.expected(n)
		}
		if r := tokens / (float64(n)*step + e.host.mean); r > rate {
			best, rate = n, r
		}
	}
	return best
}

// expected is how many tokens of a burst of n steps the sequence takes, the one that the host chooses by the logits of
// the last step among them.
func (s *seq) expected(n int) float64 {
	if !s.onHost() {
		return float64(n)
	}
	tokens, all := 0.0, 1.0
	for range n {
		all *= s.luck.hits
		tokens += all
	}
	return tokens + math.Pow(s.luck.hits, float64(n-1))*(1-s.luck.hits)
}

// luck is what is known of the tokens of a format.
type luck struct {
	hits   float64 // share of them that the device chose as the format allows
	forced float64 // tokens of the forced run behind one
}

// Weights of a token in the luck of a sequence, and in that of all, with which sequences begin.
const (
	learnLuck    = 1.0 / 32
	learnAllLuck = 1.0 / 256
)

// guessed notes whether the device chose what the format allows.
func (e *Engine) guessed(s *seq, ok bool) {
	x := 0.0
	if ok {
		x = 1
	}
	s.luck.hits += learnLuck * (x - s.luck.hits)
	e.luck.hits += learnAllLuck * (x - e.luck.hits)
}

// ran notes how long the forced run behind a token is.
func (e *Engine) ran(s *seq) {
	x := float64(max(0, len(s.next)-1))
	s.luck.forced += learnLuck * (x - s.luck.forced)
	e.luck.forced += learnAllLuck * (x - e.luck.forced)
}

// takeBurst gives the sequences what they take of a burst; last has the last rows, one each.
func (e *Engine) takeBurst(entry *plans.Entry, group []*seq, last []int, times int) error {
	out, err := e.exec.Ints(ir.StepOut)
	if err != nil {
		return err
	}
	var open, taken []*seq
	var openRows, takenRows []int
	for r, s := range group {
		e.walk(s, times, func(i int) int32 { return out[i*len(group)+r] })
		if s.ending == "" && len(s.next) == 0 {
			open, openRows = append(open, s), append(openRows, last[r])
		} else {
			taken, takenRows = append(taken, s), append(takenRows, last[r])
		}
	}
	if err := e.conclude(entry, taken, takenRows); err != nil || len(open) == 0 {
		return err
	}
	return e.choose(entry, open, openRows)
}

// walk takes of what the device chose in each step of a burst, and has fed with the step behind it, what the sequence
// accepts. It leaves the slot with the tokens that hold, and without a next token where the host is to choose by the
// logits of the last step.
func (e *Engine) walk(s *seq, times int, out func(step int) int32) {
	l := s.slot
	began, run := len(l.tokens), false
	for i := range times {
		id := out(i)
		if i > 0 {
			fed := s.next[0] == out(i-1)
			if run {
				e.guessed(s, fed)
			}
			if !fed {
				return // the slot goes back to where a forced run begins
			}
			l.tokens, s.next = append(l.tokens, s.next[0]), append(s.next[:0], s.next[1:]...)
		}
		if run = len(s.next) > 0; run {
			continue
		}
		switch {
		case !s.onHost():
			e.chosen[ByDevice]++
			e.deliver(s, choice{id: id})
		case s.follows(id):
			e.chosen[ByDevice]++
			e.guessed(s, true)
			e.deliver(s, choice{id: id})
			e.force(s)
			e.ran(s)
		case i < times-1:
			e.guessed(s, false)
			end := len(l.tokens) - 1
			s.next, l.tokens = append(s.next, l.tokens[end]), l.tokens[:end]
			s.again = true
			return
		}
		if s.ending != "" {
			l.tokens = l.tokens[:began]
			for k := range times - 1 { // these are in the slot all the same
				l.tokens = append(l.tokens, out(k))
			}
			return
		}
	}
}

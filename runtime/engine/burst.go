package engine

import (
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// burst is how many tokens the device chooses and feeds itself in one submission: one, if the host chooses, a prompt is
// read or somebody waits.
func (e *Engine) burst(entry *plans.Entry, group []*seq, depth int) int {
	e.mu.Lock()
	waiting := len(e.waiting)
	e.mu.Unlock()
	if waiting > 0 || len(e.decoding) < len(e.running) || len(e.decoding) > len(group) {
		return 1
	}
	n := min(runtime.Burst, e.plan.Header.Ring/len(group))
	for _, s := range group {
		if s.onHost() || len(s.next) > 1 || s.reading() { // its next tokens are known already, or the first one is due
			return 1
		}
		n = min(n, e.plan.Header.Ctx-len(s.slot.tokens))
		if s.repeats() { // behind so many tokens the next guess may begin
			n = min(n, guessBehind)
		}
		for _, bound := range []int{s.left(), s.free()} {
			if bound >= 0 {
				n = min(n, bound)
			}
		}
	}
	if one := e.costs.most(entry, depth+n); one > 0 { // the tokens of all come together
		n = min(n, int((e.planned()-sinceLast(group)-seconds(e.host.most()))/one))
	}
	return max(1, n)
}

// takeBurst gives the sequences what they take of a burst; last has the last rows, one each.
func (e *Engine) takeBurst(entry *plans.Entry, group []*seq, last []int, times int) error {
	out, err := e.exec.Ints(ir.StepOut)
	if err != nil {
		return err
	}
	for r, s := range group {
		e.takeRow(s, times, func(i int) int32 { return out[i*len(group)+r] })
	}
	return e.conclude(entry, group, last)
}

// takeRow gives a sequence what the device has chosen in each step of a submission, and has fed with the step behind
// it.
func (e *Engine) takeRow(s *seq, times int, out func(step int) int32) {
	for i := 0; i < times && s.ending == ""; i++ {
		e.chosen[ByDevice]++
		e.deliver(s, choice{id: out(i)})
	}
	for i := range times - 1 { // these are in the slot, also behind an end
		s.slot.tokens = append(s.slot.tokens, out(i))
	}
	s.next = append(s.next[:0], out(times-1))
}

package vulkan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/plans"
)

// script is a recorder that writes down what it gets.
type script []string

func (s *script) add(format string, args ...any) { *s = append(*s, fmt.Sprintf(format, args...)) }
func (s *script) Barrier(from, to Access)        { s.add("barrier %s to %s", ways(from), ways(to)) }
func (s *script) Bind(*Pipeline)                 {}
func (s *script) Push(addresses ...uint64)       { s.add("push %d", addresses) }
func (s *script) Dispatch(x, y, z uint32)        { s.add("dispatch %d %d %d", x, y, z) }
func (s *script) Copy(_ *Buffer, to int64, _ *Buffer, from, n int64) {
	s.add("copy %d from %d to %d", n, from, to)
}

func ways(a Access) (text string) {
	for i, name := range []string{"compute", "transfer", "host", "indirect"} {
		if a&(1<<i) != 0 {
			text += "+" + name
		}
	}
	return text[1:]
}

// TestBarriers holds what is recorded of an entry and of copies: a barrier wherever the step
// changes, before what was submitted earlier is read or overwritten, and before the host reads.
func TestBarriers(t *testing.T) {
	dispatch := func(step, grid int) plans.Dispatch {
		return plans.Dispatch{Step: step, Grid: [3]int{grid, 2, 1}}
	}
	e := plans.Entry{Name: "decode/1", Logits: "logits", Next: "next",
		Dispatches: []plans.Dispatch{dispatch(0, 1), dispatch(1, 2), dispatch(1, 3), dispatch(3, 4)}}
	x := &Executor{plan: &plans.Plan{Entries: []plans.Entry{e, {Name: "score/8", Logits: "scores"}}}, pipes: make([]*Pipeline, 1),
		memory: &memory{
			step: &Buffer{size: 64}, stepHost: &Buffer{size: 64}, arguments: map[string][][]uint64{"decode/1": {{10}, {11}, {12}, {13}}},
			regions: map[string]place{"logits": {bytes: 400, at: 1000, back: 64}, "next": {bytes: 4, at: 2000, back: 512}, "scores": {bytes: 800, at: 3000, back: 1024}},
		}}
	for _, c := range []struct {
		name   string
		record func(r recorder)
		want   script
	}{
		{"entry", func(r recorder) { x.recordEntry(r, &e) }, script{
			"barrier compute+transfer to compute", "push [10]", "dispatch 1 2 1",
			"barrier compute to compute", "push [11]", "dispatch 2 2 1", "push [12]", "dispatch 3 2 1",
			"barrier compute to compute", "push [13]", "dispatch 4 2 1"}},
		{"step block", x.recordStep, script{"barrier compute+transfer+host to transfer", "copy 64 from 0 to 0"}},
		{"logits", func(r recorder) { x.recordLogits(r, "scores") }, script{
			"barrier compute to transfer", "copy 800 from 3000 to 1024", "barrier transfer to host"}},
		{"read-back", x.recordFetch, script{
			"barrier compute to transfer", "copy 64 from 0 to 0", "copy 4 from 2000 to 512", "barrier transfer to host"}},
	} {
		var have script
		if c.record(&have); !slices.Equal(have, c.want) {
			t.Errorf("%s:\n%q, want\n%q", c.name, have, c.want)
		}
	}
}

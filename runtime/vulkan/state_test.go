package vulkan

import (
	"testing"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/internal/spare"
)

// TestStateMemory: states that come and go, as turns of conversations do, take the memory of those before, and hold what was
// saved.
func TestStateMemory(t *testing.T) {
	d := openTest(t)
	const slots, bytes = 2, 4096
	region := must[*Buffer](t)(d.Alloc(slots*bytes, Readback))
	plan := &plans.Plan{Header: plans.Header{Slots: slots}}
	x := &Executor{dev: d, plan: plan, spare: newSpare(d, plan), memory: &memory{regions: map[string]place{"state": {buf: region, bytes: slots * bytes}}}}
	save := func(slot, n int64) *spare.State[*Buffer] {
		t.Helper()
		s, err := x.SaveState(t.Context(), []plans.Span{{Region: "state", Offset: slot * bytes, Bytes: n}})
		if err != nil {
			t.Fatal(err)
		}
		return s.(*spare.State[*Buffer])
	}
	holds := func(s *spare.State[*Buffer], want byte) {
		t.Helper()
		clear(region.Bytes())
		if err := x.RestoreState(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if at := s.Spans[0].Offset; region.Bytes()[at] != want || region.Bytes()[at+s.Bytes()-1] != want {
			t.Errorf("restored %d, want %d", region.Bytes()[at], want)
		}
	}
	fill := func(b byte) {
		for i := range region.Bytes() {
			region.Bytes()[i] = b
		}
	}
	fill(1)
	first, other := save(0, bytes), save(1, bytes-64)
	seen := map[*Buffer]bool{first.Memory: true, other.Memory: true}
	if len(seen) != slots {
		t.Fatal("two states share their memory")
	}
	other.Free()
	for turn := byte(2); turn < 6; turn++ {
		fill(turn)
		first.Free()
		next := save(0, bytes)
		if !seen[next.Memory] {
			t.Errorf("turn %d takes new memory", turn)
		}
		holds(next, turn)
		first = next
	}
	// A third is more than there are slots, and one that is too small is of no use.
	a, b := save(0, bytes), save(1, bytes)
	for _, s := range []*spare.State[*Buffer]{first, a, b} {
		s.Free()
		s.Free()
	}
	if x.spare.Kept() != slots {
		t.Errorf("%d are kept, want %d", x.spare.Kept(), slots)
	}
	large := save(0, 2*bytes)
	if x.spare.Kept() != 0 || large.Bytes() != 2*bytes {
		t.Errorf("%d are kept that are too small", x.spare.Kept())
	}
	large.Free()
}

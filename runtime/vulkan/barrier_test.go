package vulkan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/runtime/driver"
)

// script is a recorder that writes down what it gets.
type script []string

func (s *script) add(format string, args ...any) { *s = append(*s, fmt.Sprintf(format, args...)) }
func (s *script) Barrier(from, to Access)        { s.add("barrier %s to %s", ways(from), ways(to)) }
func (s *script) Bind(*Pipeline)                 {}
func (s *script) Push(addresses ...uint64)       { s.add("push %d", addresses) }
func (s *script) Dispatch(x, y, z uint32)        { s.add("dispatch %d %d %d", x, y, z) }
func (s *script) Timestamp(_ *Timestamps, i int) { s.add("time %d", i) }
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

// TestBarriers holds what is recorded of stages: a barrier between any two, before what was submitted earlier is read
// or overwritten, before a time is taken, and before the host reads.
func TestBarriers(t *testing.T) {
	v := &verbs{pipes: make([]*Pipeline, 1)}
	dispatch := func(n uint32) driver.Dispatch {
		return driver.Dispatch{Arguments: []uint64{uint64(9 + n)}, Grid: [3]uint32{n, 2, 1}}
	}
	device, host, clock := &Buffer{size: 64}, &Buffer{size: 64, mapped: make([]byte, 64)}, &Timestamps{}
	for _, c := range []struct {
		name   string
		stages []driver.Stage
		want   script
	}{
		{"entry", []driver.Stage{{Dispatches: []driver.Dispatch{dispatch(1)}}, {Dispatches: []driver.Dispatch{dispatch(2), dispatch(3)}}, {Dispatches: []driver.Dispatch{dispatch(4)}}}, script{
			"barrier compute+transfer to compute", "push [10]", "dispatch 1 2 1",
			"barrier compute to compute", "push [11]", "dispatch 2 2 1", "push [12]", "dispatch 3 2 1",
			"barrier compute to compute", "push [13]", "dispatch 4 2 1"}},
		{"to the device", []driver.Stage{{Copies: []driver.Copy{{To: device, From: host, Bytes: 64}}}}, script{
			"barrier compute+transfer to transfer", "copy 64 from 0 to 0"}},
		{"to the host", []driver.Stage{{Copies: []driver.Copy{{To: host, ToAt: 8, From: device, FromAt: 16, Bytes: 4}, {To: device, From: host, Bytes: 1}}}}, script{
			"barrier compute+transfer to transfer", "copy 4 from 16 to 8", "copy 1 from 0 to 0", "barrier transfer to host"}},
		{"both", []driver.Stage{{Copies: []driver.Copy{{To: device, From: device, Bytes: 2}}}, {Dispatches: []driver.Dispatch{dispatch(5)}}}, script{
			"barrier compute+transfer to transfer", "copy 2 from 0 to 0", "barrier transfer to compute", "push [14]", "dispatch 5 2 1"}},
		{"profile", []driver.Stage{{Stamp: driver.Stamp{Clock: clock}}, {Dispatches: []driver.Dispatch{dispatch(1)}, Stamp: driver.Stamp{Clock: clock, Slot: 1}},
			{Dispatches: []driver.Dispatch{dispatch(2)}, Stamp: driver.Stamp{Clock: clock, Slot: 2}}}, script{
			"barrier compute+transfer to compute", "time 0", "push [10]", "dispatch 1 2 1",
			"barrier compute to compute", "time 1", "push [11]", "dispatch 2 2 1", "barrier compute to compute", "time 2"}},
	} {
		var have script
		if v.record(&have, c.stages); !slices.Equal(have, c.want) {
			t.Errorf("%s:\n%q, want\n%q", c.name, have, c.want)
		}
	}
}

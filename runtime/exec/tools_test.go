package exec

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/driver/fake"
)

// TestProfile: each dispatch is a stage, which takes a nanosecond of a fake device. The step block is as before.
func TestProfile(t *testing.T) {
	x, d := open(t, nil)
	e := &x.plan.Entries[0]
	begin(t, x, 5)
	times, err := x.Profile(t.Context(), e, 3)
	check(t, err)
	if want := slices.Repeat([]time.Duration{1}, len(e.Dispatches)); !slices.Equal(times, want) {
		t.Errorf("times %v, want %v", times, want)
	}
	for _, line := range d.Log() {
		if want := ": {copy 1024 upload to local} {} {embed} {thrice} {seven} {head} {advance}"; line[1:] != want {
			t.Errorf("submitted %q, want %q", line, want)
		}
	}
	check(t, runtime.Run(t.Context(), x, e, 1))
	wantInts(t, x, "out", after(5))
}

// TestMixed times an entry with the kernel of a copy at one dispatch, which has the entry's arguments where it takes
// the same, else its own.
func TestMixed(t *testing.T) {
	plan := toyPlan()
	own := &plan.Entries[0]
	copied := *own
	copied.Name, copied.Dispatches = "decode/1+1", slices.Clone(own.Dispatches)
	thrice, seven := &copied.Dispatches[1], &copied.Dispatches[2]
	thrice.Pipeline = own.Dispatches[0].Pipeline // embed, of the same arguments
	seven.Args = slices.Clone(seven.Args)
	seven.Args[0].Name = "other"
	seven.Args[0].Offset = 768
	plan.Entries = append(plan.Entries, copied)
	own = &plan.Entries[0]
	d := fake.New(kernels)
	x, err := New(t.Context(), d, plan, nil, nil)
	check(t, err)
	defer x.Close()
	begin(t, x, 5)
	run, free, err := x.Mixed(own, func(i int) *plans.Entry {
		if i == 1 || i == 2 {
			return &plan.Entries[2]
		}
		return own
	})
	check(t, err)
	defer free()
	d.Log()
	for range 2 {
		took, err := run(t.Context(), 2)
		check(t, err)
		if took != time.Nanosecond/2 {
			t.Errorf("%v, want the time between two stamps", took)
		}
	}
	const entry = " {embed} {embed, seven} {head} {advance}"
	for i, line := range d.Log() {
		if want := fmt.Sprintf("%d: {copy 1024 upload to local} {}"+entry+entry+" {}", i+1); line != want {
			t.Errorf("submitted %s, want %s", line, want)
		}
	}
	for i, want := range [][]uint64{x.memory.arguments[own.Name][1], x.memory.arguments[copied.Name][2]} {
		if have := x.instead(own, i+1, &plan.Entries[2]).Arguments; !slices.Equal(have, want) {
			t.Errorf("dispatch %d has arguments %#x, want %#x", i+1, have, want)
		}
	}
}

// TestInspector runs an entry dispatch by dispatch, and reads and writes any place, in parts.
func TestInspector(t *testing.T) {
	x, _ := open(t, nil)
	s, err := x.Inspect()
	check(t, err)
	e := &x.plan.Entries[0]
	begin(t, x, 5)
	for i := range e.Dispatches {
		check(t, s.Dispatch(t.Context(), e, i))
	}
	next := make([]byte, 4)
	check(t, s.Read(t.Context(), plans.Arg{Space: "io", Region: e.Next}, next))
	if have := int32(get(next)); have != after(5) {
		t.Errorf("chosen %d, want %d", have, after(5))
	}
	if err := s.Dispatch(t.Context(), e, len(e.Dispatches)); err == nil {
		t.Error("a dispatch behind the last")
	}
	if err := s.Read(t.Context(), plans.Arg{Space: "io", Region: e.Next, Offset: 14}, next); err == nil {
		t.Error("bytes behind a region are read")
	}
	big, err := s.dev.Alloc(inspectBytes+10, driver.Local)
	check(t, err)
	x.memory.regions["big"] = place{buf: big, bytes: big.Size()}
	want, have := bytes.Repeat([]byte("0123456789abc"), int(big.Size())/13), make([]byte, big.Size()/13*13)
	check(t, s.Overwrite(t.Context(), plans.Arg{Space: "kv", Region: "big"}, want))
	check(t, s.Read(t.Context(), plans.Arg{Space: "kv", Region: "big"}, have))
	if !bytes.Equal(have, want) {
		t.Error("what was written is not what is read")
	}
}

// TestStateMemory: states that come and go, as turns of conversations do, take the memory of those before, and hold
// what was saved.
func TestStateMemory(t *testing.T) {
	x, _ := open(t, nil)
	const slots, size = 2, stateBytes
	s, err := x.Inspect()
	check(t, err)
	at := func(slot int64) plans.Arg { return plans.Arg{Space: "state", Region: "state", Offset: slot * size} }
	spans := func(slot, n int64) []plans.Span {
		return []plans.Span{{Region: "state", Offset: slot * size, Bytes: n - 64}, {Region: "state", Offset: slot*size + n - 64, Bytes: 64}}
	}
	save := func(slot, n int64) *state {
		t.Helper()
		s, err := x.SaveState(t.Context(), spans(slot, n))
		check(t, err)
		return s.(*state)
	}
	fill := func(b byte) {
		t.Helper()
		check(t, s.Overwrite(t.Context(), at(0), bytes.Repeat([]byte{b}, slots*size)))
	}
	holds := func(state *state, slot int64, want byte) {
		t.Helper()
		fill(0)
		check(t, x.RestoreState(t.Context(), state, spans(slot, state.Bytes())))
		have := make([]byte, state.Bytes())
		check(t, s.Read(t.Context(), at(slot), have))
		if !bytes.Equal(have, bytes.Repeat([]byte{want}, len(have))) {
			t.Errorf("restored something else than %d", want)
		}
		clear(have)
		check(t, x.ReadState(t.Context(), state, 3, have[3:]))
		if !bytes.Equal(have, append([]byte{0, 0, 0}, bytes.Repeat([]byte{want}, len(have)-3)...)) {
			t.Errorf("read something else than %d", want)
		}
	}
	fill(1)
	first, other := save(0, size), save(1, size-64)
	seen := map[driver.Memory]bool{first.memory: true, other.memory: true}
	if len(seen) != slots {
		t.Fatal("two states share their memory")
	}
	holds(other, 1, 1)
	holds(other, 0, 1) // another slot takes it
	if x.RestoreState(t.Context(), other, spans(0, size)) == nil {
		t.Error("a state is restored to spans of other sizes")
	}
	other.Free()
	for turn := byte(2); turn < 6; turn++ {
		fill(turn)
		first.Free()
		next := save(0, size)
		if !seen[next.memory] {
			t.Errorf("turn %d takes new memory", turn)
		}
		holds(next, 0, turn)
		first = next
	}
	// A third is more than there are slots, and one that is too small is of no use.
	a, b := save(0, size), save(1, size)
	for _, s := range []*state{first, a, b} {
		s.Free()
		s.Free()
	}
	if len(x.spare) != slots {
		t.Errorf("%d are kept, want %d", len(x.spare), slots)
	}
	large := save(0, 2*size)
	if len(x.spare) != 0 || large.Bytes() != 2*size {
		t.Errorf("%d are kept that are too small", len(x.spare))
	}
	parts := make([]byte, 2*size)
	for i := range parts {
		parts[i] = byte(i % 251)
	}
	check(t, s.Overwrite(t.Context(), at(0), parts))
	counted := save(0, 2*size)
	have := make([]byte, size)
	if check(t, x.ReadState(t.Context(), counted, size/2, have)); !bytes.Equal(have, parts[size/2:][:size]) {
		t.Error("a part of a state is not where it should be")
	}
	for _, from := range []int64{-1, size + 1, 2 * size} {
		if x.ReadState(t.Context(), counted, from, have) == nil {
			t.Errorf("%d bytes are read from byte %d of %d on", size, from, 2*size)
		}
	}
	counted.Free()
	if y, _ := open(t, nil); x.ReadState(t.Context(), counted, 0, have) == nil || y.ReadState(t.Context(), large, 0, have) == nil {
		t.Error("a state is read that is freed, or of another device")
	}
	large.Free()
	if y, _ := open(t, nil); y.RestoreState(t.Context(), large, spans(0, 2*size)) == nil {
		t.Error("a state of another device is restored")
	}
	if _, err := x.SaveState(t.Context(), []plans.Span{{Region: "state", Offset: 2*size - 4, Bytes: 8}}); err == nil {
		t.Error("a state beyond its region is saved")
	}
}

// TestSpans: spans come to the host's memory and back, in parts where they are large, and not beyond their regions.
func TestSpans(t *testing.T) {
	x, _ := open(t, nil)
	big, err := x.dev.Alloc(2*inspectBytes+100, driver.Local)
	check(t, err)
	x.memory.regions["big"] = place{buf: big, bytes: big.Size()}
	spans := []plans.Span{{Region: "big", Offset: 64, Bytes: 1000}, {Region: "big", Offset: 2000, Bytes: 2*inspectBytes - 2000}, {Region: "big", Offset: 0, Bytes: 10}, {Region: "big", Offset: 1100, Bytes: 0}}
	want := bytes.Repeat([]byte("0123456789abc"), int(plans.SpanBytes(spans))/13+1)[:plans.SpanBytes(spans)]
	check(t, x.WriteSpans(t.Context(), spans, want))
	have := make([]byte, len(want))
	check(t, x.ReadSpans(t.Context(), spans, have))
	if !bytes.Equal(have, want) {
		t.Error("what was written is not what is read")
	}
	s, err := x.Inspect()
	check(t, err)
	check(t, s.Read(t.Context(), plans.Arg{Space: "kv", Region: "big", Offset: 64}, have[:1000]))
	if !bytes.Equal(have[:1000], want[:1000]) {
		t.Error("the first span is not where it should be")
	}
	check(t, x.ReadSpans(t.Context(), nil, nil))
	for _, bad := range []plans.Span{{Region: "big", Offset: big.Size() - 4, Bytes: 8}, {Region: "big", Offset: -1, Bytes: 8}, {Region: "none", Bytes: 8}, {Region: "big", Bytes: 9}} {
		if x.ReadSpans(t.Context(), []plans.Span{bad}, have[:8]) == nil || x.WriteSpans(t.Context(), []plans.Span{bad}, have[:8]) == nil {
			t.Errorf("%+v is copied", bad)
		}
	}
}

// TestCopy: spans are copied to others, not beyond their regions, and not over themselves.
func TestCopy(t *testing.T) {
	x, _ := open(t, nil)
	s, err := x.Inspect()
	check(t, err)
	all := plans.Arg{Space: "state", Region: "state"}
	want := make([]byte, 2*stateBytes)
	for i := range want {
		want[i] = byte(i % 251)
	}
	check(t, s.Overwrite(t.Context(), all, want))
	span := func(at, n int64) plans.Span { return plans.Span{Region: "state", Offset: at, Bytes: n} }
	for _, c := range [][2]plans.Span{{span(stateBytes, 8), span(0, 4)}, {span(0, 64), span(32, 64)}, {span(0, 64), span(2*stateBytes-32, 64)},
		{span(-8, 8), span(64, 8)}, {span(0, 8), {Region: "none", Bytes: 8}}} {
		if x.Copy(t.Context(), []plans.Span{c[0]}, []plans.Span{c[1]}) == nil {
			t.Errorf("%v is copied to %v", c[1], c[0])
		}
	}
	check(t, x.Copy(t.Context(), nil, nil))
	check(t, x.Copy(t.Context(), []plans.Span{span(stateBytes, 100), span(64, 8)}, []plans.Span{span(128, 100), span(8, 8)}))
	copy(want[stateBytes:][:100], want[128:])
	copy(want[64:72], want[8:])
	have := make([]byte, len(want))
	check(t, s.Read(t.Context(), all, have))
	if !bytes.Equal(have, want) {
		t.Error("something else was copied")
	}
}

// TestCopyWide: what several processors copy is all there, and nothing behind it is touched.
func TestCopyWide(t *testing.T) {
	for _, n := range []int{0, 1, copyPart, copyPart + 1, 3*copyPart - 1, mostFillers*copyPart + 17} {
		from, to := make([]byte, n), bytes.Repeat([]byte{7}, n+1)
		for i := range from {
			from[i] = byte(i % 251)
		}
		if copyWide(to, from); !bytes.Equal(to[:n], from) || to[n] != 7 {
			t.Errorf("%d bytes are copied otherwise", n)
		}
		if copyWide(to[:n/2], from[n/3:]); !bytes.Equal(to[:n/2], from[n/3:][:n/2]) || !bytes.Equal(to[n/2:n], from[n/2:]) {
			t.Errorf("%d of %d bytes are copied otherwise", n/2, n)
		}
	}
}

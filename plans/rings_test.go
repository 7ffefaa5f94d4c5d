package plans

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/ir"
)

// TestRings writes sequences that go on and go back into rings, and compares what Hold says with what they then hold.
func TestRings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.IntRange(1, 20).Draw(t, "window")
		size := window + rapid.IntRange(0, 20).Draw(t, "slack")
		p := &ir.Program{}
		cache := p.AddGlobal("k", ir.KV, ir.MakeType(ir.F16, 1, ir.Dim(size), 8))
		op := &ir.Op{Kind: ir.LookupOp("attention"), Args: []*ir.Value{nil, cache, cache}, Attrs: ir.Attrs{{Name: "window", Value: int64(window)}}}
		p.Funcs = []*ir.Func{{Groups: []*ir.Group{{Ops: []*ir.Op{op}}}}}
		rings := RingsOf(p)
		ring := make([]int, size) // which write each place has
		var sequence []int        // which write is at each position
		low, writes := 0, 0
		for range rapid.IntRange(1, 8).Draw(t, "turns") {
			for range rapid.IntRange(0, 2*size).Draw(t, "more") {
				writes++
				ring[len(sequence)%size] = writes
				sequence = append(sequence, writes)
			}
			low = rings.Written(low, len(sequence))
			back := rapid.IntRange(0, len(sequence)).Draw(t, "back")
			held := true
			for pos := max(0, back+1-window); pos < back; pos++ {
				held = held && ring[pos%size] == sequence[pos]
			}
			if have := rings.Hold(low, back); have && !held || !have && held && low > 0 && back+1-window > 0 && window > 1 {
				t.Fatalf("back to %d of %d, ring of %d for a window of %d, low %d: Hold %v, held %v", back, len(sequence), size, window, low, have, held)
			}
			if !held || !rings.Hold(low, back) {
				back, low = 0, 0
			}
			if sequence = sequence[:back]; back == 0 {
				low = 0
			}
		}
	})
	caches := []*ir.Value{(&ir.Program{}).AddGlobal("a", ir.KV, ir.MakeType(ir.F16, 1, 512, 8)), (&ir.Program{}).AddGlobal("b", ir.KV, ir.MakeType(ir.F16, 1, 256, 8)),
		(&ir.Program{}).AddGlobal("c", ir.KV, ir.MakeType(ir.F16, 1, ir.L, 8)), (&ir.Program{}).AddGlobal("d", ir.KV, ir.MakeType(ir.F16, 1, 768, 8))}
	p := &ir.Program{}
	for i, window := range []int64{400, 100, 0, 300} {
		op := &ir.Op{Kind: ir.LookupOp("attention"), Args: []*ir.Value{nil, caches[i], caches[i]}, Attrs: ir.Attrs{{Name: "window", Value: window}}}
		p.Funcs = append(p.Funcs, &ir.Func{Groups: []*ir.Group{{Ops: []*ir.Op{op}}}})
	}
	if have := RingsOf(p); have != (Rings{positions: 256, window: 400}) {
		t.Errorf("%+v, want the shortest ring and the longest window", have)
	}
	if !(Rings{}).Hold((Rings{}).Written(0, 1000), 1) {
		t.Error("without rings a sequence cannot go back")
	}
}

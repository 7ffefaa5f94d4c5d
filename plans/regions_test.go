package plans

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/layout"
)

// keeping returns the memory of a program with caches and states that ops of these kinds use, at an operand each.
func keeping(ctx int, add func(p *ir.Program, use func(kind string, attrs ir.Attrs, args ...*ir.Value))) *Memory {
	p := &ir.Program{Ctx: ctx}
	add(p, func(kind string, attrs ir.Attrs, args ...*ir.Value) {
		p.Funcs = append(p.Funcs, &ir.Func{Groups: []*ir.Group{{Ops: []*ir.Op{{Kind: ir.LookupOp(kind), Args: args, Attrs: attrs}}}}})
	})
	m, regions := &Memory{}, p.Regions()
	for _, g := range p.Globals {
		of, ok := regions[g]
		if !ok {
			continue
		}
		n, err := g.Type.Bytes(1, ctx)
		if err != nil {
			panic(err)
		}
		list := &m.KV
		if g.Class == ir.State {
			list = &m.State
		}
		*list = append(*list, Region{g.Name, n, KeptOf(of, n)})
	}
	return m
}

// attends adds a cache of so many positions that rows attend to in a window.
func attends(p *ir.Program, use func(kind string, attrs ir.Attrs, args ...*ir.Value), positions ir.Dim, window int) {
	k := p.AddGlobal(fmt.Sprintf("k%d", len(p.Globals)), ir.KV, ir.MakeType(ir.F16, 1, positions, 8))
	use("attention", ir.Attrs{{Name: "window", Value: int64(window)}}, nil, k, k)
}

// TestHold writes sequences that go on and go back into some rings, and compares what Hold says with what they then
// hold.
func TestHold(t *testing.T) {
	type ring struct{ window, size int }
	rapid.Check(t, func(t *rapid.T) {
		var rings []ring
		var places [][]int // which write each place has
		for range rapid.IntRange(1, 3).Draw(t, "rings") {
			window := rapid.IntRange(1, 20).Draw(t, "window")
			rings = append(rings, ring{window, window + rapid.IntRange(0, 20).Draw(t, "slack")})
			places = append(places, make([]int, rings[len(rings)-1].size))
		}
		m := keeping(1000, func(p *ir.Program, use func(kind string, attrs ir.Attrs, args ...*ir.Value)) {
			for _, r := range rings {
				attends(p, use, ir.Dim(r.size), r.window)
			}
			attends(p, use, ir.L, 0)
		})
		var sequence []int // which write is at each position
		end, writes := 0, 0
		for range rapid.IntRange(1, 8).Draw(t, "turns") {
			for range rapid.IntRange(0, 80).Draw(t, "more") {
				writes++
				for i, r := range rings {
					places[i][len(sequence)%r.size] = writes
				}
				sequence = append(sequence, writes)
			}
			end = max(end, len(sequence))
			back := rapid.IntRange(0, len(sequence)).Draw(t, "back")
			held := true    // all that the next row sees
			strict := false // a ring of one position holds what it does not need
			for i, r := range rings {
				strict = strict || r.window == 1
				for pos := max(0, back+1-r.window); pos < back; pos++ {
					held = held && places[i][pos%r.size] == sequence[pos]
				}
			}
			have := m.Hold(end, back)
			if have && !held || !have && held && !strict {
				t.Fatalf("back to %d of %d, at most %d, rings %v: Hold %v, held %v", back, len(sequence), end, rings, have, held)
			}
			if first := m.First(end); !have && first == 0 {
				t.Fatalf("rings %v hold all positions of %d and cannot go back to %d", rings, end, back)
			}
			if !have {
				back = 0
			}
			if sequence = sequence[:back]; back == 0 {
				end = 0
			}
		}
	})
	whole := keeping(1000, func(p *ir.Program, use func(kind string, attrs ir.Attrs, args ...*ir.Value)) {
		attends(p, use, ir.L, 0)
		attends(p, use, ir.L, 100) // too short a context for a ring
	})
	if !whole.Hold(1000, 1) || whole.First(1000) != 0 {
		t.Error("without rings a sequence cannot go back")
	}
}

// TestCheckpoint: the state of a sequence is its own, whichever it is; of a ring what the next position sees is kept.
// At position 0 there is nothing of it, but the model is recurrent.
func TestCheckpoint(t *testing.T) {
	m := keeping(1000, func(p *ir.Program, use func(kind string, attrs ir.Attrs, args ...*ir.Value)) {
		x := &ir.Value{Type: ir.MakeType(ir.F32, ir.T, 4)}
		p.AddGlobal("k", ir.KV, ir.MakeType(ir.F16, 3, ir.L, 8))
		p.AddGlobal("delta", ir.State, ir.MakeType(ir.F32, 3, 2, 5))
		ring := p.AddGlobal("conv", ir.State, ir.MakeType(ir.F32, 3, 16, 4))
		use("conv1d", nil, x, p.AddGlobal("taps", ir.Weight, ir.MakeType(ir.F32, 4, 3)), ring)
	})
	const delta, conv = 2 * 5 * 4, 16 * 4 * 4
	for _, c := range []struct {
		slot, pos int
		want      []Span
	}{
		{0, 0, []Span{{"delta", 0, delta}}},
		{0, 1, []Span{{"delta", 0, delta}, {"conv", 0, 16}}},
		{1, 5, []Span{{"delta", delta, delta}, {"conv", conv + 3*16, 16}, {"conv", conv + 4*16, 16}}},
		{2, 17, []Span{{"delta", 2 * delta, delta}, {"conv", 2*conv + 15*16, 16}, {"conv", 2 * conv, 16}}},
	} {
		if have := m.Checkpoint(c.slot, c.pos); !slices.Equal(have, c.want) {
			t.Errorf("slot %d at %d: %v, want %v", c.slot, c.pos, have, c.want)
		}
	}
	if !m.Recurrent() {
		t.Error("the ring of a convolution is recurrent state")
	}
	if m.State = nil; m.Recurrent() {
		t.Error("a KV cache is no recurrent state")
	}
}

// recurrentProgram has a cache, a ring in a window, a ring of a convolution and a state, of two sequences each.
const recurrentProgram = `zir 1
stage place
model arch="toy" name="" path="" source="c0ffee" target="host" ctx=64 slots=2 layers=1

kv @k : f16[2, L, 32]
kv @v : f16[2, L, 32]
kv @wk : q8_0[2, 32, 32]
kv @wv : q8_0[2, 32, 32]
state @conv : f32[2, 16, 64]
state @ssd : f32[2, 4, 4, 4]
weight @embd : f32[32, 64] as raw
weight @taps : f32[64, 4] as raw
weight @heads : f32[4] as raw
weight @dt : f32[4, 64] as raw
weight @in : f32[24, 64] as raw
step @token : i32[T]
step @pos : i32[T]
step @slot : i32[T]

func "decode/1" rows=1 sequences=many run=1 class=exact {
  group "all" stage=0 waits=0 {
    call "" kernel="host" wave=0 grid=[1, 1, 1] const={} args=[] why=""
    %0 = embed @token, @embd {scale=1.0} : f32[T, 64]
    %1 = attention %0, @k, @v, @pos, @slot {head_dim=16, heads=4, kv_heads=2, scale=0.25} : f32[T, 64]
    %2 = attention %1, @wk, @wv, @pos, @slot {head_dim=32, heads=2, kv_heads=1, scale=0.25, window=20} : f32[T, 64]
    %3 = conv1d %2, @taps, @conv, @pos, @slot : f32[T, 64]
    conv_write %2, @conv, @pos, @slot
    %4 = linear %3, @dt : f32[T, 4]
    %5 = linear %3, @in : f32[T, 24]
    %6 = ssd %5, %4, @heads, @heads, @heads, @ssd, @pos, @slot {heads=4, head_dim=4, groups=1, state_dim=4} : f32[T, 16]
    %7 = linear %3, @embd : io f32[T, 32]
    %8 = argmax %7 : io i32[T]
  }
}
`

// recurrentPlan is a host plan of recurrentProgram.
func recurrentPlan() *Plan {
	prog, err := ir.Parse(recurrentProgram)
	if err != nil {
		panic(err)
	}
	f := prog.Funcs[0]
	p := &Plan{
		Header:  Header{Target: "host", Ctx: 64, Slots: 2, KV: "f16", MaxRows: 1, Ring: 16, Model: Model{Fingerprint: "c0ffee", Shards: 1, Vocab: 32}},
		Program: prog, Require: Requirements{Backend: Host},
		Entries: []Entry{{Name: f.Name, Kind: "decode", Rows: 1, Run: 1, Class: "exact", Reach: 1, Logits: "decode/1:%7", Next: "decode/1:%8"}},
	}
	p.Entries[0].Dispatches = []Dispatch{{Site: "all", Pipeline: -1, Grid: [3]int{1, 1, 1}}}
	regions := prog.Regions()
	for _, g := range prog.Globals {
		n, err := g.Type.Bytes(1, prog.Ctx)
		if err != nil {
			panic(err)
		}
		if g.Class == ir.Weight {
			w := Weight{Name: g.Name, DType: g.Type.DType, Size: n, At: -1}
			for _, d := range g.Type.Shape {
				w.Shape = append(w.Shape, int64(d))
			}
			l, err := layout.New(w.DType, w.Shape...)
			if err != nil {
				panic(err)
			}
			w.Layout, w.Bytes = l.Name, l.Bytes
			p.Weights = append(p.Weights, w)
			continue
		}
		r := Region{Name: g.Name, Bytes: n}
		if of, ok := regions[g]; ok {
			r.Kept = KeptOf(of, n)
		}
		list := map[ir.Class]*[]Region{ir.KV: &p.Memory.KV, ir.State: &p.Memory.State, ir.Step: &p.Memory.Step}[g.Class]
		*list = append(*list, r)
	}
	for _, v := range materialized(f) {
		n, err := v.Type.Bytes(1, prog.Ctx)
		if err != nil {
			panic(err)
		}
		p.Memory.IO = append(p.Memory.IO, Region{Name: IORegion(f.Name, v), Bytes: n})
	}
	p.Require.Memory = p.MemoryBytes()
	return p
}

// TestRegionsAreChecked changes what a plan states of a cache or state, one field or several that agree in their sizes:
// the checker refuses each that is not as readers and writers have it.
func TestRegionsAreChecked(t *testing.T) {
	if bad := Check(recurrentPlan()); len(bad) > 0 {
		t.Fatal(bad)
	}
	rapid.Check(t, func(t *rapid.T) {
		p := recurrentPlan()
		lists := [][]Region{p.Memory.KV, p.Memory.State}
		list := lists[rapid.IntRange(0, 1).Draw(t, "space")]
		r := &list[rapid.IntRange(0, len(list)-1).Draw(t, "region")]
		k, was := r.Kept, *r.Kept
		number := func(name string, n int) int {
			return rapid.OneOf(rapid.IntRange(-1, n+2), rapid.SampledFrom([]int{0, 1, n - 1, n + 1, 2 * n, n / 2, 1 << 30, -1 << 62})).Draw(t, name)
		}
		switch rapid.SampledFrom([]string{"kind", "sequences", "rows", "row bytes", "window", "back", "sizes"}).Draw(t, "field") {
		case "kind":
			k.Kind = rapid.SampledFrom([]string{"", "positions", "ring", "state", "pages"}).Draw(t, "kind")
		case "sequences":
			k.Sequences = number("sequences", k.Sequences)
		case "rows":
			k.Rows = number("rows", k.Rows)
		case "row bytes":
			k.RowBytes = int64(number("bytes", int(k.RowBytes)))
		case "window":
			k.Window = number("window", k.Window)
		case "back":
			k.Back = number("back", k.Back)
		case "sizes": // that still make as many bytes
			by := rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "by")
			if k.Rows%by == 0 && rapid.Bool().Draw(t, "fewer rows") {
				k.Rows, k.RowBytes = k.Rows/by, k.RowBytes*int64(by)
				k.Back = min(k.Back, k.Rows)
			} else {
				k.Rows, k.RowBytes = k.Rows*by, k.RowBytes/int64(by)
			}
		}
		bad := Check(p)
		if *k == was {
			if len(bad) > 0 {
				t.Fatal(bad)
			}
			return
		}
		if len(bad) != 1 || bad[0].Rule != "regions" && bad[0].Rule != "schema" || !strings.Contains(bad[0].Message+bad[0].Site, r.Name) {
			t.Fatalf("%s states %s, has %s: %v", r.Name, *k, was, bad)
		}
	})
}

// TestRegionsAreStated: regions of caches and states say what they keep, and no others.
func TestRegionsAreStated(t *testing.T) {
	for _, change := range []func(m *Memory){
		func(m *Memory) { m.KV[1].Kept = nil },
		func(m *Memory) { m.State[0].Kept = nil },
		func(m *Memory) { m.Step[0].Kept = m.KV[0].Kept },
		func(m *Memory) { m.IO[0].Kept = m.KV[0].Kept },
	} {
		p := recurrentPlan()
		change(&p.Memory)
		if err := Validate(p); err == nil || !strings.Contains(err.Error(), "says what it keeps") {
			t.Error(err)
		}
	}
	for rows, good := range map[int]bool{100: true, 99: false, 101: false} { // of 4 bytes: a division alone takes 99
		p := &Plan{Header: Header{Slots: 2}, Memory: Memory{KV: []Region{{"k", 800, &Kept{Kind: "ring", Sequences: 2, Rows: rows, RowBytes: 4, Window: 10, Back: 91}}}}}
		if err := validateKept(p); good != (err == nil) || err != nil && !strings.Contains(err.Error(), "are not its 800 bytes") {
			t.Errorf("%d rows: %v", rows, err)
		}
	}
	p := recurrentPlan()
	p.Memory.KV, p.Memory.State = append(p.Memory.KV, p.Memory.State[1]), p.Memory.State[:1]
	if bad := Check(p); !slices.ContainsFunc(bad, func(b Problem) bool { return b.Rule == "regions" && b.Site == "ssd" }) {
		t.Errorf("a state among the caches: %v", bad)
	}
}

// TestPagesOfLargerContexts: all pages of all sequences grow with the context; a pool of fewer has those of one.
func TestPagesOfLargerContexts(t *testing.T) {
	for _, c := range []struct{ pages, ctx, want int }{{4*2 + 1, 128, 8}, {4*2 + 1, 129, 12}, {4*2 + 1, 64, 4}, {6, 129, 5}, {6, 64, 4}, {6, 640, 10}} {
		k := Kept{Kind: "pages", Sequences: 4, Rows: 128, RowBytes: 1, Page: 64, Pages: c.pages}
		if got := k.pagesAt(c.ctx); got != c.want {
			t.Errorf("%d pages, a context of %d: %d pages of sequences, want %d", c.pages, c.ctx, got, c.want)
		}
	}
}

// TestSeenInRings lists what rings have for a row at a position: each position that it sees, and some before these, in
// the place that the position has, in order, whichever the sequence is.
func TestSeenInRings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.IntRange(1, 300).Draw(t, "window")
		size := window + rapid.IntRange(0, 200).Draw(t, "slack")
		m := keeping(1000, func(p *ir.Program, use func(kind string, attrs ir.Attrs, args ...*ir.Value)) {
			attends(p, use, ir.L, 0)
			k := p.AddGlobal("ring", ir.KV, ir.MakeType(ir.F16, 3, ir.Dim(size), 8))
			use("attention", ir.Attrs{{Name: "window", Value: int64(window)}}, nil, k, k)
		})
		p := &Plan{Header: Header{Target: "sm_90"}, Memory: *m, Program: &ir.Program{}}
		for _, r := range m.KV {
			p.Program.AddGlobal(r.Name, ir.KV, ir.MakeType(ir.F16, 3, ir.Dim(r.Kept.Rows), 8))
		}
		pos, sequence := rapid.IntRange(0, 999).Draw(t, "pos"), rapid.IntRange(0, 2).Draw(t, "sequence")
		const row = 16 // bytes
		next := max(pos-size, ir.FirstKept(pos, window))
		if next > max(0, pos+1-window) {
			t.Fatalf("position %d is not there, which is seen at %d", next, pos)
		}
		for _, s := range p.SeenInRings(sequence, pos) {
			for at := s.Offset; at < s.Offset+s.Bytes; at += row {
				if want := int64(sequence*size+next%size) * row; s.Region != "ring" || at != want {
					t.Fatalf("a row at %d sees byte %d of %s, want %d", pos, at, s.Region, want)
				}
				next++
			}
		}
		if next != pos {
			t.Fatalf("the last position that is there at %d is %d", pos, next-1)
		}
	})
}

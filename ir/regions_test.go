package ir

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestRings checks which rings the verifier takes for a window of 200 positions and steps of 57 rows.
func TestRings(t *testing.T) {
	for _, c := range []struct{ k, v, window, want string }{
		{"L", "L", ", window=200", ""},
		{"256", "256", ", window=200", ""},
		{"512", "512", ", window=200", ""},
		{"255", "255", ", window=200", "has no room for a window of 200 positions and 57 rows"},
		{"256", "512", ", window=200", "does not hold"},
		{"256", "256", "", "is a ring, and rows see all positions"},
	} {
		text := fmt.Sprintf(`zir 1
stage import
model arch="toy" name="" path="" source="" target="" ctx=1024 slots=2 layers=1

kv @k : f16[2, %s, 32]
kv @v : f16[2, %s, 32]
weight @embd : f16[32, 64]
step @token : i32[T]
step @pos : i32[T]
step @slot : i32[T]

func "prefill/57" rows=57 sequences=one run=57 class=prompt {
  %%0 = embed @token, @embd {scale=1.0} : f32[T, 64]
  %%1 = attention %%0, @k, @v, @pos, @slot {head_dim=16, heads=4, kv_heads=2, scale=0.25%s} : f32[T, 64]
}
`, c.k, c.v, c.window)
		p, err := Parse(text)
		if err == nil {
			err = Verify(p)
		}
		if have := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(have, c.want) {
			t.Errorf("caches of %s and %s, %q: %v, want %q", c.k, c.v, c.window, err, c.want)
		}
	}
}

// TestWindows holds that a cache has the longest window that any of its readers sees, and none if one of them sees all
// positions. Who writes sees nothing.
func TestWindows(t *testing.T) {
	for _, c := range []struct {
		windows []int64
		want    int
	}{{[]int64{100}, 100}, {[]int64{0}, 0}, {[]int64{100, 200}, 200}, {[]int64{200, 100}, 200}, {[]int64{0, 100}, 0}, {[]int64{100, 0}, 0}, {[]int64{100, 0, 200}, 0}} {
		p := &Program{}
		k, v := p.AddGlobal("k", KV, MakeType(F16, 1, L, 8)), p.AddGlobal("v", KV, MakeType(F16, 1, L, 8))
		for i, w := range c.windows {
			op := &Op{Kind: LookupOp([]string{"attention", "attention_split"}[i%2]), Args: []*Value{nil, k, v}, Attrs: Attrs{{Name: "window", Value: w}}}
			p.Funcs = append(p.Funcs, &Func{Groups: []*Group{{Ops: []*Op{op}}}})
		}
		write := &Op{Kind: LookupOp("kvwrite"), Args: []*Value{nil, nil, nil, k}}
		p.Funcs = append(p.Funcs, &Func{Groups: []*Group{{Ops: []*Op{write}}}})
		if have := p.Regions(); have[k].Window != c.want || have[v].Window != c.want || len(have) != 2 {
			t.Errorf("readers of windows %d: %d and %d of %d caches, want %d", c.windows, have[k].Window, have[v].Window, len(have), c.want)
		}
	}
}

// TestRegions: what the ops of a program have of its caches and states.
func TestRegions(t *testing.T) {
	p := &Program{Ctx: 1000}
	x := &Value{Type: MakeType(F32, T, 4)}
	whole, ring := p.AddGlobal("whole", KV, MakeType(F16, 3, L, 8)), p.AddGlobal("ring", KV, MakeType(F16, 3, 512, 8))
	past, state := p.AddGlobal("past", State, MakeType(F32, 3, 16, 4)), p.AddGlobal("state", State, MakeType(F32, 3, 2, 5, 5))
	blind, unused := p.AddGlobal("blind", State, MakeType(F32, 3, 16, 4)), p.AddGlobal("unused", State, MakeType(F32, 3, 7))
	taps := p.AddGlobal("taps", Weight, MakeType(F32, 4, 3))
	add := func(kind string, attrs Attrs, args ...*Value) {
		p.Funcs = append(p.Funcs, &Func{Groups: []*Group{{Ops: []*Op{{Kind: LookupOp(kind), Args: args, Attrs: attrs}}}}})
	}
	add("attention", nil, x, whole, whole)
	add("kvwrite", nil, x, x, x, ring)
	add("attention_split", Attrs{{Name: "window", Value: int64(200)}}, x, ring, ring)
	add("conv1d", nil, x, taps, past, x, x)
	add("conv_write", nil, x, past, x, x)
	add("conv_write", nil, x, blind, x, x)
	add("deltanet", nil, x, x, x, x, x, state)
	have := p.Regions()
	for v, want := range map[*Value]Region{
		whole:  {Keep: KeepPositions, Sequences: 3, Rows: 1000, Back: 1000},
		ring:   {Keep: KeepRing, Sequences: 3, Rows: 512, Window: 200, Back: 313},
		past:   {Keep: KeepRing, Sequences: 3, Rows: 16, Window: 3, Back: 14},
		blind:  {Keep: KeepRing, Sequences: 3, Rows: 16},
		state:  {Keep: KeepState, Sequences: 3, Rows: 1},
		unused: {Keep: KeepState, Sequences: 3, Rows: 1},
	} {
		if have[v] != want {
			t.Errorf("%s: %+v, want %+v", v, have[v], want)
		}
	}
	if len(have) != 6 {
		t.Errorf("%d regions, want 6", len(have))
	}
}

// TestEveryKeeperSays: an op that has slots or writes what is no step block says of which operand it is, and no other
// op does.
func TestEveryKeeperSays(t *testing.T) {
	for _, k := range OpKinds() {
		if k.Name == "advance" || k.Name == "delta_chunk" { // the step block; rows of one sequence and no state
			continue
		}
		if (k.Slots != Slotless) != (len(k.Keeps) > 0) {
			t.Errorf("%s: slots are used as %d, and %d operands are caches or states", k.Name, k.Slots, len(k.Keeps))
		}
		for _, w := range k.Writes {
			if !slices.ContainsFunc(k.Keeps, func(o Kept) bool { return o.Arg == w }) {
				t.Errorf("%s writes %s, which is no cache or state", k.Name, k.Params[w])
			}
		}
		for _, o := range k.Keeps {
			if written := slices.Contains(k.Writes, o.Arg); !written && o.Sees == nil {
				t.Errorf("%s neither reads nor writes %s", k.Name, k.Params[o.Arg])
			}
		}
	}
}

// TestKeptClasses: the operands of ops that keep something are caches, or states.
func TestKeptClasses(t *testing.T) {
	text := `zir 1
stage import
model arch="toy" name="" path="" source="" target="" ctx=1024 slots=2 layers=1

%s @k : f16[2, L, 64]
weight @embd : f16[32, 64]
step @token : i32[T]
step @pos : i32[T]
step @slot : i32[T]

func "f" rows=1 sequences=one run=1 class=exact {
  %%0 = embed @token, @embd {scale=1.0} : f32[T, 64]
  kvwrite %%0, @pos, @slot, @k
}
`
	if _, err := Parse(fmt.Sprintf(text, "kv")); err != nil {
		t.Error(err)
	}
	if _, err := Parse(fmt.Sprintf(text, "state")); err == nil || !strings.Contains(err.Error(), "kvwrite: operand cache has class state, want kv") {
		t.Errorf("a state as a cache: %v", err)
	}
}

// TestCachesAreWhole holds that a KV cache has slots, positions and elements: what reads plans counts on it.
func TestCachesAreWhole(t *testing.T) {
	for _, shape := range []string{"8", "2, L", "1, 2, L, 4"} {
		p, err := Parse(fmt.Sprintf("zir 1\nstage import\nmodel arch=\"toy\" name=\"\" path=\"\" source=\"\" target=\"\" ctx=1024 slots=2 layers=1\n\nkv @x : f16[%s]\n", shape))
		if err == nil {
			err = VerifyStructure(p)
		}
		if err == nil || !strings.Contains(err.Error(), "a KV cache has slots, positions and elements") {
			t.Errorf("f16[%s]: %v", shape, err)
		}
	}
}

// TestRingPositions holds that a cache has room for a step and never more than the context, and that no longer context
// has less.
func TestRingPositions(t *testing.T) {
	for _, c := range []struct{ window, rows, ctx, want int }{
		{0, 512, 4096, 4096}, {512, 512, 4096, 1024}, {512, 512, 8192, 1536}, {512, 513, 4096, 1024}, {512, 514, 4096, 1280},
		{512, 512, 16384, 2560}, {512, 512, 1 << 20, 2560}, {512, 512, 700, 700}, {4096, 1, 4096, 4096},
	} {
		if have := RingPositions(c.window, c.rows, c.ctx); have != c.want {
			t.Errorf("window %d, %d rows, context %d: %d positions, want %d", c.window, c.rows, c.ctx, have, c.want)
		}
	}
	for _, window := range []int{0, 1, 128, 1024} {
		for ctx, last := 1, 0; ctx < 20000; ctx += 37 {
			n := RingPositions(window, 300, ctx)
			if n < last || n > ctx || n < min(ctx, window+299) {
				t.Errorf("window %d, context %d: %d positions, %d before", window, ctx, n, last)
			}
			last = n
		}
	}
}

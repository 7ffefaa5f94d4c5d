package plans

import (
	"reflect"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

// TestLargeNumbers: 64-bit fields keep all of their bits.
func TestLargeNumbers(t *testing.T) {
	p := testPlan(t, false)
	const large = 5<<40 + 3
	p.Weights[0].Offset, p.Header.Model.Parameters = large, large
	p.Entries[0].Dispatches[0].Cost.FLOPs = large
	q, err := Decode(encoded(t, p))
	if err != nil {
		t.Fatal(err)
	}
	if q.Weights[0].Offset != large || q.Header.Model.Parameters != large || q.Entries[0].Dispatches[0].Cost.FLOPs != large {
		t.Errorf("%d, %d and %d, want %d", q.Weights[0].Offset, q.Header.Model.Parameters, q.Entries[0].Dispatches[0].Cost.FLOPs, int64(large))
	}
}

// TestSchemaTellsStructs: fields of other names, orders and types are another schema.
func TestSchemaTellsStructs(t *testing.T) {
	seen := map[string]reflect.Type{}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[struct{ A, B int }](), reflect.TypeFor[struct{ B, A int }](), reflect.TypeFor[struct{ A, C int }](),
		reflect.TypeFor[struct{ A, B int64 }](), reflect.TypeFor[struct{ A, B []int }](), reflect.TypeFor[struct{ A, B [2]int }](),
		reflect.TypeFor[struct{ A, B [3]int }](), reflect.TypeFor[struct{ A, B *int }](), reflect.TypeFor[struct{ A, B ir.DType }](),
		reflect.TypeFor[struct{ A int }](),
	} {
		s := schema(typ)
		if seen[s] != nil {
			t.Errorf("%s and %s have schema %s", seen[s], typ, s)
		}
		seen[s] = typ
	}
}

// TestRecurrent: the ring of a convolution is state, though at position 0 there is nothing of it to keep.
func TestRecurrent(t *testing.T) {
	p := &ir.Program{}
	p.AddGlobal("k", ir.KV, ir.MakeType(ir.F16, 3, ir.L, 8))
	if Recurrent(p) {
		t.Error("a KV cache is no recurrent state")
	}
	p.AddGlobal("conv", ir.State, ir.MakeType(ir.F32, 3, 16, 4))
	if !Recurrent(p) {
		t.Error("the ring of a convolution is recurrent state")
	}
}

// TestStateSpans: the state of a slot is its own, whichever slot it is.
func TestStateSpans(t *testing.T) {
	p := &ir.Program{}
	x := &ir.Value{Type: ir.MakeType(ir.F32, ir.T, 4)}
	p.AddGlobal("k", ir.KV, ir.MakeType(ir.F16, 3, ir.L, 8))
	p.AddGlobal("delta", ir.State, ir.MakeType(ir.F32, 3, 2, 5))
	ring := p.AddGlobal("conv", ir.State, ir.MakeType(ir.F32, 3, 16, 4))
	taps := p.AddGlobal("taps", ir.Weight, ir.MakeType(ir.F32, 4, 3))
	p.Funcs = []*ir.Func{{Name: "f", Groups: []*ir.Group{{Ops: []*ir.Op{{Kind: ir.LookupOp("conv1d"), Args: []*ir.Value{x, taps, ring}}}}}}}
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
		if have := StateSpans(p, c.slot, c.pos); !slices.Equal(have, c.want) {
			t.Errorf("slot %d at %d: %v, want %v", c.slot, c.pos, have, c.want)
		}
	}
}

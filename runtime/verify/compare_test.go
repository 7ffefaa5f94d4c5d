package verify

import (
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/runtime/step"
)

// TestProducts: errors of a gated product are measured by the factors' rows, where the group makes them.
func TestProducts(t *testing.T) {
	gate, up := []float32{8, 1, -1, 2}, []float32{0.5, -4, 2, 1}
	for _, c := range []struct {
		gate, up bool
		beside   float32
		want     []float32
	}{
		{true, true, 0, []float32{8*0.5 + 8*4, 8*4 + 1*4, 2*2 + 1*2, 2*1 + 2*2}},
		{true, false, 0, []float32{8 * 0.5, 8 * 4, 2 * 2, 2 * 1}},
		{false, true, 0, []float32{8 * 4, 1 * 4, 1 * 2, 2 * 2}},
		{true, false, 1, []float32{8 * 1.5, 8 * 5, 2 * 3, 2 * 2}},
		{false, false, 0, []float32{0, 0, 0, 0}},
	} {
		if got := products(gate, up, 2, c.gate, c.up, c.beside); !slices.Equal(got, c.want) {
			t.Errorf("made %v %v: %v, want %v", c.gate, c.up, got, c.want)
		}
	}
}

// TestCompareProducts: an error that the row's largest number does not explain is tolerated where a factor's does, and
// nowhere else.
func TestCompareProducts(t *testing.T) {
	v := &ir.Value{Type: ir.MakeType(ir.F32, ir.T, 2)}
	for _, c := range []struct {
		products []float32
		off      float32
		ok       bool
	}{
		{nil, 1e-6, true},
		{nil, 1e-4, false},
		{[]float32{40, 0}, 1e-4, true},
		{[]float32{0, 40}, 1e-4, false},
		{[]float32{40, 0}, 1e-3, false},
	} {
		d := &dispatch{step: trial{rows: make([]step.Row, 1)}, group: &ir.Group{}}
		d.compareRow(v, runs(v), 0, 0, c.products, []float32{1 + c.off, 0.5}, []float32{1, 0.5})
		if ok := d.result.Difference == nil; ok != c.ok {
			t.Errorf("%v, off by %g: %v", c.products, c.off, ok)
		}
	}
}

// TestStatesTogether: errors of a recurrent state are measured by the largest number of its head, whose matrix they are
// part of; those of a log by the largest of the log.
func TestStatesTogether(t *testing.T) {
	for _, c := range []struct {
		kind        string
		rows, width ir.Dim
		attrs       ir.Attrs
		want        []int
	}{
		{"deltanet", 128, 128, ir.Attrs{{Name: "head_dim", Value: int64(128)}}, []int{128 * 128}},
		{"deltanet", 136, 128, ir.Attrs{{Name: "head_dim", Value: int64(128)}}, []int{128 * 128, 8 * 128}},
		{"ssd", 64, 128, ir.Attrs{{Name: "head_dim", Value: int64(64)}, {Name: "state_dim", Value: int64(128)}}, []int{64 * 128}},
		{"conv_write", 16, 128, nil, nil},
	} {
		state := &ir.Value{Class: ir.State, Type: ir.MakeType(ir.F32, 1, 2, c.rows, c.width)}
		op := &ir.Op{Kind: &ir.OpKind{Name: c.kind, Writes: []int{0}}, Args: []*ir.Value{state}, Attrs: c.attrs}
		d := &dispatch{group: &ir.Group{Ops: []*ir.Op{op}}}
		if n := d.together(state, int(2*c.rows*c.width)); !slices.Equal(n, c.want) {
			t.Errorf("%s: %d elements, want %d", c.kind, n, c.want)
		}
	}
}

package oracle

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

// attends runs steps of one row that writes keys and values and attends to all before, of two slots by turns, and
// returns what the rows of slot 0 attend to. table is the block table; nil: the caches do not lie in pages.
func attends(t *testing.T, table []int32) ([]float32, error) {
	t.Helper()
	shape, pages, as := "2, L", "", ""
	if table != nil {
		shape, pages, as = "6, 64", ", @pages", " as pages"
	}
	globals := fmt.Sprintf("step @pos : i32[T]\nstep @slot : i32[T]\nstep @n : i32[1]\nstep @x : f32[T, 8]\nkv @k : f16[%[1]s, 8]%[2]s\nkv @v : f16[%[1]s, 8]%[2]s", shape, as)
	if table != nil {
		globals += "\nstep @pages : i32[2, 2]"
	}
	p := parse(t, 100, 2, 1, globals, fmt.Sprintf(`kvwrite @x, @pos, @slot, @k%[1]s
kvwrite @x, @pos, @slot, @v%[1]s
%%0 = attention @x, @k, @v, @pos, @slot%[1]s {head_dim=8, heads=1, kv_heads=1, scale=0.5} : io f32[T, 8]`, pages))
	m, err := New(t.Context(), p, source{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if table != nil {
		copy(m.Ints(p.Global(ir.StepPages)), table)
	}
	var got []float32
	for pos := range 100 {
		for slot := range 2 {
			m.Ints(p.Global("pos"))[0], m.Ints(p.Global("slot"))[0], m.Ints(p.Global("n"))[0] = int32(pos), int32(slot), 1
			for i := range 8 {
				m.Floats(p.Global("x"))[i] = float32((pos*7+i*3+slot*5)%11) - 5
			}
			if err := m.Run(t.Context(), p.Funcs[0]); err != nil {
				return got, err
			}
			if slot == 0 {
				got = append(got, m.Floats(p.Funcs[0].Groups[2].Ops[0].Result)...)
			}
		}
	}
	return got, nil
}

// TestPages: rows see the same in pages, whichever they have; nobody writes to or reads from a page that is nobody's,
// none or another's.
func TestPages(t *testing.T) {
	want, err := attends(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range [][]int32{{1, 2, 3, 4}, {5, 1, 2, 4}} {
		if got, err := attends(t, table); err != nil || !slices.Equal(got, want) {
			t.Errorf("block table %d: %v, or other rows", table, err)
		}
	}
	for _, c := range []struct {
		table []int32
		why   string
	}{
		{[]int32{1, 0, 3, 4}, "slot 0 has page 0 for its positions from 64 on"},
		{[]int32{1, 2, 6, 4}, "slot 1 has page 6"},
		{[]int32{1, -2, 3, 4}, "slot 0 has page -2"},
		{[]int32{1, 2, 1, 4}, "slot 0 writes position 0 into page 1, which slot 1 has, too"},
		{[]int32{1, 1, 3, 4}, "which slot 0 has, too"},
	} {
		if _, err := attends(t, c.table); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("block table %d: %v, want %q", c.table, err, c.why)
		}
	}
}

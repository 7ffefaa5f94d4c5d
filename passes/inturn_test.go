package passes

import (
	"fmt"
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

// TestInTurn holds that of two projections of a stage the one with float32 weights comes a stage before one with
// weights of a few bits that has much work, whichever is first in the program, and that what follows stays behind both.
func TestInTurn(t *testing.T) {
	for _, c := range []struct {
		rows         int
		first, other ir.DType
		want         []int // stages of the embedding, of the two by their place in the program, of their sum
	}{
		{4, ir.Q4_K, ir.F32, []int{0, 2, 1, 3}},
		{4, ir.F32, ir.Q4_K, []int{0, 1, 2, 3}},
		{2, ir.Q4_K, ir.F32, []int{0, 1, 1, 2}}, // too little work
		{4, ir.Q4_K, ir.Q6_K, []int{0, 1, 1, 2}},
		{4, ir.F32, ir.F32, []int{0, 1, 1, 2}},
	} {
		t.Run(fmt.Sprint(c.rows, c.first, c.other), func(t *testing.T) {
			const k, width = 8192, 8192 + 256
			p := &ir.Program{Ctx: 8, Slots: 1, Stage: ir.Schedule}
			token := p.AddGlobal("token", ir.Step, ir.MakeType(ir.I32, ir.T))
			table := p.AddGlobal("table", ir.Weight, ir.MakeType(ir.F32, 4, k))
			one, other := p.AddGlobal("one", ir.Weight, ir.MakeType(c.first, width, k)), p.AddGlobal("other", ir.Weight, ir.MakeType(c.other, width, k))
			f := &ir.Func{Name: fmt.Sprint("decode/", c.rows), Rows: c.rows, Run: c.rows, Class: ir.ExactStep}
			p.Funcs = []*ir.Func{f}
			b := ir.NewBuilder(f)
			put := func(kind string, args ...*ir.Value) *ir.Value {
				v, err := b.Op(kind, nil, args...)
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
			x, err := b.Op("embed", ir.Attrs{{Name: "scale", Value: 1.0}}, token, table)
			if err != nil {
				t.Fatal(err)
			}
			put("add", put("linear", x, one), put("linear", x, other))
			groups := append([]*ir.Group(nil), f.Groups...)
			assignStages(f)
			inTurn(f)
			for i, g := range groups {
				if g.Stage != c.want[i] {
					t.Errorf("group %d has stage %d, want %d", i, g.Stage, c.want[i])
				}
			}
			for i, g := range f.Groups[1:] {
				if f.Groups[i].Stage > g.Stage {
					t.Errorf("a group of stage %d is before one of stage %d", f.Groups[i].Stage, g.Stage)
				}
			}
			if err := ir.VerifyStructure(p); err != nil {
				t.Error(err)
			}
		})
	}
}

package passes

import (
	"fmt"
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

// TestInTurn holds that of two projections of a stage the one with float32 weights comes a stage before one with
// weights of a few bits that has much work, whichever is first in the program, or a stage behind it in steps of many
// rows, and that what follows stays behind both.
func TestInTurn(t *testing.T) {
	for _, c := range []struct {
		rows         int
		first, other ir.DType
		want         []int // stages of the embedding, of the two by their place in the program, of their sum
	}{
		{4, ir.Q4_K, ir.F32, []int{0, 2, 1, 3}},
		{4, ir.F32, ir.Q4_K, []int{0, 1, 2, 3}},
		{8, ir.Q4_K, ir.F32, []int{0, 1, 2, 3}},
		{16, ir.F32, ir.Q4_K, []int{0, 2, 1, 3}},
		{1, ir.Q4_K, ir.F32, []int{0, 1, 1, 2}}, // too little work
		{4, ir.Q4_K, ir.Q6_K, []int{0, 1, 1, 2}},
		{4, ir.F32, ir.F32, []int{0, 1, 1, 2}},
	} {
		t.Run(fmt.Sprint(c.rows, c.first, c.other), func(t *testing.T) {
			const k, width = 8192, 8192 + 256
			p := &ir.Program{Ctx: 8, Slots: 1, Stage: ir.Schedule}
			token := p.AddGlobal("token", ir.Step, ir.MakeType(ir.I32, ir.T))
			table := p.AddGlobal("table", ir.Weight, ir.MakeType(ir.F32, 4, k))
			one, other := p.AddGlobal("one", ir.Weight, ir.MakeType(c.first, width, k)), p.AddGlobal("other", ir.Weight, ir.MakeType(c.other, width, k))
			f := &ir.Func{Name: fmt.Sprint("decode/", c.rows), Rows: c.rows, Run: min(c.rows, 8), Sequences: ir.ManySequences, Class: ir.ExactStep}
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

// TestExpertsTakeTurns holds that a projection comes a stage before one of experts in steps of more rows than a
// sequence has, whichever is first in the program, a stage behind it in steps of many, and beside it in others.
func TestExpertsTakeTurns(t *testing.T) {
	for _, c := range []struct {
		rows  int
		first bool  // the experts
		want  []int // stages of the two by their place in the program
	}{{16, false, []int{0, 1}}, {16, true, []int{1, 0}}, {32, false, []int{1, 0}}, {8, true, []int{0, 0}}} {
		p := &ir.Program{Ctx: 8, Slots: 1, Stage: ir.Schedule}
		x, ids := p.AddGlobal("x", ir.Step, ir.MakeType(ir.F32, ir.T, 64)), p.AddGlobal("ids", ir.Step, ir.MakeType(ir.I32, ir.T, 2))
		one, many := p.AddGlobal("one", ir.Weight, ir.MakeType(ir.Q8_0, 32, 64)), p.AddGlobal("many", ir.Weight, ir.MakeType(ir.Q4_0, 4, 32, 64))
		f := &ir.Func{Name: fmt.Sprint("decode/", c.rows), Rows: c.rows, Run: 8, Class: ir.ExactStep}
		p.Funcs = []*ir.Func{f}
		b := ir.NewBuilder(f)
		project := func() {
			if _, err := b.Op("linear", nil, x, one); err != nil {
				t.Fatal(err)
			}
		}
		if !c.first {
			project()
		}
		if _, err := b.Op("expert_linear", ir.Attrs{{Name: "first", Value: int64(0)}, {Name: "rows", Value: int64(32)}}, x, many, ids); err != nil {
			t.Fatal(err)
		}
		if c.first {
			project()
		}
		groups := append([]*ir.Group(nil), f.Groups...)
		assignStages(f)
		inTurn(f)
		for i, g := range groups {
			if g.Stage != c.want[i] {
				t.Errorf("%d rows, experts first %t: group %d has stage %d, want %d", c.rows, c.first, i, g.Stage, c.want[i])
			}
		}
	}
}

// TestBesideProducts holds that a projection moves from the stage that packs its x to that of the products behind it,
// unless what reads its result comes there.
func TestBesideProducts(t *testing.T) {
	for reader, want := range map[string]int{"": 0, "next": 0, "sums": 1} {
		p := &ir.Program{Ctx: 8, Slots: 1, Stage: ir.Schedule}
		x, w := p.AddGlobal("x", ir.Step, ir.MakeType(ir.F32, ir.T, 256)), p.AddGlobal("w", ir.Weight, ir.MakeType(ir.Q4_K, 256, 256))
		gates := p.AddGlobal("gates", ir.Weight, ir.MakeType(ir.F32, 256, 256))
		f := &ir.Func{Name: "decode/16", Rows: 16, Run: 8, Class: ir.ExactStep}
		p.Funcs = []*ir.Func{f}
		b := ir.NewBuilder(f)
		op := func(kind string, attrs ir.Attrs, args ...*ir.Value) *ir.Value {
			v, err := b.Op(kind, attrs, args...)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		packs := ir.Attrs{{Name: "rows", Value: int64(16)}, {Name: "columns", Value: int64(16)}, {Name: "lanes", Value: "now"}}
		packed, gate := op("pack12", packs, x), op("linear", nil, x, gates)
		beside := f.Groups[1]
		if reader == "next" {
			op("relu2", nil, gate)
		}
		parts := op("linear_parts", ir.Attrs{{Name: "each", Value: int64(256)}}, op("unpack12", packs, packed), w)
		f.Groups[len(f.Groups)-2].Ops = append(f.Groups[len(f.Groups)-2].Ops, parts.Def)
		f.Groups = f.Groups[:len(f.Groups)-1]
		if sum := op("add_parts", ir.Attrs{{Name: "count", Value: int64(1)}}, parts); reader == "sums" {
			op("mul", nil, sum, gate)
		}
		assignStages(f)
		besideProducts(f)
		if beside.Stage != want {
			t.Errorf("with a reader %q: stage %d, want %d", reader, beside.Stage, want)
		}
	}
}

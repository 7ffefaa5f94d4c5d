package oracle

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

// TestDeltaChunkIsTheSame holds the rule chunk by chunk against the rule row by row: two
// steps of a slot, the second from the state that the first has left.
func TestDeltaChunkIsTheSame(t *testing.T) {
	const d, keys, heads, slots, rows = 12, 2, 4, 2, 21
	for _, headMap := range []string{"mod", "div"} {
		globals, _ := deltaProgram(slots, d, keys, heads, headMap)
		attrs := fmt.Sprintf("head_dim=%d, k_heads=%d, v_heads=%d, map=%q", d, keys, heads, headMap)
		var machines []*Machine
		for _, body := range []string{
			fmt.Sprintf(`%%0 = l2norm @q {eps=1e-6, group=%[1]d} : f32[T, %[2]d]
%%1 = l2norm @k {eps=1e-6, group=%[1]d} : f32[T, %[2]d]
%%2 = deltanet %%0, %%1, @v, @g, @beta, @s, @pos, @slot {%[3]s, scale=0.5} : io f32[T, %[4]d]`, d, keys*d, attrs, heads*d),
			fmt.Sprintf(`%%0 = delta_chunk @q, @k, @g, @beta {%[1]s, scale=0.5, eps=1e-6} : f32[T, %[2]d]
%%1 = deltanet_chunked @q, @k, @v, %%0, @s, @pos, @slot {%[1]s} : io f32[T, %[3]d]`, attrs, heads*20, heads*d),
		} {
			machines = append(machines, machine(t, parseFor(t, ir.OneSequence, 100, slots, rows, globals, body), nil, Options{}))
		}
		r := rand.New(rand.NewPCG(3, 4))
		draw := deltaInputs(r, d, keys, heads)
		draw["q"] = func() []float32 { return random(r, keys*d) }
		draw["k"] = draw["q"]
		for step := range 2 {
			for _, name := range []string{"q", "k", "v", "g", "beta"} {
				var all []float32
				for range rows {
					all = append(all, draw[name]()...)
				}
				for _, m := range machines {
					m.setFloats(name, all...)
				}
			}
			for _, m := range machines {
				for i := range rows {
					m.Ints(m.prog.Global("pos"))[i], m.Ints(m.prog.Global("slot"))[i] = int32(step*rows+i), 1
				}
				run(t, m)
			}
			rule, chunked := machines[0], machines[1]
			near(t, "result", chunked.Floats(chunked.last()), floats64(rule.Floats(rule.last())), 1e-5)
			near(t, "state", chunked.Floats(chunked.prog.Global("s")), floats64(rule.Floats(rule.prog.Global("s"))), 1e-5)
		}
		m := machines[1]
		m.Ints(m.prog.Global("slot"))[rows-1] = 0
		if err := m.Run(t.Context(), m.prog.Funcs[0]); err == nil {
			t.Error("rows of two slots")
		}
	}
}

func floats64(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// TestChunkOfBadPositions: a chunk of a step with parts that has positions of more than a run is refused.
func TestChunkOfBadPositions(t *testing.T) {
	p, err := ir.Parse(ir.Print(&ir.Program{Ctx: 64, Slots: 2}) + `step @q : f32[T, 4]
step @g : f32[T, 1]
step @other : i32[T]
step @n : i32[1]
func "f" rows=8 sequences=many run=8 class=prompt part=4 {
  %0 = delta_chunk @q, @q, @g, @g, @other {head_dim=4, k_heads=1, v_heads=1, map="mod", scale=0.5, eps=1e-6} : io f32[T, 20]
}
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, last := range []int32{8, 1 << 30, -1} {
		m := machine(t, p, nil, Options{})
		m.setInts("other", 0, 1, 2, 3, 4, 5, 6, last)
		m.setInts("n", 8)
		if err := m.Run(t.Context(), p.Funcs[0]); err == nil || !strings.Contains(err.Error(), "row 0: positions 0 to "+fmt.Sprint(last)) {
			t.Errorf("last position %d: %v", last, err)
		}
	}
}

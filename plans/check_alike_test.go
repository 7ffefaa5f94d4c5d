package plans

import (
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

// TestSummed: rows that another group has packed count as rows that a group rounds itself, behind a norm where there
// are squares; and what adds up parts of products counts as part of what makes them.
func TestSummed(t *testing.T) {
	const packing = "{rows=32, columns=16, lanes=\"n-w\"}"
	const packed = "%1 = unpack12 @packed " + packing + " : f32[T, 256]\n"
	for _, c := range []struct {
		name, ops string // a blank line is between groups
		want      []string
	}{
		{"packed", packed + "%2 = linear %1, @w : io f32[T, 256]", []string{"fixed12 linear"}},
		{"packs", "%0 = squares @x : io f32[T, 2]\n%1 = pack12 @x " + packing + " : io i32[2, 2368]", []string{""}},
		{"its own parts", packed + "%2 = linear_parts %1, @w {each=256} : f32[T, 256]\n%3 = add_parts %2 {count=1} : io f32[T, 256]", []string{"fixed12 linear"}},
		{"parts", packed + "%2 = linear_parts %1, @w {each=256} : f32[T, 256]\n%3 = linear_parts %1, @w {each=256} : f32[T, 256]\n" +
			"\n%4 = relu2 @x : io f32[T, 256]\n" +
			"\n%5 = squares @x : f32[T, 2]\n%6 = add_parts %2, %5 {count=1, eps=1e-06} : f32[T, 256]\n%7 = add_parts %3, %5, @b {count=1, eps=1e-06} : f32[T, 256]\n" +
			"%8 = glu %6, %7 {act=\"silu\"} : f32[T, 256]\n%9 = pack12 %8 " + packing + " : io i32[2, 2368]",
			[]string{"rmsnorm fixed12 linear linear glu", "relu2", ""}},
		{"normed", packed + "%2 = linear_parts %1, @w {each=256} : f32[T, 256]\n" +
			"\n%3 = squares @x : f32[T, 2]\n%4 = add_parts %2, %3 {count=1, eps=1e-06} : io f32[T, 256]",
			[]string{"rmsnorm fixed12 linear", ""}},
		{"parts of nothing", "%0 = add_parts @x {count=2} : io f32[T, 128]", []string{"add_parts"}},
	} {
		p, err := ir.Parse(ir.Print(&ir.Program{Ctx: 8, Slots: 1}) + `
weight @w : f32[256, 256]
weight @b : f32[256]
step @x : f32[T, 256]
step @packed : i32[2, 2368]
func "f" rows=8 sequences=many run=8 class=exact {
` + c.ops + "\n}\n")
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		f := p.Funcs[0]
		ops, have := f.Ops(), []string{}
		f.Groups = nil
		for _, lines := range strings.Split(c.ops, "\n\n") {
			n := strings.Count(strings.TrimSpace(lines), "\n") + 1
			f.Groups = append(f.Groups, &ir.Group{Ops: ops[:n]})
			ops = ops[n:]
		}
		for _, g := range f.Groups {
			have = append(have, strings.Join(summed(f, g), " "))
		}
		if !slices.Equal(have, c.want) {
			t.Errorf("%s: %q, want %q", c.name, have, c.want)
		}
	}
}

package plans

import (
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

// TestCheckParts breaks what an entry with parts says of the rows that get logits.
func TestCheckParts(t *testing.T) {
	const right = `weight @w : f32[32, 4] as raw
step @x : f32[T, 4]
step @n : i32[1]
step @out : i32[16]
step @head_rows : i32[2]
func "prefill/8" rows=8 sequences=many run=8 class=alike part=4 {
  %0 = take_rows @x, @head_rows {count=2} : f32[2, 4]
  %1 = linear %0, @w : io f32[2, 32]
  %2 = argmax %1 : io i32[2]
}
`
	for _, c := range []struct {
		name    string
		changes []string // each text and what stands for it
		want    string
	}{
		{"nothing", nil, ""},
		{"tokens as rows", []string{"@x, @head_rows", "@x, @out"}, "rows that get logits are those of out, not of head_rows"},
		{"one row", []string{"take_rows @x, @head_rows {count=2} : f32[2, 4]", "last_row @x, @n : f32[1, 4]", "f32[2, 32]", "f32[1, 32]", "i32[2]\n}", "i32[1]\n}"}, "logits f32[1, 32] in an entry of kind \"prefill\""},
		{"ids of one row", []string{"%2 = argmax %1 : io i32[2]", "%2 = last_row @x, @n : f32[1, 4]\n  %3 = linear %2, @w : f32[1, 32]\n  %4 = argmax %3 : io i32[1]"}, "next ids i32[1] in an entry of kind \"prefill\""},
		{"no heads", []string{"part=4", "part=8", "step @head_rows : i32[2]\n", "", "take_rows @x, @head_rows {count=2} : f32[2, 4]", "last_row @x, @n : f32[1, 4]", "f32[2, 32]", "f32[1, 32]", "i32[2]\n}", "i32[1]\n}"}, "the step block no head_rows of 1 rows"},
		{"heads of a table", []string{"step @head_rows", "weight @head_rows", "i32[2]\nfunc", "i32[2] as raw\nfunc"}, "no head_rows of 2 rows"},
	} {
		prog, err := ir.Parse(ir.Print(&ir.Program{Ctx: 32, Slots: 3}) + strings.NewReplacer(c.changes...).Replace(right))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		f := prog.Funcs[0]
		e := Entry{Name: f.Name, Kind: "prefill", Rows: f.Rows, Run: f.Run, Class: f.Class.String(), Part: f.Part}
		for _, op := range f.Ops() {
			if v := op.Result; v.Class == ir.IO {
				*e.Result(op) = IORegion(f.Name, v)
			}
		}
		chk := &checker{plan: &Plan{Header: Header{Model: Model{Vocab: 32}}, Program: prog, Entries: []Entry{e}}}
		checkEntries(chk)
		if c.want == "" && len(chk.problems) > 0 || c.want != "" && !slices.ContainsFunc(chk.problems, func(p Problem) bool { return p.Rule == "entry" && strings.Contains(p.Message, c.want) }) {
			t.Errorf("%s: %v, want %q", c.name, chk.problems, c.want)
		}
	}
}

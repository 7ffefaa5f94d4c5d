package ir

import (
	"slices"
	"strings"
	"testing"
)

func TestPack12Lanes(t *testing.T) {
	list, err := Pack12Lanes("n-- aow n-h")
	if want := []PackLanes{{}, {Apart: true, Odd: true, Totals: 8}, {Totals: 16}}; err != nil || !slices.Equal(list, want) {
		t.Errorf("%+v, %v; want %+v", list, err, want)
	}
	for _, wrong := range []string{"", "n", "n-", "n--w", "x--", "nx-", "n-x", "N--", "n-w,a--", "n--  a--", " n--", "n-- n--", "n-- a-- no- ao- n-w", "ñ-", strings.Repeat("n-- ", 1<<16)} {
		if list, err := Pack12Lanes(wrong); err == nil {
			t.Errorf("lanes %.40q are taken: %+v", wrong, list)
		}
	}
}

// TestPackLanes holds that the vectors of a run have each of its elements once.
func TestPackLanes(t *testing.T) {
	for _, l := range []PackLanes{{}, {Apart: true}} {
		var have, want []int
		for v := range PackCodes {
			for q := range 4 {
				for _, e := range l.Elements(v, q) {
					if e/PackRun != v/4 {
						t.Errorf("%+v: element %d in vector %d", l, e, v)
					}
					have = append(have, e)
				}
			}
		}
		for e := range PackBlock {
			want = append(want, e)
		}
		slices.Sort(have)
		if !slices.Equal(have, want) {
			t.Errorf("%+v: elements %v", l, have)
		}
	}
}

// TestPacked holds that every word is of one vector or scale of one row.
func TestPacked(t *testing.T) {
	k := LookupOp("pack12")
	p, err := PackedOf(&Op{Kind: k, Args: []*Value{{Type: MakeType(F32, T, 512)}}, Attrs: packing(96, 32, "n-- a--")})
	if err != nil {
		t.Fatal(err)
	}
	n, err := p.Type().Elements(1, 1)
	if err != nil || n != 2*96*2*148 {
		t.Fatalf("%s, %d words, %v", p.Type(), n, err)
	}
	seen := make([]bool, n)
	take := func(i, row int) {
		if seen[i] || p.Row(i) != row {
			t.Fatalf("word %d of row %d: twice (%v), or of row %d", i, row, seen[i], p.Row(i))
		}
		seen[i] = true
	}
	for l := range p.Lanes {
		for row := range p.Rows {
			for block := range p.Blocks {
				for _, i := range p.Scales(l, row, block) {
					take(i, row)
				}
				for v := range PackScales {
					for q := range 4 {
						take(p.Vector(l, row, block, v)+q, row)
					}
				}
			}
		}
	}
	if slices.Contains(seen, false) {
		t.Error("a word is of no row")
	}
}

func packing(rows, columns int64, lanes string) Attrs {
	return Attrs{{"rows", rows}, {"columns", columns}, {"lanes", lanes}}
}

// TestPacksAreBounded refuses what is odd, and what would make the size of the result overflow.
func TestPacksAreBounded(t *testing.T) {
	row := func(k Dim) *Value { return &Value{Type: MakeType(F32, T, k)} }
	vector := func(k Dim) *Value { return &Value{Type: MakeType(F32, k)} }
	words := func(n, w Dim) *Value { return &Value{Type: MakeType(I32, n, w)} }
	some, two := packing(32, 16, "n-w"), packing(32, 16, "n-w aoh")
	whole := func(a Attrs, is int64) Attrs { return append(slices.Clone(a), Attr{"whole", is}) }
	for _, c := range []struct {
		op    string
		attrs Attrs
		args  []*Value
		want  Type // none if it is refused
	}{
		{"squares", nil, []*Value{row(512)}, MakeType(F32, T, 4)},
		{"squares", nil, []*Value{row(128)}, Type{}},
		{"squares", nil, []*Value{row(1 << 61)}, Type{}},
		{"squares", nil, []*Value{vector(512)}, Type{}},
		{"squares", nil, []*Value{{Type: MakeType(F16, T, 512)}}, Type{}},
		{"squares", nil, []*Value{{Type: MakeType(F32, 8, 512)}}, MakeType(F32, 8, 4)},
		{"squares", nil, []*Value{{Type: MakeType(F32, L, 512)}}, Type{}},
		{"squares", nil, []*Value{{Type: MakeType(F32, 512, T)}}, Type{}},

		{"pack12", some, []*Value{row(512)}, MakeType(I32, 4, 2368)},
		{"pack12", two, []*Value{row(512), vector(512)}, MakeType(I32, 8, 2368)},
		{"pack12", packing(1<<20, 16, "n-- no- n-w now"), []*Value{row(1 << 24)}, MakeType(I32, 1<<34, 2368)},
		{"pack12", some, []*Value{row(512), vector(256)}, Type{}},
		{"pack12", some, []*Value{row(384)}, Type{}},
		{"pack12", some, []*Value{row(1 << 61)}, Type{}},
		{"pack12", some, []*Value{{Type: MakeType(I32, T, 512)}}, Type{}},
		{"pack12", some, []*Value{{Type: MakeType(F32, 32, 512)}}, MakeType(I32, 4, 2368)},
		{"pack12", some, []*Value{{Type: MakeType(F32, 8, 512)}}, Type{}},
		{"pack12", some, []*Value{{Type: MakeType(F32, 64, 512)}}, Type{}},
		{"pack12", some, []*Value{{Type: MakeType(F32, T, 2, 512)}}, Type{}},
		{"pack12", packing(32, 16, "n-x"), []*Value{row(512)}, Type{}},
		{"pack12", packing(32, 8, "n-w"), []*Value{row(512)}, Type{}},
		{"pack12", packing(32, 0, "n-w"), []*Value{row(512)}, Type{}},
		{"pack12", packing(32, -16, "n-w"), []*Value{row(512)}, Type{}},
		{"pack12", packing(32, 128, "n-w"), []*Value{row(512)}, Type{}},
		{"pack12", packing(32, 64, "n-w"), []*Value{row(512)}, Type{}},
		{"pack12", packing(0, 16, "n-w"), []*Value{row(512)}, Type{}},
		{"pack12", packing(-32, 16, "n-w"), []*Value{row(512)}, Type{}},
		{"pack12", packing(1<<62, 16, "n-w"), []*Value{row(512)}, Type{}},

		{"unpack12", some, []*Value{words(4, 2368)}, MakeType(F32, T, 512)},
		{"unpack12", two, []*Value{words(8, 2368)}, MakeType(F32, T, 512)},
		{"unpack12", whole(some, 1), []*Value{words(4, 2368)}, MakeType(F32, 32, 512)},
		{"unpack12", whole(some, 0), []*Value{words(4, 2368)}, Type{}},
		{"unpack12", whole(some, -1), []*Value{words(4, 2368)}, Type{}},
		{"unpack12", two, []*Value{words(6, 2368)}, Type{}},
		{"unpack12", some, []*Value{words(4, 2369)}, Type{}},
		{"unpack12", some, []*Value{words(T, 2368)}, Type{}},
		{"unpack12", some, []*Value{words(1<<61, 2368)}, Type{}},
		{"unpack12", some, []*Value{vector(2368)}, Type{}},
		{"unpack12", some, []*Value{row(2368)}, Type{}},
		{"unpack12", packing(1<<62, 16, "n-w"), []*Value{words(4, 2368)}, Type{}},
		{"unpack12", packing(32, 0, "n-w"), []*Value{words(4, 0)}, Type{}},
	} {
		k := LookupOp(c.op)
		got, err := k.Infer(&Op{Kind: k, Attrs: c.attrs, Args: c.args})
		if ok := c.want.DType != Invalid; ok != (err == nil) || ok && !got.Equal(c.want) {
			t.Errorf("%s%s of %s: %s, %v; want %s", c.op, c.attrs, c.args[0].Type, got, err, c.want)
		}
	}
}

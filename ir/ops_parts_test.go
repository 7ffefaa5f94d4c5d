package ir

import "testing"

// TestPartsAreBounded refuses what is odd, and what would make the size of the result overflow.
func TestPartsAreBounded(t *testing.T) {
	of := func(dtype DType, shape ...Dim) *Value { return &Value{Type: MakeType(dtype, shape...)} }
	row := func(k Dim) *Value { return of(F32, T, k) }
	ints := func(name string, n int64) Attrs { return Attrs{{name, n}} }
	eps := func(n int64) Attrs { return Attrs{{"count", n}, {"eps", 1e-6}} }
	for _, c := range []struct {
		op    string
		attrs Attrs
		args  []*Value
		want  Type // none if it is refused
	}{
		{"linear_parts", ints("each", 256), []*Value{row(640), of(F32, 24, 640)}, MakeType(F32, T, 72)},
		{"linear_parts", ints("each", 1024), []*Value{of(F16, 8, 512), of(Q4_K, 24, 512)}, MakeType(F32, 8, 24)},
		{"linear_parts", ints("each", 256), []*Value{row(1 << 24), of(F32, 1<<12, 1<<24)}, MakeType(F32, T, 1<<28)},
		{"linear_parts", ints("each", 256), []*Value{row(1 << 24), of(F32, 1<<13, 1<<24)}, Type{}},
		{"linear_parts", ints("each", 256), []*Value{row(1 << 62), of(F32, 24, 1<<62)}, Type{}},
		{"linear_parts", ints("each", 256), []*Value{row(512), of(F32, 1<<62, 512)}, Type{}},
		{"linear_parts", ints("each", 256), []*Value{row(512), of(F32, T, 512)}, Type{}},
		{"linear_parts", ints("each", 256), []*Value{row(512), of(F32, 0, 512)}, Type{}},
		{"linear_parts", ints("each", 256), []*Value{row(512), of(F32, 24, 256)}, Type{}},
		{"linear_parts", ints("each", 256), []*Value{row(512), of(F32, 2, 24, 512)}, Type{}},
		{"linear_parts", ints("each", 256), []*Value{of(I32, T, 512), of(F32, 24, 512)}, Type{}},
		{"linear_parts", ints("each", 256), []*Value{of(F32, 512), of(F32, 24, 512)}, Type{}},
		{"linear_parts", ints("each", 128), []*Value{row(512), of(F32, 24, 512)}, Type{}},
		{"linear_parts", ints("each", 0), []*Value{row(512), of(F32, 24, 512)}, Type{}},
		{"linear_parts", ints("each", -256), []*Value{row(512), of(F32, 24, 512)}, Type{}},
		{"linear_parts", ints("each", 1<<62), []*Value{row(512), of(F32, 24, 512)}, Type{}},

		{"add_parts", ints("count", 3), []*Value{row(72)}, MakeType(F32, T, 24)},
		{"add_parts", ints("count", 3), []*Value{of(F32, 8, 72), of(F32, 24)}, MakeType(F32, 8, 24)},
		{"add_parts", eps(3), []*Value{row(72), row(4)}, MakeType(F32, T, 24)},
		{"add_parts", eps(3), []*Value{row(72), row(4), of(F32, 24)}, MakeType(F32, T, 24)},
		{"add_parts", eps(3), []*Value{row(72)}, Type{}},
		{"add_parts", eps(3), []*Value{row(72), of(F32, 24)}, Type{}},
		{"add_parts", eps(3), []*Value{row(72), of(F32, 8, 4)}, Type{}},
		{"add_parts", eps(3), []*Value{row(72), of(F16, T, 4)}, Type{}},
		{"add_parts", eps(3), []*Value{row(72), row(1 << 62)}, Type{}},
		{"add_parts", eps(3), []*Value{row(72), row(4), of(F32, 72)}, Type{}},
		{"add_parts", ints("count", 3), []*Value{row(72), row(4)}, Type{}},
		{"add_parts", ints("count", 3), []*Value{row(72), row(4), of(F32, 24)}, Type{}},
		{"add_parts", ints("count", 3), []*Value{row(72), of(F32, 72)}, Type{}},
		{"add_parts", ints("count", 3), []*Value{of(F16, T, 72)}, Type{}},
		{"add_parts", ints("count", 3), []*Value{of(F32, 72)}, Type{}},
		{"add_parts", ints("count", 5), []*Value{row(72)}, Type{}},
		{"add_parts", ints("count", 0), []*Value{row(72)}, Type{}},
		{"add_parts", ints("count", -3), []*Value{row(72)}, Type{}},
		{"add_parts", ints("count", 1), []*Value{row(1 << 62)}, Type{}},
	} {
		k := LookupOp(c.op)
		got, err := k.Infer(&Op{Kind: k, Attrs: c.attrs, Args: c.args})
		if ok := c.want.DType != Invalid; ok != (err == nil) || ok && !got.Equal(c.want) {
			t.Errorf("%s%s of %s: %s, %v; want %s", c.op, c.attrs, c.args[0].Type, got, err, c.want)
		}
	}
}

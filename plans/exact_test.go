package plans

import (
	"reflect"
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

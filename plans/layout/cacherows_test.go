package layout

import (
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

// TestCacheRows: what the ranges of some rows name on the device is those rows, and nothing of others; of sequences
// side by side, and of pages.
func TestCacheRows(t *testing.T) {
	const sequences, positions, width = 3, 10, 64
	for _, d := range []ir.DType{ir.F16, ir.F32, ir.Q8_0, ir.Q4_0} {
		testCacheRows(t, &ir.Value{Class: ir.KV, Type: ir.MakeType(d, sequences, ir.L, width)}, func(of ir.Type, sequence, from, to int) []Range {
			return CacheRows(of, positions, sequence, from, to)
		})
		testCacheRows(t, &ir.Value{Class: ir.KV, Layout: ir.PagesLayout, Type: ir.MakeType(d, sequences, positions, width)}, PageRows)
	}
}

// testCacheRows tests ranges of some rows of 3 parts of 10 rows of 64 elements.
func testCacheRows(t *testing.T, cache *ir.Value, ranges func(of ir.Type, part, from, to int) []Range) {
	const sequences, positions, width = 3, 10, 64
	d, of := cache.Type.DType, cache.Type
	row := d.Bytes(width)
	for _, c := range [][3]int{{0, 0, 10}, {1, 0, 3}, {1, 4, 9}, {2, 9, 10}, {2, 5, 5}} {
		sequence, from, to := c[0], c[1], c[2]
		rows := make([]byte, sequences*positions*row)
		want := rows[int64(sequence*positions+from)*row : int64(sequence*positions+to)*row]
		for i := range want {
			want[i] = byte(1 + i%200)
		}
		device, err := CacheToDevice(cache, positions, rows)
		if err != nil {
			t.Fatal(err)
		}
		none, err := CacheToDevice(cache, positions, make([]byte, len(rows)))
		if err != nil {
			t.Fatal(err)
		}
		bytes := int64(0)
		for _, r := range ranges(of, sequence, from, to) {
			copy(device[r.Offset:r.Offset+r.Bytes], none[r.Offset:])
			bytes += r.Bytes
		}
		if string(device) != string(none) || bytes != int64(len(want)) {
			t.Errorf("%s, rows %d to %d of part %d: %d bytes of %d, or others", of, from, to, sequence, bytes, len(want))
		}
	}
}

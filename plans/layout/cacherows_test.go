package layout

import (
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

// TestCacheRows: what the ranges of some rows name on the device is those rows, and nothing of others.
func TestCacheRows(t *testing.T) {
	const sequences, positions, width = 3, 10, 64
	for _, d := range []ir.DType{ir.F16, ir.F32, ir.Q8_0, ir.Q4_0} {
		of := ir.MakeType(d, sequences, ir.L, width)
		cache, row := &ir.Value{Class: ir.KV, Type: of}, d.Bytes(width)
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
			for _, r := range CacheRows(of, positions, sequence, from, to) {
				copy(device[r.Offset:r.Offset+r.Bytes], none[r.Offset:])
				bytes += r.Bytes
			}
			if string(device) != string(none) || bytes != int64(len(want)) {
				t.Errorf("%s, rows %d to %d of sequence %d: %d bytes of %d, or others", d, from, to, sequence, bytes, len(want))
			}
		}
	}
}
